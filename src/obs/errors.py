"""What can go wrong, as sentences for the person.

ObsError
├── CallError        the call is wrong: arguments, settings, an impossible window, an unreadable bundle   (exit 2, HTTP 400)
└── SourceError      the source could not be reached, or refused                                          (exit 3, HTTP 502)
"""

from __future__ import annotations

from obs.text import Message


class ObsError(Exception):
    """An error whose `says` is a sentence: what happened, and what to do."""

    def __init__(self, says: Message) -> None:
        super().__init__(says.template)
        self.says = says


class CallError(ObsError):
    """The call is wrong; asking again the same way fails again."""


class SourceError(ObsError):
    """The source could not be reached, or refused, or answered what is no answer."""
