"""Quantiles from the buckets of a histogram, and what the buckets cannot tell.

As Prometheus' `histogram_quantile`: linear within a bucket, the first one from 0. A quantile in the first or in the last bucket has
no figure but a bound: `Side` says so, and a page shows "at most" or "more than". Quantiles of the whole view only: the buckets are
summed, percentiles of replicas are never added or averaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from obs.series import Array, Mask, divide
from obs.signals import Buckets
from obs.text import Message, Quantity, say


class Side(IntEnum):
    """Where a quantile lies: WITHIN the buckets it is a figure, elsewhere a bound."""

    AT_MOST = -1  # in the first bucket: the figure is its upper end
    WITHIN = 0
    MORE_THAN = 1  # in the last bucket, up to infinity: the figure is its lower end


@dataclass(frozen=True)
class Bounded:
    """One quantile: the figure (in the signal's unit), and whether it is a bound only."""

    value: float
    side: Side

    def says(self, unit: str) -> Message:
        """The figure as a sentence's part."""
        figure = Quantity(self.value, unit)
        if self.side is Side.AT_MOST:
            return say("at most {figure}", figure=figure)
        return say("more than {figure}", figure=figure) if self.side is Side.MORE_THAN else Message("{figure}", {"figure": figure})


def quantile(bounds: Array, rates: Array, q: float) -> tuple[Array, Array]:
    """The quantile at each step, shape [steps], and its `Side` (as numbers). `rates` are cumulative, [bounds, steps]; NaN where nothing
    was observed."""
    total = np.nan_to_num(rates[-1])
    cumulative = np.maximum.accumulate(np.nan_to_num(rates), axis=0)  # scrape by scrape a bucket may run ahead of a larger one
    rank = q * total
    place = (cumulative < rank - 1e-12).sum(axis=0).clip(0, len(bounds) - 1)
    steps = np.arange(rates.shape[1])
    upper = bounds[place]
    lower = np.where(place > 0, bounds[np.maximum(place - 1, 0)], np.minimum(0.0, bounds[0]))
    below = np.where(place > 0, cumulative[np.maximum(place - 1, 0), steps], 0.0)
    within = cumulative[place, steps] - below
    with np.errstate(invalid="ignore", divide="ignore"):
        figure = lower + (upper - lower) * np.where(within > 0, (rank - below) / within, 1.0)
    last = np.isinf(upper)
    side = np.where(last, Side.MORE_THAN, np.where(place == 0, Side.AT_MOST, Side.WITHIN)).astype(np.float64)
    figure = np.where(last, lower, np.where(place == 0, upper, figure))
    known = total > 0
    return np.where(known, figure, np.nan), np.where(known, side, np.nan)


def over(buckets: Buckets, steps: Mask, q: float) -> Bounded | None:
    """The quantile of everything observed in these steps; None where nothing was."""
    summed = np.nan_to_num(buckets.rates[:, steps]).sum(axis=1)[:, None]
    value, side = quantile(buckets.bounds, summed, q)
    return None if np.isnan(value[0]) else Bounded(float(value[0]), Side(int(side[0])))


def longest(buckets: Buckets, steps: Mask) -> Bounded | None:
    """The most that was observed: no more is known than the upper end of the highest bucket that holds anything."""
    summed = np.maximum.accumulate(np.nan_to_num(buckets.rates[:, steps]).sum(axis=1))
    if summed[-1] <= 0:
        return None
    place = int(np.flatnonzero(summed >= summed[-1] * (1 - 1e-9))[0])
    if np.isinf(buckets.bounds[place]):
        return Bounded(float(buckets.bounds[place - 1]), Side.MORE_THAN)
    return Bounded(float(buckets.bounds[place]), Side.AT_MOST)


@dataclass(frozen=True)
class Share:
    """Which part of what was observed lies at or under a limit: at least `low`, at most `high`. Buckets tell no more than that for a
    limit between two edges, `lower` and `upper` (infinite beyond the last one); on an edge all four agree. Ratios."""

    low: float
    high: float
    lower: float
    upper: float

    @property
    def exact(self) -> bool:
        """Whether the limit is an edge."""
        return self.lower == self.upper


def edges(bounds: Array, limit: float) -> tuple[int, int]:
    """The buckets whose upper ends are nearest to a limit: (at or under it, at or over it); -1 where it lies in the first bucket. The same
    where it is an edge."""
    over = int(np.searchsorted(bounds, limit * (1 - 1e-9)))
    return (over, over) if np.isclose(bounds[over], limit, rtol=1e-9) else (over - 1, over)


def within(bounds: Array, rates: Array, limit: float) -> tuple[Array, Array]:
    """The part at or under `limit` at each step, the least and the most that it can be, each [steps]; NaN where nothing was observed."""
    cumulative = np.maximum.accumulate(np.nan_to_num(rates), axis=0)
    under, over = edges(bounds, limit)
    total = cumulative[-1]
    return divide(cumulative[under] if under >= 0 else np.zeros_like(total), total), divide(cumulative[over], total)


def share(buckets: Buckets, steps: Mask, limit: float) -> Share | None:
    """The part at or under `limit` of everything observed in these steps; None where nothing was."""
    summed = np.nan_to_num(buckets.rates[:, steps]).sum(axis=1)[:, None]
    low, high = within(buckets.bounds, summed, limit)
    if np.isnan(low[0]):
        return None
    under, over = edges(buckets.bounds, limit)
    lower = float(buckets.bounds[under]) if under >= 0 else 0.0
    return Share(float(low[0]), float(high[0]), lower, float(buckets.bounds[over]))


def around(buckets: Buckets, figure: Bounded) -> tuple[float, float]:
    """The edges of the bucket that a quantile lies in; the first begins at 0, the last has no end. A figure on an edge ends its bucket."""
    place = len(buckets.bounds) - 1 if figure.side is Side.MORE_THAN else int(np.searchsorted(buckets.bounds, figure.value * (1 - 1e-9)))
    return (float(buckets.bounds[place - 1]) if place else 0.0), float(buckets.bounds[place])
