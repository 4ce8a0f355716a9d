"""The steps from the first form of the notes' database to today's; run by `obs.notes.migrate`."""
