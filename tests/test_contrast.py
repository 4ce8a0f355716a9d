"""Two windows side by side: which figures differ, by more than chance, and what that says of a change that was tested."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.arrays import HEALTHY, HEALTHY_MEANS, by_hand, course, facts

from obs.contrast import LEAST_MINUTES, cliffs_delta, contrast, contrasts, level, requests
from obs.language import render
from obs.trial import TRIALS, Outcome, conclude

NAN = float("nan")
STEPS = 240  # of 15 s, of which the second half is the window: 30 minutes
bounded = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def window(means=None, *, replicas=1, steps=STEPS, per_second=1.0, **levels):
    """The facts of a window of a healthy replica on which these figures are different."""
    both = {**HEALTHY_MEANS, **(means or {})}
    return facts(by_hand(steps, replicas=replicas, means=both, per_second=per_second, **{**HEALTHY, **levels}))


def outcome(change, before, after):
    found = {c.id: c for c in contrasts(before, after)}
    return conclude(TRIALS[change], found, (requests(before), requests(after)))


# ---------------------------------------------------------------- no difference


def test_a_window_does_not_differ_from_itself():
    one = window(kv_use=np.linspace(0.2, 0.8, STEPS))
    found = contrasts(one, one)
    assert [c.id for c in found if c.moved] == []
    assert {c.effect for c in found if c.effect is not None} == {0.0}


def test_noise_of_the_same_height_is_chance():
    noise = np.random.default_rng(4).normal(0.5, 0.1, (2, STEPS))
    assert contrast("kv_use", window(kv_use=noise[0]), window(kv_use=noise[1])).moved == 0


def test_six_minutes_that_overlap_may_be_chance():
    """The medians are 3.5 and 4.5, and an effect of 0.39 would count if it were of more minutes."""
    early, late = (
        np.concatenate([np.ones(120), np.repeat(minutes, 4)]) for minutes in ([1, 2, 3, 4, 5, 6], [3.5, 4.5, 5.5, 6.5, 3.5, 4.5])
    )
    got = contrast("requests_running", window(steps=144, requests_running=early), window(steps=144, requests_running=late))
    assert (got.before, got.after, got.minutes) == (3.5, 4.5, (6, 6))
    assert got.effect == pytest.approx(14 / 36)
    assert got.moved == 0


def test_a_sure_difference_that_is_small_is_none():
    got = contrast("kv_use", window(kv_use=0.50), window(kv_use=0.52))
    assert (got.effect, got.moved) == (1.0, 0)


def test_too_few_minutes_say_nothing():
    """The window is four minutes long."""
    short = 120 + 4 * (LEAST_MINUTES - 1)
    got = contrast("kv_use", window(steps=short, kv_use=0.1), window(steps=short, kv_use=0.9))
    assert (got.effect, got.moved) == (None, 0)
    assert got.minutes == (LEAST_MINUTES - 1, LEAST_MINUTES - 1)


def test_what_is_not_measured_is_not_zero():
    got = contrast("kv_use", window(kv_use=NAN), window(kv_use=0.9))
    assert (got.before, got.change, got.effect, got.moved) == (None, None, None, 0)


# ---------------------------------------------------------------- a difference


def test_a_full_replica_is_not_averaged_away():
    """One of four is full: the worst is told, not 40 %."""
    full = np.array([[0.98], [0.2], [0.2], [0.2]]) * np.ones((1, STEPS))
    assert level(window(replicas=4, kv_use=full), "kv_use") == pytest.approx(0.98)


def test_counts_are_summed_over_replicas():
    assert level(window(replicas=3, requests_waiting=2.0), "requests_waiting") == pytest.approx(6.0)


def test_a_mean_is_of_all_requests_and_no_mean_of_means():
    """One replica serves nine times as many requests: 0.1 s on nine of ten, 1.1 s on one."""
    readings = by_hand(STEPS, replicas=2, means={"ttft": np.array([[0.1], [1.1]]) * np.ones((1, STEPS))})
    ttft = readings.signals["ttft"]
    ttft.count[0] *= 9
    ttft.total[0] *= 9
    assert level(facts(readings), "ttft") == pytest.approx(0.2)


def test_what_changed_most_comes_first():
    found = contrasts(window(), window(kv_use=0.33, requests_waiting=40.0))
    assert [(c.id, c.moved) for c in found[:2]] == [("requests_waiting", 1), ("kv_use", 0)]
    assert (found[0].before, found[0].after, found[0].change) == (0.0, 40.0, 1.0)


@bounded
@given(st.lists(st.floats(-9, 9), min_size=1, max_size=12), st.lists(st.floats(-9, 9), min_size=1, max_size=12))
def test_the_effect_size_is_the_count_over_all_pairs(before, after):
    a, b = np.array(before), np.array(after)
    pairs = np.sign(b[None, :] - a[:, None])
    assert cliffs_delta(a, b) == pytest.approx(float(pairs.mean()), abs=1e-9)


# ---------------------------------------------------------------- a change that was tested

TROUBLE = {"kv_use": 0.98, "preemptions": 0.6, "requests_running": 60.0, "requests_waiting": 30.0}
SLOW = {"itl": 0.08, "e2e_latency": 12.0, "ttft": 4.0}


def test_lower_admission_helps_though_the_first_token_waits_longer():
    """Fewer preemptions, a longer queue: the time to first token doubles, and the answers come sooner."""
    before = window(SLOW, **TROUBLE)
    after = window({"itl": 0.03, "e2e_latency": 8.0, "ttft": 8.0}, kv_use=0.7, requests_running=30.0, requests_waiting=60.0)
    got = outcome("lower_admission", before, after)
    assert got.outcome is Outcome.HELPED
    assert [(e.contrast.id, e.did) for e in got.expected] == [("preemptions", 1), ("kv_use", 1), ("itl", 1), ("requests_running", 1)]
    assert (got.worse, got.uneven) == ((), ())


def test_a_change_without_an_effect_did_not_help():
    got = outcome("lower_admission", window(SLOW, **TROUBLE), window(SLOW, **TROUBLE))
    assert got.outcome is Outcome.DID_NOT
    assert render(got.reason).startswith("What ought to move did not: Preemptions 0.6 /s → 0.6 /s;")


def test_what_goes_the_other_way_made_it_worse():
    got = outcome("lower_admission", window(), window(SLOW, **TROUBLE))
    assert got.outcome is Outcome.WORSE
    assert "e2e_latency" in {c.id for c in got.worse}


def test_better_evidence_and_longer_answers_are_inconclusive():
    got = outcome("lower_admission", window(SLOW, **TROUBLE), window({"itl": 0.03, "e2e_latency": 20.0}, kv_use=0.5))
    assert got.outcome is Outcome.INCONCLUSIVE
    assert render(got.reason).startswith("It moved both ways.")


def test_half_the_load_explains_what_got_better():
    after = window(gateway_attempts=0.4, requests_finished=0.4)
    got = outcome("lower_admission", window(SLOW, **TROUBLE), after)
    assert got.outcome is Outcome.INCONCLUSIVE
    assert "The load was not the same (Requests, retries aside 1 /s → 0.4 /s)" in render(got.reason)


def test_better_at_more_load_is_all_the_more_a_help():
    got = outcome("lower_admission", window(SLOW, **TROUBLE), window(gateway_attempts=2.0, requests_finished=2.0))
    assert got.outcome is Outcome.HELPED
    assert [c.id for c in got.uneven] == ["arrivals"]


def test_worse_at_less_load_is_worse():
    got = outcome("lower_admission", window(), window(SLOW, gateway_attempts=0.4, requests_finished=0.4, **TROUBLE))
    assert got.outcome is Outcome.WORSE


def test_fewer_retries_are_no_smaller_load():
    """Half of the attempts were retries: what callers ask for is the same."""
    before = window(gateway_attempts=2.0, gateway_retries=1.0, gateway_timeouts=1.0, requests_running=60.0)
    got = outcome("bounded_retries", before, window(gateway_attempts=1.05, gateway_retries=0.05))
    assert got.outcome is Outcome.HELPED
    assert got.uneven == ()


def test_windows_that_overlap_or_stand_in_the_wrong_order_conclude_nothing():
    before, after = window(SLOW, **TROUBLE), window()
    found = {c.id: c for c in contrasts(before, after)}
    got = conclude(TRIALS["lower_admission"], found, (requests(before), requests(after)), in_order=False)
    assert got.outcome is Outcome.INCONCLUSIVE
    assert "must end before this one begins" in render(got.reason)


def test_what_is_not_measured_concludes_nothing():
    got = outcome("cancellation", window(generation_tokens=NAN, requests_running=NAN, requests_waiting=NAN), window())
    assert got.outcome is Outcome.INCONCLUSIVE
    assert "was not measured in both windows" in render(got.reason)


def test_a_handful_of_requests_concludes_nothing():
    quiet = {"requests_finished": 0.005, "gateway_attempts": 0.005}
    got = outcome("lower_admission", window(SLOW, **{**TROUBLE, **quiet}), window(**quiet))
    assert got.outcome is Outcome.INCONCLUSIVE
    assert "Only 9 requests were finished" in render(got.reason)


def test_a_trouble_in_part_of_a_window_is_weighed_by_its_minutes():
    """A third of the minutes: no medium effect, and the median minute is quiet."""
    got = contrast("requests_waiting", window(), window(requests_waiting=course(STEPS, (0, 0.0), (200, 30.0))))
    assert got.effect == pytest.approx(1 / 3, abs=0.03)
    assert got.moved == 0
