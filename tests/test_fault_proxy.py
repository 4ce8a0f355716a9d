"""Every fault between obs and a real Prometheus: what the person is told, how often the source is asked, and that all is well again."""

import time

import numpy as np
import pytest
from tests.fault_proxy import FAULTS, FINE, Fault, proxied
from tests.recordings import Recording

from obs import patience
from obs.cache import Cached
from obs.config import SourceSettings
from obs.epochs import ASKED_SECONDS
from obs.errors import SourceError
from obs.language import render
from obs.prometheus import Prometheus
from obs.series import Grid
from obs.source import Query

GRID = Grid(1796036544.0, 5.0, 60)
QUERY = [Query("kv", "max by (instance) (vllm:kv_cache_usage_perc)")]
SHORT = 0.5  # seconds of a time-out, in place of 10

# fault: (what is said, requests that are sent for one question)
TOLD = {
    "refused": ("refused the connection. Check host and port, and whether Prometheus is running there.", 2),
    "reset": ("broke off half-way. Try again; if it lasts, look at the proxy in front of it.", 2),
    "slow": ("did not answer within 0.5 s. Choose a shorter window or a narrower scope, or raise OBS_PROMETHEUS_TIMEOUT_SECONDS.", 1),
    "429": ("is asked too often (HTTP 429). Wait a moment, refresh less often, or raise its limit.", 1),
    "500": ("has a fault of its own (HTTP 500). Try again; if it lasts, look at its log.", 1),
    "503": ("has a fault of its own (HTTP 503). Try again; if it lasts, look at its log.", 2),
    "half JSON": ("answered what is not JSON, or only half of it. Check that it is a Prometheus API.", 1),
    "HTML": ("answered what is not JSON, or only half of it. Check that it is a Prometheus API.", 1),
    "wrong type": ("answered with something other than the series that were asked for. Check that it is a Prometheus API.", 1),
    "too many samples": ("(query processing would load too many samples into memory in query execution). Choose a shorter window", 1),
    "too many points": ("(exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution).", 1),
}


@pytest.fixture
def proxy(lab_url):
    with proxied(lab_url) as found:
        yield found


def behind(proxy):
    return Prometheus(SourceSettings(url=proxy.url, name="it", timeout_seconds=SHORT))


def said(source, grid=GRID):
    with pytest.raises(SourceError) as error:
        source.answer(QUERY, grid)
    return render(error.value.says, "en")


def test_each_fault_has_its_sentence():
    assert TOLD.keys() == FAULTS.keys()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_said_asked_about_at_most_twice_and_over_when_it_is_over(fault, proxy):
    source = behind(proxy)
    good = source.answer(QUERY, GRID)[0]
    words, requests = TOLD[fault]
    proxy.fault = FAULTS[fault]
    before = source.session.asked.count
    assert words in said(source)
    assert proxy.url in said(source)
    assert source.session.asked.count - before == 2 * requests  # two questions
    proxy.fault = FINE
    again = source.answer(QUERY, GRID)[0]
    np.testing.assert_array_equal(again.values, good.values)
    assert source.session.asked.count - before == 2 * requests + 1


def test_a_real_prometheus_refuses_more_than_eleven_thousand_points(proxy):
    assert "The window holds too much for" in said(behind(proxy), Grid(GRID.start, 0.1, 20_000))


@pytest.mark.parametrize("fault", ["refused", "reset", "503"])
def test_an_outage_costs_few_requests_and_is_over_by_itself(fault, proxy, monkeypatch):
    """Five viewers who refresh without a pause; the source is left alone meanwhile, and found again."""
    monkeypatch.setattr(patience, "OPEN_SECONDS", (0.3, 0.6))
    source = behind(proxy)
    cached = Cached(source)
    good = cached.answer(QUERY, GRID)[0]
    proxy.fault = FAULTS[fault]
    before, until = source.session.asked.count, time.monotonic() + 2.0
    refused = 0
    while time.monotonic() < until:
        refused += 1
        with pytest.raises(SourceError):
            cached.answer(QUERY, Grid(GRID.start - 3600, 5.0, 60))
        np.testing.assert_array_equal(cached.answer(QUERY, GRID)[0].values, good.values)  # what is held can be read all the time
        time.sleep(0.02)
    assert refused > 30
    assert source.session.asked.count - before <= patience.FAILURES + 3 + 2 * 6  # until it opened, and one or two tries each time
    proxy.fault = FINE
    while True:
        assert time.monotonic() < until + 5, "it did not come back"
        try:
            cached.answer(QUERY, Grid(GRID.start - 3600, 5.0, 60))
            break
        except SourceError:
            time.sleep(0.02)
    assert source.session.circuit.wait_seconds() == 0.0
    assert cached._asked == {}


@pytest.mark.parametrize("seconds", [600.0, -600.0])
def test_a_clock_that_is_off_by_ten_minutes_is_measured(seconds, proxy):
    source = behind(proxy)
    proxy.fault = Fault(clock=seconds)
    source.answer(QUERY, GRID)
    assert abs((source.session.asked.clock_seconds or 0.0) - seconds) < 1.5


def test_another_source_in_its_place_is_not_mixed_with_it(proxy, served):
    recording = Recording(1800).vllm("other")
    now = [1_900_000_000.0]
    cached = Cached(behind(proxy), clock=lambda: now[0])
    grid = Grid(1_800_000_000.0, 15.0, 60)
    assert cached.answer(QUERY, GRID)[0].labels == ({"instance": "127.0.0.1:18000"},)
    proxy.upstream = served(recording)
    now[0] += ASKED_SECONDS
    assert cached.answer(QUERY, GRID)[0].labels == ()  # the other one knows nothing of that time
    assert cached.answer(QUERY, grid)[0].labels == ({"instance": "other:8000"},)
