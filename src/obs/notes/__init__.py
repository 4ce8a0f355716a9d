"""Saved incidents: a title, a pinned view, notes in Markdown, the bundle beside them, and the verdict at the time.

They lie in one SQLite file in the folder of `OBS_NOTES_DIR`. Nothing that is written is lost: every revision is kept, a save says which
version it was written from, and what is deleted can be put back.
"""
