"""Another server at the same address: what it says is not mixed with what the former one said. One started anew is no other one."""

import numpy as np
import pytest
from tests.recordings import T0, Recording

from obs.cache import Cached
from obs.config import SourceSettings
from obs.epochs import ASKED_SECONDS
from obs.errors import SourceError
from obs.prometheus import Prometheus
from obs.refusals import UnreachableError
from obs.series import Grid
from obs.source import Answer, Query
from obs.text import say

QUERIES = [Query("a", "a"), Query("b", "b")]
GRID = Grid(T0, 15.0, 240)


class Server:
    """What it says depends on which process it is and whose data it has."""

    def __init__(self):
        self.process, self.data, self.down = "at eight", 1.0, False
        self.asked = 0
        self.meanwhile = lambda: None

    def metric_names(self, start, end):
        data = self.data
        self.meanwhile()
        return frozenset({f"of_{data:g}"})

    def scrape_intervals(self, metrics, matchers, start, end):
        data = self.data
        self.meanwhile()
        return [data for _ in metrics]

    def started(self):
        if self.down:
            raise UnreachableError(say("It is down."))
        return self.process

    def answer(self, queries, grid):
        if self.down:
            raise UnreachableError(say("It is down."))
        self.asked += 1
        return [Answer(({"pod": "a"},), np.full((1, grid.count), self.data)) for _ in queries]


def watched(server):
    """(cache, how to let time pass, how often it was told of another server)."""
    now, renewed = [T0 + 7200.0], []
    cached = Cached(server, clock=lambda: now[0], renewed=lambda: renewed.append(1))

    def later(seconds=ASKED_SECONDS):
        now[0] += seconds

    return cached, later, renewed


def said(cached):
    return {float(value) for answer in cached.answer(QUERIES, GRID) for value in answer.values.ravel()}


def test_another_server_is_not_mixed_with_the_one_before():
    server = Server()
    cached, later, renewed = watched(server)
    assert said(cached) == {1.0}
    server.process, server.data = "at nine", 2.0
    later()
    assert said(cached) == {2.0}
    assert len(renewed) == 1


@pytest.mark.parametrize(
    ("ask", "first", "then"),
    [
        (lambda cached: cached.metric_names(T0, T0 + 600), {"of_1"}, {"of_2"}),
        (lambda cached: cached.scrape_intervals(["a"], "", T0, T0 + 600), [1.0], [2.0]),
    ],
    ids=["names", "intervals"],
)
def test_what_the_one_before_says_when_another_is_known_already_is_not_kept(ask, first, then):
    server = Server()
    cached, later, _renewed = watched(server)
    said(cached)

    def swapped():
        server.process, server.data, server.meanwhile = "at nine", 2.0, lambda: None
        later(ASKED_SECONDS / 2)
        said(cached)

    server.meanwhile = swapped
    later(ASKED_SECONDS / 2)
    assert ask(cached) == first
    assert ask(cached) == then


def test_after_a_failure_it_is_asked_at_once_and_not_a_minute_later():
    server = Server()
    cached, _later, renewed = watched(server)
    said(cached)
    server.down = True
    try:
        cached.answer([Query("c", "c")], GRID)
    except SourceError:
        server.down, server.process, server.data = False, "at nine", 2.0
    assert said(cached) == {2.0}
    assert len(renewed) == 1


def test_what_is_held_can_be_read_while_it_is_down():
    server = Server()
    cached, later, renewed = watched(server)
    said(cached)
    server.down = True
    later()
    assert said(cached) == {1.0}
    assert renewed == []


def test_a_server_that_was_only_started_anew_keeps_what_is_held():
    server = Server()
    cached, later, renewed = watched(server)
    said(cached)
    server.process = "at nine"
    later()
    assert said(cached) == {1.0}
    assert server.asked == 2  # the window, and one piece of it again
    assert renewed == []


def test_two_replicas_by_turns_do_not_drive_each_other_out():
    server = Server()
    cached, later, _renewed = watched(server)
    for turn in range(10):
        server.process, server.data = (("one", 1.0), ("two", 2.0))[turn % 2]
        assert said(cached) == {server.data}
        later()
    assert server.asked == 5  # two windows for the first, which nobody had asked who it is, one for the second, and two pieces


def test_two_real_prometheus_at_one_address_are_told_apart(served):
    recordings = [Recording(3600).put("a", {"pod": pod}, lambda age: 1.0) for pod in ("first", "second")]
    first, second = (Prometheus(SourceSettings(url=served(recording), name="it")) for recording in recordings)

    class Address:
        to = first

        def started(self):
            return self.to.started()

        def answer(self, queries, grid):
            return self.to.answer(queries, grid)

    address = Address()
    cached, later, renewed = watched(address)
    assert cached.answer([Query("a", "a")], GRID)[0].labels == ({"pod": "first"},)
    address.to = second
    later()
    assert cached.answer([Query("a", "a")], GRID)[0].labels == ({"pod": "second"},)
    assert len(renewed) == 1
