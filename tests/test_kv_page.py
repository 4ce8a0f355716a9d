"""Is KV space short, and for whom? Figures compared; what is not measured is never called room."""

import numpy as np
import pytest
from tests.arrays import START, by_hand, course, facts

from obs import changes, kv, kv_relations, kv_room
from obs.histogram import Bounded, Side
from obs.language import render
from obs.signals import SIGNALS, Buckets
from obs.verdict import State

CALM = {"kv_use": 0.3, "preemptions": 0.0, "requests_waiting": 0.0, "requests_running": 4.0, "requests_finished": 1.0}
FULL = {"kv_use": course(240, (0, 0.3), (160, 0.97), (200, 0.3)), "preemptions": course(240, (0, 0.0), (160, 2.0), (200, 0.0))}


def said(means=None, **levels):
    return kv.answer(facts(by_hand(means=means, **{**CALM, **levels})))


def figure(found, title):
    return next(f for f in found.figures if render(f.title).startswith(title))


# ---------------------------------------------------------------- what is not short, and what is not known


def test_without_kv_use_nobody_can_tell():
    found = kv.answer(facts(by_hand(requests_waiting=50.0, preemptions=3.0)))
    assert found.state is State.UNKNOWN
    assert render(found.says).startswith("Nobody can tell whether KV space is short: KV cache use is not measured.")
    assert found.figures == ()


def test_a_figure_from_before_the_window_is_none_of_the_window():
    found = said(kv_use=np.where(np.arange(240) < 120, 0.3, np.nan))
    assert found.state is State.UNKNOWN


def test_room_is_room_and_the_fullest_replica_is_named():
    found = kv.answer(facts(by_hand(replicas=2, **{**CALM, "kv_use": [[0.3], [0.62]]})))
    assert found.state is State.CLEAR
    assert render(found.says) == "No: KV cache use stays under 90 %; it reached 62 % on pod-1."


def test_a_full_cache_that_costs_nothing_is_not_short_yet():
    found = said(kv_use=FULL["kv_use"])
    assert found.state is State.SUSPECTED
    assert render(found.says).startswith("Not yet: the KV cache is full on pod-0 (up to 97 %)")


def test_a_full_cache_of_which_nothing_else_is_measured_is_perhaps_short():
    found = kv.answer(facts(by_hand(kv_use=0.97)))
    assert found.state is State.SUSPECTED
    assert render(found.says).startswith("Perhaps: the KV cache is full on pod-0")
    assert figure(found, "Preemptions").value is None  # not measured is not 0


@pytest.mark.parametrize(("missing", "rest"), [("preemptions", "requests_waiting"), ("requests_waiting", "preemptions")])
def test_the_advice_names_what_is_not_measured_and_nothing_that_is(missing, rest):
    levels = {**FULL, "requests_waiting": 60.0, "requests_running": 4.0, "requests_finished": 1.0}
    found = kv.answer(facts(by_hand(**{name: level for name, level in levels.items() if name != missing})))
    words = {"preemptions": "preemptions are not measured", "requests_waiting": "waiting requests are not measured"}
    assert words[missing] in render(found.advice[0])
    assert words[rest] not in render(found.advice[0])


def test_a_queue_without_a_full_cache_waits_for_something_else():
    found = said(requests_waiting=course(240, (0, 0.0), (150, 40.0)))
    assert found.state is State.CLEAR
    assert "not for KV space" in render(found.advice[0])


def test_a_peak_of_a_minute_is_not_short():
    found = said(kv_use=course(240, (0, 0.3), (160, 0.97), (164, 0.3)), preemptions=2.0)
    assert found.state is State.CLEAR
    assert render(found.says) == "No: KV cache use reached 97 % on pod-0, but not for 2 min."


def test_a_peak_that_has_just_begun_may_become_short():
    assert said(kv_use=course(240, (0, 0.3), (236, 0.97))).state is State.SUSPECTED


# ---------------------------------------------------------------- short


def test_full_and_preempting_is_short_from_when_to_when():
    found = said(**FULL)
    assert found.state is State.APPLIES
    assert render(found.says) == "Yes: KV space is short on pod-0, from 08:39:45 to 08:49:45, 10 min long."  # steps 160 to 199
    assert START % 86400 == 8 * 3600


def test_full_and_queueing_is_short_too_and_lasts_until_the_end():
    found = said(kv_use=course(240, (0, 0.3), (160, 0.97)), requests_waiting=course(240, (0, 0.0), (160, 30.0)))
    assert render(found.says) == "Yes: KV space is short on pod-0, since 08:39:45."


def test_only_the_replicas_concerned_are_named_unless_it_is_all_of_them():
    some = by_hand(replicas=3, **{**CALM, "kv_use": np.stack([FULL["kv_use"], np.full(240, 0.3), FULL["kv_use"]]), "preemptions": 2.0})
    assert "on pod-0, pod-2, from" in render(kv.answer(facts(some)).says)
    every = by_hand(replicas=3, **{**CALM, **FULL})
    assert "on all 3 replicas, from" in render(kv.answer(facts(every)).says)


def test_the_figures_of_the_window_with_what_was_usual_before():
    found = said(**FULL, kv_capacity_tokens=25_600.0, requests_waiting_capacity=0.0, requests_waiting_deferred=0.0)
    use, rate, each = (figure(found, title) for title in ("KV cache use", "Preemptions, highest", "Preemptions per completed"))
    assert (use.value, use.before) == (0.97, 0.3)
    assert render(use.says) == "on pod-0; 90 % or more for 10 min"
    assert (rate.value, rate.before, render(rate.says)) == (2.0, 0.0, "1,200 in this window")  # 2 a second over 40 steps of 15 s
    assert each.value == pytest.approx(1200 / (120 * 15))  # one a second finished, over 120 steps
    assert figure(found, "KV cache capacity").value == 25_600


def test_the_advice_has_the_figures_of_this_window():
    found = said(**FULL, requests_waiting=course(240, (0, 0.0), (160, 30.0), (200, 0.0)))
    assert "requests were preempted 1,200 times while up to 30 waited" in render(found.advice[0])
    unknown = kv.answer(facts(by_hand(kv_use=0.97, requests_waiting=9.0)))
    assert "are not measured" in render(unknown.advice[0])


def test_preemptions_per_completed_request_are_none_where_nothing_completes():
    ratio = kv.per_request(facts(by_hand(preemptions=2.0, requests_finished=course(240, (0, 4.0), (180, 0.0)))))
    assert ratio[0, 170] == pytest.approx(0.5)
    assert np.isnan(ratio[0, 239])


# ---------------------------------------------------------------- what the capacity allows, and what goes with the preemptions


def test_what_fits_is_counted_at_the_lengths_seen():
    readings = by_hand(kv_capacity_tokens=25_600.0, means={"prompt_length": 300.0, "output_length": 100.0})
    bounds = np.array([200.0, 500, 1000, np.inf])
    rates = np.tile(np.array([[0.0], [0.5], [1.0], [1.0]]), (1, 240))
    readings.buckets["prompt_length"] = Buckets(SIGNALS["prompt_length"], bounds, rates)
    room = kv_room.room(facts(readings))
    assert (room.capacity, room.answer) == (25_600, 100)
    half, most, longest = room.fits
    assert (half.length, half.by_prompt, half.with_answer) == (Bounded(500.0, Side.WITHIN), 51, 42)
    assert (most.length.value, most.by_prompt, most.with_answer) == (pytest.approx(950), 26, 24)
    assert (longest.length, longest.by_prompt) == (Bounded(1000.0, Side.AT_MOST), 25)


def test_without_buckets_it_is_the_mean_prompt_and_without_a_capacity_nothing():
    means = {"prompt_length": 300.0}
    room = kv_room.room(facts(by_hand(kv_capacity_tokens=[[25_600.0], [12_800.0]], replicas=2, means=means)))
    assert room.capacity == 12_800  # the smallest replica
    assert [(render(fit.title), fit.by_prompt, fit.with_answer) for fit in room.fits] == [("the mean prompt", 42, None)]
    assert kv_room.room(facts(by_hand(means=means))) is None


def test_the_relation_is_that_of_the_replica_with_most_preemptions():
    rise = np.linspace(0, 1, 240)
    levels = {"preemptions": np.stack([rise * 2, rise[::-1]]), "kv_use": np.stack([rise, rise]), "requests_running": 4.0}
    found = kv_relations.relations(facts(by_hand(replicas=2, means={"prompt_length": 300.0}, **levels)))
    assert (found.replica, found.seconds) == ("pod-0", 60)
    prompts, running, use = found.items
    assert use.found.rho == pytest.approx(1.0)
    assert use.found.n == 30  # whole minutes between steps 120 and 239
    assert render(use.says) == "Clearly more preemptions with more of it: rank correlation 1, from 30 pairs."
    assert render(running.says) == "Running requests was the same all the time: nothing to compare."
    assert prompts.found.rho is None


def test_without_preemptions_there_is_nothing_to_compare():
    found = kv_relations.relations(facts(by_hand(**CALM)))
    assert render(found.items[2].says) == "There were no preemptions: nothing to compare."
    assert kv_relations.relations(facts(by_hand(kv_use=0.3))) is None


# ---------------------------------------------------------------- figures that stand still


def test_an_engine_that_makes_no_step_has_no_figures():
    """Its gauges stand where they stood: full, and nobody can say whether it still is."""
    stuck = course(240, (0, 50.0), (140, 0.0))
    levels = {**CALM, "kv_use": 0.97, "preemptions": 0.0, "requests_waiting": course(240, (0, 0.0), (140, 30.0)), "engine_steps": stuck}
    found = kv.answer(facts(by_hand(**levels)))
    assert found.state is State.UNKNOWN
    assert "On pod-0 nothing is known since 08:35:00 or so" in render(found.says)


def test_of_two_replicas_the_other_one_is_answered_for_and_the_lost_one_named():
    stuck = np.stack([course(240, (0, 50.0), (140, 0.0)), np.full(240, 50.0)])
    found = kv.answer(facts(by_hand(replicas=2, **{**CALM, "engine_steps": stuck})))
    assert found.state is State.CLEAR
    assert render(found.advice[0]).startswith("On pod-0 nothing is known since 08:35:00")


# ---------------------------------------------------------------- room by the lengths seen, against what really ran


def packed(running, **levels):
    """A full pool of 432,000 tokens; finished requests have 1,400."""
    crowd = {**CALM, "kv_use": 0.99, "kv_capacity_tokens": 432_000.0, "requests_running": running, **levels}
    means = {"prompt_length": 1200.0, "output_length": 200.0}
    return changes.overfilled(facts(by_hand(means=means, **crowd)), np.ones(240, bool))


@pytest.mark.parametrize(("running", "levels"), [(300.0, {}), (0.0, {}), (8.0, {"kv_use": 0.5}), (8.0, {"kv_capacity_tokens": np.nan})])
def test_a_pool_that_is_as_full_as_its_requests_are_long_is_no_riddle(running, levels):
    assert packed(running, **levels) is None


def test_a_pool_that_few_short_requests_fill_is_not_called_large_enough_for_hundreds():
    assert render(packed(8.0)) == (
        "The KV cache of pod-0 was full while 8 ran: that is about 53,460 tokens for each of them, and a finished request has 1,400 "
        "tokens. So find out which requests are so long, or what else holds the 432,000 tokens."
    )
