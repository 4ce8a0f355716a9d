"""Since when: the moment at which the first of the conditions that belong together left what is usual.

A condition is *on* where it crosses its limit; what began, began at the foot of the ramp that leads there.
"""

from __future__ import annotations

import numpy as np

from obs.conditions import Held
from obs.facts import Facts
from obs.series import Array, runs

NEAR_SECONDS = 60.0  # what belongs together is not seen at the same scrape: histograms are observed when a request finishes
BELONGS_SECONDS = 300.0  # a condition that began this long before the rest is a state of its own, not the onset
RAMP_SECONDS = 240.0  # how far an onset is walked back down its ramp
SMOOTH_SECONDS = 30.0  # one noisy scrape is no foot, and hides none
FOOT = 0.15  # the part of the way from baseline to limit under which nothing has begun,
FOOT_OF_TYPICAL = 0.02  # or of the way to what it became, if that is more: noise under a steep rise is not its foot
RETRYING_SECONDS = 1800.0  # retries may wait this long for enough time-outs to be sure
DENSE = 3.0  # time-outs in two minutes: fewer come by chance before they come by trouble


def began(held: Held, row: int, first: int, step_seconds: float, reach_seconds: float = BELONGS_SECONDS) -> int | None:
    """The step at which the condition's run that meets `first` began, walked back down its ramp; None where it does not belong."""
    row = row if len(held.mask) > 1 else 0
    reach = int(reach_seconds / step_seconds)
    for start, end in runs(held.mask[row]):
        if end < first - int(NEAR_SECONDS / step_seconds) - 1 or start > first + reach:
            continue
        if start < first - reach:
            return None
        smooth = max(1, round(SMOOTH_SECONDS / step_seconds))
        usual, values = held.baseline.at(row, start), held.values[row]
        during = values[start : end + 1]
        typical = np.median(during[np.isfinite(during)]) if np.isfinite(during).any() else np.nan
        foot = usual + max(FOOT * (held.limits.at(row, start) - usual), FOOT_OF_TYPICAL * (typical - usual))
        return _foot(values, foot, start, int(RAMP_SECONDS / step_seconds), smooth)
    return None


def _foot(values: Array, foot: float, start: int, reach: int, smooth: int) -> int:
    """The first step of the ramp that led to `start`; `start` itself where no foot is found within reach."""
    for step in range(start, max(0, start - reach), -1):
        before = values[max(0, step - smooth) : step]
        known = before[np.isfinite(before)]
        if known.size and float(known.mean()) <= foot:
            return step
    return start


def load_began(facts: Facts, retries: Held, row: int, first: int) -> int:
    """Row 4 begins, at one gateway, at the foot of its retries or of the time-outs that they answer, whichever was first.

    A request may be retried before the gateway counts it as timed out. Retries without any time-out for minutes have another
    reason: then the row begins with the first time-out. Time-outs are looked for before the retries only where they come densely:
    a single one may be anybody's.
    """
    step = facts.grid.step
    reach = int(BELONGS_SECONDS / step)
    known = began(retries, row, first, step, RETRYING_SECONDS)
    start = first if known is None else known
    rate = facts.values("gateway_timeouts")[row]
    counted = np.flatnonzero(rate[start : first + reach + 1] > 0)
    if not counted.size:
        return start
    if counted[0] > reach:
        return start + int(counted[0])
    typical = float(np.median(rate[start : first + reach + 1][counted]))
    dense = typical * 120.0 >= DENSE
    return _foot(rate, FOOT * typical, start, reach, max(1, round(SMOOTH_SECONDS / step))) if dense else start
