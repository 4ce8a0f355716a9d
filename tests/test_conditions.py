"""One condition over time: what does not make it hold, when it begins to, when it ends, and what it is held against."""

import numpy as np
import pytest
from tests.arrays import START, by_hand, course, facts

from obs.conditions import Condition, Limit, hold
from obs.series import runs
from obs.symptoms import LATENCY, PRESSURE
from obs.text import say

NAN = float("nan")
KV, PREEMPTIONS, WAITING = PRESSURE
E2E, ITL, TTFT, LITTLE = LATENCY
STEPS = 240


def held(condition, *, means=None, thresholds=None, steps=STEPS, step=15.0, **levels):
    return hold(facts(by_hand(steps, step=step, means=means, **levels), **(thresholds or {})), condition)


def stretches(found):
    """Where the condition holds, in steps (first, last)."""
    return runs(found.mask[0])


def minutes(first, last):
    """The steps of a scrape of 15 s between two minutes."""
    return (first * 4, last * 4 - 1)


def between(first, last, inside, outside):
    return course(STEPS, (0, outside), (first * 4, inside), (last * 4, outside))


# ---------------------------------------------------------------- what does not make it hold


def test_nothing_measured_is_neither_held_nor_known():
    found = held(KV)
    assert not found.mask.any()
    assert not found.known.any()


def test_just_under_the_limit_is_under_it():
    assert not held(KV, kv_use=0.8999).mask.any()
    assert held(KV, kv_use=0.90).mask.all()


def test_less_than_the_hold_is_nothing():
    assert stretches(held(KV, kv_use=between(30, 31, 0.99, 0.3))) == []
    assert stretches(held(KV, kv_use=between(30, 33, 0.99, 0.3))) == [minutes(30, 33)]


def test_one_slow_request_among_many_is_nothing():
    """A mean that one observation made lasts as long as the rate window: 60 s, and 180 or 300 where requests are rare."""
    single = between(30, 31, 60.0, 3.0)
    assert not held(E2E, means={"e2e_latency": single}).mask.any()


def test_one_slow_request_at_night_is_nothing():
    """Two requests a minute: the mean looks back five minutes, and must stay up for longer than that."""
    count = 2 / 60
    calm = {"means": {"e2e_latency": between(30, 31, 300.0, 3.0)}}
    readings = by_hand(STEPS, per_second=count, **calm)
    assert not hold(facts(readings), E2E).mask.any()
    lasting = by_hand(STEPS, per_second=count, means={"e2e_latency": between(30, 45, 300.0, 3.0)})
    assert hold(facts(lasting), E2E).mask.any()


def test_too_few_requests_for_a_mean_have_no_figure():
    readings = by_hand(STEPS, per_second=0.5 / 60, means={"e2e_latency": 3.0})
    found = hold(facts(readings), E2E)
    assert not found.known.any()


def test_without_a_baseline_and_without_an_absolute_limit_it_is_never_on():
    assert E2E.limit.absolute is None
    found = held(E2E, means={"e2e_latency": course(STEPS, (0, NAN), (4, 500.0))})
    assert not found.mask[:, :12].any()


# ---------------------------------------------------------------- hysteresis and holes


def test_it_holds_on_until_it_is_back_under_the_release():
    """KV use flaps while an engine preempts: 0.9 begins it, and only 0.9 x 0.85 ends it."""
    values = course(STEPS, (0, 0.3), (120, 0.95), (140, 0.80), (160, 0.70))
    assert stretches(held(KV, kv_use=values)) == [(120, 159)]


def test_the_release_of_what_has_a_baseline_is_half_way_back():
    """0.1 s usual, limit 0.35 s: it ends under 0.225 s."""
    values = course(STEPS, (0, 0.1), (120, 0.5), (150, 0.30), (170, 0.2))
    found = held(TTFT, means={"ttft": values})
    assert found.limits.at(0, 125) == pytest.approx(0.35)
    assert stretches(found) == [(120, 169)]


def test_a_dip_of_a_minute_does_not_end_it_and_one_of_two_does():
    dip = course(STEPS, (0, 0.3), (120, 0.95), (140, 0.5), (144, 0.95), (180, 0.3))
    assert stretches(held(KV, kv_use=dip)) == [(120, 179)]
    gap = course(STEPS, (0, 0.3), (120, 0.95), (140, 0.5), (148, 0.95), (180, 0.3))
    assert stretches(held(KV, kv_use=gap)) == [(120, 139), (148, 179)]


def test_a_hole_in_the_data_is_bridged_for_a_minute_and_no_longer():
    short = course(STEPS, (0, 0.3), (120, 0.95), (140, NAN), (144, 0.95))
    assert stretches(held(KV, kv_use=short)) == [(120, 239)]
    ended = course(STEPS, (0, 0.3), (120, 0.95), (140, NAN))
    assert stretches(held(KV, kv_use=ended))[0][1] == 139


# ---------------------------------------------------------------- what it is held against


def test_the_limit_is_the_largest_of_floor_ratio_and_rise():
    low = held(PREEMPTIONS, preemptions=0.01)
    assert low.limits.at(0, -1) == pytest.approx(0.05)
    high = held(PREEMPTIONS, preemptions=0.04)
    assert high.limits.at(0, -1) == pytest.approx(0.08)
    fast = held(TTFT, means={"ttft": 0.05})
    assert fast.limits.at(0, -1) == pytest.approx(0.30)  # 0.05 + 0.25, more than twice
    slow = held(TTFT, means={"ttft": 0.6})
    assert slow.limits.at(0, -1) == pytest.approx(1.2)  # twice, more than 0.6 + 0.25


def test_what_is_usual_is_not_trouble_however_high():
    assert not held(E2E, means={"e2e_latency": 90.0}).mask.any()
    assert not held(WAITING, means={"queue_time": 1.0, "prefill_time": 0.1}, requests_waiting=4.0).mask.any()


def test_without_a_baseline_an_absolute_limit_decides():
    sick = held(TTFT, means={"ttft": 9.0})
    assert np.isnan(sick.baseline.values).all()
    assert sick.limits.at(0, 60) == pytest.approx(2.0)
    assert sick.mask.all()


def test_long_prompts_may_take_longer_before_the_absolute_limit_decides():
    found = held(TTFT, means={"ttft": 9.0, "prompt_length": 8000.0})
    assert found.limits.at(0, 0) == pytest.approx(2.0 + 8.0)
    assert not found.mask.any()


def test_a_setting_replaces_a_threshold():
    assert held(KV, kv_use=0.80, thresholds={"kv_use": 0.75}).mask.all()


def test_a_queue_counts_only_where_it_leads():
    means = {"queue_time": 0.1, "prefill_time": 3.0}
    assert not held(WAITING, means=means, requests_waiting=between(30, 40, 20.0, 0.0)).mask.any()
    means = {"queue_time": 5.0, "prefill_time": 3.0}
    assert held(WAITING, means=means, requests_waiting=between(30, 40, 20.0, 0.0)).mask.any()


def test_little_s_law_tells_the_wait_where_nothing_finishes():
    waits = held(LITTLE, requests_waiting=between(30, 40, 30.0, 0.0), requests_finished=1.0)
    assert float(waits.values[0, 140]) == pytest.approx(30.0)
    assert waits.mask[0, 140]
    stuck = held(LITTLE, requests_waiting=between(30, 40, 30.0, 0.0), requests_finished=0.0)
    assert stuck.values[0, 140] == 86400.0  # a day stands for ever
    assert stuck.mask[0, 140]


@pytest.mark.parametrize("step", [5.0, 15.0, 30.0, 60.0])
def test_the_hold_is_in_seconds_and_not_in_steps(step):
    steps = int(3600 / step)
    short = course(steps, (0, 0.3), (int(1800 / step), 0.95), (int(1800 / step) + max(1, int(60 / step)), 0.3))
    long = course(steps, (0, 0.3), (int(1800 / step), 0.95), (int(2100 / step), 0.3))
    assert not held(KV, kv_use=short, steps=steps, step=step).mask.any()
    found = held(KV, kv_use=long, steps=steps, step=step)
    assert [found.mask[0].argmax() * step, found.mask[0].sum() * step] == [1800, 300]


def test_a_condition_can_be_made_of_any_figure():
    own = Condition("own", "kv_use", say("Own"), say("own"), "ratio", lambda f: 1 - f.values("kv_use"), Limit(floor="kv_use"))
    assert held(own, kv_use=0.05).mask.all()
    assert by_hand(4).grid.start == START
