"""A confidence means something: nothing known has none, and over all labelled cases right verdicts score higher than wrong ones."""

import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from tests.alterations import without
from tests.arrays import course, verdicts
from tests.incidents import INCIDENTS, TROUBLE, readings, truth
from tests.scrapes import read

from obs.confidence import confidence
from obs.diagnosis import diagnose
from obs.text import say
from obs.verdict import Episode, Evidence, Stance, State

LATENCY = "latency_without_errors"
LOST = ("e2e_latency",), ("kv_use",), ("queue_time", "prefill_time")
NAMED = [incident for incident in INCIDENTS if "applies" in incident.rows.values() and incident.how.end == 4500]


def piece(stance, value=None, threshold=None):
    return Evidence("x", say("x"), stance, "ratio", say("x"), value, None, threshold)


HOLDS = piece(Stance.SUPPORTS, 1.8, 1.0)
QUIET = piece(Stance.CONTRADICTS, 0.2, 1.0)
GONE = piece(Stance.MISSING)
LONG = (Episode(0, None, ()),)


# ---------------------------------------------------------------- none, and less


def test_what_is_unknown_has_no_confidence():
    assert confidence(State.UNKNOWN, [HOLDS], LONG, 600) is None
    assert confidence(State.CLEAR, [], (), 600) is None


@pytest.mark.parametrize("state", [State.APPLIES, State.SUSPECTED, State.CLEAR])
def test_what_is_missing_lowers_it(state):
    assert confidence(state, [HOLDS, GONE], LONG, 600) < confidence(state, [HOLDS, HOLDS], LONG, 600)


def test_what_contradicts_lowers_it():
    assert confidence(State.APPLIES, [HOLDS, HOLDS, QUIET], LONG, 600) < confidence(State.APPLIES, [HOLDS, HOLDS, HOLDS], LONG, 600) - 0.09


def test_a_suspicion_is_never_as_sure_as_a_verdict():
    most = confidence(State.SUSPECTED, [HOLDS] * 9, LONG, 6000)
    assert most < confidence(State.APPLIES, [piece(Stance.SUPPORTS, 1.0, 1.0)], (Episode(0, 120, ()),), 120)


def test_it_is_a_ratio():
    for evidence in ([HOLDS] * 9, [piece(Stance.SUPPORTS, 1e9, 1e-9)], [HOLDS, *[QUIET] * 12], [GONE]):
        for state in (State.APPLIES, State.SUSPECTED, State.CLEAR):
            assert 0 < confidence(state, evidence, LONG, 1e9) < 1


# ---------------------------------------------------------------- more


def test_what_lasts_is_surer():
    assert confidence(State.APPLIES, [HOLDS], (Episode(0, 120, ()),), 600) < confidence(State.APPLIES, [HOLDS], (Episode(0, 500, ()),), 600)


def test_a_heavier_queue_is_surer():
    def sure(waiting):
        means = {"e2e_latency": course(240, (0, 3.0), (160, 12.0)), "queue_time": course(240, (0, 0.01), (160, 8.0))}
        got = verdicts(means, requests_waiting=course(240, (0, 0.0), (160, waiting)))
        return got.verdict(LATENCY).confidence

    assert sure(5.5) < sure(20)


# ---------------------------------------------------------------- over all labelled cases, whole and spoiled


@lru_cache(maxsize=1)
def _scored():
    """(state, right, confidence) of every verdict: whole, without a metric, and two or three minutes after the trouble began."""
    found = []

    def take(incident, seen):
        for verdict in diagnose(seen).verdicts:
            if verdict.confidence is not None:
                right = str(verdict.state) in incident.rows.get(verdict.row, "clear").split("|")
                found.append((verdict.state, right, verdict.confidence))

    for incident in INCIDENTS:
        take(incident, readings(incident.name))
    for incident in NAMED:
        for family in LOST:
            take(incident, without(readings(incident.name), family))
        for minutes in (2, 3):
            take(incident, read(truth(incident.name), replace(incident.how, end=TROUBLE + 60 * minutes)))
    return found


def _mean(state=None, right=None):
    return float(np.mean([sure for s, r, sure in _scored() if state in (None, s) and right in (None, r)]))


def test_there_are_wrong_verdicts_to_compare_with():
    assert sum(not right for _, right, _ in _scored()) >= 20
    assert sum(right for _, right, _ in _scored()) >= 200


def test_right_verdicts_score_higher_than_wrong_ones():
    assert _mean(right=True) > _mean(right=False) + 0.1


def test_right_verdicts_score_higher_than_suspicions():
    assert _mean(State.APPLIES, True) > 0.8
    assert _mean(State.SUSPECTED) < 0.45


def test_a_row_that_is_called_clear_while_its_trouble_begins_is_less_sure_than_one_that_is_clear():
    assert _mean(State.CLEAR, True) > _mean(State.CLEAR, False) + 0.03


def test_the_figures_in_the_docs_are_the_measured_ones():
    text = (Path(__file__).parent.parent / "docs" / "diagnosis.md").read_text("utf-8").split("<!-- confidence:")[1].split("<!-- end -->")[0]
    shown = [float(figure) for figure in re.findall(r"\| (0\.\d+) \|", text)]
    measured = [_mean(right=True), _mean(right=False), _mean(State.APPLIES, True), _mean(State.CLEAR, True), _mean(State.SUSPECTED)]
    assert shown == pytest.approx(measured, abs=0.03)
