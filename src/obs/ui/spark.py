"""The small line beside a piece of evidence: the window's course, the threshold, and the stretches in which the row applied.

Every line of a page spans the same window from edge to edge, so that what happened at one time stands at one place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from obs.series import Array
from obs.strokes import path, thinned
from obs.ui.markup import Html, tag
from obs.verdict import Episode

WIDTH, HEIGHT = 200.0, 36.0
_EDGE = 3.0  # keeps the stroke inside the box
_POINTS = 120  # more than the pixels of a small line show


def sparkline(
    times: Array,
    values: Array,
    window: tuple[float, float],
    label: str,
    *,
    threshold: float | None = None,
    top: float | None = None,
    episodes: Sequence[Episode] = (),
    hot: bool = False,
) -> Html | None:
    """The line of `values` over `window` (Unix seconds), or None where no value is in it. `top` is the least upper end of the scale."""
    inside = (times >= window[0]) & (times <= window[1])
    xs, several = thinned(times[inside], values[inside][None, :], _POINTS)
    ys = several[0]
    if not np.isfinite(ys).any():
        return None
    span = max(window[1] - window[0], 1.0)
    ceiling = max(float(np.nanmax(ys)), threshold or 0.0, top or 0.0)
    floor = min(0.0, float(np.nanmin(ys)))
    scale = (HEIGHT - 2 * _EDGE) / ((ceiling - floor) or 1.0)

    def across(at: float) -> float:
        return float(np.clip((at - window[0]) / span, 0.0, 1.0)) * WIDTH

    def up(value: float) -> float:
        return HEIGHT - _EDGE - (value - floor) * scale

    bands = []
    for episode in episodes:
        left, right = across(episode.start), across(window[1] if episode.end is None else episode.end)
        bands.append(tag("rect", x=round(left, 1), y=0, width=round(max(right - left, 1.5), 1), height=HEIGHT, cls="band"))
    rule = None
    if threshold is not None:
        rule = tag("path", d=f"M0 {up(threshold):.1f}H{WIDTH:.0f}", cls="limit", vector_effect="non-scaling-stroke")
    line = tag(
        "path",
        d=path((xs - window[0]) / span * WIDTH, HEIGHT - _EDGE - (ys - floor) * scale),
        cls="course",
        vector_effect="non-scaling-stroke",
    )
    return tag(
        "svg",
        bands,
        rule,
        line,
        viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
        cls="spark hot" if hot else "spark",
    )
