"""The tables. A change here comes with a migration in `migrations/versions`, and `HEAD` names the last one."""

from __future__ import annotations

from sqlalchemy import Column, Float, ForeignKey, Integer, MetaData, String, Table, Text

HEAD = "v2"
FILE = "notes.sqlite"

metadata = MetaData()

incidents = Table(
    "incidents",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("title", Text, nullable=False),
    Column("notes", Text, nullable=False),
    Column("link", Text, nullable=False),
    Column("start", Float, nullable=False),
    Column("end", Float, nullable=False),
    Column("created", Float, nullable=False),
    Column("changed", Float, nullable=False),
    Column("judged", Text),  # JSON of `obs.notes.incident.Judged`
    Column("bundle", String(16)),
    Column("deleted", Float),
)

revisions = Table(
    "revisions",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("incident", String(16), ForeignKey("incidents.id"), nullable=False, index=True),
    Column("base", Integer, nullable=False),
    Column("version", Integer),  # NULL: somebody else had saved first
    Column("title", Text, nullable=False),
    Column("notes", Text, nullable=False),
    Column("saved", Float, nullable=False),
)
