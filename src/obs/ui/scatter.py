"""One figure against another, a dot a minute, coloured by time: whether they rise together."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pyarrow as pa
import streamlit as st

from obs.palette import COLORS
from obs.series import Array
from obs.ui import take
from obs.ui.kept import kept
from obs.ui.markup import show, tag
from obs.ui.plot import AXIS, HEIGHT, Spec, bare, locale, tick, told, wall, words
from obs.ui.reader import Reader
from obs.ui.screen import Screen

_EARLY, _LATE = COLORS[0], COLORS[1]  # told apart by the colour-blind, on light and dark


@dataclass(frozen=True)
class Axis:
    """A figure of the pair, in the reader's words."""

    title: str
    unit: str
    values: Array


def scatter(screen: Screen, key: str, title: str, x: Axis, y: Axis, times: Array, says: str, signals: tuple[str, ...] = ()) -> None:
    """The pairs, with what they say in words. Pairs in which either is NaN are left out; without any, only the words are shown."""
    _, answer = screen.reader, screen.answer
    if answer is None:
        return
    known = np.isfinite(x.values) & np.isfinite(y.values)
    with st.container(key=f"panel-{key}"):
        sentence = tag("div", says, cls="note")
        if not known.any():
            show(tag("div", tag("div", title, cls="title", role="heading", aria_level=2), tag("div", says, cls="nothing"), cls="panel"))
            return
        first, last = _.clock(float(times[known][0]), seconds=False), _.clock(float(times[known][-1]), seconds=False)
        ramp = tag("i", cls="ramp", style=f"background:linear-gradient(90deg,{_EARLY},{_LATE})")
        keys = tag("div", tag("span", first, ramp, last), cls="keys")
        show(tag("div", tag("div", title, cls="title", role="heading", aria_level=2), sentence, keys, cls="panel"))
        data, spec = drawn(x, y, times, _)
        st.vega_lite_chart(data, spec, width="stretch", alt=f"{title}: {says}")
        readings = [answer.readings.signals[signal] for signal in signals]
        take.draw(screen, key, lambda: take.table([x.title, y.title], times[known], [x.values[known], y.values[known]]), readings)


@kept(64)
def drawn(x: Axis, y: Axis, times: Array, _: Reader) -> tuple[pa.Table, Spec]:
    """What goes to the browser."""
    known = np.isfinite(x.values) & np.isfinite(y.values)
    frame = pd.DataFrame({"at": wall(times[known], _), "x": x.values[known], "y": y.values[known]})
    spec = deepcopy(specification(x.unit, y.unit, _.lang))
    named = {"clock": _("Time"), "wx": x.title, "wy": y.title}
    for tip in spec["encoding"]["tooltip"]:
        tip["title"] = named[tip["field"]]
    spec["encoding"]["x"]["axis"]["title"] = x.title
    return pa.Table.from_pandas(frame), told(spec, _)


@lru_cache(maxsize=64)
def specification(x_unit: str, y_unit: str, lang: str) -> Spec:
    """Dots from blue (early) to orange (late)."""
    across = alt.Axis(title="x", tickCount=5, labelExpr=tick(x_unit), grid=False)
    up = alt.Axis(title=None, tickCount=4, labelExpr=tick(y_unit), minExtent=AXIS, maxExtent=AXIS)
    calculated = {
        "clock": "utcFormat(datum.at, '%d.%m. %H:%M')",
        "wx": words("datum.x", x_unit),
        "wy": words("datum.y", y_unit),
    }
    chart: Any = (
        alt.Chart(height=HEIGHT)
        .transform_calculate(**calculated)
        .mark_point(filled=True, size=55, opacity=0.85)
        .encode(
            x=alt.X("x:Q", axis=across, scale=alt.Scale(zero=x_unit == "ratio", nice=True)),
            y=alt.Y("y:Q", axis=up, scale=alt.Scale(zero=True)),
            color=alt.Color("at:T", scale=alt.Scale(range=[_EARLY, _LATE], type="linear", interpolate="rgb"), legend=None),
            tooltip=[alt.Tooltip("clock:N"), alt.Tooltip("wx:N"), alt.Tooltip("wy:N")],
        )
        .configure(locale=locale(lang), background="transparent")
        .configure_view(strokeOpacity=0)
    )
    return bare(chart.to_dict())
