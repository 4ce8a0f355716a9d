"""How far the queries are that somebody waits for, whoever asked for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from tests.faults import Reply, Seen, serving, success

from obs import errand
from obs.cache import Cached
from obs.config import SourceSettings
from obs.errand import Watch
from obs.prometheus import Prometheus
from obs.series import Grid
from obs.source import Query

GRID = Grid(1_700_000_000.0, 15.0, 3)
NONE = success([])


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


def test_what_nobody_watches_is_not_counted_for_who_asks_nothing() -> None:
    with serving(lambda _seen: NONE) as (url, _requests):
        watch = Watch()
        Cached(Prometheus(SourceSettings(url=url))).answer([Query("a", "a")], GRID)
        assert watch.told() == (0, 0)


def test_a_query_is_counted_when_it_is_begun_and_again_when_it_is_answered_also_for_who_waits_for_anothers() -> None:
    goes = Event()

    def slow(_seen: Seen) -> Reply:
        goes.wait(5)
        return NONE

    with serving(slow) as (url, _requests), ThreadPoolExecutor(2) as pool:
        cached = Cached(Prometheus(SourceSettings(url=url)))
        watches = [Watch(), Watch()]

        def ask(watch: Watch) -> None:
            with errand.watched(watch):
                cached.answer([Query("a", "a"), Query("b", "b", stride=3)], GRID)

        first = pool.submit(ask, watches[0])
        _until(lambda: watches[0].told()[1] >= 1)
        asked = watches[0].told()[1]
        second = pool.submit(ask, watches[1])
        _until(lambda: watches[1].told()[1] >= asked)
        assert [watch.told()[0] for watch in watches] == [0, 0]
        goes.set()
        first.result(10)
        second.result(10)
        answered, asked = watches[0].told()
        assert answered == asked >= 2
        assert watches[1].told() == (answered, asked)
