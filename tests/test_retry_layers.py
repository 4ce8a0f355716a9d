"""Several layers that retry multiply: the product is taken minute by minute, in front of the same replicas, by the labels of each row."""

from dataclasses import replace

import numpy as np
import pytest
from tests.arrays import by_hand, course, facts

from obs.course import Courses
from obs.diagnosis import diagnose
from obs.signals import SIGNALS, Level

STEPS = 240


def site(rows, replicas=1, **spaces):
    """Readings with one gateway row for each (name, system, retries of 1 attempt per second); `spaces` gives rows a namespace."""
    readings = by_hand(STEPS, replicas=replicas, requests_running=4.0)
    signals = dict(readings.signals)
    for id_ in (s.id for s in SIGNALS.values() if s.level is Level.GATEWAY):
        own = [row for row in rows if id_ == "gateway_attempts" or (id_ == "gateway_retries" and row[2] is not None)]
        values = (
            np.stack([np.broadcast_to(1.0 if id_ == "gateway_attempts" else row[2], STEPS) for row in own]) if own else np.empty((0, STEPS))
        )
        labels = tuple({"system": system, "namespace": spaces.get(name, "")} for name, system, _ in own)
        signals[id_] = replace(signals[id_], rows=tuple(name for name, *_ in own), values=values, row_labels=labels)
    return replace(readings, signals=signals)


def product(readings):
    values = facts(readings).layers_product
    return float(np.nanmax(values[:, -60:])) if np.isfinite(values).any() else None


# ---------------------------------------------------------------- no product


def test_one_layer_is_no_product():
    assert product(site([("llm", "envoy", 0.5)])) is None


def test_two_rows_of_one_system_stand_side_by_side():
    assert product(site([("a", "envoy", 0.5), ("b", "envoy", 0.5)])) is None


def test_a_layer_that_exports_no_retries_is_not_taken_for_one_without_any():
    assert product(site([("llm", "envoy", 0.5), ("door", "nginx", None)])) is None


def test_layers_of_different_namespaces_do_not_multiply():
    assert product(site([("a", "envoy", 0.5), ("b", "haproxy", 0.5)], a="elsewhere", b="prod")) is None


def test_peaks_of_different_minutes_do_not_multiply():
    early, late = course(STEPS, (0, 0.0), (60, 0.5), (100, 0.0)), course(STEPS, (0, 0.0), (160, 0.5), (200, 0.0))
    readings = site([("llm", "envoy", early), ("door", "haproxy", late)])
    assert np.nanmax(facts(readings).layers_product) == pytest.approx(2.0, rel=0.01)


# ---------------------------------------------------------------- a product


def test_a_third_and_a_half_of_retries_make_three_attempts_a_request():
    """Half of Envoy's attempts are retries: 2 a request. A third of HAProxy's: 1.5. One behind the other: 3."""
    assert product(site([("llm", "envoy", 0.5), ("door", "haproxy", 1 / 3)])) == pytest.approx(3.0, rel=0.01)


def test_the_rows_are_told_by_their_labels_whatever_their_order():
    """`door` has no retries and stands first in the alphabet."""
    rows = [("zone", "envoy", 0.5), ("door", "nginx", None), ("llm", "haproxy", 1 / 3)]
    assert product(site(rows)) == pytest.approx(3.0, rel=0.01)


def test_the_diagnosis_says_the_product():
    got = diagnose(site([("llm", "envoy", 0.5), ("door", "haproxy", 1 / 3)])).verdict("load_after_timeouts")
    assert next(e for e in got.evidence if e.signal == "layers").value == pytest.approx(3.0, rel=0.01)


def test_a_request_that_two_layers_hold_open_is_one_and_the_line_is_the_figure_s():
    """Both gateways hold the same three of ten requests: seven are held for nobody, in the evidence and in the line that is drawn."""
    readings = site([("llm", "envoy", 0.5), ("door", "haproxy", 1 / 3)])
    held = replace(readings.signals["gateway_attempts"], signal=SIGNALS["gateway_active"], values=np.full((2, STEPS), 3.0))
    running = replace(readings.signals["requests_running"], values=np.full((1, STEPS), 10.0))
    readings = replace(readings, signals={**readings.signals, "gateway_active": held, "requests_running": running})
    found = diagnose(readings)
    piece = next(e for e in found.verdict("load_after_timeouts").evidence if e.signal == "abandoned_requests")
    course = Courses(readings, found.thresholds).course(piece)
    assert piece.value == pytest.approx(7.0)
    assert course is not None
    assert np.nanmax(course.values) == pytest.approx(7.0)
