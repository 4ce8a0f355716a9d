"""One chart of a page with what belongs to it: title, legend, note, the metric that was found, PromQL, Prometheus, CSV.

Nothing measured is never an empty chart: the panel says which of the signals is absent, without traffic or stale, and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import streamlit as st

from obs.links import View
from obs.series import Array, worst
from obs.signals import Reading, Status
from obs.text import say_n
from obs.titles import ROWS, STATUSES
from obs.ui import address, take
from obs.ui.answer import Answer
from obs.ui.course import Course
from obs.ui.icons import icon
from obs.ui.markup import Html, show, tag
from obs.ui.palette import COLORS, dashes, replica_colors
from obs.ui.plot import HEIGHT, LINES, POINTS, Form, Plot, Rule, plotted, thinned
from obs.ui.plot import ROWS as CHART_ROWS
from obs.ui.reader import Reader
from obs.ui.screen import Screen
from obs.verdict import Verdict
from obs.window import rfc3339, zone_info

_LEAST_ZOOM = 10.0  # seconds; a shorter drag was a click


def panel(
    screen: Screen,
    key: str,
    title: str,
    lines: Course | None,
    unit: str,
    *,
    signals: Sequence[str] = (),
    replicas: bool = True,
    form: Form = "line",
    rules: Sequence[Rule] = (),
    row: str | None = None,
    note: str | None = None,
    low: bool = False,
    least_top: float = 0.0,
    height: int = HEIGHT,
    colors: Sequence[str] | None = None,
) -> None:
    """One chart over the window.

    `key` is the panel's own on its page. `lines` is on the readings' grid, [lines, steps], NaN where there is none; its names are
    replicas, or with `replicas=False` words in the reader's language. `signals` are the ids of what is drawn: their metrics, PromQL
    and, where one is not measured, the reason. `row` is the row of the table whose episodes are shaded (else the primary's). `low`
    where small values are the worst: they choose the lines that are named, and survive thinning. `rules`: see `threshold`.
    """
    _, answer = screen.reader, screen.answer
    if answer is None:
        return
    readings = [answer.readings.signals[signal] for signal in signals]
    with st.container(key=f"panel-{key}"):
        plot = _plot(lines, unit, answer, replicas, low, colors) if lines is not None else None
        if lines is None or plot is None:
            show(tag("div", _title(title, note, (), _), _nothing(readings, _), cls="panel"))
            return
        verdict = _shaded(answer, row)
        episodes = verdict.episodes if verdict else ()
        onset = episodes[0].start if episodes else None
        plot = replace(plot, form=form, rules=tuple(rules), episodes=episodes, onset=onset, least_top=least_top, height=height)
        show(tag("div", _title(title, note, _legend(plot, lines, verdict, replicas, answer, _), _), _missing(readings, _), cls="panel"))
        frame, spec = plotted(plot, _)
        name = f"chart-{key}-{screen.view.start}-{screen.view.end}"

        def zoom() -> None:
            zoomed(screen.view, st.session_state.get(name), _)

        st.vega_lite_chart(frame, spec, width="stretch", key=name, on_select=zoom, selection_mode="brush", alt=title)
        take.draw(screen, key, lambda: take.written(plot), readings)


def threshold(screen: Screen, id_: str) -> Rule:
    """A threshold in force, to be drawn across a panel."""
    assert screen.answer is not None  # noqa: S101  (a panel is drawn of an answer)
    found = screen.answer.diagnosis.thresholds[id_]
    return Rule(found.value, screen.reader("threshold {figure}", figure=screen.reader.figure(found.value, found.unit)))


def chosen(lines: Course, inside: slice, *, low: bool = False) -> tuple[list[int], list[int]]:
    """The lines that are drawn, worst first, and the others."""
    within = lines.values[:, inside] * (-1.0 if low else 1.0)
    peaks = np.nan_to_num(worst(within, axis=1), nan=-np.inf)
    order = sorted(range(len(lines.names)), key=lambda i: (-peaks[i], lines.names[i]))
    return order[:LINES], order[LINES:]


def zoomed(view: View, state: object, _: Reader) -> None:
    """Shows the window that was dragged over, in every chart of every page: it is in the link."""
    brush = getattr(getattr(state, "selection", None), "brush", None) or {}
    at = brush.get("at") if isinstance(brush, dict) else None
    if not at or len(at) != 2:
        return
    start, end = sorted(_utc(float(each) / 1000, _) for each in at)
    if end - start >= _LEAST_ZOOM:
        address.go(replace(view, start=rfc3339(round(start)), end=rfc3339(round(end))))


def _utc(wall: float, _: Reader) -> float:
    """The time of a reading of the reader's wall clock."""
    return datetime.fromtimestamp(wall, UTC).replace(tzinfo=zone_info(_.zone)).timestamp()


def _plot(lines: Course, unit: str, answer: Answer, replicas: bool, low: bool, colors: Sequence[str] | None) -> Plot | None:
    """The lines within the window, the worst ones by themselves and the rest as a band; None where there is no figure."""
    readings = answer.readings
    inside = slice(readings.grid.index(readings.start - 1e-6) + 1 if readings.start > readings.grid.start else 0, None)
    times, values = readings.grid.times[inside], lines.values[:, inside]
    if not np.isfinite(values).any():
        return None
    drawn, rest = chosen(lines, inside, low=low) if replicas else (list(range(len(lines.names))), [])
    drawn = [i for i in drawn if np.isfinite(values[i]).any()]
    points = min(POINTS, CHART_ROWS // (len(drawn) + bool(rest)))
    by_name = replica_colors([replica.name for replica in readings.replicas]) if replicas else {}
    names = tuple(lines.names[i] for i in drawn)
    hues = tuple(colors or ()) or tuple(by_name.get(name, COLORS[i % len(COLORS)]) for i, name in enumerate(names))
    at, shown = thinned(times, values[drawn], points, low=low)
    lowest, highest = _band(times, values[rest], points) if rest else (None, None)
    return Plot(readings.start, readings.end, at, names, shown, hues, unit, low=lowest, high=highest)


def _band(times: Array, values: Array, points: int) -> tuple[Array, Array]:
    """The lowest and the highest of the lines that have no line of their own."""
    return thinned(times, -worst(-values)[None, :], points, low=True)[1][0], thinned(times, worst(values)[None, :], points)[1][0]


def _shaded(answer: Answer, row: str | None) -> Verdict | None:
    """The verdict whose episodes are shaded: the page's own row, else the primary one; None where neither applied."""
    verdicts = [verdict for verdict in answer.diagnosis.verdicts if verdict.row in (row, answer.diagnosis.primary) and verdict.episodes]
    return min(verdicts, key=lambda verdict: verdict.row != row, default=None)


def _title(title: str, note: str | None, legend: Sequence[Html], _: Reader) -> Html:
    return tag(
        "div",
        tag("div", title, cls="title", role="heading", aria_level=2),
        tag("div", note, cls="note") if note else None,
        tag("div", legend, cls="keys") if legend else None,
    )


def _legend(plot: Plot, lines: Course, verdict: Verdict | None, replicas: bool, answer: Answer, _: Reader) -> list[Html]:
    """The lines by colour and dash, worst first, what the band is, and which row is shaded."""
    keys = []
    several = len(answer.readings.replicas) > 1 if replicas else True
    for name, color, dash in zip(plot.names, plot.colors, dashes(plot.colors), strict=True):
        if name and several:
            keys.append(_key(name, color, dash if plot.form == "line" else None))
    if plot.high is not None:
        others = len(lines.names) - len(plot.names)
        keys.append(
            tag("span", tag("i", cls="band"), _.tell(say_n("{n} other, lowest to highest", "{n} others, lowest to highest", others)))
        )
    if verdict is not None:
        keys.append(tag("span", tag("i", cls="shade"), _("shaded: {row}", row=ROWS[verdict.row])))
    return keys


def _key(name: str, color: str, dash: tuple[int, int] | None) -> Html:
    """One key of the legend. The colour is one of the palette's own."""
    if dash is None:
        return tag("span", tag("i", style=f"background:{color}"), name)
    pattern = " ".join(str(part) for part in dash) if dash[1] else None
    line = tag("line", x1=0, x2=18, y1=4, y2=4, stroke=color, stroke_width=3, stroke_dasharray=pattern)
    return tag("span", tag("svg", line, viewBox="0 0 18 8", cls="stroke", aria_hidden="true"), name)


def _missing(readings: Sequence[Reading], _: Reader) -> Html | None:
    """What of the drawn signals has no figure, and why."""
    lines = [_why(reading, _) for reading in readings if reading.status is not Status.MEASURED]
    return tag("ul", lines, cls="lacking") if lines else None


def _nothing(readings: Sequence[Reading], _: Reader) -> Html:
    words = [_why(reading, _) for reading in readings if reading.status is not Status.MEASURED]
    return tag("div", tag("ul", words) if words else _("Nothing to draw: there is no such figure in this window."), cls="nothing")


def _why(reading: Reading, _: Reader) -> Html:
    why = _.tell(reading.why) if reading.why else _("no figure in this window.")
    return tag("li", icon("unknown"), " ", tag("b", f"{_.tell(reading.signal.title)}: {_.tell(STATUSES[reading.status])}"), ". ", why)
