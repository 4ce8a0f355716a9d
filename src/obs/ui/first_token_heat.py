"""The heat map of the first token: a column a moment, a field a bucket, the darker the more of the moment's requests fell into it."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from io import StringIO
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import streamlit as st

from obs.first_token_spread import Spread
from obs.palette import COLORS, HOT, MUTE
from obs.ui import take, zoom
from obs.ui.kept import kept
from obs.ui.markup import show, tag
from obs.ui.plot import AXIS, Spec, locale, told, wall
from obs.ui.reader import Reader
from obs.ui.screen import Screen
from obs.window import rfc3339

HEIGHT = 260
LABELS = 9  # of the scale, at most
LATE = 0.75  # of the window
FAINT = 0.06  # of the colour, for the smallest part
_HUE = COLORS[0]
_TEXT = {"type": "text", "align": "left", "color": MUTE, "fontSize": 12}


def draw(screen: Screen, title: str, found: Spread | None, objective: float, onset: float | None, note: str) -> None:
    """The panel; without observations, the reason. `objective` in seconds, `onset` in Unix seconds."""
    _, answer = screen.reader, screen.answer
    if answer is None:
        return
    reading = answer.readings.signals["ttft"]
    with st.container(key="panel-spread"):
        head = tag("div", title, cls="title", role="heading", aria_level=2)
        if found is None:
            why = _.tell(reading.why) if reading.why else _("Nothing to draw: no distribution was read of this window.")
            show(tag("div", head, tag("div", why, cls="nothing"), cls="panel"))
            return
        ramp = tag("i", cls="ramp", style=f"background:linear-gradient(90deg,transparent,{_HUE})")
        keys = tag("span", ramp, _("from none to all of a moment's first tokens"))
        show(tag("div", head, tag("div", note, cls="note"), tag("div", keys, cls="keys"), cls="panel"))
        end = min(answer.readings.end, float(found.times[-1] + found.seconds))
        zoom.put(*drawn(found, objective, onset, (answer.readings.start, end), _), "spread", screen.view, title, _)
        take.draw(screen, "spread", lambda: written(found, _), [reading])


@kept(32)
def drawn(found: Spread, objective: float, onset: float | None, window: tuple[float, float], _: Reader) -> tuple[pa.Table, Spec]:
    """What goes to the browser."""
    marks = _marks(found, objective, onset, *window, _)
    frame = pd.concat([_fields(found, _), marks], ignore_index=True).astype({"kind": "category", "words": "category"})
    return pa.Table.from_pandas(frame), told(specification(found, window, set(marks["kind"]), _late(onset, *window), _), _)


def _fields(found: Spread, _: Reader) -> pd.DataFrame:
    """One line a field that holds anything."""
    rows, columns = np.nonzero(np.nan_to_num(found.shares) > 0)
    return pd.DataFrame(
        {
            "kind": "field",
            "at": wall(found.times, _)[columns],
            "row": rows.astype("float32"),
            "share": found.shares[rows, columns].astype("float32"),
            "words": [_between(found, int(row), _) for row in rows],
        }
    )


def _marks(found: Spread, objective: float, onset: float | None, start: float, end: float, _: Reader) -> pd.DataFrame:
    """The objective, the onset, and the two ends of the window."""
    marks: list[tuple[str, float, float, str | None]] = [("edge", start, 0.0, None), ("edge", end, len(found.edges) - 1.0, None)]
    if (place := found.place(objective)) is not None:
        marks.append(("limit", start, place, _("objective {figure}", figure=_.figure(objective, "seconds"))))
    if onset is not None and start <= onset <= end:
        marks.append(("onset", onset, 0.0, _("onset {time}", time=_.clock(onset))))
    frame = pd.DataFrame(marks, columns=["kind", "at", "row", "words"])
    frame["at"] = wall(frame["at"].to_numpy(dtype=np.float64), _)
    return frame.astype({"row": "float32"})


def _late(onset: float | None, start: float, end: float) -> bool:
    """Whether the onset's words would not have room to its right."""
    return onset is not None and onset > start + LATE * (end - start)


def _between(found: Spread, row: int, _: Reader) -> str:
    lower, upper = _.figure(found.edges[row], "seconds"), found.edges[row + 1]
    return _("more than {figure}", figure=lower) if np.isinf(upper) else f"{lower} – {_.figure(upper, 'seconds')}"


def specification(found: Spread, window: tuple[float, float], kinds: set[str], late: bool, _: Reader) -> Spec:
    """The fields on a scale of the buckets' own edges: equally high, as they are not equally wide."""
    rows, last = len(found.edges) - 1, np.isinf(found.edges[-1])
    ends = [int(at.timestamp() * 1000) for at in wall([window[0], max(window[1], window[0] + 1)], _)]
    long = window[1] - window[0] > 86400
    time_axis = {"title": None, "format": "%d.%m. %H:%M" if long else "%H:%M", "tickCount": 7, "grid": False, "labelOverlap": True}
    labels = ["∞" if last and row == rows else _.figure(edge, "seconds") for row, edge in enumerate(found.edges.tolist())]
    step = -(-rows // LABELS)
    scale = {
        "title": None, "values": list(range(rows, -1, -step)), "labelExpr": f"{_array(labels)}[datum.value]",
        "minExtent": AXIS, "maxExtent": AXIS, "grid": False,
    }  # fmt: skip
    x = {"field": "at", "type": "temporal", "scale": {"type": "utc", "domain": ends}, "axis": {**time_axis, "labelFlush": 20}}
    y = {"field": "row", "type": "quantitative", "scale": {"domain": [0, rows], "nice": False}, "axis": scale}
    clock = "utcFormat(datum.at, '%d.%m. %H:%M')" if long else "utcFormat(datum.at, '%H:%M:%S')"
    field = {
        "transform": [
            _only("field"),
            {"calculate": f"datum.at + {found.seconds * 1000:g}", "as": "until"},
            {"calculate": "datum.row + 1", "as": "top"},
            {"calculate": clock, "as": "clock"},
            {"calculate": "format(datum.share * 100, ',.3~r') + ' %'", "as": "part"},
        ],
        "mark": {"type": "rect", "color": _HUE},
        "encoding": {
            "x": x,
            "x2": {"field": "until"},
            "y": y,
            "y2": {"field": "top"},
            "opacity": {
                "field": "share",
                "type": "quantitative",
                "scale": {"type": "sqrt", "domain": [0, 1], "range": [FAINT, 1]},
                "legend": None,
            },
            "tooltip": [_tip("clock", _("Time")), _tip("words", _("Time to first token")), _tip("part", _("Part of the first tokens"))],
        },
    }
    words = {"field": "words", "type": "nominal"}
    marks = [
        ("limit", {"type": "rule", "color": HOT, "strokeDash": [5, 4]}, {"y": y}),
        ("limit", {**_TEXT, "dx": 4, "dy": -7}, {"x": {"value": 0}, "y": y, "text": words}),
        ("onset", {"type": "rule", "color": MUTE, "strokeDash": [2, 3], "strokeWidth": 1.5}, {"x": x}),
        ("onset", {**_TEXT, "align": "right" if late else "left", "dy": -8}, {"x": x, "y": {"value": 0}, "text": words}),
    ]
    drawn = [{"transform": [_only(kind)], "mark": mark, "encoding": encoding} for kind, mark, encoding in marks if kind in kinds]
    drag = "[pointerdown[event.pointerType !== 'touch'], window:pointerup] > window:pointermove!"
    edge = {
        "transform": [_only("edge")],
        "params": [
            {"name": "brush", "select": {"type": "interval", "encodings": ["x"], "on": drag, "translate": False, "zoom": False}},
        ],
        "mark": {"type": "point", "opacity": 0, "size": 0, "tooltip": None},
        "encoding": {"x": x, "y": y},
    }
    config = {"locale": dict(locale(_.lang)), "background": "transparent", "view": {"strokeOpacity": 0}}
    spec: dict[str, Any] = {"height": HEIGHT, "layer": [field, *drawn, edge], "config": config}
    return spec


def _only(kind: str) -> Mapping[str, str]:
    return {"filter": f"datum.kind === '{kind}'"}


def _tip(field: str, title: str) -> Mapping[str, str]:
    return {"field": field, "type": "nominal", "title": title}


def _array(labels: list[str]) -> str:
    """Labels of figures as an expression's list; there is no quote in them."""
    return "[" + ", ".join(f"'{label}'" for label in labels) + "]"


def written(found: Spread, _: Reader) -> str:
    """The parts as CSV: a line a moment, a column a bucket."""
    out = StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(["time", *(f"{_between(found, row, _)} [ratio]".replace("\u00a0", " ") for row in range(len(found.edges) - 1))])
    for at, shares in zip(found.times.tolist(), found.shares.T.tolist(), strict=True):
        lines.writerow([rfc3339(at), *("" if share != share else f"{share:.6g}" for share in shares)])
    return out.getvalue()
