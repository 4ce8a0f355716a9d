"""Saved incidents in real SQLite files: nothing is lost, and a database that is gone, locked, read-only or damaged says so."""

import os
import shutil
import sqlite3
import stat
import tempfile
import threading
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import create_engine

from obs.errors import CallError
from obs.language import render
from obs.notes import migrate
from obs.notes.incident import LONGEST_NOTES, Conflict, Draft, Incident, Judged, NotesError
from obs.notes.schema import FILE, HEAD, metadata
from obs.notes.store import Store
from obs.text import say

JUDGED = Judged("latency_without_errors", {"gpu_oom": "clear", "latency_without_errors": "applies"}, "Latency rises.", "obs 0.1.0")


def draft(title: str = "KV pressure", notes: str = "Peaked at *99 %*.", at: float = 1000.0) -> Draft:
    return Draft(title, notes, "/kv?from=a&to=b&namespace=prod", at, at + 600, JUDGED, "0123456789abcdef")


def says(error: pytest.ExceptionInfo[NotesError]) -> str:
    return render(error.value.says, "en")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "notes", lock_seconds=0.2)


@pytest.fixture
def unprivileged():
    """A folder of a user who is not root, and that user: root may write everywhere."""
    folder = Path(tempfile.mkdtemp())
    nobody = 65534
    render(say("The database of the notes is gone."), "en")  # catalogues are read before the rights are gone
    root = os.geteuid() == 0
    if root:
        os.chown(folder, nobody, nobody)
        os.seteuid(nobody)
    yield folder
    if root:
        os.seteuid(0)
    for path in (folder, *folder.rglob("*")):
        path.chmod(stat.S_IRWXU)
    shutil.rmtree(folder)


# ---------------------------------------------------------------- what cannot be saved


def test_an_incident_without_a_title_or_with_endless_notes_is_refused(store):
    for title, notes in (("", "x"), (" \n ", "x"), ("t" * 201, "x"), ("t", "x" * (LONGEST_NOTES + 1))):
        with pytest.raises(CallError):
            store.add(draft(title, notes), 1.0)
    assert store.found() == []
    assert not store.file.exists()  # a read makes no file


@pytest.mark.parametrize("wanted", ["", "0" * 16, "../../etc/passwd", "' OR 1=1 --", "0123456789ABCDEF"])
def test_an_id_that_is_none_names_nothing(store, wanted):
    store.add(draft(), 1.0)
    with pytest.raises(CallError, match="no incident with the id"):
        store.get(wanted)
    with pytest.raises(CallError, match="no incident with the id"):
        store.save(wanted, 1, "x", "y", 2.0)


def test_a_read_only_folder_is_still_read_and_says_why_it_is_not_written(unprivileged):
    made = Store(unprivileged).add(draft(), 1.0)
    (unprivileged / FILE).chmod(0o400)
    unprivileged.chmod(0o500)
    held = Store(unprivileged)
    assert held.found() == [made]
    for write in (lambda: held.save(made.id, 1, "x", "y", 2.0), lambda: held.delete(made.id, 1, 2.0), lambda: held.add(draft(), 2.0)):
        with pytest.raises(NotesError) as error:
            write()
        assert "read only" in says(error)
    assert held.found() == [made]


def test_a_folder_that_cannot_be_made_says_so(unprivileged):
    unprivileged.chmod(0o500)
    held = Store(unprivileged / "notes")
    assert held.found() == []
    with pytest.raises(NotesError) as error:
        held.add(draft(), 1.0)
    assert "OBS_NOTES_DIR" in says(error)


@pytest.mark.parametrize("content", [b"this is no database at all" * 40, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_damaged_database_says_so_and_is_left_as_it_is(store, content):
    store.folder.mkdir()
    store.file.write_bytes(content)
    for act in (store.found, lambda: store.add(draft(), 1.0)):
        with pytest.raises(NotesError) as error:
            act()
        assert "damaged" in says(error)
    assert store.file.read_bytes() == content


def test_a_database_that_another_program_locks_says_so(store):
    made = store.add(draft(), 1.0)
    other = sqlite3.connect(store.file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    for act in (store.found, lambda: store.save(made.id, 1, "x", "y", 2.0)):
        with pytest.raises(NotesError) as error:
            act()
        assert "locked" in says(error)
    other.execute("ROLLBACK")
    other.close()
    assert store.get(made.id) == made


def test_a_database_that_is_gone_is_not_begun_anew_in_silence(store):
    made = store.add(draft(), 1.0)
    away = store.file.rename(store.folder / "away")
    for act in (store.found, lambda: store.get(made.id), lambda: store.add(draft(), 2.0)):
        with pytest.raises(NotesError) as error:
            act()
        assert "gone" in says(error)
    away.rename(store.file)
    assert store.found() == [made]


def test_a_database_of_a_later_version_is_left_alone(store):
    store.add(draft(), 1.0)
    with sqlite3.connect(store.file) as other:
        other.execute("UPDATE alembic_version SET version_num = 'v99'")
    other.close()
    before = store.file.read_bytes()
    for act in (store.found, lambda: store.add(draft(), 2.0)):
        with pytest.raises(NotesError) as error:
            act()
        assert "newer version" in says(error)
    assert store.file.read_bytes() == before


# ---------------------------------------------------------------- what is kept


def test_what_is_saved_is_read_again_by_another_process(store):
    made = store.add(draft("  KV \n pressure "), 5.0)
    assert (made.title, made.version, made.created, made.judged) == ("KV pressure", 1, 5.0, JUDGED)
    assert Store(store.folder).get(made.id) == made
    saved = store.save(made.id, 1, "KV pressure", "Second.", 6.0)
    assert isinstance(saved, Incident)
    assert (saved.version, saved.notes, saved.created, saved.changed) == (2, "Second.", 5.0, 6.0)
    assert [(r.version, r.base, r.notes) for r in store.revisions(made.id)] == [(2, 1, "Second."), (1, 0, "Peaked at *99 %*.")]


def test_of_two_who_edit_the_same_version_neither_text_is_lost(store):
    made = store.add(draft(notes="both read this"), 1.0)
    mine = store.save(made.id, 1, made.title, "mine", 2.0)
    theirs = Store(store.folder).save(made.id, 1, made.title, "theirs", 3.0)
    assert isinstance(mine, Incident)
    assert isinstance(theirs, Conflict)
    assert (theirs.theirs.notes, theirs.notes) == ("mine", "theirs")
    assert store.get(made.id).notes == "mine"
    assert [(r.version, r.notes) for r in store.revisions(made.id)] == [(None, "theirs"), (2, "mine"), (1, "both read this")]
    joined = store.save(made.id, 2, made.title, "mine\ntheirs", 4.0)
    assert isinstance(joined, Incident)
    assert joined.version == 3


def test_the_same_text_saved_twice_is_no_conflict(store):
    made = store.add(draft(), 1.0)
    store.save(made.id, 1, "t", "n", 2.0)
    again = store.save(made.id, 1, "t", "n", 3.0)
    assert isinstance(again, Incident)
    assert again.version == 2
    assert len(store.revisions(made.id)) == 2


def test_of_twenty_who_save_at_once_every_text_is_kept(store):
    made = store.add(draft(), 1.0)
    results: list[object] = []
    together = threading.Barrier(20)

    def person(number: int) -> None:
        own = Store(store.folder, lock_seconds=20)
        together.wait()
        results.append(own.save(made.id, 1, made.title, f"text {number}", 2.0))

    people = [threading.Thread(target=person, args=(number,)) for number in range(20)]
    for each in people:
        each.start()
    for each in people:
        each.join()
    assert sum(isinstance(result, Incident) for result in results) == 1
    assert sum(isinstance(result, Conflict) for result in results) == 19
    assert {r.notes for r in store.revisions(made.id)} == {"Peaked at *99 %*.", *(f"text {number}" for number in range(20))}


def test_two_who_begin_the_database_at_once_make_one(store):
    together = threading.Barrier(4)

    def person(number: int) -> None:
        own = Store(store.folder, lock_seconds=20)
        together.wait()
        own.add(draft(f"of {number}"), 1.0)

    people = [threading.Thread(target=person, args=(number,)) for number in range(4)]
    for each in people:
        each.start()
    for each in people:
        each.join()
    assert sorted(one.title for one in store.found()) == ["of 0", "of 1", "of 2", "of 3"]


def test_a_search_finds_every_word_whatever_its_case_and_accents(store):
    first = store.add(draft("Presión de caché", "Réplica b", at=1000), 1.0)
    second = store.add(draft("Retry storm", "100% of_all", at=9000), 1.0)
    assert [one.id for one in store.found()] == [second.id, first.id]  # the latest window first
    for words, ids in (
        ("presion", [first.id]),
        ("PRESIÓN replica", [first.id]),
        ("presion storm", []),
        ("100% of_", [second.id]),
        ("%", [second.id]),  # a sign of SQL's LIKE is a sign
        ("prod", [second.id, first.id]),  # the link's scope
        ("latency", [second.id, first.id]),  # the verdict at the time
        (first.id, [first.id]),
    ):
        assert [one.id for one in store.found(words)] == ids, words


def test_a_deleted_incident_is_put_away_and_can_be_taken_back(store):
    made = store.add(draft(), 1.0)
    store.save(made.id, 1, "t", "changed meanwhile", 2.0)
    assert isinstance(store.delete(made.id, 1, 3.0), Conflict)  # who deletes has not seen this text
    assert isinstance(store.delete(made.id, 2, 3.0), Incident)
    assert store.found() == []
    assert [one.id for one in store.found(deleted=True)] == [made.id]
    late = store.save(made.id, 2, "t", "written while it was deleted", 4.0)
    assert isinstance(late, Conflict)
    assert store.revisions(made.id)[0].notes == "written while it was deleted"
    assert store.restore(made.id).notes == "changed meanwhile"
    assert [one.id for one in store.found()] == [made.id]


# ---------------------------------------------------------------- migrations


def test_the_migrations_make_the_tables_of_the_schema(store):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext
    from alembic.script import ScriptDirectory

    store.add(draft(), 1.0)
    assert ScriptDirectory.from_config(migrate.configuration()).get_current_head() == HEAD
    engine = create_engine(f"sqlite:///{store.file}")
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()


def first_version(store: Store) -> None:
    """The database as the first version of obs left it, with one incident."""
    store.folder.mkdir()
    engine = create_engine(f"sqlite:///{store.file}")
    config = migrate.configuration()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "v1")
        row = ("00000000000000aa", 3, "Old", "Third text", "/kv", 1.0, 2.0, 5.0, 7.0, None, None, None)
        connection.exec_driver_sql("INSERT INTO incidents VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", row)
    engine.dispose()


def test_a_database_of_the_first_version_is_brought_up_to_date_with_its_texts(store):
    first_version(store)
    (old,) = Store(store.folder).found("third")
    assert (old.id, old.version, old.notes) == ("00000000000000aa", 3, "Third text")
    assert [(r.version, r.notes, r.saved) for r in store.revisions(old.id)] == [(3, "Third text", 7.0)]
    saved = store.save(old.id, 3, "Old", "Fourth", 8.0)
    assert isinstance(saved, Incident)
    assert saved.version == 4


def test_a_migration_that_fails_leaves_the_database_as_it_was(store, monkeypatch):
    first_version(store)
    before = store.file.read_bytes()
    from obs.notes.migrations.versions import v2_revisions

    with sqlite3.connect(store.file) as other:
        other.execute("CREATE TABLE revisions (x INTEGER)")  # in the way of the second step
    other.close()
    with pytest.raises(NotesError):
        store.found()
    with sqlite3.connect(store.file) as other:
        assert other.execute("SELECT version_num FROM alembic_version").fetchall() == [("v1",)]
        assert other.execute("SELECT notes FROM incidents").fetchall() == [("Third text",)]
        other.execute("DROP TABLE revisions")
    other.close()
    assert v2_revisions.down_revision == "v1"
    assert len(before) > 0
    assert len(Store(store.folder).found()) == 1
