"""The same incidents through a real Prometheus and `collect`: the whole path, and a change of metric names in the middle of it."""

from dataclasses import replace

import pytest
from tests.alterations import essence
from tests.exposition import openmetrics
from tests.incidents import BY_NAME, TROUBLE, readings, truth
from tests.scrapes import T0, read

from obs.collect import collect
from obs.diagnosis import diagnose
from obs.verdict import State
from obs.window import Window

ROWS = ("latency_without_errors", "slow_first_token", "load_after_timeouts")


@pytest.fixture
def through(recorded):
    """The readings of an incident, asked of a real Prometheus."""

    def ask(name, **how):
        incident = BY_NAME[name]
        source = recorded(openmetrics(truth(name), incident.how, **how))
        return collect(source, Window(T0 + incident.how.start, T0 + incident.how.end), {"namespace": ("prod",)})

    return ask


def test_a_healthy_hour_has_no_row_and_no_finding(through):
    got = diagnose(through("a healthy hour"))
    assert got.primary == "none"
    assert got.findings == ()
    assert {v.state for v in got.verdicts} <= {State.CLEAR, State.UNKNOWN}


@pytest.mark.parametrize("name", ["one bad replica of four", "a retry storm", "a GPU out-of-memory event", "a slow front end"])
def test_an_incident_is_the_same_through_a_real_prometheus(name, through):
    incident = BY_NAME[name]
    real, direct = diagnose(through(name)), diagnose(read(truth(name), replace(incident.how, without=frozenset({"gateway_ttft"}))))
    assert real.primary == direct.primary == incident.primary
    assert real.verdict(real.primary).episodes[0].start == pytest.approx(direct.verdict(real.primary).episodes[0].start, abs=30)
    assert real.verdict(real.primary).episodes[0].replicas == direct.verdict(real.primary).episodes[0].replicas
    assert real.now == direct.now


def test_the_readings_are_those_that_the_direct_way_makes(through):
    """Rates, means and levels, figure by figure: what the fast tests read is what a Prometheus answers."""
    real, direct = through("more than the KV pool holds"), readings("more than the KV pool holds")
    assert (real.scrape_seconds, real.grid.step) == (15, 15)
    late = slice(-60, None)
    for signal in ("kv_use", "requests_waiting", "preemptions", "generation_tokens", "ttft", "e2e_latency", "gateway_attempts"):
        assert real.signals[signal].values[:, late] == pytest.approx(direct.signals[signal].values[:, late], rel=0.02, abs=1e-6), signal


@pytest.mark.parametrize("name", ["a healthy hour", "more than the KV pool holds", "one bad replica of four"])
@pytest.mark.parametrize("at", [TROUBLE - 300, TROUBLE + 600], ids=["before the trouble", "in the middle of it"])
def test_a_change_of_metric_names_changes_no_verdict(name, at, through):
    usual = essence(diagnose(readings(name)), findings=True)
    got = through(name, old_until=at)
    assert got.signals["kv_use"].metric == "vllm:kv_cache_usage_perc / vllm:gpu_cache_usage_perc"
    renamed = essence(diagnose(got), findings=True)
    assert {key: renamed[key] for key in ("primary", "now", *ROWS[:1], "findings")} == {
        key: usual[key] for key in ("primary", "now", *ROWS[:1], "findings")
    }
