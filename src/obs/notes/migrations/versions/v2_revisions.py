"""Every text that was saved is kept; of the incidents that are there, the text they have is the first that is known."""

import sqlalchemy as sa
from alembic import op

revision = "v2"
down_revision = "v1"


def upgrade() -> None:
    """Makes the table and fills it from the incidents."""
    op.create_table(
        "revisions",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("incident", sa.String(16), sa.ForeignKey("incidents.id"), nullable=False),
        sa.Column("base", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("notes", sa.Text, nullable=False),
        sa.Column("saved", sa.Float, nullable=False),
    )
    op.create_index("ix_revisions_incident", "revisions", ["incident"])
    op.execute(
        "INSERT INTO revisions (incident, base, version, title, notes, saved)"
        " SELECT id, version - 1, version, title, notes, changed FROM incidents"
    )
