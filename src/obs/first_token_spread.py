"""The distribution of the first token over time, from its buckets: which part of the requests of each moment fell into which bucket."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from obs import inside
from obs.facts import Facts
from obs.series import Array

COLUMNS, CELLS = 120, 1600  # at most: of one chart


@dataclass(frozen=True)
class Spread:
    """`shares` has shape [rows, columns], ratios of a column's requests, NaN where a column has none; row `i` lies between `edges[i]` and
    `edges[i + 1]` (seconds; the last may be infinite). Columns begin at `times` (Unix seconds) and are `seconds` wide; `counts` is how
    many requests one holds, [columns]."""

    edges: Array
    times: Array
    seconds: float
    shares: Array
    counts: Array

    def place(self, value: float) -> float | None:
        """Where a figure lies between the edges, in rows from below; None outside of them."""
        if not self.edges[0] <= value <= self.edges[-1]:
            return None
        row = int(np.clip(np.searchsorted(self.edges, value, side="right") - 1, 0, len(self.edges) - 2))
        lower, upper = self.edges[row], self.edges[row + 1]
        return row + (0.5 if np.isinf(upper) and value > lower else 0.0 if np.isinf(upper) else float((value - lower) / (upper - lower)))


def spread(facts: Facts, signal: str = "ttft") -> Spread | None:
    """The distribution over the window; None where nothing was observed in it."""
    buckets = facts.readings.buckets.get(signal)
    if buckets is None:
        return None
    steps = np.flatnonzero(inside.inside(facts))
    cumulative = np.maximum.accumulate(np.nan_to_num(buckets.rates[:, steps]), axis=0)
    made = np.diff(cumulative, axis=0, prepend=0.0) * facts.grid.step
    held = np.flatnonzero(made.sum(axis=1) > 0)
    if not held.size:
        return None
    first, last = int(held[0]), int(held[-1])
    made = made[first : last + 1]
    size = int(np.ceil(steps.size / min(COLUMNS, CELLS // len(made))))
    starts = np.arange(0, steps.size, size)
    cells = np.add.reduceat(made, starts, axis=1)
    counts = cells.sum(axis=0)
    shares = np.where(counts > 0, cells / np.where(counts > 0, counts, 1.0), np.nan)
    edges = np.concatenate([[buckets.bounds[first - 1] if first else 0.0], buckets.bounds[first : last + 1]])
    return Spread(edges, facts.grid.times[steps[starts]], size * facts.grid.step, shares, counts)
