"""A chart over the window as data and specification: lines, a stack or bars, with episodes, onset and thresholds drawn in.

Everything that changes is in one frame of numbers and short ids, about 20 bytes a row; Altair writes the specification around it
once, and names, colours and words are put into a copy of it. Times are the reader's wall clock on a UTC scale: the same picture in
every browser. Every chart of a page spans the same window from edge to edge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, cast

import altair as alt
import numpy as np
import pandas as pd

from obs.palette import HOT, MUTE, dashes
from obs.series import Array
from obs.ui.reader import Reader
from obs.verdict import Episode

LINES = 8  # more cannot be told apart; the others are the grey band
ROWS = 1600  # of one chart, so that six of them stay within 10,000
POINTS = 400  # a line, at most
HEIGHT = 220  # pixels, with the axis
AXIS = 52  # pixels for the labels on the left, in every chart, so that one time stands at one place
Form = Literal["line", "stack", "bar"]
_ABOVE: tuple[tuple[str, Literal["left", "right"]], ...] = (("onset", "left"), ("late", "right"))  # the onset's words stand over the chart
_LATE = 0.75  # of the window: from there on they end at the onset instead of beginning there
Spec = dict[str, Any]


@dataclass(frozen=True)
class Rule:
    """A level drawn across the chart, with its words."""

    value: float
    words: str


@dataclass(frozen=True)
class Plot:
    """What is drawn. `values` has shape [lines, moments] and `times` are Unix seconds; NaN is a gap. `low`, `high`: the grey band."""

    start: float
    end: float
    times: Array
    names: tuple[str, ...]
    values: Array
    colors: tuple[str, ...]
    unit: str
    form: Form = "line"
    low: Array | None = None
    high: Array | None = None
    rules: tuple[Rule, ...] = ()
    episodes: tuple[Episode, ...] = ()
    onset: float | None = None
    least_top: float = 0.0  # the scale's upper end reaches at least here
    height: int = HEIGHT
    zoom: bool = True


def plotted(plot: Plot, _: Reader) -> tuple[pd.DataFrame, Spec]:
    """The frame and the specification."""
    parts = [_points(plot, _), _edges(plot, _), _band(plot, _), _episodes(plot, _), _marks(plot, _)]
    frame = pd.concat([part for part in parts if len(part)], ignore_index=True)
    frame = frame.reindex(columns=["kind", "id", "at", "value", "high", "words"]).dropna(axis=1, how="all")
    frame = frame.astype({name: "category" for name in ("kind", "id", "words") if name in frame})
    kinds = frozenset(str(kind) for kind in frame["kind"].unique())
    spec = deepcopy(specification(kinds, plot.form, plot.unit, len(plot.names), _form(plot), _.lang, plot.height, plot.zoom))
    return frame, _named(spec, plot, _)


@lru_cache(maxsize=256)
def specification(kinds: frozenset[str], form: Form, unit: str, lines: int, time_format: str, lang: str, height: int, zoom: bool) -> Spec:
    """The layers, from back to front. No name, figure or time is in it, so it is written once and serves every refresh.

    Only layers that the frame has rows of: Vega warns about an empty one.
    """
    axis = alt.Axis(title=None, format=time_format, tickCount=7, grid=False, labelOverlap=True, labelFlush=20)
    x = alt.X("at:T", scale=alt.Scale(type="utc"), axis=axis)
    scale = alt.Axis(title=None, tickCount=4, labelExpr=tick(unit), minExtent=AXIS, maxExtent=AXIS, **_ticks(unit))
    stack: Any = "zero" if form == "stack" else None
    y = alt.Y("value:Q", scale=alt.Scale(zero=True), stack=stack, axis=scale)
    flat = alt.Y("value:Q", scale=alt.Scale(zero=True))
    ids = [f"l{number}" for number in range(lines)]
    color = alt.Color("id:N", scale=alt.Scale(domain=ids, range=["#000"] * lines), legend=None)
    dash = alt.StrokeDash("id:N", scale=alt.Scale(domain=ids, range=[[1, 0]] * lines), legend=None)
    one: Any = alt.Chart()
    mark = {
        "line": one.mark_line(strokeWidth=1.8, strokeJoin="round").encode(x=x, y=y, color=color, strokeDash=dash),
        "stack": one.mark_area(opacity=0.85, interpolate="step-after").encode(x=x, y=y, color=color, order=alt.Order("id:N")),
        "bar": one.mark_rule(strokeWidth=3).encode(x=x, y=y, y2=alt.datum(0), color=color),
    }[form]
    top, bottom, left = alt.value(0), alt.value("height"), alt.value(0)
    at_pointer = alt.selection_point(name="pointed", on="pointerover", clear="pointerout", fields=["at"], empty=False)
    shown = alt.condition(at_pointer, alt.value(0.35), alt.value(0))
    pointed = one.mark_rule(strokeWidth=5, color=MUTE, cursor="crosshair").encode(
        x=x, opacity=shown, tooltip=[alt.Tooltip("clock:N"), *(alt.Tooltip(f"w{id_}:N") for id_ in ids)]
    )
    layers: list[tuple[str, Any]] = [
        ("episode", one.mark_area(color=HOT, opacity=0.12).encode(x=x, y=top, y2=bottom, detail="id:N")),
        ("band", one.mark_area(color=MUTE, opacity=0.22).encode(x=x, y=flat, y2="high:Q")),
        ("line", mark),
        ("lone", one.mark_point(size=14, filled=True, opacity=1).encode(x=x, y=flat, color=color)),
        ("threshold", one.mark_rule(color=HOT, strokeDash=[5, 4]).encode(y=flat)),
        ("threshold", one.mark_text(align="left", dx=4, dy=-7, color=MUTE, fontSize=12).encode(x=left, y=flat, text="words:N")),
        *((kind, one.mark_rule(color=MUTE, strokeDash=[2, 3], strokeWidth=1.5).encode(x=x)) for kind in ("onset", "late")),
        *((kind, one.mark_text(align=align, dy=-8, color=MUTE, fontSize=12).encode(x=x, y=top, text="words:N")) for kind, align in _ABOVE),
    ]
    drawn = [layer.transform_filter(f"datum.kind === '{kind}'") for kind, layer in layers if kind in kinds]
    edge = one.mark_point(opacity=0, size=0, tooltip=None).encode(x=x, y=flat).transform_filter("datum.kind === 'edge'")
    if zoom:
        # not by touch: a finger that scrolls the page would select
        drag = "[pointerdown[event.pointerType !== 'touch'], window:pointerup] > window:pointermove!"
        edge = edge.add_params(alt.selection_interval(name="brush", encodings=["x"], on=drag, translate=False, zoom=False))
    drawn.append(edge)
    if lines and "line" in kinds:
        clock = "utcFormat(datum.at, '%d.%m. %H:%M:%S')" if "%d" in time_format else "utcFormat(datum.at, '%H:%M:%S')"
        base = pointed.transform_filter("datum.kind === 'line'").transform_pivot("id", value="value", groupby=["at"], op="max")
        calculated = {"clock": clock, **{f"w{id_}": words(f"datum.{id_}", unit) for id_ in ids}}
        drawn.append(base.transform_calculate(**calculated).add_params(at_pointer))
    whole: Any = alt.layer(*drawn, height=height).configure(locale=locale(lang), background="transparent")
    return bare(whole.configure_view(strokeOpacity=0).to_dict())


def bare(spec: Spec) -> Spec:
    """Without Altair's placeholder for data that come from elsewhere: a row without a figure, named in every layer."""
    del spec["datasets"]
    for part in (spec, *spec.get("layer", ())):
        part.pop("data", None)
    return spec


def _form(plot: Plot) -> str:
    """As much of a time as tells the axis' marks apart."""
    seconds = plot.end - plot.start
    return "%d.%m. %H:%M" if seconds > 86400 else "%H:%M" if seconds > 4 * 60 else "%H:%M:%S"


def _named(spec: Spec, plot: Plot, _: Reader) -> Spec:
    """The specification with this plot's names, colours and words."""
    names = {"clock": _("Time"), **{f"wl{number}": name or _("Figure") for number, name in enumerate(plot.names)}}
    strokes = [list(dash) for dash in dashes(plot.colors)]
    for layer in spec["layer"]:
        encoding = layer["encoding"]
        for tip in encoding.get("tooltip") or ():
            tip["title"] = names[tip["field"]]
        for channel, values in (("color", list(plot.colors)), ("strokeDash", strokes)):
            if encoding.get(channel, {}).get("field") == "id":
                encoding[channel]["scale"]["range"] = values
    return spec


def wall(times: Array | Sequence[float], _: Reader) -> pd.DatetimeIndex:
    """The reader's wall clock as a UTC time."""
    return pd.to_datetime((_.wall(np.asarray(times, dtype=np.float64)) * 1000).astype("int64"), unit="ms", utc=True).as_unit("ms")


def _points(plot: Plot, _: Reader) -> pd.DataFrame:
    at = wall(plot.times, _)
    parts = []
    for number, values in enumerate(plot.values):
        parts.append(pd.DataFrame({"kind": "line", "id": f"l{number}", "at": at, "value": values.astype("float32")}))
        if plot.form == "line" and (alone := _alone(values)).any():  # a line through one point has no length
            parts.append(pd.DataFrame({"kind": "lone", "id": f"l{number}", "at": at[alone], "value": values[alone].astype("float32")}))
    return pd.concat(parts) if parts else pd.DataFrame()


def _alone(values: Array) -> Any:
    known = np.concatenate([[False], np.isfinite(values), [False]])
    return known[1:-1] & ~known[:-2] & ~known[2:]


def _edges(plot: Plot, _: Reader) -> pd.DataFrame:
    """What the axes reach at least: the whole window, zero, and the whole of what is a share of something."""
    top = max(plot.least_top, 1.0 if plot.unit == "ratio" else 0.0)
    return pd.DataFrame({"kind": "edge", "at": wall([plot.start, plot.end], _), "value": [0.0, top]})


def _band(plot: Plot, _: Reader) -> pd.DataFrame:
    if plot.low is None or plot.high is None:
        return pd.DataFrame()
    return pd.DataFrame(
        {"kind": "band", "at": wall(plot.times, _), "value": plot.low.astype("float32"), "high": plot.high.astype("float32")}
    )


def _episodes(plot: Plot, _: Reader) -> pd.DataFrame:
    """Two corners an episode: an area and not a rectangle, since Vega merges the domain of a mark with two ends badly."""
    corners = [
        (f"e{number}", at)
        for number, episode in enumerate(plot.episodes)
        for at in (max(episode.start, plot.start), plot.end if episode.end is None else min(episode.end, plot.end))
    ]
    return pd.DataFrame({"kind": "episode", "at": wall([at for _id, at in corners], _), "id": [id_ for id_, _at in corners]})


def _marks(plot: Plot, _: Reader) -> pd.DataFrame:
    """The thresholds and the onset, each with its words."""
    marks: list[dict[str, Any]] = [
        {"kind": "threshold", "at": plot.start, "value": rule.value, "words": rule.words} for rule in plot.rules if np.isfinite(rule.value)
    ]
    if plot.onset is not None and plot.start <= plot.onset <= plot.end:
        late = plot.onset > plot.start + _LATE * (plot.end - plot.start)
        marks.append(
            {"kind": "late" if late else "onset", "at": plot.onset, "value": np.nan, "words": _("onset {time}", time=_.clock(plot.onset))}
        )
    frame = pd.DataFrame(marks, columns=["kind", "at", "value", "words"])
    frame["at"] = wall(frame["at"].to_numpy(dtype=np.float64), _)
    return frame


def told(spec: Spec, _: Reader) -> Spec:
    """The specification for a window within which the zone's clock is changed: what is drawn goes on evenly, and the axis and the
    tooltips say what the clock says. Otherwise as it is."""
    moved = "".join(f" + (time(AT) >= {at * 1000:.0f} ? {seconds * 1000:.0f} : 0)" for at, seconds in _.changes())
    return cast(Spec, _told(spec, moved)) if moved else spec


def _told(part: Any, moved: str) -> Any:
    if isinstance(part, list):
        return [_told(each, moved) for each in part]
    if isinstance(part, str):
        at = "datum.at"
        return part.replace(f"utcFormat({at},", f"utcFormat(time({at}){moved.replace('AT', at)},")
    if not isinstance(part, dict):
        return part
    found = {name: _told(each, moved) for name, each in part.items()}
    axis = found.get("axis")
    if found.get("field") == "at" and isinstance(axis, dict) and "format" in axis:
        at = "datum.value"
        found["axis"] = {**axis, "labelExpr": f"utcFormat(time({at}){moved.replace('AT', at)}, '{axis['format']}')"}
    return found


_GIB_STEPS = "sequence(0, domain('y')[1] * 1.001, pow(2, ceil(log(max(domain('y')[1], 4) / 4) / LN2)))"


def _ticks(unit: str) -> dict[str, Any]:
    """Where the labels stand, where they are no round figures in powers of ten: bytes are told in GiB."""
    return {"values": {"expr": _GIB_STEPS}} if unit == "bytes" else {}


_PER = {"per_second": " /s", "tokens_per_second": " /s", "seconds": " s", "times": " x"}


def tick(unit: str) -> str:
    """The axis' labels, with their unit."""
    if unit == "ratio":
        return "format(datum.value * 100, ',.3~r') + ' %'"
    if unit == "bytes":
        return "format(datum.value / pow(1024, 3), ',.3~r') + ' GiB'"
    if unit == "seconds":
        return (
            "datum.value === 0 ? '0' : datum.value < 1 ? format(datum.value * 1000, ',.3~r') + ' ms' : format(datum.value, ',.4~r') + ' s'"
        )
    return f"format(datum.value, ',.4~r') + '{_PER.get(unit, '')}'"


def words(value: str, unit: str) -> str:
    """A figure of the tooltip; a dash where there is none."""
    return f"isValid({value}) ? {tick(unit).replace('datum.value', value)} : '–'"


def locale(lang: str) -> Mapping[str, Any]:
    """Decimal comma and grouping point where the language has them."""
    signs = {"es": (",", "."), "en": (".", ",")}[lang]
    return {"number": {"decimal": signs[0], "thousands": signs[1], "grouping": [3], "currency": ["", ""]}}
