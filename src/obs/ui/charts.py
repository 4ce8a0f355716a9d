"""The chart of one piece of evidence: its lines, the threshold, the onset, and the stretches in which the row applied."""

from __future__ import annotations

import numpy as np

from obs.course import Course
from obs.palette import COLORS, replica_colors
from obs.series import Array, Mask, worst
from obs.strokes import thinned
from obs.ui.plot import LINES, Plot, Rule
from obs.ui.reader import Reader
from obs.verdict import Diagnosis, Evidence, Verdict

POINTS = 300  # a line


def chart(piece: Evidence, course: Course, times: Array, verdict: Verdict, diagnosis: Diagnosis, _: Reader) -> Plot:
    """The replicas that the evidence names come first, then those with the highest values; the others are the grey band."""
    inside: Mask = np.asarray((times >= diagnosis.start) & (times <= diagnosis.end), dtype=np.bool_)
    drawn, rest = _chosen(piece, course, inside)
    at, values = thinned(times[inside], course.values[:, inside][drawn], POINTS)
    names = tuple(course.names[i] for i in drawn)
    known = replica_colors(diagnosis.replicas)
    low = high = None
    if rest:
        others = course.values[:, inside][rest]
        low = thinned(times[inside], -worst(-others)[None, :], POINTS, low=True)[1][0]
        high = thinned(times[inside], worst(others)[None, :], POINTS)[1][0]
    rules: tuple[Rule, ...] = ()
    if piece.threshold is not None:
        rules = (Rule(piece.threshold, _("threshold {figure}", figure=_.figure(piece.threshold, piece.unit))),)
    colors = tuple(known.get(name, COLORS[place % len(COLORS)]) for place, name in enumerate(names))
    return Plot(
        diagnosis.start, diagnosis.end, at, names, values, colors, piece.unit,
        low=low, high=high, rules=rules, episodes=verdict.episodes, onset=piece.onset,
    )  # fmt: skip


def _chosen(piece: Evidence, course: Course, inside: Mask) -> tuple[list[int], list[int]]:
    """The lines that are drawn, and those of the band."""
    peaks = np.nan_to_num(worst(course.values[:, inside], axis=1), nan=-np.inf)
    order = sorted(range(len(course.names)), key=lambda i: (course.names[i] not in piece.replicas, -peaks[i]))
    return order[:LINES], order[LINES:]
