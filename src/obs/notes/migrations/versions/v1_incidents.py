"""The first form: incidents, each with its latest text alone."""

import sqlalchemy as sa
from alembic import op

revision = "v1"
down_revision = None


def upgrade() -> None:
    """Makes the table."""
    op.create_table(
        "incidents",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("notes", sa.Text, nullable=False),
        sa.Column("link", sa.Text, nullable=False),
        sa.Column("start", sa.Float, nullable=False),
        sa.Column("end", sa.Float, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("changed", sa.Float, nullable=False),
        sa.Column("judged", sa.Text),
        sa.Column("bundle", sa.String(16)),
        sa.Column("deleted", sa.Float),
    )
