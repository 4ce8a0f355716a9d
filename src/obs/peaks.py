"""The highest figures of an episode: what a list of incidents says of each, beside its length."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from obs.evidence import span
from obs.facts import Facts
from obs.order import Applying
from obs.row import Row
from obs.series import Array
from obs.signals import SIGNALS
from obs.symptoms import FIRST_TOKEN, GPU_FULL, LATENCY, OUT_OF_MEMORY, PRESSURE, RETRIES, WORK_LEFT
from obs.text import Message
from obs.verdict import Peak


@dataclass(frozen=True)
class _Figure:
    """A figure by replica, by gateway, or of the whole view."""

    id: str
    title: Message
    unit: str
    values: Callable[[Facts], Array]


_OF_CONDITIONS = {c.id: _Figure(c.id, c.title, c.unit, c.figure) for c in (
    *PRESSURE, *LATENCY, *FIRST_TOKEN, *RETRIES, *WORK_LEFT, OUT_OF_MEMORY, GPU_FULL,
)}  # fmt: skip
_WAITING = SIGNALS["requests_waiting"]
_FIGURES = {**_OF_CONDITIONS, "waiting": _Figure("waiting", _WAITING.title, "count", lambda facts: facts.values("requests_waiting"))}
BY_ROW: Mapping[str, tuple[str, ...]] = {
    "gpu_oom": ("gpu_oom_events", "gpu_memory"),
    "latency_without_errors": ("kv_use", "waiting", "preemptions", "e2e_latency"),
    "slow_first_token": ("ttft", "gateway_ttft", "network", "waiting"),
    "load_after_timeouts": ("retry_ratio", "timeouts", "waste"),
}


def with_peaks(facts: Facts, rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows, each of their episodes with its peaks."""
    return tuple(replace(row, applying=tuple(replace(a, peaks=peaks(facts, a)) for a in row.applying)) for row in rows)


def peaks(facts: Facts, applying: Applying) -> tuple[Peak, ...]:
    """The highest figure of each kind that belongs to the row, within the episode and on its replicas; none that is unknown or 0."""
    steps, names = span(facts, (applying.episode,)), set(applying.episode.replicas)
    rows = [i for i, replica in enumerate(facts.readings.replicas) if replica.name in names]
    found = []
    for figure in (_FIGURES[id_] for id_ in BY_ROW[applying.row]):
        values = figure.values(facts)
        seen = (values[rows] if rows and len(values) == facts.rows else values)[:, steps]
        top = float(np.max(seen, where=np.isfinite(seen), initial=0.0))
        if top > 0:
            found.append(Peak(figure.id, figure.title, top, figure.unit))
    return tuple(found)
