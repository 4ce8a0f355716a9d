"""p95 of each replica's own first tokens: as a Prometheus computes it, beyond the buckets a bound, and never one that is not its own."""

from dataclasses import replace

import numpy as np
import pytest
import requests
import streamlit as st
from tests.arrays import HEALTHY, HEALTHY_MEANS, by_hand, facts
from tests.recordings import T0, Recording

from obs import api, bundle, sick, tails
from obs.cache import Cached
from obs.collect import collect
from obs.config import SourceSettings
from obs.diagnosis import diagnose
from obs.errors import CallError, SourceError
from obs.language import render
from obs.links import View
from obs.prometheus import Prometheus
from obs.signals import SIGNALS, Buckets
from obs.source import About
from obs.ui import answer
from obs.ui.answer import judged
from obs.window import Window

WINDOW = Window(T0 + 3600, T0 + 7200)
TTFT = "vllm:time_to_first_token_seconds"
EDGES = (0.1, 1.0, 10.0, float("inf"))
# first tokens a second in each bucket
PARTS = {"fast-0": (5, 0, 0, 0), "usual-0": (5, 4, 1, 0), "late-0": (5, 4, 0.4, 0.6), "idle-0": (0, 0, 0, 0)}


def fleet() -> Recording:
    """Four replicas, one of them in two namespaces, one without a histogram, one with two ranks."""
    recording = Recording(7200, scrape=30).vllm("bare-0")
    for pod, parts in PARTS.items():
        recording.vllm(pod)
        put(recording, pod, parts)
    recording.vllm("fast-0", namespace="test")
    put(recording, "fast-0", (0, 5, 0, 0), namespace="test")
    for rank, parts in (("0", (5, 0, 0, 0)), ("1", (0, 0, 5, 0))):
        labels = {"job": "vllm", "namespace": "prod", "pod": "ranked-0", "instance": "ranked-0:8000", "model_name": "llama", "engine": rank}
        recording.put("vllm:num_requests_running", labels, 2.0)
        put(recording, "ranked-0", parts, rank=rank)
    return recording


def put(recording, pod, parts, namespace="prod", rank="0"):
    labels = {
        "job": "vllm", "namespace": namespace, "pod": pod, "instance": f"{pod}:8000", "model_name": "llama", "engine": rank,
    }  # fmt: skip
    for edge, below in zip(EDGES, np.cumsum(parts), strict=True):
        recording.rate(f"{TTFT}_bucket", {**labels, "le": "+Inf" if edge == np.inf else f"{edge:g}"}, float(below))
    recording.rate(f"{TTFT}_count", labels, float(sum(parts))).rate(f"{TTFT}_sum", labels, float(sum(parts)))


@pytest.fixture(scope="module")
def url(served):
    return served(fleet())


@pytest.fixture(scope="module")
def read(url):
    """The source, the readings and the buckets by replica."""
    source = Prometheus(SourceSettings(url=url, name="test"))
    readings = collect(source, WINDOW, {})
    return source, readings, tails.tails(source, readings, {}, WINDOW.end)


def cell(found, name):
    return next(s.cells["ttft_p95"] for s in found.standings if s.replica.name == name)


# ---------------------------------------------------------------- not read, and said


def test_a_recording_has_no_buckets_of_one_replica_and_says_so():
    readings = by_hand(means=HEALTHY_MEANS, **HEALTHY)
    found, why = api.tailed(bundle.sample(), readings, {}, readings.end)
    assert (found, render(why)) == ({}, "a recording holds the buckets of all replicas together.")


@pytest.mark.parametrize(("replicas", "hours", "asked"), [(50, 24, True), (1000, 6, True), (1000, 7, False), (50, 24 * 7, False)])
def test_a_window_in_which_it_would_be_too_much_to_read_is_not_asked_for(replicas, hours, asked):
    readings = by_hand(hours * 60, step=60.0, before=0, replicas=replicas, means={"ttft": 0.1})
    ttft = replace(readings.signals["ttft"], metric=TTFT)
    readings = replace(readings, scrape_seconds=15.0, signals={**readings.signals, "ttft": ttft})
    sent = []

    class Quiet:
        def at(self, queries, moment):
            sent.extend(queries)
            raise SourceError(tails.TOO_MUCH)

    with pytest.raises((CallError, SourceError)):
        tails.tails(Quiet(), readings, {}, readings.end)
    assert bool(sent) is asked


def test_without_a_histogram_nothing_is_asked(recorded):
    source = recorded(Recording(3600, scrape=30).vllm("a"))
    readings = collect(source, Window(T0 + 1800, T0 + 3600), {})
    before = source.requests
    assert render(api.tailed(source, readings, {}, readings.end)[1]) == "no engine here has buckets of its own for it."
    assert source.requests == before


def test_a_source_that_fails_is_an_error_and_no_p95(read):
    _, readings, _ = read
    with pytest.raises(SourceError):
        api.tailed(Prometheus(SourceSettings(url="http://127.0.0.1:9", name="dead")), readings, {}, readings.end)


# ---------------------------------------------------------------- read


def test_each_replica_has_its_own_p95_as_prometheus_computes_it(read, url):
    _, readings, found = read
    p95 = f"histogram_quantile(0.95, sum by (le, namespace, pod, engine) (rate({TTFT}_bucket[1h])))"
    reply = requests.get(f"{url}/api/v1/query", params={"query": p95, "time": WINDOW.end}, timeout=10).json()["data"]["result"]
    theirs = {(r["metric"]["namespace"], r["metric"]["pod"], r["metric"]["engine"]): float(r["value"][1]) for r in reply}
    shown = sick.fleet(facts(readings), diagnose(readings), found)
    assert cell(shown, "usual-0").value == pytest.approx(theirs["prod", "usual-0", "0"]) == pytest.approx(5.5)
    assert cell(shown, "test/fast-0").value == pytest.approx(theirs["test", "fast-0", "0"])
    assert cell(shown, "ranked-0/1").value == pytest.approx(theirs["prod", "ranked-0", "1"])
    assert sorted(found) == ["idle-0", "late-0", "prod/fast-0", "ranked-0/0", "ranked-0/1", "test/fast-0", "usual-0"]


def test_beyond_the_buckets_it_is_a_bound_and_without_traffic_or_a_histogram_a_word(read):
    _, readings, found = read
    shown = sick.fleet(facts(readings), diagnose(readings), found)
    assert render(cell(shown, "late-0").says) == "more than 10 s"
    assert render(cell(shown, "prod/fast-0").says) == "at most 0.1 s"
    assert [(cell(shown, name).value, render(cell(shown, name).why)) for name in ("idle-0", "bare-0")] == [
        (None, "no traffic"), (None, "not measured"),
    ]  # fmt: skip


def test_a_scope_is_asked_for_alone_and_all_replicas_in_one_request(url):
    source = Prometheus(SourceSettings(url=url, name="test"))
    readings = collect(source, WINDOW, {"namespace": ("test",)})
    before = source.requests
    found = tails.tails(Cached(source), readings, {"namespace": ("test",)}, WINDOW.end)
    assert source.requests - before == 1
    assert {name: buckets.rates[:, 0].tolist() for name, buckets in found.items()} == {"fast-0": pytest.approx([0, 5, 5, 5])}


def test_buckets_of_a_replica_that_is_not_in_view_are_nobodys(read):
    _, readings, found = read
    stranger = {"stranger-0": Buckets(SIGNALS["ttft"], np.array(EDGES), np.ones((4, 1)))}
    shown = sick.fleet(facts(readings), diagnose(readings), {**found, **stranger})
    assert "stranger-0" not in {standing.replica.name for standing in shown.standings}


def test_a_window_that_moves_asks_once_a_minute_and_a_failure_is_asked_again(monkeypatch):
    """One that stands still is asked up to its very end."""
    asked = []

    def tailed(_source, readings, _scope, until):
        asked.append((readings.end - readings.start, until))
        if len(asked) == 1:
            raise SourceError(tails.TOO_MUCH)
        return {}, None

    monkeypatch.setattr(api, "tailed", tailed)
    st.cache_resource.clear()
    answers = [judged(About("x", "prometheus", "2"), by_hand(240 + step, before=120 + step)) for step in range(3)]  # each 15 s later
    with pytest.raises(SourceError):
        answer.tails(View(), answers[0], True)
    for each in answers:
        answer.tails(View(), each, True)
    ends = [each.readings.end for each in answers]
    assert [until for _seconds, until in asked[1:]] == sorted({end // 60 * 60 for end in ends})
    answer.tails(View(), answers[2], False)
    assert asked[-1][1] == ends[2]
    st.cache_resource.clear()
