"""Who leaves is not waited for: a question that nobody waits for is given up, and a real Prometheus is seen to stop it."""

import re
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from threading import Event

import numpy as np
import pytest
from tests.browser.conftest import dashboard_process
from tests.faults import Reply, serving, success

from obs import errand
from obs.cache import Cached
from obs.config import SourceSettings
from obs.prometheus import Prometheus
from obs.refusals import LeftError
from obs.series import Grid
from obs.source import Answer, Query
from viewers import Viewer

GRID = Grid(1_800_000_000.0, 15.0, 3)
LAB = Grid(1796036400.0, 1.0, 3600)
# Minutes of work, in steps after each of which Prometheus looks whether it is still wanted (functions over ranges do not look).
ENDLESS = " or ".join(
    f'count by (le, instance) (count by (__name__, le, instance) ({{__name__=~"vllm:.+"}} offset {i}s))' for i in range(1, 300)
)


class Gone(BaseException):
    """What the page's framework raises where a run is to end."""


class Slow:
    """A source that answers when it is told to, or is given up."""

    def __init__(self):
        self.goes, self.asked, self.given_up = Event(), 0, 0

    def answer(self, queries, grid):
        self.asked += 1
        stop = errand.current()
        while not self.goes.wait(0.01):
            if stop and stop.stopped:
                self.given_up += 1
                raise LeftError
        return [Answer(({"a": "1"},), np.ones((1, grid.count))) for _ in queries]


class Person:
    """Somebody who waits in a thread, until they leave."""

    def __init__(self, pool, work):
        self.left = False
        self.got = pool.submit(self._wait, work)

    def _wait(self, work):
        with errand.attended(self._check):
            return work()

    def _check(self):
        if self.left:
            raise Gone


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(errand, "GRACE_SECONDS", 0.3)
    monkeypatch.setattr(errand, "POLL_SECONDS", 0.02)


@contextmanager
def people(work):
    """Lets people wait for the same; nobody is left behind."""
    with ThreadPoolExecutor(8) as pool:
        yield lambda: Person(pool, work)


def until(true, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.01)


def running(url):
    """The queries that a Prometheus works on now."""
    with urllib.request.urlopen(f"{url}/metrics") as reply:
        return int(float(re.search(r"^prometheus_engine_queries (\S+)", reply.read().decode(), re.M)[1]))


# ---------------------------------------------------------------- what others wait for too


def test_what_another_one_waits_for_goes_on():
    source = Slow()
    cached = Cached(source)
    with people(lambda: cached.answer([Query("x", "x")], GRID)) as person:
        first, second = person(), person()
        until(lambda: cached.counts.waited == 1)
        first.left = True
        with pytest.raises(Gone):
            first.got.result(5)
        time.sleep(0.6)
        source.goes.set()
        assert second.got.result(5)[0].labels == ({"a": "1"},)
    assert (source.asked, source.given_up) == (1, 0)


def test_a_page_that_is_drawn_anew_takes_up_its_question_again():
    source = Slow()
    cached = Cached(source)
    with people(lambda: cached.answer([Query("x", "x")], GRID)) as person:
        before = person()
        until(lambda: source.asked == 1)
        before.left = True
        with pytest.raises(Gone):
            before.got.result(5)
        after = person()
        time.sleep(0.6)
        source.goes.set()
        after.got.result(5)
    assert (source.asked, source.given_up) == (1, 0)


def test_an_answer_that_came_is_given_up_by_nobody():
    source = Slow()
    source.goes.set()
    cached = Cached(source)
    threads = threading.active_count()
    for start in range(50):
        cached.answer([Query("x", "x")], Grid(GRID.start + 900 * start, 15.0, 3))
    time.sleep(0.1)
    assert threading.active_count() <= threads
    assert (source.asked, source.given_up) == (50, 0)


# ---------------------------------------------------------------- what nobody waits for


def test_what_the_last_one_has_left_is_given_up_and_asked_anew_by_who_comes_later():
    source = Slow()
    cached = Cached(source)
    with people(lambda: cached.answer([Query("x", "x")], GRID)) as person:
        one, other = person(), person()
        until(lambda: cached.counts.waited == 1)
        one.left = other.left = True
        until(lambda: source.given_up == 1)
        later = person()
        source.goes.set()
        assert later.got.result(5)[0].labels == ({"a": "1"},)
    assert source.asked == 2
    assert cached._asked == {}


@pytest.mark.parametrize("reply", [Reply(wait=20), Reply(body=success([]).body, drip=0.5)], ids=["before the answer", "within it"])
def test_the_source_sees_the_connection_close_and_is_not_thought_to_be_down(reply):
    closed = Event()
    with serving(reply, closed) as (url, seen):
        source = Prometheus(SourceSettings(url=url, name="it", timeout_seconds=30))
        cached = Cached(source)
        with people(lambda: cached.answer([Query("x", "x")], GRID)) as person:
            left = person()
            until(lambda: [request.path for request in seen] == ["/api/v1/query_range"])
            left.left = True
            assert closed.wait(5)
        until(lambda: source.session.given_up == 1)
        assert len(seen) == 1  # it is no failure, and not asked again
        assert source.session.circuit._failures == 0


def test_a_real_prometheus_stops_what_nobody_waits_for(lab_url):
    source = Prometheus(SourceSettings(url=lab_url, name="lab", timeout_seconds=300))
    cached = Cached(source)
    queries = [Query("a", ENDLESS), Query("b|buckets", ENDLESS)]  # two requests
    with people(lambda: cached.answer(queries, LAB)) as person:
        left = person()
        until(lambda: running(lab_url) == 2)
        began = time.monotonic()
        left.left = True
        until(lambda: running(lab_url) == 0)
        assert time.monotonic() - began < 10  # without that it works for minutes
    assert source.session.given_up == 2


def test_a_closed_page_and_another_window_end_the_queries_of_a_real_prometheus(lab_url):
    """Through the pages: an endless query in place of a signal's own, two tabs, one of which looks at another window."""
    endless = f"max by (instance) ({ENDLESS})"
    with dashboard_process(prometheus_url=lab_url, prometheus_timeout_seconds="300", promql__kv_use=endless) as base, ExitStack() as stack:
        one, other = (stack.enter_context(closing(Viewer(base, query="from=2026-11-30T11:00:00Z&to=2026-11-30T11:10:00Z"))) for _ in "12")
        one.begin()
        until(lambda: running(lab_url) == 1)
        other.begin()
        time.sleep(1.5)
        assert running(lab_url) == 1  # both wait for the same
        one.close()
        time.sleep(2.5)
        assert running(lab_url) == 1  # the other one still does
        other.query = "from=2026-11-30T11:00:00Z&to=2026-11-30T11:00:00Z"  # no window: nothing is asked
        began = time.monotonic()
        assert "give an end after its start" in " ".join(other.run(60))
        until(lambda: running(lab_url) == 0)
        assert time.monotonic() - began < 8  # and not when the query has come to its end

        program = HTTPConnection(base.removeprefix("http://"))  # one that asks for the JSON leaves like a page
        program.request("GET", "/api/v1/diagnosis?from=2026-11-30T11:00:00Z&to=2026-11-30T11:10:00Z")
        until(lambda: running(lab_url) == 1)
        program.close()
        began = time.monotonic()
        until(lambda: running(lab_url) == 0)
        assert time.monotonic() - began < 8
