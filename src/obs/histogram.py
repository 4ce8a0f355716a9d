"""Quantiles from the buckets of a histogram, and what the buckets cannot tell.

As Prometheus' `histogram_quantile`: linear within a bucket, the first one from 0. A quantile in the first or in the last bucket has
no figure but a bound: `Side` says so, and a page shows "at most" or "more than". Quantiles of the whole view only: the buckets are
summed, percentiles of replicas are never added or averaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from obs.series import Array, Mask
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
