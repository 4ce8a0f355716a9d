"""Rates that obs computes from samples are those that Prometheus computes; over long steps nothing that was counted is lost."""

import gc

import numpy as np
import orjson
import pytest
from tests.faults import Reply, Seen, serving, success
from tests.recordings import T0, Recording

from obs import matrix
from obs.config import SourceSettings
from obs.counters import answers, fits, matchers, raw, read
from obs.prometheus import Prometheus
from obs.series import Grid
from obs.source import Counter, Query

WINDOW = Grid.covering(1796036544, 1796036996, 5)  # the lab's KV pressure


def counting(metric: str, by: tuple[str, ...] = ("instance",), match: str = "", seconds: float = 60.0, **more) -> Query:
    """The rate of a counter, and the same as PromQL."""
    text = f"sum by ({', '.join(by)}) (rate({metric}{{{match}}}[{seconds:g}s]))"
    return Query(f"x|{metric}{match}|value", text, (), by, 1, "last", Counter(metric, match, seconds, "sum", **more))


def as_asked(source: Prometheus, query: Query, grid: Grid) -> dict[str, np.ndarray]:
    """What the source itself makes of the PromQL, by labels."""
    plain = source.answer([Query(query.key, query.promql, (), query.by)], grid)[0]
    return {str(sorted(labels.items())): values for labels, values in zip(plain.labels, plain.values, strict=True)}


# ---------------------------------------------------------------- what must not be taken for something else


@pytest.mark.parametrize("text", ['a="b\\"c"', "a=b", 'a="b" or c="d"', "up"])
def test_matchers_that_are_not_understood_are_left_to_the_source(text):
    assert matchers(text) is None


def test_matchers_select_as_in_promql():
    wanted = matchers('reason!~"abort|error", server="", pod=~"a.*"')
    assert fits({"reason": "stop", "pod": "ab"}, wanted)
    assert not fits({"reason": "abort", "pod": "ab"}, wanted)
    assert fits({"reason": "aborted", "pod": "ab"}, wanted)  # a whole value, not a part of one
    assert not fits({"reason": "stop", "pod": "ab", "server": "x"}, wanted)
    assert not fits({"reason": "stop", "pod": "ba"}, wanted)


def test_one_sample_gives_no_rate():
    row = {"metric": {"__name__": "a_total", "instance": "x"}, "values": [[T0 + 30, "5"]]}
    found = answers([counting("a_total")], read([row]), Grid(T0, 15, 5))
    assert found[0].labels == ()


def test_a_refused_request_by_name_is_asked_as_promql():
    def picky(request: Seen) -> Reply:
        if "rate(" not in request.params["query"][0]:
            return Reply(422, {"status": "error", "error": "query would load too many samples into memory"})
        return success([{"metric": {"instance": "x"}, "values": [[T0, "1"]]}])

    with serving(picky) as (url, seen):
        found = Prometheus(SourceSettings(url=url)).answer([counting("a_total")], Grid(T0, 15, 5))
    assert found[0].values[0, 0] == 1
    assert len(seen) == 2


# ---------------------------------------------------------------- the same figures


def test_many_rates_of_a_real_recording_come_with_one_request_and_are_those_of_prometheus(lab):
    queries = [
        counting("vllm:generation_tokens_total"),
        counting("vllm:num_preemptions_total", seconds=90),
        counting("vllm:request_success_total", ("instance", "model_name"), 'finished_reason!~"abort|error"'),
        counting("vllm:request_success_total", ("instance", "model_name"), 'finished_reason="abort"'),
        counting("vllm:time_to_first_token_seconds_sum"),
        counting("envoy_cluster_upstream_rq_total", ("envoy_cluster_name",)),
    ]
    before = lab.requests
    found = lab.answer(queries, WINDOW)
    assert lab.requests - before == 1
    for query, answer in zip(queries, found, strict=True):
        expected = as_asked(lab, query, WINDOW)
        assert len(answer.labels) == len(expected) > 0
        for labels, values in zip(answer.labels, answer.values, strict=True):
            np.testing.assert_allclose(values, expected[str(sorted(labels.items()))], rtol=1e-9, atol=1e-12)


def test_restarts_gaps_and_late_beginnings_are_counted_as_prometheus_counts_them(recorded):
    courses = {
        "steady": lambda age: age * 3,
        "restarts": lambda age: age * 3 if age < 700 else (age - 700) * 5,
        "lost scrapes": lambda age: None if age // 15 % 7 == 3 else age * age / 100,
        "late": lambda age: None if age < 900 else age - 900,
        "found late": lambda age: None if age < 900 else 5000 + age,
        "dies": lambda age: age if age < 1200 else None,
    }
    recording = Recording(1800)
    for name, course in courses.items():
        recording.put("a_total", {"instance": name}, course)
    source, query, grid = recorded(recording), counting("a_total"), Grid.covering(T0, T0 + 1800, 15)
    found, expected = source.answer([query], grid)[0], as_asked(source, query, grid)
    assert len(found.labels) == len(expected) == len(courses)
    for labels, values in zip(found.labels, found.values, strict=True):
        np.testing.assert_allclose(values, expected[str(sorted(labels.items()))], rtol=1e-9, atol=1e-12, err_msg=str(labels))


def test_over_long_steps_everything_that_was_counted_is_in_the_rates(recorded):
    """60 s steps over 15 s scrapes: a restart in the middle loses what was counted between the last sample and the end, and no more."""
    recording = Recording(3600).put("a_total", {"instance": "x"}, lambda age: age * 2 if age < 1830 else (age - 1830) * 2)
    grid = Grid.covering(T0 + 120, T0 + 3600, 60)
    query = counting("a_total", sampled=True)
    values = recorded(recording).answer([query], grid)[0].values[0]
    assert np.nansum(values) * 60 == pytest.approx(2 * 3540, abs=2 * 60)
    assert np.nanmin(values) >= 0


def test_over_long_steps_counters_and_levels_come_with_one_request_as_they_would_with_two(recorded):
    recording = Recording(3600).put("a_total", {"instance": "x"}, lambda age: age * 2).put("b", {"instance": "x"}, lambda age: age % 600)
    source, grid = recorded(recording.put("c", {"instance": "y"}, lambda age: 7.0)), Grid.covering(T0 + 120, T0 + 3600, 60)
    counter = counting("a_total", sampled=True)
    levels = [Query(f"x|{name}|value", f"max by (instance) ({name})", (), ("instance",)) for name in ("b", "c")]
    apart = [source.answer([query], grid)[0] for query in (counter, *levels)]
    before = source.requests
    together = source.answer([counter, *levels], grid)
    assert source.requests == before + 1
    for one, other in zip(apart, together, strict=True):
        assert one.labels == other.labels
        np.testing.assert_array_equal(one.values, other.values)


def test_what_is_refused_together_is_asked_for_apart():
    def picky(request: Seen) -> Reply:
        query = request.params["query"][0]
        if "a_total" in query and "max" in query:
            return Reply(422, {"status": "error", "error": "query would load too many samples into memory"})
        if "a_total" in query:
            return success([{"metric": {"__name__": "a_total"}, "values": [[T0 - 60, "0"], [T0, "60"]]}])
        return success([{"metric": {"obs_q": str(i)}, "values": [[T0, str(i)]]} for i in (1, 2)])

    levels = [Query(f"x|{name}|value", f"max({name})") for name in ("b", "c")]
    with serving(picky) as (url, seen):
        found = Prometheus(SourceSettings(url=url)).answer([counting("a_total", (), sampled=True), *levels], Grid(T0, 60, 1))
    assert [answer.values.tolist() for answer in found] == [[[1.0]], [[1.0]], [[2.0]]]
    assert len(seen) == 3


def test_what_was_never_counted_is_zero_where_the_counter_beside_it_counts(recorded):
    recording = Recording(600).rate("answers_total", {"instance": "x", "class": "2"}, 4.0)
    query = counting("answers_total", match='class="5"', zero_where="answers_total")
    found = recorded(recording).answer([query], Grid.covering(T0 + 300, T0 + 600, 15))[0]
    assert found.labels == ({"instance": "x"},)
    assert set(found.values[0].tolist()) == {0.0}


def test_the_samples_asked_for_reach_back_over_the_first_range():
    assert raw([counting("a_total"), counting("b_total", seconds=120)], Grid(T0, 15, 5)) == '{__name__=~"a_total|b_total"}[180001ms]'


@pytest.mark.parametrize(("closed", "grown"), [(True, 60), (False, 45)])
def test_from_prometheus_3_on_a_sample_at_the_beginning_of_a_range_is_not_in_it(closed, grown):
    """Samples every 15 s, exactly on the grid: with the first one the growth is measured whole, without it, it is extrapolated."""
    samples = [[T0 + at, str(at * at)] for at in range(0, 301, 15)]
    row = {"metric": {"__name__": "a_total", "instance": "x"}, "values": samples}
    found = answers([counting("a_total")], read([row]), Grid(T0 + 300, 15, 1), closed=closed)
    first = 300 - grown
    assert found[0].values[0, 0] == pytest.approx((300**2 - first**2) * 60 / grown / 60)


def test_the_collector_stands_still_while_an_answer_is_read_and_runs_again_after_each_and_after_a_broken_one():
    with matrix._uncollected(), matrix._uncollected():
        assert not gc.isenabled()
        assert matrix.parsed(b'{"values": [[1, "2"]]}') == {"values": [[1, "2"]]}
        assert not gc.isenabled()  # another thread still reads
    assert gc.isenabled()
    with pytest.raises(orjson.JSONDecodeError):
        matrix.parsed(b'{"values": [[1')
    assert gc.isenabled()
