"""What an incident is made of. Times are Unix seconds; an id is 16 hex digits from a random source and never part of a path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from obs.errors import CallError, ObsError
from obs.text import Quantity, say

ID = re.compile(r"[0-9a-f]{16}")
LONGEST_TITLE, LONGEST_NOTES = 200, 200_000  # characters


class NotesError(ObsError):
    """The notes cannot be read or written now; the rest of obs works without them."""


@dataclass(frozen=True)
class Judged:
    """The verdict at the time. `states` by row id; `headline` in the language of who saved; `made_by` names the version of obs."""

    primary: str
    states: Mapping[str, str]
    headline: str = ""
    made_by: str = ""


@dataclass(frozen=True)
class Draft:
    """What a new incident is made of. `link` is the pinned view as an address within the dashboard (`obs.links.url`)."""

    title: str
    notes: str
    link: str
    start: float
    end: float
    judged: Judged | None = None
    bundle: str | None = None  # content id


@dataclass(frozen=True)
class Incident:
    """A saved incident. `version` counts its saves from 1; `deleted` is when it was, None while it is not."""

    id: str
    version: int
    title: str
    notes: str
    link: str
    start: float
    end: float
    created: float
    changed: float
    judged: Judged | None = None
    bundle: str | None = None
    deleted: float | None = None


@dataclass(frozen=True)
class Revision:
    """One text that somebody saved. `version` is None where another save was first: it was kept, and became no version."""

    base: int  # the version that it was written from; 0 for the first
    version: int | None
    title: str
    notes: str
    saved: float


@dataclass(frozen=True)
class Conflict:
    """Somebody saved first: `theirs` is what stands there now. The text that was not saved is kept as a revision."""

    theirs: Incident
    title: str
    notes: str = field(repr=False, default="")


def checked(title: str, notes: str) -> tuple[str, str]:
    """Title and notes as they are stored: a title on one line. Raises CallError where they are empty or too long."""
    title, notes = (text.encode("utf-8", "replace").decode().replace("\x00", "") for text in (title, notes))
    title, notes = " ".join(title.split()), notes.replace("\r\n", "\n")
    if not title:
        raise CallError(say("An incident needs a title, so that it is found again."))
    if len(title) > LONGEST_TITLE:
        raise CallError(say("The title is too long: at most {most} characters.", most=Quantity(float(LONGEST_TITLE), "count")))
    if len(notes) > LONGEST_NOTES:
        raise CallError(say("The notes are too long: at most {most} characters.", most=Quantity(float(LONGEST_NOTES), "count")))
    return title, notes
