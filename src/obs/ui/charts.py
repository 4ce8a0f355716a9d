"""The chart of one piece of evidence: its lines, the threshold, the onset, and the stretches in which the row applied.

Everything that changes is in one frame, and Altair writes the specification around it once: built anew for every refresh, the charts
of an opened row took more than a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from obs.series import Array
from obs.ui.course import Course, at_gateway
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
    parts += [_edges(diagnosis, piece.unit, _), _episodes(verdict, diagnosis, _), _marks(piece, diagnosis, _)]
    if len(course.names) > len(lines.names):
        parts.append(_band(course, times, diagnosis, _))
    frame = pd.concat([part for part in parts if len(part)], ignore_index=True)
    long = diagnosis.end - diagnosis.start > 2 * 86400
    words = Words(_("Time"), _.tell(piece.title), (_("Gateway") if at_gateway(piece) else _("Replica")) if any(lines.names) else "", _.lang)
    return frame, specification(frozenset(frame["kind"]), words, piece.unit, len(lines.names) > 1, long)


@dataclass(frozen=True)
class Words:
    """What the tooltips call things."""

    time: str
    figure: str
    replica: str
    lang: str


@lru_cache(maxsize=256)
def specification(kinds: frozenset[str], words: Words, unit: str, several: bool, long: bool) -> Spec:
    """The layers, from back to front. No figure and no time is in it, so it is written once and serves every refresh.

    Only layers that the frame has rows of: Vega warns about an empty one.
    """
    form = "%d.%m. %H:%M" if long else "%H:%M"
    time_axis = alt.Axis(title=None, format=form, tickCount=7, grid=False, labelOverlap=True)
    x = alt.X("at:T", scale=alt.Scale(type="utc"), axis=time_axis)
    y = alt.Y("value:Q", scale=alt.Scale(zero=True), axis=alt.Axis(title=None, format=_format(unit), tickCount=4))
    tooltip = [alt.Tooltip("clock:N", title=words.time), alt.Tooltip("words:N", title=words.figure)]
    if words.replica:
        tooltip.append(alt.Tooltip("line:N", title=words.replica))
    top, bottom, left = alt.value(0), alt.value("height"), alt.value(0)
    one = alt.Chart()
    layers = [
        ("episode", one.mark_area(color=_HOT, opacity=0.12).encode(x=x, y=top, y2=bottom, detail="line:N")),
        ("band", one.mark_area(color=_MUTE, opacity=0.18).encode(x=x, y=y, y2="high:Q")),
        ("line", one.mark_line(strokeWidth=1.8).encode(x=x, y=y, color=_color(several), tooltip=tooltip)),
        ("threshold", one.mark_rule(color=_HOT, strokeDash=[5, 4]).encode(y=y, tooltip="words:N")),
        ("threshold", one.mark_text(align="left", dx=4, dy=-7, color=_MUTE, fontSize=12).encode(x=left, y=y, text="words:N")),
        ("onset", one.mark_rule(color=_MUTE, strokeDash=[2, 3], strokeWidth=1.5).encode(x=x, tooltip="words:N")),
        ("onset", one.mark_text(align="left", dx=5, dy=8, color=_MUTE, fontSize=12).encode(x=x, y=top, text="words:N")),
        ("edge", one.mark_point(opacity=0, size=0, tooltip=None).encode(x=x, y=y)),
    ]
    shown = [layer.transform_filter(f"datum.kind === '{kind}'") for kind, layer in layers if kind in kinds]
    whole: Any = alt.layer(*shown, height=HEIGHT).configure(locale=_locale(words.lang), background="transparent")
    spec: Spec = whole.configure_view(strokeOpacity=0).to_dict()
    return spec


def _color(several: bool) -> Any:
    if not several:
        return alt.value(_COLORS[0])
    legend = alt.Legend(title=None, orient="bottom", columns=4, labelLimit=260, symbolType="stroke")
    return alt.Color("line:N", sort=None, scale=alt.Scale(range=_COLORS), legend=legend)


def _edges(diagnosis: Diagnosis, unit: str, _: Reader) -> pd.DataFrame:
    """What the axes reach at least: the whole window, zero, and the whole of what is a share of something."""
    at = _wall([diagnosis.start, diagnosis.end], _)
    return pd.DataFrame({"kind": "edge", "at": at, "value": [0.0, 1.0 if unit == "ratio" else 0.0]})


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
