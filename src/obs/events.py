"""What changed in a window: restarts, and replicas that came or went. Pure: from the readings and the findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from obs.facts import Facts
from obs.series import runs
from obs.text import Message, say_n
from obs.verdict import Finding

KINDS = ("restart", "replicas", "version", "configuration", "traffic", "prompt_length")
AT_ONCE_SECONDS = 60.0  # what comes or goes so soon after another does so together


@dataclass(frozen=True)
class Event:
    """One change. It happened at most `doubt` seconds before `at` (Unix seconds): the window may have been read with longer steps."""

    kind: str  # one of KINDS
    at: float
    says: Message
    replicas: tuple[str, ...] = ()
    doubt: float = 0.0
    up: bool | None = None  # which way it went, where it went one


def lifecycle(facts: Facts, findings: Sequence[Finding]) -> tuple[Event, ...]:
    """Restarts, as the diagnosis found them, and replicas that came or went: their series begin or end here while others are there."""
    found = [
        Event("restart", f.start, say_n("{n} process started again", "{n} processes started again", len(f.replicas)), f.replicas)
        for f in findings
        if f.id == "restarted" and f.start >= facts.readings.start
    ]
    grid, gap = facts.grid, facts.grid.steps(facts.limit("hold"))
    doubt = grid.step if grid.step > facts.readings.scrape_seconds else 0.0
    seen = facts.measured
    came: dict[float, list[str]] = {}
    went: dict[float, list[str]] = {}
    for row, replica in enumerate(facts.readings.replicas):
        stretches = runs(seen[row])
        if not stretches:
            continue
        first, last = stretches[0][0], stretches[-1][1]
        others = np.delete(seen, row, axis=0)
        if first > gap and others[:, : first - gap].any():
            came.setdefault(float(grid.times[first]), []).append(replica.name)
        if last < grid.count - 1 - gap and others[:, last + gap :].any() and not facts.down[row, last + 1 :].any():
            went.setdefault(float(grid.times[last]) + doubt, []).append(replica.name)
    for at, names in _near(came, 2 * doubt or AT_ONCE_SECONDS):
        found.append(Event("replicas", at, say_n("{n} replica came", "{n} replicas came", len(names)), names, doubt, True))
    for at, names in _near(went, 2 * doubt or AT_ONCE_SECONDS):
        found.append(Event("replicas", at, say_n("{n} replica went", "{n} replicas went", len(names)), names, doubt, False))
    return tuple(event for event in found if facts.readings.start <= event.at <= facts.readings.end)


def _near(times: Mapping[float, list[str]], seconds: float) -> Iterator[tuple[float, tuple[str, ...]]]:
    """Moments that follow each other at once are one: of its first, with the names of all."""
    held: tuple[float, list[str]] | None = None
    last = 0.0
    for at in sorted(times):
        if held is not None and at - last <= seconds:
            held[1].extend(times[at])
        else:
            if held is not None:
                yield held[0], tuple(sorted(held[1]))
            held = (at, list(times[at]))
        last = at
    if held is not None:
        yield held[0], tuple(sorted(held[1]))
