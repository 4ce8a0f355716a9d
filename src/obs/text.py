"""Sentences as data: the core says *what*, a language is chosen where it is shown.

A `Message` is an English template with named holes, which is also the gettext msgid, and the values for the holes.
The core never formats a figure: it puts a `Quantity` in the hole, and `obs.language` writes it in the reader's
language, unit and time zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Quantity:
    """A figure with its unit: one of `ratio` (0-1, shown as percent), `times` (a factor), `seconds`, `per_second`,
    `tokens`, `tokens_per_second`, `bytes`, `decimal_bytes` and `binary_bytes` (bytes to three digits: GB, GiB), `count`, `state`.
    NaN is shown as a dash, never as 0."""

    value: float
    unit: str


@dataclass(frozen=True)
class Moment:
    """A point in time, Unix seconds UTC; shown in the reader's zone, with the day where `dated`."""

    at: float
    dated: bool = False


@dataclass(frozen=True)
class Names:
    """A list of names (replicas, metrics) from outside: shown verbatim and escaped, never translated."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Message:
    """An English template with `{named}` holes and what fills them. `plural` and `n` choose between two forms."""

    template: str
    values: Mapping[str, Value] = field(default_factory=dict)
    plural: str | None = None
    n: int = 1


@dataclass(frozen=True)
class Sentences:
    """Several messages that are read one after the other."""

    items: tuple[Message, ...]


Value = str | int | Quantity | Moment | Names | Message | Sentences


def say(template: str, **values: Value) -> Message:
    """A message; Babel extracts the first argument, so it must be a literal."""
    return Message(template, values)


def say_n(template: str, plural: str, n: int, **values: Value) -> Message:
    """A message that differs between one and several; `{n}` in it is the number."""
    return Message(template, {"n": n, **values}, plural, n)
