"""One chart of a page with what belongs to it: title, legend, note, the metric that was found, PromQL, Prometheus, CSV.

Nothing measured is never an empty chart: the panel says which of the signals is absent, without traffic or stale, and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from obs.course import Course
from obs.palette import COLORS, replica_colors
from obs.series import Array, worst
from obs.signals import Reading, Status
from obs.strokes import thinned
from obs.titles import STATUSES
from obs.ui import legend, take, zoom
from obs.ui.answer import Answer
from obs.ui.icons import icon
from obs.ui.markup import Html, show, tag
from obs.ui.plot import HEIGHT, LINES, POINTS, Form, Plot, Rule
from obs.ui.plot import ROWS as CHART_ROWS
from obs.ui.reader import Reader
from obs.ui.screen import Screen
from obs.verdict import Verdict


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
        plot = _plot(lines, unit, answer, replicas, low, form == "stack", colors) if lines is not None else None
        if lines is None or plot is None:
            show(tag("div", _title(title, note, ()), _nothing(readings, _), cls="panel"))
            return
        verdict = _shaded(answer, row)
        episodes = verdict.episodes if verdict else ()
        onset = episodes[0].start if episodes else None
        plot = replace(plot, form=form, rules=tuple(rules), episodes=episodes, onset=onset, least_top=least_top, height=height)
        several = not replicas or len(answer.readings.replicas) > 1
        keys = legend.keys(plot, len(lines.names) - len(plot.names), verdict.row if verdict else None, _, named=several)
        show(tag("div", _title(title, note, keys), _missing(readings, _), cls="panel"))
        zoom.draw(plot, key, screen.view, title, _)
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


def _plot(
    lines: Course, unit: str, answer: Answer, replicas: bool, low: bool, whole: bool, colors: Sequence[str] | None
) -> Plot | None:  # fmt: skip
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
    at, shown = thinned(times, values[drawn], points, low=low, whole=whole)
    lowest, highest = _band(times, values[rest], points) if rest else (None, None)
    return Plot(readings.start, readings.end, at, names, shown, hues, unit, low=lowest, high=highest)


def _band(times: Array, values: Array, points: int) -> tuple[Array, Array]:
    """The lowest and the highest of the lines that have no line of their own."""
    return thinned(times, -worst(-values)[None, :], points, low=True)[1][0], thinned(times, worst(values)[None, :], points)[1][0]


def _shaded(answer: Answer, row: str | None) -> Verdict | None:
    """The verdict whose episodes are shaded: the page's own row, else the primary one; None where neither applied."""
    verdicts = [verdict for verdict in answer.diagnosis.verdicts if verdict.row in (row, answer.diagnosis.primary) and verdict.episodes]
    return min(verdicts, key=lambda verdict: verdict.row != row, default=None)


def _title(title: str, note: str | None, keys: Sequence[Html]) -> Html:
    return tag(
        "div",
        tag("div", title, cls="title", role="heading", aria_level=2),
        tag("div", note, cls="note") if note else None,
        tag("div", keys, cls="keys") if keys else None,
    )


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
