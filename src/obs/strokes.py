"""Lines as they are drawn, on a page and in the report: fewer points without losing a peak, round times for an axis, an SVG path. Pure."""

from __future__ import annotations

from datetime import datetime

import numpy as np

from obs.series import Array
from obs.window import zone_info

TICK_STEPS = (1, 5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 432_000)  # seconds


def thinned(times: Array, values: Array, points: int, *, low: bool = False, whole: bool = False) -> tuple[Array, Array]:
    """At most `points` moments: the highest value of each stretch (the lowest where `low` is the worst), so that no peak gets lost. The
    parts of a `whole` are all taken from the moment at which they add up to most, so that they still do."""
    if times.size <= points:
        return times, values
    chunk = int(np.ceil(times.size / points))
    pad = (-times.size) % chunk
    if whole:
        sums = np.where(np.isfinite(values).any(axis=0), np.nansum(values, axis=0), -np.inf)
        stretches = np.concatenate([sums, np.full(pad, -np.inf)]).reshape(-1, chunk)
        return times[::chunk], values[:, np.arange(0, times.size, chunk) + stretches.argmax(axis=1)]
    sign = -1.0 if low else 1.0
    padded = np.concatenate([values * sign, np.full((len(values), pad), np.nan)], axis=1).reshape(len(values), -1, chunk)
    best = np.where(np.isfinite(padded), padded, -np.inf).max(axis=2)
    return times[::chunk], np.where(np.isfinite(best), best * sign, np.nan)


def ticks(start: float, end: float, zone: str, most: int) -> tuple[float, list[float]]:
    """The step (seconds), and at most about `most` round times of the zone's own clock from `start` to `end`, Unix seconds."""
    step = next((s for s in TICK_STEPS if (end - start) / s <= most), TICK_STEPS[-1])
    offset = datetime.fromtimestamp(start, zone_info(zone)).utcoffset()
    shift = offset.total_seconds() if offset else 0.0
    first = np.ceil((start + shift) / step) * step - shift
    return step, [float(at) for at in np.arange(first, end + 1, step)]


def path(xs: Array, ys: Array) -> str:
    """An SVG path that breaks where there is no value, and keeps a lone point visible."""
    parts: list[str] = []
    pen_down = False
    for x, y in zip(xs.tolist(), ys.tolist(), strict=True):
        if y != y:
            pen_down = False
            continue
        parts.append(f"{'L' if pen_down else 'M'}{x:.1f} {y:.1f}" + ("" if pen_down else "h.6"))
        pen_down = True
    return "".join(parts)
