"""Whether two figures rise together: Spearman's rank correlation with its sample size, minute by minute."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obs.series import Array, Grid

LEAST_PAIRS = 5  # fewer say nothing
STRONG, SOME = 0.7, 0.4  # as the usual readings of a rank correlation have it
MOST_BINS = 240  # of one window: a longer one takes longer bins


@dataclass(frozen=True)
class Correlation:
    """`rho` is None where it cannot be told: fewer than five pairs, or one of the figures never changes."""

    rho: float | None
    n: int


def ranks(values: Array) -> Array:
    """The rank of each value from 1 on; equal values share the mean of their ranks."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    group = np.cumsum(first) - 1
    places = np.arange(1.0, len(values) + 1)
    means = np.bincount(group, weights=places) / np.bincount(group)
    out = np.empty(len(values))
    out[order] = means[group]
    return out


def rank_correlation(x: Array, y: Array) -> Correlation:
    """Spearman's rho over the pairs in which both are known."""
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if len(x) < LEAST_PAIRS or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Correlation(None, len(x))
    return Correlation(float(np.corrcoef(ranks(x), ranks(y))[0, 1]), len(x))


@dataclass(frozen=True)
class Bins:
    """The window cut into whole minutes: `last` is the grid's step at each bin's end, `size` the steps of one, `seconds` its length."""

    last: NDArray[np.intp]
    size: int
    seconds: float


def minutes(grid: Grid, start: float, end: float, rate_seconds: float) -> Bins:
    """Bins of a minute, or of more whole minutes where rates look back longer, the grid is coarser, or there would be too many."""
    least = max(60.0, rate_seconds, grid.step, (end - start) / MOST_BINS)
    seconds = float(np.ceil(least / 60 - 1e-9) * 60)
    size = max(1, round(seconds / grid.step))
    first, stop = grid.index(start - 1e-6) + 1 if start > grid.start else 0, grid.index(end)
    last = np.arange(stop, first + size - 2, -size)[::-1]
    return Bins(last.astype(np.intp), size, size * grid.step)


def at_end(values: Array, bins: Bins) -> Array:
    """A rate that looks back over a bin, at the bin's end: what happened in it."""
    return values[..., bins.last]


def mean_in(values: Array, bins: Bins) -> Array:
    """The mean of a level over each bin; NaN where it has no value in it."""
    spans = bins.last[:, None] - np.arange(bins.size)[None, ::-1]
    seen = values[spans]
    known = np.isfinite(seen)
    total, count = np.where(known, seen, 0.0).sum(axis=1), known.sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
