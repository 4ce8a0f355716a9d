"""What a source shows beside the signals: series that say something by being there, through their labels. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from obs.text import Message


@dataclass(frozen=True)
class Span:
    """A stretch in which a series was seen, Unix seconds; `end` None = still at the window's end. `doubt` as for an event, of both ends."""

    start: float
    end: float | None
    doubt: float = 0.0


@dataclass(frozen=True)
class Shown:
    """A series that says something by being there."""

    metric: str
    labels: Mapping[str, str]
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class History:
    """`no_infos` and `no_alerts` say why nothing is known of them; None where it is known, also that there is nothing."""

    infos: tuple[Shown, ...]
    alerts: tuple[Shown, ...]
    no_infos: Message | None = None
    no_alerts: Message | None = None
