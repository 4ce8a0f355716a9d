"""The lengths of prompts and answers in two windows, laid over each other: how much of the requests lies in each bucket."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from obs.palette import COLORS, MUTE
from obs.series import Array
from obs.signals import SIGNALS, Buckets
from obs.ui.answer import Answer
from obs.ui.markup import show, tag
from obs.ui.plot import AXIS, HEIGHT, Spec, bare, locale, tick
from obs.ui.reader import Reader
from obs.ui.screen import Screen


def draw(screen: Screen, other: Answer, own: Answer) -> None:
    """One chart for each length whose buckets both windows have."""
    _ = screen.reader
    columns = st.columns(2, gap="small")
    for column, signal in zip(columns, ("prompt_length", "output_length"), strict=True):
        title = _.tell(SIGNALS[signal].title)
        with column, st.container(key=f"panel-{signal}"):
            pair = [shares(answer, signal) for answer in (other, own)]
            if pair[0] is None or pair[1] is None:
                why = _(
                    "In one of the windows there is no distribution of it: nothing was finished, or the window is of more than two days."
                )
                show(tag("div", tag("div", title, cls="title", role="heading", aria_level=2), tag("div", why, cls="nothing"), cls="panel"))
                continue
            names = (_("the other window"), _("this window"))
            keys = [tag("span", tag("i", style=f"background:{color}"), name) for color, name in zip((MUTE, COLORS[0]), names, strict=True)]
            show(tag("div", tag("div", title, cls="title", role="heading", aria_level=2), tag("div", keys, cls="keys"), cls="panel"))
            frame, labels = _frame(pair[0], pair[1], _)
            spec = specification(tuple(labels), names, _("Part of the requests"), _.lang)
            st.vega_lite_chart(frame, spec, width="stretch", alt=_("{title}, part of the requests in each bucket", title=title))


def shares(answer: Answer, signal: str) -> tuple[Array, Array] | None:
    """The upper bounds, and the part of the window's requests in each bucket; None where nothing was observed."""
    buckets: Buckets | None = answer.readings.buckets.get(signal)
    if buckets is None:
        return None
    times = answer.readings.grid.times
    inside = (times >= answer.readings.start) & (times <= answer.readings.end)
    summed = np.maximum.accumulate(np.nan_to_num(buckets.rates[:, inside]).sum(axis=1))
    if summed[-1] <= 0:
        return None
    return buckets.bounds, np.diff(summed, prepend=0.0) / summed[-1]


def _frame(other: tuple[Array, Array], own: tuple[Array, Array], _: Reader) -> tuple[pd.DataFrame, list[str]]:
    """A row for each bucket and window; buckets that are empty in both at either end are left out."""
    bounds = np.union1d(other[0], own[0])
    both = [
        np.array([dict(zip(b.tolist(), s.tolist(), strict=True)).get(bound, 0.0) for bound in bounds.tolist()]) for b, s in (other, own)
    ]
    held = np.flatnonzero((both[0] > 0) | (both[1] > 0))
    kept = slice(int(held[0]), int(held[-1]) + 1)
    labels = [
        "> " + _.figure(float(bounds[place - 1]), "count") if np.isinf(bound) else "≤ " + _.figure(float(bound), "count")
        for place, bound in enumerate(bounds.tolist())
    ][kept]
    frame = pd.DataFrame(
        {"bucket": labels * 2, "part": np.concatenate([line[kept] for line in both]), "of": ["o"] * len(labels) + ["t"] * len(labels)}
    )
    return frame, labels


@lru_cache(maxsize=16)
def specification(labels: tuple[str, ...], names: tuple[str, str], title: str, lang: str) -> Spec:
    """The other window as grey bars, this one as a stepped line's bars before them."""
    x = alt.X("bucket:O", sort=list(labels), axis=alt.Axis(title=None, labelAngle=0, labelOverlap=True))
    y = alt.Y("part:Q", axis=alt.Axis(title=None, tickCount=4, labelExpr=tick("ratio"), minExtent=AXIS, maxExtent=AXIS))
    color = alt.Color("of:N", scale=alt.Scale(domain=["o", "t"], range=[MUTE, COLORS[0]]), legend=None)
    part = "format(datum.part * 100, '.3~r') + ' %'"
    who = f"datum.of === 'o' ? '{names[0]}' : '{names[1]}'"
    chart: Any = (
        alt.Chart(height=HEIGHT)
        .transform_calculate(words=part, who=who)
        .mark_bar()
        .encode(
            x=x,
            y=y,
            color=color,
            xOffset=alt.XOffset("of:N", sort=["o", "t"]),
            tooltip=[alt.Tooltip("bucket:O", title="…"), alt.Tooltip("who:N", title="–"), alt.Tooltip("words:N", title=title)],
        )
        .configure(locale=locale(lang), background="transparent")
        .configure_view(strokeOpacity=0)
    )
    return bare(chart.to_dict())
