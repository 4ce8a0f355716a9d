"""The store of incidents: one SQLite file. Each call opens it anew, so that a file that comes, goes or is locked is seen at once.

Every write is one transaction that holds the write lock from its first statement on. A read never makes the file.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, event, insert, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from obs.errors import CallError
from obs.notes import migrate
from obs.notes.incident import ID, Conflict, Draft, Incident, Judged, NotesError, Revision, checked
from obs.notes.schema import FILE, HEAD, incidents, revisions
from obs.text import Message, say

LOCK_SECONDS = 3.0  # how long another writer is waited for


class Store:
    """The incidents in a folder. Every method raises NotesError, with a sentence, where the database cannot be read or written."""

    def __init__(self, folder: Path, lock_seconds: float = LOCK_SECONDS) -> None:
        self.folder = folder
        self.file = folder / FILE
        self._seen = self.file.is_file()
        # isolation_level None: sqlite3 begins no transaction by itself; `begin` below does
        self._engine = create_engine(
            f"sqlite:///{self.file}", poolclass=NullPool, connect_args={"timeout": lock_seconds, "isolation_level": None}
        )

        @event.listens_for(self._engine, "begin")
        def begin(connection: Connection) -> None:
            write = connection.get_execution_options().get("write")
            connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    def found(self, words: str = "", *, deleted: bool = False) -> list[Incident]:
        """The incidents that hold every word, the latest window first; upper case and accents do not matter. `deleted`: those instead."""
        if not self._there():
            return []
        wanted = plain(words).split()
        with self._open() as connection:
            query = select(incidents).where(incidents.c.deleted.is_not(None) if deleted else incidents.c.deleted.is_(None))
            rows = [_incident(row) for row in connection.execute(query.order_by(incidents.c.end.desc(), incidents.c.id)).mappings()]
        return [one for one in rows if all(word in _searched(one) for word in wanted)]

    def get(self, wanted: str) -> Incident:
        """The incident of that id, deleted or not. Raises CallError where there is none."""
        if ID.fullmatch(wanted) and self._there():
            with self._open() as connection:
                if (found := _read(connection, wanted)) is not None:
                    return found
        raise CallError(say("There is no incident with the id “{id}” here.", id=wanted[:40]))

    def revisions(self, wanted: str) -> list[Revision]:
        """Every text that was saved, the latest first."""
        if not self._there():
            return []
        with self._open() as connection:
            query = select(revisions).where(revisions.c.incident == wanted).order_by(revisions.c.number.desc())
            return [
                Revision(row["base"], row["version"], row["title"], row["notes"], row["saved"])
                for row in connection.execute(query).mappings()
            ]

    def add(self, draft: Draft, now: float) -> Incident:
        """Saves a new incident under an id of its own. Raises CallError for a title or notes that cannot be."""
        title, notes = checked(draft.title, draft.notes)
        made = Incident(
            secrets.token_hex(8), 1, title, notes, draft.link, draft.start, draft.end, now, now, draft.judged, draft.bundle
        )  # fmt: skip
        with self._open(write=True) as connection:
            judged = json.dumps(asdict(made.judged)) if made.judged else None
            connection.execute(insert(incidents).values(**asdict(made) | {"judged": judged}))
            _keep(connection, made, 0, 1, title, notes, now)
        return made

    def save(self, wanted: str, base: int, title: str, notes: str, now: float) -> Incident | Conflict:
        """Saves a text written from version `base`. Where somebody else saved since, it is kept as a revision, and both are given."""
        title, notes = checked(title, notes)
        self.get(wanted)
        with self._open(write=True) as connection:
            current = _required(connection, wanted)
            if current.version != base or current.deleted is not None:
                if (title, notes) == (current.title, current.notes) and current.deleted is None:
                    return current  # both wrote the same, or one pressed twice
                _keep(connection, current, base, None, title, notes, now)
                return Conflict(current, title, notes)
            _write(connection, wanted, version=base + 1, title=title, notes=notes, changed=now)
            _keep(connection, current, base, base + 1, title, notes, now)
            return _required(connection, wanted)

    def delete(self, wanted: str, base: int, now: float) -> Incident | Conflict:
        """Puts an incident away, as it stood in version `base`; its texts stay. What changed meanwhile is given instead."""
        self.get(wanted)
        with self._open(write=True) as connection:
            current = _required(connection, wanted)
            if current.version != base:
                return Conflict(current, current.title)
            _write(connection, wanted, deleted=now)
            return _required(connection, wanted)

    def restore(self, wanted: str) -> Incident:
        """Takes a deleted incident back."""
        self.get(wanted)
        with self._open(write=True) as connection:
            _write(connection, wanted, deleted=None)
            return _required(connection, wanted)

    def _there(self) -> bool:
        """Whether there is a database. One that was there and is gone is an error: it is not begun anew behind anybody's back."""
        try:
            there = self.file.is_file()
        except OSError:
            there = False
        if self._seen and not there:
            raise NotesError(
                say(
                    "The database of the notes is gone: {file} was in the folder of OBS_NOTES_DIR and is no longer. "
                    "Put it back; to begin a new one, start obs again.",
                    file=FILE,
                )
            )
        self._seen = self._seen or there
        return there

    @contextmanager
    def _open(self, *, write: bool = False) -> Iterator[Connection]:
        """A transaction on a database of today's tables."""
        try:
            if not self._there():
                self.folder.mkdir(parents=True, exist_ok=True)
            with self._engine.execution_options(write=True).begin() if write else self._engine.begin() as connection:
                current = migrate.at(connection) == HEAD
                if write and not current:
                    migrate.upgrade(connection)
                self._seen = True
                if write or current:
                    yield connection
                    return
            with self._engine.execution_options(write=True).begin() as connection:
                migrate.upgrade(connection)
                yield connection
        except DBAPIError as error:
            raise NotesError(_reason(error)) from error
        except OSError as error:
            raise NotesError(
                say("The folder of OBS_NOTES_DIR cannot be used: {reason}.", reason=error.strerror or "?")
            ) from error  # fmt: skip


def plain(text: str) -> str:
    """Text for a search: lower case, without accents."""
    return "".join(sign for sign in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(sign))


def _searched(one: Incident) -> str:
    return plain(f"{one.title}\n{one.notes}\n{one.link}\n{one.judged.headline if one.judged else ''}\n{one.id}")


def _reason(error: DBAPIError) -> Message:
    """What SQLite says, as a sentence: what happened and what to do."""
    name = getattr(error.orig, "sqlite_errorname", "") if isinstance(error.orig, sqlite3.Error) else ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return say("Another program holds the database of the notes locked. Nothing was changed; try again in a moment.")
    if name.startswith("SQLITE_READONLY"):
        return say("The database of the notes can be read only: {file} or its folder cannot be written. Nothing was changed.", file=FILE)
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return say("{file} is damaged or no database. Put a copy of it back, or move it away to begin a new one.", file=FILE)
    if name.startswith("SQLITE_FULL"):
        return say("There is no room left where the notes are kept. Nothing was changed.")
    if name.startswith("SQLITE_CANTOPEN"):
        return say("The database of the notes cannot be opened: look at the folder of OBS_NOTES_DIR and who may write there.")
    return say("The database of the notes does not answer ({name}). Nothing was changed.", name=name or type(error.orig).__name__)


def _read(connection: Connection, wanted: str) -> Incident | None:
    row = connection.execute(select(incidents).where(incidents.c.id == wanted)).mappings().first()
    return _incident(row) if row is not None else None


def _required(connection: Connection, wanted: str) -> Incident:
    found = _read(connection, wanted)
    if found is None:
        raise CallError(say("There is no incident with the id “{id}” here.", id=wanted[:40]))
    return found


def _write(connection: Connection, wanted: str, **values: Any) -> None:
    connection.execute(update(incidents).where(incidents.c.id == wanted).values(**values))


def _keep(connection: Connection, one: Incident, base: int, version: int | None, title: str, notes: str, now: float) -> None:
    row = {"incident": one.id, "base": base, "version": version, "title": title, "notes": notes, "saved": now}
    connection.execute(insert(revisions).values(**row))


def _incident(row: RowMapping) -> Incident:
    values = dict(row)
    judged = json.loads(values["judged"]) if values["judged"] else None
    return Incident(**values | {"judged": Judged(**judged) if judged else None})
