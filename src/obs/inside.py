"""A window's part of the grid, and what was usual before a trouble in it."""

from __future__ import annotations

import numpy as np

from obs.means import Means
from obs.series import Array, Mask, anywhere, runs
from obs.verdict import Episode

LEAST_SECONDS = 30.0  # of a window that an episode must reach into
LEAST_STEPS = 3  # of a stretch before, for it to say what was usual


def inside(facts: Means) -> Mask:
    """The steps of the judged window."""
    return facts.inside


def usual(facts: Means, values: Array, onset: float | None) -> float | None:
    """The median of a single line before the trouble: in the stretch before the window, else in the window up to `onset` (Unix seconds)
    or its first quarter. None where too little is known."""
    times = facts.grid.times
    before = onset if onset is not None else facts.readings.start + (facts.readings.end - facts.readings.start) / 4
    for mask in (times < min(facts.readings.start, before), times < before):
        seen = values[mask]
        seen = seen[np.isfinite(seen)]
        if len(seen) >= LEAST_STEPS:
            return float(np.median(seen))
    return None


def peak(values: Array, steps: Mask) -> float | None:
    """The highest value in these steps, of any row; None where none is known."""
    seen = values[..., steps]
    return float(np.nanmax(seen)) if np.isfinite(seen).any() else None


def mean(facts: Means, signal: str) -> float | None:
    """The mean over the window and all replicas, in the signal's unit: the sum of all that was observed by its number. None where nothing
    was, or where the signal is no mean."""
    window, reading = inside(facts), facts.reading(signal)
    if reading.total is None or reading.count is None:
        return None
    count = float(np.nansum(reading.count[:, window]))
    return float(np.nansum(reading.total[:, window])) / count if count > 0 else None


def counted(rates: Array, steps: Mask, step_seconds: float) -> float | None:
    """How many were counted in these steps over all rows, from rates per second; None where none is known."""
    seen = rates[..., steps]
    return float(np.nansum(seen) * step_seconds) if np.isfinite(seen).any() else None


def episodes(facts: Means, mask: Mask) -> tuple[Episode, ...]:
    """The stretches in which the mask holds on any replica and that reach into the window, each with its replicas there. `start` may lie
    before the window; the end is open where it holds at the window's end. What only touches the window's edge is left out."""
    window, times, readings = inside(facts), facts.grid.times, facts.readings
    least = min(LEAST_SECONDS, (readings.end - readings.start) / 4)
    found = []
    for first, last in runs(anywhere(mask)):
        until = float(times[last]) + facts.grid.step
        if min(until, readings.end) - max(float(times[first]), readings.start) < least:
            continue
        held = anywhere((mask & window)[:, first : last + 1].T)
        names = tuple(replica.name for replica, there in zip(readings.replicas, held, strict=True) if there)
        begun = float(times[max(0, first - 1)])  # a scrape shows what was since the one before
        found.append(Episode(begun, None if until > readings.end else float(times[last]), names))
    return tuple(found)
