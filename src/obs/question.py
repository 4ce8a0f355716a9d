"""What a page says beside its charts: the answer to its question, and its figures. Pure data; each page's rules make it."""

from __future__ import annotations

from dataclasses import dataclass

from obs.text import Message
from obs.verdict import State


@dataclass(frozen=True)
class Figure:
    """One large figure. `value` and `before` (the baseline, or the window's first part) are in `unit`; None where there is none.

    `state` is drawn as sign and colour, and `says` puts the same in words: no colour stands alone. A state of None is a plain figure.
    """

    title: Message
    value: float | None
    unit: str
    says: Message | None = None
    before: float | None = None
    state: State | None = None


@dataclass(frozen=True)
class Said:
    """The answer: APPLIES is the trouble that the question asks for, CLEAR its absence, UNKNOWN that nobody can tell, and why."""

    state: State
    says: Message
    figures: tuple[Figure, ...] = ()
    advice: tuple[Message, ...] = ()
