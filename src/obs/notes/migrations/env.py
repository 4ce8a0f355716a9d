"""What Alembic runs: every step, on the connection and in the transaction that `obs.notes.migrate` gives."""

from alembic import context

from obs.notes.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
