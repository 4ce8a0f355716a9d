"""The heat map of the replicas: a line for each, a field for each while, the colour its figure; a click on one leads to that replica."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from obs.heat import Heat
from obs.palette import COLORS
from obs.signals import Signal
from obs.ui import address, take, zoom
from obs.ui.markup import Html, show, tag
from obs.ui.plot import Spec, locale, told, wall, words
from obs.ui.reader import Reader
from obs.ui.screen import Screen

FEW, ROW, MOST_ROW, AXIS_HEIGHT = 150, 17, 34, 26  # pixels: a few rows are higher
_LONGEST = 40  # characters of a name: its end tells replicas apart, so its beginning is cut
_NARROW, _FEWER = 560, 16  # pixels of a chart that is narrow, and the characters that it has room for
_LOW, _HIGH = COLORS[0], COLORS[1]  # told apart by the colour-blind, on light and dark; the ground is neither: a gap
_SEPARATORS = "-/._: "


def draw(screen: Screen, found: Heat, signal: Signal, note: str) -> None:
    """The chart with its scale of colours; nothing but the reason where there is no figure."""
    _, answer = screen.reader, screen.answer
    if answer is None:
        return
    reading = answer.readings.signals[signal.id]
    title = _("{signal}, replica by time", signal=signal.title)
    if not np.isfinite(found.values).any():
        show(tag("div", _("Nothing to draw: there is no such figure in this window."), cls="nothing"))
        return
    top = max(float(np.nanmax(found.values)), 1.0 if signal.unit == "ratio" else 1e-9)
    names = labels(found.rows, _)
    head = tag("div", title, cls="title", role="heading", aria_level=2)
    show(tag("div", head, tag("div", note, cls="note"), tag("div", _scale(top, signal.unit, _), cls="keys"), cls="panel"))
    chart(screen, found, names, signal, top, title)
    heads = [f"{', '.join(row)} [{signal.unit}]" for row in found.rows]
    take.draw(screen, "heat", lambda: take.table(heads, found.starts, list(found.values)), [reading])


def chart(screen: Screen, found: Heat, names: Sequence[str], signal: Signal, top: float, title: str) -> None:
    """Drag sets the window, a click the replica. The key holds the link's times, so that a new window begins without a selection."""
    _, view, answer = screen.reader, screen.view, screen.answer
    if answer is None:
        return
    window = (answer.readings.start, answer.readings.end)
    key = f"chart-heat-{signal.id}-{view.start}-{view.end}"
    single = {name: row[0] for name, row in zip(names, found.rows, strict=True) if len(row) == 1}

    def chosen() -> None:
        state: Any = st.session_state.get(key)
        picked = getattr(getattr(state, "selection", None), "cell", None) or []
        name = next((single[each["name"]] for each in picked if each.get("name") in single), None)
        if name is not None:
            address.go(replace(view, scope={**view.scope, "replica": (name,)}))
        else:
            zoom.zoomed(view, state, _)

    st.vega_lite_chart(
        frame(found, names, window, _), told(specification(found, names, signal.unit, top, window, _), _), width="stretch", key=key,
        on_select=chosen, selection_mode=["brush", "cell"], alt=title,
    )  # fmt: skip


def frame(found: Heat, names: Sequence[str], window: tuple[float, float], _: Reader) -> pd.DataFrame:
    """One line a field that has a figure: where there is none, nothing is drawn. And one for each end of the window."""
    rows, columns = np.nonzero(np.isfinite(found.values))
    name = pd.Categorical.from_codes(np.append(rows, [-1, -1]), categories=list(names))
    values = np.append(found.values[rows, columns], [np.nan, np.nan]).astype("float32")
    return pd.DataFrame({"at": wall(np.append(found.starts[columns], window), _), "name": name, "value": values})


def labels(rows: Sequence[Sequence[str]], _: Reader) -> list[str]:
    """A short name for each row, none twice: without what all names begin with, and cut at the front. Of several replicas their places in
    the table."""
    alone = [row[0] for row in rows if len(row) == 1]
    cut = _common(alone) if len(alone) > 1 else 0
    out: list[str] = []
    place = 0
    for row in rows:
        short = row[0][cut:] if len(row) == 1 else _("{first} to {last}", first=place + 1, last=place + len(row))
        place += len(row)
        short = "…" + short[-_LONGEST:] if len(short) > _LONGEST else ("…" if cut and len(row) == 1 else "") + short
        while short in out:
            short += "'"
        out.append(short)
    return out


def _common(names: Sequence[str]) -> int:
    """How many characters all begin with, up to the last sign that parts words; 0 where that saves little."""
    first, last = min(names), max(names)
    same = next((i for i, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), min(len(first), len(last)))
    cut = max(first[:same].rfind(sign) for sign in _SEPARATORS) + 1
    return cut if cut > 5 else 0


def _scale(top: float, unit: str, _: Reader) -> list[Html]:
    ramp = tag("i", cls="ramp", style=f"background:linear-gradient(90deg,{_LOW},{_HIGH})")
    return [tag("span", _.figure(0.0, unit), ramp, _.figure(top, unit)), tag("span", _("empty: no figure"))]


def specification(found: Heat, names: Sequence[str], unit: str, top: float, window: tuple[float, float], _: Reader) -> Spec:
    """The fields over the whole window, the sickest replica on top."""
    long = window[1] - window[0] > 86400
    x: Mapping[str, Any] = {
        "field": "at", "type": "temporal", "scale": {"type": "utc"},
        "axis": {"title": None, "format": "%d.%m. %H:%M" if long else "%H:%M", "tickCount": 7, "grid": False, "labelOverlap": True,
                 "labelFlush": 20},
    }  # fmt: skip
    cut = f"containerSize()[0] < {_NARROW} && length(datum.label) > {_FEWER} ? '…' + slice(datum.label, {1 - _FEWER}) : datum.label"
    y = {
        "field": "name", "type": "nominal", "scale": {"domain": list(names), "paddingInner": 0.12, "paddingOuter": 0.06},
        "axis": {"title": None, "labelExpr": cut, "labelLimit": 0, "ticks": False, "domain": False, "labelPadding": 6,
                 "labelOverlap": False, "labelFlush": False, "labelBound": False},
    }  # fmt: skip
    whole = [row[0] if len(row) == 1 else name for name, row in zip(names, found.rows, strict=True)]
    drag = "[pointerdown[event.pointerType !== 'touch'], window:pointerup] > window:pointermove!"
    clock = "utcFormat(datum.at, '%d.%m. %H:%M')" if long else "utcFormat(datum.at, '%H:%M:%S')"
    color = {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": [0, top], "range": [_LOW, _HIGH], "interpolate": "rgb"},
        "legend": None,
    }
    tips = [("full", _("Replica")), ("clock", _("Time")), ("figure", _("Figure"))]
    fields = {
        "transform": [
            {"filter": "isValid(datum.value)"},
            {"calculate": f"datum.at + {found.seconds * 1040:g}", "as": "until"},
            {"calculate": clock, "as": "clock"},
            {"calculate": f"{json.dumps(whole)}[indexof({json.dumps(list(names))}, datum.name)]", "as": "full"},
            {"calculate": words("datum.value", unit), "as": "figure"},
        ],
        "params": [
            {"name": "cell", "select": {"type": "point", "fields": ["name"], "on": "click", "clear": False}},
        ],
        "mark": {"type": "rect", "cursor": "pointer"},
        "encoding": {
            "x": x, "x2": {"field": "until"}, "y": y, "color": color,
            "tooltip": [{"field": field, "type": "nominal", "title": title} for field, title in tips],
        },
    }  # fmt: skip
    edge = {
        "params": [
            {"name": "brush", "select": {"type": "interval", "encodings": ["x"], "on": drag, "translate": False, "zoom": False}},
        ],
        "transform": [{"filter": "!isValid(datum.value)"}],
        "mark": {"type": "point", "opacity": 0, "size": 0, "tooltip": None},
        "encoding": {"x": x},
    }
    config = {"locale": dict(locale(_.lang)), "background": "transparent", "view": {"strokeOpacity": 0}}
    height = len(names) * min(MOST_ROW, max(ROW, FEW // len(names))) + AXIS_HEIGHT
    return {"height": height, "layer": [fields, edge], "config": config}
