"""What happened to GPUs and processes in the window, four kinds told apart: a GPU out-of-memory error, a process that the host killed, a
GPU's own error (XID), and a start of the process, which alone is none of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from obs import inside
from obs.facts import Facts
from obs.series import Array, Mask, near, runs
from obs.text import Message, say

AROUND_SECONDS = 300.0  # a container's last end, and the start that shows it


@dataclass(frozen=True)
class Event:
    """One event of one replica. Unix seconds: it happened within the grid's step before."""

    at: float
    replica: str
    says: Message


@dataclass(frozen=True)
class Lane:
    """One kind. `why`: what would tell, where nothing measures it; then `events` are not known, which is not none."""

    kind: str  # "oom", "host", "xid", "restart"
    title: Message
    means: Message
    signals: tuple[str, ...]
    events: tuple[Event, ...] = ()
    why: Message | None = None


# NVIDIA's "XID errors" page, in few words
XIDS: Mapping[int, Message] = {
    13: say("an illegal access by the program, or a fault of the GPU"),
    31: say("an illegal access by the program"),
    43: say("the GPU stopped this program"),
    45: say("what ran was cleared, after another error or at an end"),
    48: say("an ECC error that cannot be corrected"),
    61: say("a fault in the GPU's firmware"),
    62: say("a fault in the GPU's firmware"),
    63: say("a row of memory is to be remapped"),
    64: say("a row of memory could not be remapped"),
    74: say("an NVLink error"),
    79: say("the GPU has fallen off the bus"),
    94: say("an ECC error that was contained"),
    95: say("an ECC error that was not contained"),
    119: say("the GPU's system processor does not answer"),
    120: say("an error of the GPU's system processor"),
}


def lanes(facts: Facts) -> tuple[Lane, ...]:
    """The four kinds, in this order, with their events in the window by time."""
    return (
        _lane(
            facts, "oom", say("GPU out-of-memory events"), say("The GPU had no room for an allocation: the process fails or ends."),
            ("gpu_oom_events",), _counted(facts, facts.oom_events, say("out of GPU memory")),
        ),
        _lane(
            facts, "host", say("Host out-of-memory kills"), say("The kernel ended a process for RAM, which is not GPU memory."),
            ("host_oom_kills", "container_oom_killed"), _host(facts),
        ),
        _lane(
            facts, "xid", say("GPU errors (XID)"), say("Hardware, driver or an illegal access. A CUDA out-of-memory error raises none."),
            ("gpu_xid",), _xids(facts),
        ),
        _lane(
            facts, "restart", say("Restarts"), say("A process came up that was there before. By itself it does not say why."),
            ("counter_resets", "container_restarts"), _starts(facts),
        ),
    )  # fmt: skip


def _lane(facts: Facts, kind: str, title: Message, means: Message, signals: tuple[str, ...], found: Iterator[Event]) -> Lane:
    if not any(facts.has(signal) for signal in signals):
        return Lane(kind, title, means, signals, why=facts.reading(signals[0]).why or say("no figure in this window."))
    return Lane(kind, title, means, signals, tuple(sorted(found, key=lambda event: (event.at, event.replica))))


def _events(facts: Facts, mask: Mask) -> Iterator[tuple[int, int]]:
    """(row, step) of each stretch of the mask that begins in the window."""
    window = inside.inside(facts)
    for row in np.flatnonzero(mask.any(axis=1)):
        yield from ((int(row), first) for first, _last in runs(mask[row]) if window[first])


def _event(facts: Facts, row: int, step: int, says: Message) -> Event:
    return Event(float(facts.grid.times[step]), facts.readings.replicas[row].name, says)


def _counted(facts: Facts, counts: Array, says: Message) -> Iterator[Event]:
    for row, step in zip(*np.nonzero((counts > 0) & inside.inside(facts)), strict=True):
        yield _event(facts, int(row), int(step), says)


def _host(facts: Facts) -> Iterator[Event]:
    """Kills that were counted; where they are not, starts after an end that Kubernetes calls OOMKilled."""
    words = say("killed for host memory")
    if facts.has("host_oom_kills"):
        counts = facts.values("host_oom_kills")
        yield from _counted(facts, np.maximum(np.nan_to_num(np.diff(counts, axis=1, prepend=np.nan)), 0.0), words)
        return
    killed = near(facts.values("container_oom_killed") > 0, facts.grid.steps(AROUND_SECONDS))
    for row, step in _events(facts, facts.restarts & killed):
        yield _event(facts, row, step, words)


def _xids(facts: Facts) -> Iterator[Event]:
    """Changes of the last code. The same code a second time changes nothing, and is not seen."""
    codes = facts.values("gpu_xid")
    for row in range(facts.rows):
        known = np.flatnonzero(np.isfinite(codes[row]))
        for before, step in pairwise(known):
            code = int(codes[row, step])
            if code > 0 and code != codes[row, before] and inside.inside(facts)[step]:
                meaning = XIDS.get(code, say("see NVIDIA's list of XID errors"))
                yield _event(facts, row, int(step), say("XID {code}: {meaning}", code=code, meaning=meaning))


def _starts(facts: Facts) -> Iterator[Event]:
    for row, step in _events(facts, facts.restarts):
        yield _event(facts, row, step, say("the process started again"))
