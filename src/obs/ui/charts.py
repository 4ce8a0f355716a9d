"""The chart of one piece of evidence: its lines, the threshold, the onset, and the stretches in which the row applied.

A Vega-Lite specification as data, over one frame: built as Altair objects, the charts of an opened row took more than a second of
every refresh (their schema is validated layer by layer), and this takes a few milliseconds each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from obs.series import Array
from obs.ui.course import Course
from obs.ui.reader import Reader
from obs.ui.spark import coarse
from obs.verdict import Diagnosis, Evidence, Verdict

LINES = 8  # more cannot be told apart; the others are the grey band
POINTS = 300  # a line
HEIGHT = 220  # pixels, with the axis
# Told apart by the colour-blind, and legible on light and dark.
_COLORS = ["#3b8fd4", "#d9661f", "#2f9e77", "#c669a6", "#b98a00", "#7a78d8", "#8a6d4b", "#5b9aa8"]
_HOT, _MUTE = "#d0453a", "#8a929c"
Spec = dict[str, Any]


def chart(piece: Evidence, course: Course, times: Array, verdict: Verdict, diagnosis: Diagnosis, _: Reader) -> tuple[pd.DataFrame, Spec]:
    """The frame and the specification, on a UTC scale with the reader's wall clock: the same picture in every browser."""
    lines = _chosen(piece, course)
    parts = [_line(name, values, times, diagnosis, piece.unit, _) for name, values in zip(lines.names, lines.values, strict=True)]
    parts.append(_episodes(verdict, diagnosis, _))
    if len(course.names) > len(lines.names):
        parts.append(_band(course, times, diagnosis, _))
    parts.append(_marks(piece, diagnosis, _))
    frame = pd.concat([part for part in parts if len(part)], ignore_index=True)
    return frame, _spec(piece, lines, set(frame["kind"]), diagnosis, _)


def _spec(piece: Evidence, lines: Course, kinds: set[str], diagnosis: Diagnosis, _: Reader) -> Spec:
    """The layers, from back to front; only those that the frame has rows of, since Vega warns about an empty one."""
    start, end = (at.isoformat() for at in _wall([diagnosis.start, diagnosis.end], _))
    form = "%H:%M" if end[:10] == start[:10] or diagnosis.end - diagnosis.start <= 2 * 86400 else "%d.%m. %H:%M"
    axis = {"title": None, "format": form, "tickCount": 7, "grid": False, "labelOverlap": True}
    x = {"field": "at", "type": "temporal", "scale": {"type": "utc", "domain": [start, end]}, "axis": axis}
    highest = float(np.nanmax(lines.values)) if np.isfinite(lines.values).any() else 1.0
    scale = {"domain": [0, max(1.0, highest)]} if piece.unit == "ratio" else {"zero": True, "domainMin": 0, "nice": True}
    y = {"field": "value", "type": "quantitative", "scale": scale, "axis": {"title": None, "format": _format(piece.unit), "tickCount": 4}}
    top, bottom = {"value": 0}, {"value": "height"}
    words = {"field": "words", "type": "nominal"}
    tooltip = [{**words, "field": "clock", "title": _("Time")}, {**words, "title": _.tell(piece.title)}]
    if any(lines.names):
        tooltip.append({"field": "line", "type": "nominal", "title": _("Replica")})
    label = {"type": "text", "align": "left", "color": _MUTE, "fontSize": 12}
    dashes = {"type": "rule", "color": _HOT, "strokeDash": [5, 4]}
    dots = {"type": "rule", "color": _MUTE, "strokeDash": [2, 3], "strokeWidth": 1.5}
    layers = [
        ("episode", {"type": "area", "color": _HOT, "opacity": 0.12}, {"x": x, "y": top, "y2": bottom, "detail": {"field": "line"}}),
        ("band", {"type": "area", "color": _MUTE, "opacity": 0.18}, {"x": x, "y": y, "y2": {"field": "high"}}),
        ("line", {"type": "line", "strokeWidth": 1.8}, {"x": x, "y": y, "color": _color(lines), "tooltip": tooltip}),
        ("threshold", dashes, {"y": y, "tooltip": [words]}),
        ("threshold", {**label, "dx": 4, "dy": -7}, {"x": {"value": 0}, "y": y, "text": words}),
        ("onset", dots, {"x": x, "tooltip": [words]}),
        ("onset", {**label, "dx": 5, "dy": 8}, {"x": x, "y": top, "text": words}),
    ]
    return {
        "height": HEIGHT,
        "layer": [
            {"transform": [{"filter": f"datum.kind === '{kind}'"}], "mark": mark, "encoding": encoding}
            for kind, mark, encoding in layers
            if kind in kinds
        ],
        "config": {"locale": _locale(_.lang), "background": "transparent", "view": {"strokeOpacity": 0}},
    }


def _color(lines: Course) -> Spec:
    if len(lines.names) < 2:
        return {"value": _COLORS[0]}
    legend = {"title": None, "orient": "bottom", "columns": 4, "labelLimit": 260, "symbolType": "stroke"}
    scale = {"domain": list(lines.names), "range": _COLORS[: len(lines.names)]}
    return {"field": "line", "type": "nominal", "scale": scale, "legend": legend}


def _chosen(piece: Evidence, course: Course) -> Course:
    """The replicas that the evidence names come first, then those with the highest values; at most `LINES`."""
    peaks = np.where(np.isfinite(course.values), course.values, -np.inf).max(axis=1)
    order = sorted(range(len(course.names)), key=lambda i: (course.names[i] not in piece.replicas, -peaks[i]))[:LINES]
    return Course(tuple(course.names[i] for i in order), course.values[order])


def _wall(times: Array | list[float], _: Reader) -> pd.DatetimeIndex:
    return pd.to_datetime(_.wall(np.asarray(times, dtype=np.float64)), unit="s", utc=True)


def _inside(times: Array, diagnosis: Diagnosis) -> Any:
    return (times >= diagnosis.start) & (times <= diagnosis.end)


def _line(name: str, values: Array, times: Array, diagnosis: Diagnosis, unit: str, _: Reader) -> pd.DataFrame:
    """One row a point. Times and figures for the tooltip are text: a tooltip ignores the chart's scale and shows the browser's zone."""
    inside = _inside(times, diagnosis)
    at, shown = coarse(times[inside], values[inside], POINTS)
    words = [_.figure(value if np.isfinite(value) else None, unit) for value in shown.tolist()]
    clocks = [_.clock(moment) for moment in at.tolist()]
    return pd.DataFrame({"kind": "line", "at": _wall(at, _), "value": shown, "line": name, "clock": clocks, "words": words})


def _episodes(verdict: Verdict, diagnosis: Diagnosis, _: Reader) -> pd.DataFrame:
    """Two corners an episode: an area and not a rectangle, since Vega merges the domain of a mark with two ends badly."""
    corners = [
        (str(number), at)
        for number, episode in enumerate(verdict.episodes)
        for at in (max(episode.start, diagnosis.start), diagnosis.end if episode.end is None else episode.end)
    ]
    return pd.DataFrame({"kind": "episode", "at": _wall([at for _number, at in corners], _), "line": [number for number, _at in corners]})


def _band(course: Course, times: Array, diagnosis: Diagnosis, _: Reader) -> pd.DataFrame:
    """Between the lowest and the highest of all replicas."""
    inside = _inside(times, diagnosis)
    at, high = coarse(times[inside], course.top[inside], POINTS)
    low = -coarse(times[inside], Course(course.names, -course.values).top[inside], POINTS)[1]
    return pd.DataFrame({"kind": "band", "at": _wall(at, _), "value": low, "high": high})


def _marks(piece: Evidence, diagnosis: Diagnosis, _: Reader) -> pd.DataFrame:
    """The threshold and the onset, each with its words."""
    marks: list[dict[str, Any]] = []
    if piece.threshold is not None:
        words = _("threshold {figure}", figure=_.figure(piece.threshold, piece.unit))
        marks.append({"kind": "threshold", "at": diagnosis.start, "value": piece.threshold, "words": words})
    if piece.onset is not None and diagnosis.start <= piece.onset <= diagnosis.end:
        marks.append({"kind": "onset", "at": piece.onset, "value": np.nan, "words": _("onset {time}", time=_.clock(piece.onset))})
    frame = pd.DataFrame(marks, columns=["kind", "at", "value", "words"])
    frame["at"] = _wall(frame["at"].to_numpy(dtype=np.float64), _)
    return frame


def _format(unit: str) -> str:
    return {"ratio": ".0%", "bytes": ".2s"}.get(unit, ",.3~r")


def _locale(lang: str) -> Mapping[str, Any]:
    """Decimal comma and grouping point where the language has them."""
    signs = {"es": (",", "."), "en": (".", ",")}[lang]
    return {"number": {"decimal": signs[0], "thousands": signs[1], "grouping": [3], "currency": ["", ""]}}
