"""One signal of every replica over the window as a grid of few cells: a row for each replica or for many together, a column for a while."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from obs import inside
from obs.facts import Facts
from obs.series import Array, divide, worst
from obs.signals import Kind

ROWS = 40  # that a person can read
SINGLE = 30  # of more replicas than that, so many have a row of their own; the others share the rest
COLUMNS = 120

SIGNALS = (
    "kv_use", "requests_waiting", "requests_running", "generation_tokens", "ttft", "itl", "queue_time", "preemptions", "gpu_memory",
)  # fmt: skip


@dataclass(frozen=True)
class Heat:
    """`values` has shape [rows, columns]; `starts` are the columns' beginnings (Unix seconds), each `seconds` long. NaN is a gap.

    `rows` are the replicas behind each row: one, or several, of which the highest figure is shown.
    """

    rows: tuple[tuple[str, ...], ...]
    starts: Array
    seconds: float
    values: Array


def offered(facts: Facts) -> tuple[str, ...]:
    """The signals that have a figure in the window, of those that tell replicas apart."""
    window = inside.inside(facts)
    return tuple(signal for signal in SIGNALS if np.isfinite(facts.values(signal)[:, window]).any())


def heat(facts: Facts, signal: str, order: Sequence[int]) -> Heat:
    """`order`: the replicas' rows in the readings, the sickest first. A level or a rate shows its highest in each cell, a mean all that
    was observed in it: the sum by the count."""
    window = inside.inside(facts)
    times, chunk = facts.grid.times[window], max(1, int(np.ceil(window.sum() / COLUMNS)))
    reading = facts.reading(signal)
    if reading.signal.kind is Kind.MEAN and reading.total is not None and reading.count is not None:
        total, count = (np.nansum(_cut(part[:, window], chunk), axis=2) for part in (reading.total, reading.count))
        cells = divide(total, count)
    else:
        cells = worst(_cut(facts.values(signal)[:, window], chunk), axis=2)
    groups = _groups(order)
    names = [replica.name for replica in facts.readings.replicas]
    rows = tuple(tuple(names[place] for place in group) for group in groups)
    empty = np.empty((0, cells.shape[1]))
    return Heat(rows, times[::chunk], chunk * facts.grid.step, np.stack([worst(cells[group]) for group in groups]) if groups else empty)


def _cut(values: Array, chunk: int) -> Array:
    """[rows, columns, chunk], filled up with NaN."""
    pad = (-values.shape[1]) % chunk
    return np.concatenate([values, np.full((len(values), pad), np.nan)], axis=1).reshape(len(values), -1, chunk)


def _groups(order: Sequence[int]) -> list[list[int]]:
    """A row for each while there are few; else for the sickest, and the others in equal parts, in their order."""
    if len(order) <= ROWS:
        return [[place] for place in order]
    alone, others = [[place] for place in order[:SINGLE]], np.array(order[SINGLE:], dtype=np.int64)
    return alone + [part.tolist() for part in np.array_split(others, ROWS - SINGLE)]
