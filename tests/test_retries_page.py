"""Are we doing work twice, or for nobody? Figures compared; without a gateway's word nobody calls it no."""

from dataclasses import replace

import numpy as np
import pytest
from tests.arrays import HEALTHY, HEALTHY_MEANS, by_hand, course

from obs import retries, retries_flow
from obs.amplification import amplification
from obs.diagnosis import diagnose
from obs.facts import Facts
from obs.language import render
from obs.narrow import narrow
from obs.signals import Status
from obs.verdict import State

GATEWAY = ("gateway_attempts", "gateway_retries", "gateway_timeouts", "gateway_responses", "gateway_errors")
CALM = {
    **HEALTHY,
    "gateway_retry_overflow": 0.0,
    "gateway_cancelled": 0.0,
    "gateway_active": 4.0,
    "engine_aborts": 0.0,
    "generation_tokens": 101.0,
}


def during(before, then):
    return course(240, (0, before), (160, then), (200, before))


STORM = {
    "gateway_attempts": during(1.0, 40.0), "gateway_retries": during(0.0, 30.0), "gateway_timeouts": during(0.0, 20.0),
    "requests_running": during(4.0, 60.0), "gateway_active": during(4.0, 60.0),
}  # fmt: skip


def looked_at(readings):
    found = diagnose(readings)
    facts = Facts(readings, dict(found.thresholds))
    return facts, retries.answer(facts, found.verdict("load_after_timeouts"), found.findings)


def said(means=None, without=(), **levels):
    both = {name: value for name, value in {**CALM, **levels}.items() if name not in without}
    return looked_at(by_hand(means={**HEALTHY_MEANS, **(means or {})}, **both))[1]


def figure(found, title):
    return next(f for f in found.figures if render(f.title).startswith(title))


def with_parts(readings, **parts):
    """The readings with the metrics that a gateway's refused retries were added up from."""
    reading = readings.signals["gateway_retry_overflow"]
    values = {name: np.broadcast_to(np.asarray(each, float), reading.values.shape) for name, each in parts.items()}
    whole = replace(reading, values=np.sum(list(values.values()), axis=0), parts=values)
    return replace(readings, signals={**readings.signals, "gateway_retry_overflow": whole})


# ---------------------------------------------------------------- not known, and no


def test_without_a_gateway_nobody_can_tell_and_what_would_is_named():
    found = said(without=(*GATEWAY, "gateway_retry_overflow", "gateway_cancelled", "gateway_active"))
    assert found.state is State.UNKNOWN
    words = render(found.says)
    assert words.startswith("Nobody can tell whether work is done twice: ")
    assert words.endswith("Of the generated tokens 1 % reach nobody.")  # that much the engines tell
    for title in (
        "Attempts for each request",
        "Retries per request",
        "Time-outs",
        "Retries refused",
        "Clients that left",
        "Held for nobody",
    ):
        assert figure(found, title).value is None
        assert figure(found, title).state is State.UNKNOWN
    assert figure(found, "Tokens made for nobody").value == pytest.approx(1 / 101)


def test_without_engines_and_gateway_nothing_is_known_of_tokens_either():
    found = looked_at(by_hand(requests_running=4.0))[1]
    assert found.state is State.UNKNOWN
    assert render(found.says).startswith("Nobody can tell whether work is done twice or for nobody: ")
    assert figure(found, "Tokens made for nobody").value is None


def test_an_engine_that_counts_tokens_at_the_finish_cannot_tell_of_waste():
    found = said(generation_tokens=100.0)  # exactly what was delivered, at each step
    assert render(found.says) == "No: retries are 0 % of the requests (budget 10 %)."
    shown = figure(found, "Tokens made for nobody")
    assert (shown.value, shown.state) == (None, State.UNKNOWN)
    assert render(shown.says) == "not told: tokens are counted only when a request is finished"


def test_no_traffic_is_neither_yes_nor_no():
    found = said(gateway_attempts=0.0)
    assert found.state is State.UNKNOWN
    assert render(found.says) == "Nobody can tell: no request passed a gateway in this window."
    assert figure(found, "Retries per request").value is None


def test_few_retries_are_no_and_stand_beside_their_budget():
    found = said(gateway_attempts=1.02, gateway_retries=0.02)
    assert found.state is State.CLEAR
    assert render(found.says) == "No: retries are 2 % of the requests (budget 10 %), and 1 % of the generated tokens reach nobody."
    assert render(figure(found, "Retries per request").says) == "within the budgets of 10 % and 20 %"
    assert found.advice == ()


def test_retries_over_the_budget_without_time_outs_are_some_of_it_twice():
    found = said(gateway_attempts=during(1.0, 1.5), gateway_retries=during(0.0, 0.5))
    assert found.state is State.SUSPECTED
    shown = figure(found, "Retries per request")
    assert (shown.value, shown.state) == (pytest.approx(600 * 0.5 / 1800), State.SUSPECTED)  # ten of thirty minutes
    assert render(shown.says) == "over the client's budget of 10 %, within the gateway's 20 %"


def test_a_burst_of_retries_in_a_crash_is_not_called_no():
    burst = {
        "gateway_attempts": course(240, (0, 1.0), (160, 60.0), (164, 1.0)),
        "gateway_retries": course(240, (0, 0.0), (160, 59.0), (164, 0.0)),
    }
    found = said(**burst)
    assert found.state is State.SUSPECTED
    assert render(found.says).startswith("Some of it twice: retries are 197 % of the requests, over the budget of 10 %, but not for long")
    assert figure(found, "Attempts for each request").state is State.SUSPECTED


def test_three_time_outs_in_thousands_of_attempts_are_no_alarm():
    shown = figure(said(gateway_timeouts=3 / 1800), "Time-outs")
    assert (shown.value, shown.state) == (3, State.CLEAR)


# ---------------------------------------------------------------- twice, and for nobody


def test_retries_after_time_outs_with_work_that_stays_are_work_done_twice():
    found = said(**STORM)
    assert found.state is State.APPLIES
    assert render(found.says).startswith("Yes, twice: each request becomes up to 4 attempts, from 08:39:45 to 08:50:")
    most = figure(found, "Attempts for each request")
    assert most.value == pytest.approx(4.0)
    assert render(most.says) == "highest, at 08:40:00; 7,200 requests, 25,200 attempts in this window"
    assert figure(found, "Time-outs").value == 600 * 20
    assert render(figure(found, "Retries per request").says) == "over both budgets, 10 % and 20 %"
    assert render(found.advice[0]).startswith("Bounded retries, and cancellation of abandoned work. Each request became 4 x attempts")
    assert render(found.advice[1]).startswith("12,000 requests timed out or lost their client, and the engines count 0 aborts.")


def test_a_crash_outside_of_the_storm_is_not_the_storms_worst():
    early = (np.arange(240) >= 121) & (np.arange(240) < 127)  # a minute and a half in which hardly anything is new
    storm = {**STORM, "gateway_attempts": np.where(early, 60.0, STORM["gateway_attempts"])}
    found = said(**{**storm, "gateway_retries": np.where(early, 59.9, STORM["gateway_retries"])})
    assert figure(found, "Attempts for each request").value == pytest.approx(4.0)


def test_tokens_that_reach_nobody_make_it_both():
    found = said(**STORM, generation_tokens=during(100.0, 3000.0))
    assert render(found.says).startswith("Yes, both: each request becomes up to 4 attempts, and 9")
    wasted = figure(found, "Tokens made for nobody")
    assert wasted.state is State.APPLIES
    assert 0.8 < wasted.value < 0.95


def test_callers_that_leave_without_a_retry_are_work_for_nobody():
    """First tokens that no finished request accounts for: streams whose client went away."""
    found = said(generation_tokens=during(100.0, 1000.0), requests_finished=during(1.0, 0.05), means={"output_length": during(100.0, 5.0)})
    assert found.state is State.APPLIES
    assert render(found.says).startswith("Yes, for nobody: 9")
    assert render(found.advice[0]).startswith("Cancel abandoned work")


def test_aborts_that_follow_the_time_outs_are_not_complained_of():
    assert len(said(**STORM, engine_aborts=during(0.0, 19.0)).advice) == 1


def test_work_that_no_gateway_holds_open_is_counted():
    found = said(**{**STORM, "gateway_active": during(4.0, 10.0)})
    shown = figure(found, "Held for nobody")
    assert (shown.value, shown.state) == (50, State.APPLIES)
    assert render(shown.says) == "of 60 in the engines: no gateway holds them open"
    assert figure(said(gateway_active=1.0), "Held for nobody").state is State.CLEAR  # three are on their way


# ---------------------------------------------------------------- the parts


def test_retries_that_a_budget_refused_are_told_from_those_used_up():
    readings = with_parts(by_hand(means=HEALTHY_MEANS, **CALM), upstream_rq_retry_overflow=0.1, upstream_rq_retry_limit_exceeded=0.05)
    facts, found = looked_at(readings)
    refused, used = retries_flow.refused(facts)
    assert (refused[0], used[0]) == (pytest.approx(0.1), pytest.approx(0.05))
    assert render(figure(found, "Retries refused or used up").says) == "180 refused by a budget, 90 used up"
    cut = narrow(readings, namespace="elsewhere").signals["gateway_retry_overflow"]
    assert all(values.shape == cut.values.shape for values in cut.parts.values())


def test_a_gateway_that_counts_only_what_was_used_up_refused_nothing_that_is_known():
    readings = by_hand(means=HEALTHY_MEANS, **CALM)
    reading = replace(readings.signals["gateway_retry_overflow"], metric="sgl_router_retries_exhausted_total")
    facts, found = looked_at(replace(readings, signals={**readings.signals, "gateway_retry_overflow": reading}))
    refused, used = retries_flow.refused(facts)
    assert np.isnan(refused).all()
    assert used[0] == 0
    assert render(figure(found, "Retries refused or used up").says) == "0 used up; how many a budget refused is not told"


def test_two_layers_are_never_added_up():
    readings = by_hand(means=HEALTHY_MEANS, **{**CALM, "gateway_attempts": 3.0, "gateway_retries": 1.0})
    both = {}
    for signal in ("gateway_attempts", "gateway_retries"):
        reading = readings.signals[signal]
        outer = reading.values / 2
        both[signal] = replace(
            reading, rows=("llm", "front"), values=np.concatenate([reading.values, outer]),
            row_labels=({"system": "envoy"}, {"system": "haproxy"}),
        )  # fmt: skip
    facts, found = looked_at(replace(readings, signals={**readings.signals, **both}))
    assert [(layer.system, layer.attempts[100], layer.originals[100]) for layer in retries_flow.layers(facts)] == [
        ("envoy", 3.0, 2.0), ("haproxy", 1.5, 1.0),
    ]  # fmt: skip
    assert figure(found, "Retries per request").value == pytest.approx(0.5)
    assert render(figure(found, "Attempts for each request").says) == "highest, at 08:30:00; 3,600 requests, 5,400 attempts in this window"


def test_the_failing_part_is_time_outs_and_errors_and_at_least_what_was_retried():
    window = np.ones(240, dtype=bool)
    facts, _ = looked_at(by_hand(means=HEALTHY_MEANS, **{**CALM, "gateway_attempts": 10.0, "gateway_timeouts": 2.0, "gateway_errors": 3.0}))
    assert retries_flow.failing(facts, window) == pytest.approx(0.3)  # a time-out may be answered by a 504
    facts, _ = looked_at(by_hand(means=HEALTHY_MEANS, **{**CALM, "gateway_attempts": 10.0, "gateway_retries": 6.0}))
    assert retries_flow.failing(facts, window) == pytest.approx(0.6)
    facts, _ = looked_at(by_hand(requests_running=4.0))
    assert retries_flow.failing(facts, window) is None
    assert facts.reading("gateway_attempts").status is Status.ABSENT


# ---------------------------------------------------------------- what if


@pytest.mark.parametrize(("layers", "tries", "attempts"), [(1, 0, 1), (1, 3, 4), (3, 3, 64), (5, 2, 243)])
def test_at_the_worst_each_layer_multiplies(layers, tries, attempts):
    assert amplification(layers, tries, 1.0).worst == attempts
    assert amplification(layers, tries, 1.0).expected == attempts
    assert amplification(layers, tries, 0.0).expected == 1.0


def test_at_a_failure_rate_each_layer_tries_until_one_succeeds():
    one = amplification(1, 2, 0.5)
    assert one.expected == pytest.approx(1 + 0.5 + 0.25)
    assert one.failed == pytest.approx(0.125)
    two = amplification(2, 2, 0.5)
    assert two.expected == pytest.approx(1.75 * (1 + 0.125 + 0.125**2))
    assert two.failed == pytest.approx(0.125**3)


def test_the_expected_attempts_are_those_of_a_simulation():
    chance = np.random.default_rng(3)

    def call(layer):
        """(whether it failed, attempts at the engine)"""
        if layer == 0:
            return chance.random() < 0.6, 1
        made = 0
        for _ in range(3):
            failed, attempts = call(layer - 1)
            made += attempts
            if not failed:
                return False, made
        return True, made

    tried = [call(2) for _ in range(20_000)]
    found = amplification(2, 2, 0.6)
    assert np.mean([attempts for _failed, attempts in tried]) == pytest.approx(found.expected, rel=0.03)
    assert np.mean([failed for failed, _attempts in tried]) == pytest.approx(found.failed, rel=0.3)
