"""The chart of one piece of evidence: its lines, the threshold, the onset, and the stretches in which the row applied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from obs.series import Array
from obs.ui.course import Course
from obs.ui.reader import Reader
from obs.ui.spark import coarse
from obs.verdict import Diagnosis, Evidence, Verdict

LINES = 8  # more cannot be told apart; the others are the grey band
POINTS = 400  # a line
HEIGHT = 220  # pixels, without the axis
# Told apart by the colour-blind, and legible on light and dark.
_COLORS = ["#3b8fd4", "#d9661f", "#2f9e77", "#c669a6", "#b98a00", "#7a78d8", "#8a6d4b", "#5b9aa8"]
_HOT, _MUTE = "#d0453a", "#8a929c"


def chart(piece: Evidence, course: Course, times: Array, verdict: Verdict, diagnosis: Diagnosis, _: Reader) -> alt.LayerChart:
    """The chart, on a UTC scale with the reader's wall clock: the same picture in every browser."""
    lines = _chosen(piece, course)
    frame = _frame(lines, times, diagnosis, piece.unit, _)
    bounds = [at.isoformat() for at in _wall([diagnosis.start, diagnosis.end], _)]
    x = alt.X("at:T", scale=alt.Scale(type="utc", domain=bounds), axis=_time_axis(diagnosis))
    y = alt.Y("value:Q", scale=_scale(piece.unit, frame), axis=alt.Axis(title=None, format=_format(piece.unit), tickCount=4))
    layers: list[alt.Chart] = [_episodes(verdict, diagnosis, x, _)] if verdict.episodes else []
    if len(course.names) > len(lines.names):
        layers.append(_band(course, times, diagnosis, x, _))
    several = len(lines.names) > 1
    color: Any = alt.value(_COLORS[0])
    if several:
        legend = alt.Legend(title=None, orient="bottom", columns=4, labelLimit=260, symbolType="stroke")
        color = alt.Color("line:N", scale=alt.Scale(domain=list(lines.names), range=_COLORS), legend=legend)
    tooltip = [alt.Tooltip("clock:N", title=_("Time")), alt.Tooltip("figure:N", title=_.tell(piece.title))]
    if any(lines.names):
        tooltip.append(alt.Tooltip("line:N", title=_("Replica")))
    layers.append(alt.Chart(frame).mark_line(strokeWidth=1.8).encode(x=x, y=y, color=color, tooltip=tooltip))
    layers += _marks(piece, diagnosis, x, _)
    whole: Any = alt.layer(*layers).properties(height=HEIGHT)  # the stubs give up at `configure`
    styled: alt.LayerChart = whole.configure(locale=_locale(_.lang), background="transparent").configure_view(strokeOpacity=0)
    return styled


def _scale(unit: str, frame: pd.DataFrame) -> alt.Scale:
    """From zero; a share of something up to the whole of it."""
    return alt.Scale(domain=[0, max(1.0, float(frame["value"].max()))]) if unit == "ratio" else alt.Scale(zero=True, domainMin=0, nice=True)


def _chosen(piece: Evidence, course: Course) -> Course:
    """The replicas that the evidence names come first, then those with the highest values; at most `LINES`."""
    peaks = np.where(np.isfinite(course.values), course.values, -np.inf).max(axis=1)
    order = sorted(range(len(course.names)), key=lambda i: (course.names[i] not in piece.replicas, -peaks[i]))[:LINES]
    return Course(tuple(course.names[i] for i in order), course.values[order])


def _wall(times: Array | list[float], _: Reader) -> pd.DatetimeIndex:
    return pd.to_datetime(_.wall(np.asarray(times, dtype=np.float64)), unit="s", utc=True)


def _inside(times: Array, diagnosis: Diagnosis) -> Any:
    return (times >= diagnosis.start) & (times <= diagnosis.end)


def _frame(lines: Course, times: Array, diagnosis: Diagnosis, unit: str, _: Reader) -> pd.DataFrame:
    """One row a point. Times and figures for the tooltip are text: a tooltip ignores the chart's scale and shows the browser's zone."""
    inside = _inside(times, diagnosis)
    parts = []
    for name, values in zip(lines.names, lines.values, strict=True):
        at, shown = coarse(times[inside], values[inside], POINTS)
        clocks = [_.clock(t) for t in at.tolist()]
        figures = [_.figure(v if np.isfinite(v) else None, unit) for v in shown.tolist()]
        parts.append(pd.DataFrame({"at": _wall(at, _), "value": shown, "line": name, "clock": clocks, "figure": figures}))
    frame = pd.concat(parts, ignore_index=True)
    frame["line"] = frame["line"].astype("category")
    return frame


def _episodes(verdict: Verdict, diagnosis: Diagnosis, x: alt.X, _: Reader) -> alt.Chart:
    corners = [  # an area and not a rectangle: Vega merges the domain of a mark with two ends badly
        (at, number, _.span(episode.start, episode.end))
        for number, episode in enumerate(verdict.episodes)
        for at in (max(episode.start, diagnosis.start), diagnosis.end if episode.end is None else episode.end)
    ]
    moments = _wall([at for at, _number, _words in corners], _)
    frame = pd.DataFrame({"at": moments, "episode": [n for _at, n, _words in corners], "clock": [words for _at, _number, words in corners]})
    area = alt.Chart(frame).mark_area(color=_HOT, opacity=0.12)
    tooltip = [alt.Tooltip("clock:N", title=_("applies"))]
    bands: alt.Chart = area.encode(x=x, y=alt.value(0), y2=alt.value("height"), detail="episode:N", tooltip=tooltip)
    return bands


def _band(course: Course, times: Array, diagnosis: Diagnosis, x: alt.X, _: Reader) -> alt.Chart:
    """Between the lowest and the highest of all replicas."""
    inside = _inside(times, diagnosis)
    at, high = coarse(times[inside], course.top[inside], POINTS)
    low = -coarse(times[inside], Course(course.names, -course.values).top[inside], POINTS)[1]
    frame = pd.DataFrame({"at": _wall(at, _), "low": low, "high": high})
    band: alt.Chart = alt.Chart(frame).mark_area(color=_MUTE, opacity=0.18).encode(x=x, y=alt.Y("low:Q"), y2="high:Q")
    return band


def _marks(piece: Evidence, diagnosis: Diagnosis, x: alt.X, _: Reader) -> list[alt.Chart]:
    """The threshold as a dashed line and the onset as a dotted one, each with its words."""
    marks = []
    if piece.threshold is not None:
        words = _("threshold {figure}", figure=_.figure(piece.threshold, piece.unit))
        base = alt.Chart(pd.DataFrame({"value": [piece.threshold], "words": [words]}))
        marks.append(base.mark_rule(color=_HOT, strokeDash=[5, 4]).encode(y="value:Q", tooltip=["words:N"]))
        label = base.mark_text(align="left", dx=4, dy=-7, color=_MUTE, fontSize=12)
        marks.append(label.encode(x=alt.value(0), y="value:Q", text="words:N"))
    if piece.onset is not None and diagnosis.start <= piece.onset <= diagnosis.end:
        words = _("onset {time}", time=_.clock(piece.onset))
        base = alt.Chart(pd.DataFrame({"at": _wall([piece.onset], _), "words": [words]}))
        marks.append(base.mark_rule(color=_MUTE, strokeDash=[2, 3], strokeWidth=1.5).encode(x=x, tooltip=["words:N"]))
        marks.append(base.mark_text(align="left", dx=5, dy=8, color=_MUTE, fontSize=12).encode(x=x, y=alt.value(0), text="words:N"))
    return marks


def _time_axis(diagnosis: Diagnosis) -> alt.Axis:
    form = "%H:%M" if diagnosis.end - diagnosis.start <= 2 * 86400 else "%d.%m. %H:%M"
    return alt.Axis(title=None, format=form, tickCount=7, grid=False, labelOverlap=True)


def _format(unit: str) -> str:
    return {"ratio": ".0%", "bytes": ".2s"}.get(unit, ",.3~r")


def _locale(lang: str) -> Mapping[str, Any]:
    """Decimal comma and grouping point where the language has them."""
    signs = {"es": (",", "."), "en": (".", ",")}[lang]
    return {"number": {"decimal": signs[0], "thousands": signs[1], "grouping": [3], "currency": ["", ""]}}
