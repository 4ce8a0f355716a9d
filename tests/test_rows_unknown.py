"""Unknown is never clear: what is missing is named, with the time at which it went, and with what would give it."""

from dataclasses import replace

import numpy as np
import pytest
from tests.alterations import FAMILIES, states, without
from tests.arrays import HEALTHY, HEALTHY_MEANS, by_hand, course, verdicts
from tests.exposition import openmetrics
from tests.incidents import BY_NAME, readings, truth
from tests.scrapes import T0, Scraping, read
from tests.traffic import Site, simulate

from obs.collect import collect
from obs.diagnosis import diagnose
from obs.errors import CallError
from obs.language import render
from obs.signals import LOOKED_FOR
from obs.text import Message, Names, Sentences
from obs.thresholds import THRESHOLDS
from obs.verdict import ROW_IDS, State
from obs.window import Window

OOM, LATENCY, FIRST, LOAD = ROW_IDS
NAN = float("nan")
STEPS = 240


def late(inside, outside):
    return course(STEPS, (0, outside), (160, inside))


def said(verdict):
    return " ".join(render(message) for message in (*verdict.missing, *([verdict.reason] if verdict.reason else [])))


# ---------------------------------------------------------------- nothing is clear out of nothing


def test_where_nothing_is_measured_nothing_is_clear():
    empty = diagnose(replace(by_hand(STEPS), engine_seen=False))
    assert (empty.primary, empty.now) == ("insufficient", "insufficient")
    assert {v.state for v in empty.verdicts} == {State.UNKNOWN}
    assert {v.confidence for v in empty.verdicts} == {None}
    assert "no metric of a known LLM engine" in render(empty.headline)


def test_a_window_without_a_request_is_unknown_and_not_clear():
    got = diagnose(read(simulate(Site(replicas=1, seconds=3600, rate=0.0)), Scraping(start=1800, end=3600)))
    assert {got.verdict(LATENCY).state, got.verdict(FIRST).state} == {State.UNKNOWN}
    assert "nothing was observed" in said(got.verdict(LATENCY))
    assert [f.id for f in got.findings] == ["no_traffic"]


@pytest.mark.parametrize("family", [f for f in FAMILIES if f[0] in ("kv_use", "requests_waiting", "ttft", "itl")], ids="+".join)
def test_a_healthy_site_without_a_needed_metric_is_unknown_and_names_it(family):
    got = diagnose(without(readings("a healthy hour"), family))
    row = FIRST if family == ("ttft",) else LATENCY
    assert got.verdict(row).state is State.UNKNOWN
    assert family[0] in said(got.verdict(row))
    assert got.primary == "insufficient"


def test_preemptions_that_nobody_counts_are_unknown_where_the_pool_was_full_once():
    """They would make the row suspected. A pool that has been full on one of two replicas is full."""
    use = np.stack([late(0.3, 0.3), course(STEPS, (0, 0.3), (200, 0.93), (202, 0.3))])
    got = diagnose(without(by_hand(STEPS, replicas=2, means=HEALTHY_MEANS, **{**HEALTHY, "kv_use": use}), ("preemptions",)))
    assert (got.primary, got.verdict(LATENCY).state) == ("insufficient", State.UNKNOWN)
    assert "preemptions" in said(got.verdict(LATENCY)).lower()


def test_preemptions_that_nobody_counts_are_none_where_the_pool_always_had_room():
    """As of TensorRT-LLM and LMDeploy, that have no such counter: a healthy hour there is one."""
    got = diagnose(without(readings("a healthy hour"), ("preemptions",)))
    assert (got.primary, got.now, got.verdict(LATENCY).state) == ("none", "none", State.CLEAR)
    assert "KV cache use stayed under 90 %, and with room in the pool none is preempted." in said(got.verdict(LATENCY))


def apart(part):
    """Prefill and decode on workers of their own; `part` is that of the second one. The first one is never asked for a token."""
    whole = by_hand(STEPS, replicas=2, means=HEALTHY_MEANS, **HEALTHY)
    never = np.array([[np.nan], [1.0]])
    signals = dict(whole.signals)
    for name in ("ttft", "itl", "e2e_latency"):
        one = signals[name]
        signals[name] = replace(one, values=one.values * never, total=one.total * never, count=one.count * never)
    return replace(whole, signals=signals, replicas=tuple(replace(r, pool=p) for r, p in zip(whole.replicas, part, strict=True)))


@pytest.mark.parametrize("part", [("", ""), ("prefill", "prefill")])
def test_a_replica_that_tells_no_time_of_a_request_is_unknown_beside_its_like(part):
    got = diagnose(apart(part))
    assert got.primary == "insufficient"
    assert "not measured on pod-0" in said(got.verdict(FIRST))


def test_a_prefill_worker_that_never_makes_a_token_is_told_by_those_that_decode():
    got = diagnose(apart(("prefill", "decode")))
    assert got.primary == "none"
    assert {got.verdict(LATENCY).state, got.verdict(FIRST).state} == {State.CLEAR}


def test_a_missing_gateway_or_counter_alone_leaves_none():
    got = diagnose(without(readings("a healthy hour without a gateway"), ("gpu_oom_events",)))
    assert (got.primary, got.now) == ("none", "none")
    assert states(got)[OOM] == states(got)[LOAD] == "unknown"


def test_without_a_gateway_an_engine_that_counts_no_errors_is_judged_all_the_same():
    """vLLM before 0.13: whether latency comes with errors is not known, and there is no latency."""
    got = diagnose(without(readings("a healthy hour without a gateway"), ("engine_errors",)))
    assert (got.primary, got.now) == ("none", "none")
    assert states(got)[LATENCY] == "unknown"


# ---------------------------------------------------------------- the reason


def test_the_headline_names_what_is_missing_most_and_no_list_of_metrics():
    gone = without(readings("a healthy hour"), ("ttft", "kv_use"))
    names = Message(LOOKED_FOR.template, {"names": Names(("a", "b"))})
    whole = {"ttft": Message("{first}", {"first": Sentences((names, Message("A flag gives it.")))}), "kv_use": names}
    got = diagnose(replace(gone, signals={n: replace(r, why=whole.get(n, r.why)) for n, r in gone.signals.items()}))
    assert render(got.headline) == "Not enough data to tell. What is missing most: Time to first token."
    assert render(got.summary) == f"{render(got.headline)} A flag gives it."
    assert "Looked for a, b" in said(got.verdict(FIRST))


def test_where_scrapes_fail_the_headline_says_so():
    assert "scrapes fail" in render(diagnose(readings("scrapes that fail everywhere")).headline)


def test_a_series_that_ended_is_named_with_the_row_it_leaves_unknown():
    got = diagnose(readings("series that vanish"))
    vanished = next(f for f in got.findings if f.id == "series_vanished")
    assert vanished.start - T0 == pytest.approx(3300, abs=60)
    assert "ttft" in render(vanished.says)
    assert got.verdict(FIRST).state is State.UNKNOWN


def test_scrapes_that_fail_are_the_reason():
    got = verdicts(up=late(0.0, 1.0), kv_use=late(NAN, 0.3), requests_running=late(NAN, 4.0), requests_waiting=late(NAN, 0.0))
    assert got.verdict(LATENCY).state is State.UNKNOWN
    assert got.verdict(LATENCY).state_now is State.UNKNOWN
    assert [f.id for f in got.findings] == ["scrape_failing"]


def test_one_of_two_replicas_unseen_for_most_of_the_window_is_not_clear():
    how = replace(BY_NAME["a healthy hour"].how, down={1: (2000, 4600)})
    got = diagnose(read(truth("a healthy hour"), how))
    assert {got.verdict(LATENCY).state, got.verdict(FIRST).state} == {State.UNKNOWN}


def test_what_would_give_a_missing_metric_is_said(recorded):
    """Through the whole path, because the remedy comes from there."""
    source = recorded(openmetrics(truth("a healthy hour"), Scraping(start=1500, end=4500), namespace="prod").replace("gpu_oom", "other"))
    got = diagnose(collect(source, Window(T0 + 1500, T0 + 4500), {"namespace": ("prod",)}))
    assert got.verdict(OOM).state is State.UNKNOWN
    assert "gpu_oom_events_total would give it" in said(got.verdict(OOM))


# ---------------------------------------------------------------- suspected: one without the other


def test_preemptions_without_latency_are_suspected_and_a_full_pool_without_it_is_not():
    assert verdicts(preemptions=late(0.3, 0.0)).verdict(LATENCY).state is State.SUSPECTED
    assert verdicts(kv_use=late(0.97, 0.3)).verdict(LATENCY).state is State.CLEAR


def test_latency_that_nothing_explains_is_suspected_and_says_so():
    got = verdicts({"e2e_latency": late(9.0, 3.0), "itl": late(0.08, 0.02)})
    assert got.verdict(LATENCY).state is State.SUSPECTED
    assert "nothing measured explains it" in said(got.verdict(LATENCY))
    assert got.primary == "none"


def test_a_slow_first_token_of_which_no_stage_is_measured_is_suspected():
    got = verdicts({"ttft": late(3.0, 0.1), "queue_time": NAN, "prefill_time": NAN, "gateway_ttft": NAN, "e2e_latency": 3.0})
    assert got.verdict(FIRST).state in (State.SUSPECTED, State.UNKNOWN)
    assert got.verdict(FIRST).episodes == ()


def test_retries_alone_are_suspected():
    got = verdicts(gateway_retries=late(0.3, 0.0))
    assert got.verdict(LOAD).state is State.SUSPECTED


# ---------------------------------------------------------------- thresholds


def test_every_diagnosis_says_which_thresholds_were_in_force():
    got = diagnose(readings("a healthy hour"), {"kv_use": 0.8})
    assert set(got.thresholds) == set(THRESHOLDS)
    assert (got.thresholds["kv_use"].value, got.thresholds["kv_use"].source) == (0.8, "this site's settings")
    assert got.thresholds["hold"].source == THRESHOLDS["hold"].source


def test_a_threshold_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(CallError) as refused:
        diagnose(readings("a healthy hour"), {"kv": 0.8})
    assert "no threshold named kv" in render(refused.value.says)
    assert "kv_use" in render(refused.value.says)


def test_a_threshold_of_one_s_own_decides():
    slow = {"e2e_latency": late(5.0, 3.0)}
    pressed = {"kv_use": late(0.85, 0.3)}
    assert diagnose(by_hand(STEPS, means={**HEALTHY_MEANS, **slow}, **{**HEALTHY, **pressed})).primary == "none"
    own = diagnose(by_hand(STEPS, means={**HEALTHY_MEANS, **slow}, **{**HEALTHY, **pressed}), {"kv_use": 0.8})
    assert own.primary == LATENCY
    assert np.isclose(next(e for e in own.verdict(LATENCY).evidence if e.signal == "kv_use").threshold, 0.8)
