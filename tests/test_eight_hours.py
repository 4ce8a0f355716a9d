"""Eight hours of refresh by five viewers, by a clock that the test moves: what they ask, and what the process holds, does not grow."""

import gc
import threading

import numpy as np

from obs.cache import INTERVAL_SECONDS, NAMES_SECONDS, SETTLE_SECONDS, Cached
from obs.chunks import CHUNK_STEPS
from obs.epochs import ASKED_SECONDS
from obs.series import Grid
from obs.source import Answer, Query

BEGIN, HOURS, REFRESH, STEP, VIEWERS = 1_800_000_000.0, 8, 30.0, 15.0, 5
QUERIES = [Query(f"q{n}", f"q{n}") for n in range(2)]
PODS = tuple({"pod": f"p{n}"} for n in range(10))
BOUND = 100_000


class Prometheus:
    """Counts what it is asked."""

    def __init__(self):
        self.stretches, self.names, self.intervals, self.who = [], 0, 0, 0

    def started(self):
        self.who += 1
        return "at eight"

    def metric_names(self, start, end):
        self.names += 1
        return frozenset({"q"})

    def scrape_intervals(self, metrics, matchers, start, end):
        self.intervals += 1
        return [STEP for _ in metrics]

    def answer(self, queries, grid):
        self.stretches.append(grid.count)
        return [Answer(PODS, np.broadcast_to(grid.times, (len(PODS), grid.count)).copy()) for _ in queries]


def eight_hours(viewers):
    """A view of an hour that everybody refreshes twice a minute: (source, cache, objects that live at the end of each hour)."""
    now, source, held = [BEGIN], Prometheus(), []
    cached = Cached(source, most_bytes=BOUND, clock=lambda: now[0])
    for hour in range(HOURS):
        while now[0] < BEGIN + (hour + 1) * 3600:
            window = Grid.covering(now[0] - 3600, now[0], STEP)
            for _ in range(viewers):
                cached.metric_names(window.start, window.end)
                cached.scrape_intervals(["q"], "", window.start, window.end)
                answers = cached.answer(QUERIES, window)
            assert float(answers[-1].values[0, -1]) == window.end  # the newest figure, each time
            now[0] += REFRESH
        gc.collect()
        held.append(len(gc.get_objects()))
    return source, cached, held


def test_five_viewers_for_eight_hours_ask_little_more_than_one_and_hold_no_more_than_after_the_first_hours():
    threads = threading.active_count()
    source, cached, held = eight_hours(VIEWERS)
    refreshes = int(HOURS * 3600 / REFRESH)
    assert max(source.stretches[1:]) <= CHUNK_STEPS + SETTLE_SECONDS / STEP + 1  # the open end, and never the window again
    assert len(source.stretches) <= refreshes * VIEWERS + 1  # the piece by which it is known again
    assert source.names <= HOURS * 3600 / NAMES_SECONDS + 1
    assert source.who <= HOURS * 3600 / ASKED_SECONDS + 1
    assert source.intervals <= HOURS * 3600 / INTERVAL_SECONDS + 1
    assert cached.counts.held_bytes <= BOUND
    assert cached.counts.evicted > 0
    assert max(held[3:]) - held[2] < 1000  # a refresh that left one behind would leave thousands
    assert cached._asked == {}
    assert threading.active_count() <= threads
