"""Which stage is slow? Figures compared; stages add up to the mean, percentiles never do, and what buckets cannot tell is a range."""

import numpy as np
import pytest
import requests
from tests.arrays import HEALTHY, HEALTHY_MEANS, START, by_hand, course

from obs import first_token, histogram
from obs.collect import collect
from obs.config import SourceSettings
from obs.diagnosis import diagnose
from obs.facts import Facts
from obs.first_token_interference import interference
from obs.first_token_relations import relations
from obs.first_token_spread import spread
from obs.first_token_stages import TITLES, breakdown
from obs.language import render
from obs.prometheus import Prometheus
from obs.signals import SIGNALS, Buckets
from obs.text import Quantity, say
from obs.verdict import State
from obs.window import Window

EDGES = np.array([0.1, 0.5, 1.0, 2.5, np.inf])
SLOW = slice(160, 200)  # of 240 steps of 15 s, ten minutes within the window


def during(before, then):
    return course(240, (0, before), (SLOW.start, then), (SLOW.stop, before))


def looked_at(means=None, buckets=None, replicas=1, per_second=1.0, **levels):
    """The facts, and the verdict that the page goes by."""
    readings = by_hand(
        replicas=replicas, per_second=per_second, means={**HEALTHY_MEANS, **(means or {})}, **{**HEALTHY, **levels}
    )  # fmt: skip
    readings.buckets.update(buckets or {})
    found = diagnose(readings)
    return Facts(readings, dict(found.thresholds)), found.verdict("slow_first_token")


def said(**given):
    facts, verdict = looked_at(**given)
    return first_token.answer(facts, verdict, interference(facts))


def figure(found, title):
    return next(f for f in found.figures if render(f.title).startswith(title))


def stage(facts, name, rows=None):
    found = breakdown(facts, np.ones(facts.rows, dtype=bool) if rows is None else rows)
    return found.stages[list(TITLES).index(name)]


def counts(signal, *per_bucket):
    """A histogram in which so many a second fall into each bucket, all the time."""
    rates = np.cumsum(np.array(per_bucket, dtype=float))[:, None] * np.ones((1, 240))
    return {signal: Buckets(SIGNALS[signal], EDGES, rates)}


# ---------------------------------------------------------------- not known, and not slow


def test_without_a_time_to_first_token_nobody_can_tell():
    readings = by_hand(requests_running=4.0, requests_waiting=50.0)
    found = diagnose(readings)
    facts = Facts(readings, dict(found.thresholds))
    answer = first_token.answer(facts, found.verdict("slow_first_token"), interference(facts))
    assert answer.state is State.UNKNOWN
    assert render(answer.says).startswith("Nobody can tell which stage is slow: the time to first token is not measured.")
    assert answer.figures == ()
    assert relations(facts) is None
    assert spread(facts) is None


def test_an_engine_that_makes_no_step_is_not_called_fast():
    found = said(engine_steps=course(240, (0, 50.0), (140, 0.0)), generation_tokens=course(240, (0, 100.0), (140, 0.0)))
    assert found.state is State.UNKNOWN
    assert render(found.says).startswith("Nobody can tell whether a stage is slow: for ")


def test_as_usual_is_no_slow_stage_and_the_largest_is_named():
    found = said()
    assert found.state is State.CLEAR
    assert render(found.says) == "None: the first token takes 0.1 s in the mean, as is usual here; most of it is prefill (50 ms)."
    assert figure(found, "Largest stage: prefill").value == pytest.approx(0.05)
    assert figure(found, "Largest stage: prefill").before == pytest.approx(0.05)
    assert found.advice == ()


def test_a_first_token_that_is_slow_for_a_minute_is_not_called_usual():
    short = course(240, (0, 0.1), (235, 30.0))
    assert render(said(means={"ttft": short}).says).startswith("None, or not for long: the first token takes ")


def test_without_buckets_there_is_no_percentile_and_no_share():
    found = said()
    for title in ("Time to first token, p95", "First tokens within 2 s", "Tokens within 0.2 s"):
        assert figure(found, title).value is None
        assert figure(found, title).state is State.UNKNOWN


# ---------------------------------------------------------------- the stages


def test_the_stages_add_up_to_the_mean_that_was_measured():
    facts, _ = looked_at(means={"ttft": during(0.1, 3.0), "queue_time": during(0.005, 0.4), "prefill_time": during(0.05, 2.2)})
    found = breakdown(facts, np.array([True]))
    assert found.ttft[190] == pytest.approx(3.0)
    assert np.nansum(found.stages[:4], axis=0)[20:] == pytest.approx(found.ttft[20:])
    assert stage(facts, "tokenization")[190] == pytest.approx(0.4)
    assert stage(facts, "remainder")[190] == pytest.approx(0.0)
    assert not found.cut.any()


def test_what_is_neither_while_requests_queue_up_is_not_called_tokenization():
    waiting = during(0.0, 40.0)
    facts, _ = looked_at(means={"ttft": during(0.1, 3.0), "queue_time": during(0.005, 2.0)}, requests_waiting=waiting)
    assert stage(facts, "remainder")[190] == pytest.approx(3.0 - 2.0 - 0.05)
    assert stage(facts, "tokenization")[190] == pytest.approx(0.0)


def test_stages_of_requests_that_began_earlier_do_not_exceed_the_first_token():
    facts, verdict = looked_at(means={"ttft": during(0.1, 3.0), "queue_time": during(0.005, 5.9), "prefill_time": during(0.05, 0.1)})
    found = breakdown(facts, np.array([True]))
    assert stage(facts, "queue")[190] == pytest.approx(3.0 * 5.9 / 6.0)
    assert found.cut[190]
    words = render(first_token.answer(facts, verdict, None).advice[0])
    assert words.startswith("For 33 % of the window queue and prefill tell of more time than the first token took")


def test_a_stage_that_nobody_measures_leaves_a_remainder_and_no_zero():
    facts, _ = looked_at(means={"queue_time": np.nan, "ttft": 0.4})
    assert np.isnan(stage(facts, "queue")[100]) or stage(facts, "queue")[100] == 0
    assert stage(facts, "tokenization")[100] == pytest.approx(0.0)  # with the queue unknown nothing is left to the front end alone
    assert stage(facts, "remainder")[100] == pytest.approx(0.35)


def test_a_mean_ends_with_its_series_and_is_not_carried_on():
    facts, _ = looked_at()
    gone = np.where(np.arange(240) < 200, 1.0, np.nan)
    ttft = facts.reading("ttft")
    ttft.count[:] *= gone
    ttft.total[:] *= gone
    assert np.isnan(breakdown(facts, np.array([True])).ttft[200:]).all()


def test_the_slow_stage_is_named_with_its_part_of_the_first_token():
    found = said(means={"ttft": during(0.1, 3.0), "prefill_time": during(0.05, 2.4)})
    assert found.state is State.APPLIES
    assert render(found.says) == "Prefill: 2.4 s of the 3 s to the first token on pod-0, from 08:39:45 to 08:49:45, 10 min long."
    slow = figure(found, "Slow stage: prefill")
    assert (slow.value, slow.before) == (pytest.approx(2.4, rel=0.03), pytest.approx(0.05))
    assert render(found.advice[-1]).startswith("Fix the slow stage, prefill")


def test_a_sick_replica_is_not_hidden_by_its_healthy_neighbours():
    ttft = np.stack([np.full(240, 0.1), np.full(240, 0.1), np.full(240, 0.1), during(0.1, 4.0)])
    prefill = np.where(ttft > 1, 3.5, 0.05)
    facts, verdict = looked_at(means={"ttft": ttft, "prefill_time": prefill}, replicas=4)
    assert first_token.named(facts, verdict).tolist() == [False, False, False, True]
    assert render(first_token.answer(facts, verdict, None).says).startswith("Prefill: 3.5 s of the 4 s to the first token on pod-3, ")
    assert breakdown(facts, np.ones(4, dtype=bool)).ttft[190] == pytest.approx((0.1 * 3 + 4.0) / 4)  # of all requests, no mean of means


def test_the_network_stands_on_top_of_the_engines_time():
    found = said(means={"gateway_ttft": during(0.11, 2.11)})
    assert render(found.says).startswith("The network: 2 s on top of the 0.1 s in which the engines give the first token, ")
    assert figure(found, "Time to first token, mean").state is None  # the engines are not slow


def test_fewer_that_finish_than_begin_are_warned_of():
    late = {"ttft": during(0.1, 3.0), "prefill_time": during(0.05, 2.4)}
    found = said(means=late, per_second=4.0, requests_finished=course(240, (0, 4.0), (160, 1.0), (200, 4.0)))
    assert "queue and prefill times are observed at the finish, so they lag behind" in render(found.advice[0])


# ---------------------------------------------------------------- objectives and buckets


def test_an_objective_on_an_edge_is_exact_and_one_between_two_is_a_range():
    found = counts("ttft", 80, 10, 5, 4, 1)["ttft"]
    window = np.ones(240, dtype=bool)
    assert histogram.share(found, window, 1.0) == histogram.Share(pytest.approx(0.95), pytest.approx(0.95), 1.0, 1.0)
    assert histogram.share(found, window, 2.0) == histogram.Share(pytest.approx(0.95), pytest.approx(0.99), 1.0, 2.5)
    assert histogram.share(found, window, 0.05) == histogram.Share(0.0, pytest.approx(0.8), 0.0, 0.1)
    assert histogram.share(found, window, 9.0) == histogram.Share(pytest.approx(0.99), 1.0, 2.5, np.inf)
    assert histogram.share(Buckets(found.signal, EDGES, np.zeros((5, 240))), window, 1.0) is None  # no traffic is no share


def test_the_share_within_the_objective_is_a_range_where_buckets_tell_no_more():
    between = figure(said(buckets=counts("ttft", 80, 10, 5, 4, 1)), "First tokens within 2 s")
    assert (between.value, between.state) == (pytest.approx(0.95), State.SUSPECTED)  # 99 % wanted, 95 % to 99 % reached
    assert render(between.says) == "or more, up to 99 %; wanted: 99 %"
    assert figure(said(buckets=counts("ttft", 80, 10, 5, 3, 2)), "First tokens within 2 s").state is State.APPLIES
    assert figure(said(buckets=counts("ttft", 80, 10, 9.5, 0.3, 0.2)), "First tokens within 2 s").state is State.CLEAR


def test_the_time_per_token_is_an_objective_of_requests_where_an_engine_tells_each_ones_own():
    """Of a hundred requests two were slow all along; of their tokens one in ten thousand was, and only that was seen before."""
    requests, tokens = counts("tpot", 97, 1, 1.5, 0.5, 0), counts("itl", 9999, 0, 1, 0, 0)
    found = said(means={"tpot": 0.08}, buckets={**requests, **tokens})
    shown = figure(found, "Requests within 0.2 s a token")
    assert (shown.value, shown.state) == (pytest.approx(0.97), State.APPLIES)  # 97 % to 98 %, 99 % wanted
    assert render(shown.says) == "or more, up to 98 %; wanted: 99 %"
    assert not [f for f in found.figures if render(f.title).startswith("Tokens within")]
    coarse = counts("tpot", 98, 1.5, 0.5, 0, 0)
    assert render(said(buckets=coarse).advice[0]).startswith("Time per output token, of each request: whether 99 % are within 0.2 s cannot")


@pytest.mark.parametrize("requests", [{}, counts("tpot", 0, 0, 0, 0, 0)], ids=["not told", "none finished"])
def test_a_share_of_tokens_is_called_one_and_stands_only_where_no_request_has_a_time_of_its_own(requests):
    shown = figure(said(buckets={**requests, **counts("itl", 80, 20, 0, 0, 0)}), "Tokens within 0.2 s of the one before")
    assert render(shown.says) == "or more, up to 100 %; wanted: 99 %; of tokens, not of requests"


def test_replicas_whose_requests_have_no_time_of_their_own_are_not_counted_as_in_time():
    timed = np.array([[0.08], [np.nan], [0.08]])
    found = said(means={"tpot": timed * np.ones((3, 240))}, replicas=3, buckets=counts("tpot", 100, 0, 0, 0, 0))
    assert render(figure(found, "Requests within 0.2 s a token").says) == (
        "0 % take longer, 1 % may; of 2 of 3 replicas, the others do not tell"
    )


def test_the_share_of_requests_is_the_one_that_prometheus_counts(lab_url):
    """The lab's slow prefill: as many finished requests had a mean within 0.2 s a token as its own counters say."""
    start, end = 1796037000, 1796037600  # 11:10 to 11:20
    readings = collect(Prometheus(SourceSettings(url=lab_url, name="lab")), Window(start, end), {})
    found = histogram.share(readings.buckets["tpot"], (readings.grid.times > start) & (readings.grid.times <= end), 0.2)
    metric = "vllm:request_time_per_output_token_seconds"
    promql = f'sum(increase({metric}_bucket{{le="0.2"}}[{end - start}s])) / sum(increase({metric}_count[{end - start}s]))'
    reply = requests.get(f"{lab_url}/api/v1/query", params={"query": promql, "time": end}, timeout=10).json()
    assert found.exact
    assert found.low == pytest.approx(float(reply["data"]["result"][0]["value"][1]), abs=0.005)
    assert 0.5 < found.low < 1


def test_buckets_too_coarse_for_the_objective_are_warned_of():
    warned = [render(each) for each in said(buckets=counts("ttft", 80, 10, 5, 5, 0)).advice]
    assert len(warned) == 1
    assert warned[0] == (
        "Time to first token: whether 99 % are within 2 s cannot be told, the buckets have edges at 1 s and 2.5 s only. "
        "An objective on an edge can."
    )
    assert said(buckets=counts("ttft", 80, 10, 9.5, 0.5, 0)).advice == ()


def test_percentiles_stand_beside_each_other_and_say_what_is_open():
    found = figure(said(buckets=counts("ttft", 40, 40, 14, 5, 1)), "Time to first token, p95")
    assert found.value == pytest.approx(1.0 + 1.5 / 5)
    assert render(found.says) == "p50 0.2 s, p99 2.5 s; the bucket reaches from 1 s to 2.5 s"
    first = figure(said(buckets=counts("ttft", 100, 0, 0, 0, 0)), "Time to first token, p95")
    assert render(first.says) == "or less: in the first bucket; p50 at most 0.1 s, p99 at most 0.1 s"
    last = figure(said(buckets=counts("ttft", 10, 0, 0, 0, 90)), "Time to first token, p95")
    assert render(last.says).startswith("or more: in the last bucket")


def test_the_heat_map_holds_every_first_token_once_and_no_more_fields_than_are_drawn():
    facts, _ = looked_at(buckets=counts("ttft", 0, 6, 3, 1, 0))
    found = spread(facts)
    assert found.edges.tolist() == [0.1, 0.5, 1.0, 2.5]  # from the lowest to the highest bucket that holds anything
    assert found.shares[:, 5].tolist() == pytest.approx([0.6, 0.3, 0.1])
    assert found.counts.sum() == pytest.approx(10 * 120 * 15)
    assert found.times[0] == START + 120 * 15
    assert found.place(0.75) == pytest.approx(1.5)
    assert found.place(30.0) is None


# ---------------------------------------------------------------- what goes with it


def test_few_minutes_make_no_relation():
    facts, _ = looked_at(means={"ttft": 0.1, "prompt_length": 300.0})
    assert [render(item.says) for item in relations(facts).items] == [
        "Prompt length, mean was the same all the time: nothing to compare.",
        "Prefix cache hits was not measured.",
    ]


def test_the_first_token_comes_later_with_longer_prompts_and_earlier_with_hits():
    lengths = 300.0 + 50.0 * (np.arange(240) // 4 % 11)
    facts, _ = looked_at(
        means={"ttft": lengths / 1000, "prompt_length": lengths}, prefix_cache_hits=2000.0 - lengths, prefix_cache_queries=2000.0
    )
    length, hits = relations(facts).items
    assert (length.found.rho, length.found.n) == (pytest.approx(1.0), 30)
    assert render(length.says) == "The more of it, the later the first token, clearly: rank correlation 1, from 30 pairs."
    assert hits.found.rho == pytest.approx(-1.0, abs=0.05)
    assert render(hits.says).startswith("The more of it, the earlier the first token, clearly")


def test_prefill_is_not_blamed_where_tokens_are_as_fast_as_ever_or_the_batch_explains_them():
    load = 1000.0 + 500.0 * (np.arange(240) // 4 % 7)
    flat, _ = looked_at(means={"itl": 0.02}, prompt_tokens=load)
    assert interference(flat).advice is None
    nearly = load + 600.0 * (np.arange(240) // 4 % 3)
    batch, _ = looked_at(means={"itl": load / 50_000}, prompt_tokens=nearly, requests_running=load / 100)
    found = interference(batch)
    assert found.slower > 2
    assert found.advice is None
    assert "They go with the running requests more closely (1)." in render(found.says)


def test_the_case_for_chunked_prefill_has_its_figures():
    load = np.where(np.arange(240) // 4 % 2 == 0, 200.0, 8000.0)
    facts, verdict = looked_at(means={"itl": np.where(load > 1000, 0.12, 0.02)}, prompt_tokens=load, prefix_cache_hits=load / 2)
    found = interference(facts)
    assert (found.tail, found.slower) == (False, pytest.approx(6.0))
    assert found.prefill[-1] == pytest.approx(4000.0)  # what the cache had was not computed
    assert render(first_token.answer(facts, verdict, found).advice[-1]) == (
        "The phases interfere: with 4,000 tokens/s of prompts computed a token takes 0.12 s, with 100 tokens/s 20 ms: 6 x as long. "
        "Test chunked prefill, or a smaller chunk."
    )


def test_interference_is_seen_in_the_slowest_tokens_which_the_mean_hides():
    load = np.where(np.arange(240) // 4 % 2 == 0, 200.0, 8000.0)
    late = np.where(load > 1000, 5.0, 0.0)  # of a hundred tokens a second five take 0.5 s to 1 s
    rates = np.stack([95.0 + 5.0 - late, 100.0 - late, 100.0 + 0 * late, 100.0 + 0 * late, 100.0 + 0 * late])
    itl = {"itl": Buckets(SIGNALS["itl"], EDGES, rates)}
    facts, _ = looked_at(means={"itl": 0.05 + late / 1000}, buckets=itl, prompt_tokens=load)
    found = interference(facts)
    assert found.tail
    assert np.nanmax(found.itl) == pytest.approx(0.5 + 0.5 * 0.8)  # the hundredth token is four fifths into its bucket
    assert "the slowest tokens (p99) take 0.9 s, with 200 tokens/s 0.1 s: 9 x as long" in render(found.advice)


def test_objectives_are_settings_like_every_threshold():
    readings = by_hand(means=HEALTHY_MEANS, **HEALTHY)
    readings.buckets.update(counts("ttft", 80, 10, 5, 4, 1))
    found = diagnose(readings, {"ttft_objective": 0.5, "objective_share": 0.9})
    facts = Facts(readings, dict(found.thresholds))
    answer = first_token.answer(facts, found.verdict("slow_first_token"), None)
    shown = figure(answer, "First tokens within 0.5 s")
    assert (shown.value, shown.state) == (pytest.approx(0.9), State.CLEAR)
    assert render(shown.says) == render(say("{a} come later, {b} may", a=Quantity(0.1, "ratio"), b=Quantity(0.1, "ratio")))
