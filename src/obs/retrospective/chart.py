"""One chart of the report as geometry: paths, ticks and bands in the units of an SVG, so that a template only writes them down. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from obs.course import Course
from obs.language import quantity_text
from obs.order import DAY_SECONDS
from obs.palette import COLORS, dashes, replica_colors
from obs.report import Report
from obs.series import worst
from obs.strokes import path, thinned, ticks
from obs.text import Moment, Quantity, say
from obs.verdict import Episode, Evidence
from obs.window import zone_info

WIDTH, HEIGHT = 680.0, 150.0  # of the drawing; labels stand left of it and below
LINES, POINTS = 8, 340
MOST_TIMES, LEVELS = 8, 3


@dataclass(frozen=True)
class Line:
    """A line with its name; "" where there is one for the whole view."""

    name: str
    color: str
    dash: str
    path: str


@dataclass(frozen=True)
class Chart:
    """Everything in the units of the drawing: x from 0 to WIDTH, y from 0 at the top to HEIGHT."""

    title: str
    label: str  # for who cannot see it
    lines: tuple[Line, ...]
    others: str  # says how many lines are not drawn
    times: tuple[tuple[float, str], ...]
    levels: tuple[tuple[float, str], ...]
    bands: tuple[tuple[float, float], ...]  # where the row applied: from, width
    onset: tuple[float, str] | None
    threshold: tuple[float, str] | None


def chart(piece: Evidence, course: Course, report: Report, episodes: Sequence[Episode], *, gateway: bool) -> Chart:
    """The course of one piece of evidence over the window, worst lines first."""
    d = report.diagnosis
    times = report.readings.grid.times
    inside = (times >= d.start) & (times <= d.end)
    at, values = thinned(times[inside], course.values[:, inside], POINTS)
    order = np.argsort(-np.nan_to_num(worst(values, axis=1), nan=-np.inf), kind="stable")[:LINES]
    seen = values[order]
    peak = max(float(np.nanmax(seen, initial=0.0)), piece.threshold or 0.0)
    step = _level_step(1.0 if piece.unit == "ratio" and 0.5 < peak <= 1.0 else peak)
    top = max(float(np.ceil(peak / step)) * step, step)
    span = max(d.end - d.start, 1.0)

    def across(moment: float) -> float:
        return round(float(np.clip((moment - d.start) / span, 0.0, 1.0)) * WIDTH, 1)

    def up(value: float) -> float:
        return float(round(HEIGHT * (1.0 - value / top), 1))

    def figure(value: float) -> str:
        return quantity_text(Quantity(value, piece.unit), report.lang)

    names = [course.names[i] for i in order]
    colors = [COLORS[i % len(COLORS)] for i in range(len(names))]
    if not gateway:
        by_name = replica_colors([replica.name for replica in report.readings.replicas])
        colors = [by_name.get(name, colors[i]) for i, name in enumerate(names)]
    strokes = ["" if dash == (1, 0) else f"{dash[0]} {dash[1]}" for dash in dashes(colors)]
    paths = [path((at - d.start) / span * WIDTH, HEIGHT * (1.0 - row / top)) for row in seen]
    more = len(course.names) - len(names)
    title = report.text(piece.title)
    bands = [(across(e.start), across(d.end if e.end is None else e.end)) for e in episodes]
    onset = threshold = None
    if piece.onset is not None:
        onset = across(piece.onset), report.text(say("since {at}", at=Moment(piece.onset)))
    if piece.threshold is not None:
        threshold = up(piece.threshold), report.text(say("threshold {figure}", figure=figure(piece.threshold)))
    return Chart(
        title=title,
        label=report.text(say("{title} over the window, at most {peak}", title=title, peak=figure(float(np.nanmax(seen, initial=0.0))))),
        lines=tuple(Line(*line) for line in zip(names, colors, strokes, paths, strict=True)),
        others=report.text(say("{n} more below these", n=more)) if more else "",
        times=tuple((across(moment), words) for moment, words in _times(d.start, d.end, report)),
        levels=tuple((up(level), figure(level)) for level in np.arange(0.0, top + step / 2, step).tolist()),
        bands=tuple((left, round(max(right - left, 1.5), 1)) for left, right in bands if right > 0 and left < WIDTH),
        onset=onset,
        threshold=threshold,
    )


def _level_step(top: float) -> float:
    """A round step that reaches `top` in about LEVELS marks."""
    if top <= 0:
        return 1.0
    rough = top / LEVELS
    power = 10.0 ** np.floor(np.log10(rough))
    return float(next(power * m for m in (1.0, 2.0, 2.5, 5.0, 10.0) if power * m >= rough * 0.999))


def _times(start: float, end: float, report: Report) -> list[tuple[float, str]]:
    """Round moments, and how they are written: over days the day at its midnight, the time between."""
    step, moments = ticks(start, end, report.zone, MOST_TIMES)

    def words(at: float) -> str:
        moment = datetime.fromtimestamp(at, zone_info(report.zone))
        if step >= DAY_SECONDS or (end - start > DAY_SECONDS and (moment.hour, moment.minute) == (0, 0)):
            return report.text(say("{at}", at=Moment(at, dated=True))).rpartition(" ")[0]
        return moment.strftime("%H:%M:%S" if step < 60 else "%H:%M")

    return [(at, words(at)) for at in moments]
