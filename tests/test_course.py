"""The lines under the evidence: wherever a figure stands there is a line, by gateway or replica, and no figure is no line."""

from __future__ import annotations

import numpy as np
import pytest

from obs import bundle, config
from obs.collect import collect
from obs.course import Courses, at_gateway
from obs.diagnosis import diagnose
from obs.window import Window

INCIDENTS = {incident.name: incident for incident in bundle.incidents() if not incident.name.startswith("healthy")}


def _shown(name: str):
    incident = INCIDENTS[name]
    readings = collect(bundle.sample(), Window(incident.start - 60, incident.end + 60), {})
    found = diagnose(readings, config.load().thresholds)
    return readings, found, Courses(readings, found.thresholds)


@pytest.mark.parametrize("name", sorted(INCIDENTS))
def test_every_figure_has_a_line_and_what_has_no_figure_has_none(name):
    _readings, found, courses = _shown(name)
    for verdict in found.verdicts:
        for piece in verdict.evidence:
            course = courses.course(piece)
            assert (course is None) == (piece.value is None), piece.signal
            if course is not None:
                assert len(set(course.names)) == len(course.names), piece.signal  # and so at most one has no name


def test_the_lines_of_gateways_are_named_after_them_and_reach_the_figure_that_decided():
    readings, found, courses = _shown("retry_storm")
    pieces = {piece.signal: piece for piece in found.verdict("load_after_timeouts").evidence}
    inside = (readings.grid.times >= readings.start) & (readings.grid.times <= readings.end)
    for signal in ("retry_ratio", "timeouts", "amplification"):
        course = courses.course(pieces[signal])
        assert at_gateway(pieces[signal])
        assert course.names == ("vllm",)
        assert np.nanmax(course.values[:, inside]) == pytest.approx(pieces[signal].value, rel=1e-3), signal


def test_events_that_nobody_counts_are_not_drawn_as_none():
    _readings, found, courses = _shown("kv_pressure")
    events = found.verdict("gpu_oom").evidence[0]
    assert events.signal == "gpu_oom_events"
    assert events.value is None
    assert courses.course(events) is None
