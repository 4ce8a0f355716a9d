"""Brings the database to the tables of `schema.py`, whichever version of obs made it. One transaction: all of it, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from obs.notes.incident import NotesError
from obs.notes.schema import FILE, HEAD
from obs.text import say

if TYPE_CHECKING:
    from alembic.config import Config


def at(connection: Connection) -> str | None:
    """The migration that the database stands at; None for an empty one."""
    try:
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    except OperationalError as error:
        if "no such table" in str(error.orig):
            return None
        raise


def upgrade(connection: Connection) -> None:
    """Runs what is missing, in the transaction of the caller. Raises NotesError for a database of a later version of obs."""
    from alembic import command
    from alembic.script import ScriptDirectory

    config = configuration()
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    found = at(connection)
    if found is not None and found not in known:
        raise NotesError(say("{file} was made by a newer version of obs, and is left as it is. Update obs.", file=FILE))
    config.attributes["connection"] = connection
    command.upgrade(config, HEAD)


def configuration() -> Config:
    """Alembic's, without its file."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "obs.notes:migrations")
    config.set_main_option("path_separator", "os")
    return config
