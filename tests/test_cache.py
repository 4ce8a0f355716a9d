"""The cache: the same answers as without it, and nothing asked twice, by windows that move, grow, overlap and come at once."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Barrier, Event

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obs import bundle
from obs.cache import CHUNK_STEPS, SETTLE_SECONDS, Cached
from obs.collect import collect
from obs.config import Settings
from obs.errors import SourceError
from obs.series import Grid
from obs.source import Answer, Query
from obs.text import say
from obs.window import Window

bounded = settings(max_examples=15, deadline=None, derandomize=True, database=None)
STEP = 5.0
CHUNK = CHUNK_STEPS * STEP
BEGIN = 1796036400.0  # 2026-11-30 11:00:00Z, a multiple of the chunk
AFTER = BEGIN + 10 * 3600


class Counted:
    """The sample recording, with what it was asked for."""

    def __init__(self):
        self.inner = bundle.sample()
        self.asked: list[tuple[tuple[str, ...], float, float]] = []
        self.fails: SourceError | None = None
        self.waits: Event | None = None

    def about(self):
        return self.inner.about()

    def metric_names(self, start, end):
        self.asked.append((("names",), start, end))
        return self.inner.metric_names(start, end)

    def scrape_intervals(self, metrics, matchers, start, end):
        self.asked.append((("interval",), start, end))
        return self.inner.scrape_intervals(metrics, matchers, start, end)

    def answer(self, queries, grid):
        self.asked.append((tuple(q.key for q in queries), grid.start, grid.end))
        if self.waits is not None:
            assert self.waits.wait(10)
        if self.fails is not None:
            raise self.fails
        return self.inner.answer(queries, grid)


QUERIES = [Query(asked.key, asked.key) for asked in bundle.sample().manifest.queries if "|buckets" not in asked.key][:6]


def grid(start, end):
    return Grid.covering(BEGIN + start, BEGIN + end, STEP)


def same(got: list[Answer], want: list[Answer]) -> None:
    for one, other in zip(got, want, strict=True):
        known = {tuple(sorted(row.items())): values for row, values in zip(one.labels, one.values, strict=True)}
        for row, values in zip(other.labels, other.values, strict=True):
            if np.isfinite(values).any():
                np.testing.assert_array_equal(known.pop(tuple(sorted(row.items()))), values)
        assert all(np.isnan(values).all() for values in known.values())


# ---------------------------------------------------------------- what it must not do


def test_an_open_end_is_asked_for_again_until_it_has_settled():
    source, now = Counted(), BEGIN + 2 * CHUNK - 1
    cached = Cached(source, clock=lambda: now)
    cached.answer(QUERIES, grid(0, 2 * CHUNK - STEP))
    cached.answer(QUERIES, grid(0, 2 * CHUNK - STEP))
    assert [(start - BEGIN, end - BEGIN) for _, start, end in source.asked] == [(0, 2 * CHUNK - STEP)] * 2
    now += SETTLE_SECONDS + 1
    cached.answer(QUERIES, grid(0, 2 * CHUNK - STEP))
    cached.answer(QUERIES, grid(0, 2 * CHUNK - STEP))
    assert len(source.asked) == 3


def test_a_failure_is_not_kept_and_reaches_everybody_who_waits():
    source = Counted()
    source.fails, source.waits = SourceError(say("It is down.")), Event()
    cached = Cached(source, clock=lambda: AFTER)
    begun = Barrier(3)

    def ask():
        begun.wait(10)
        with pytest.raises(SourceError) as raised:
            cached.answer(QUERIES, grid(0, 600))
        return raised.value

    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask) for _ in range(3)]
        while cached.counts.waited < 2 * 3 * len(QUERIES):
            pass
        source.waits.set()
        assert {error.result(10).says.template for error in asking} == {"It is down."}
    assert len(source.asked) == 1
    source.fails = None
    same(cached.answer(QUERIES, grid(0, 600)), source.inner.answer(QUERIES, grid(0, 600)))


def test_what_was_refused_is_asked_for_again():
    class Refusing(Counted):
        def answer(self, queries, grid):
            self.asked.append(((), grid.start, grid.end))
            return [Answer((), np.empty((0, grid.count)), say("No.")) for _ in queries]

    source = Refusing()
    cached = Cached(source, clock=lambda: AFTER)
    assert [a.refused.template for a in cached.answer(QUERIES, grid(0, 600))] == ["No."] * len(QUERIES)
    cached.answer(QUERIES, grid(0, 600))
    assert len(source.asked) == 2


def test_another_scope_is_another_question():
    source = Counted()
    cached = Cached(source, clock=lambda: AFTER)
    one = Query(QUERIES[0].key, 'x{namespace="a"}', (("namespace", ("a",)),))
    other = Query(QUERIES[0].key, 'x{namespace="b"}', (("namespace", ("b",)),))
    cached.answer([one], grid(0, 600))
    cached.answer([other], grid(0, 600))
    assert len(source.asked) == 2


def test_memory_is_bounded_and_what_was_not_used_goes_first():
    source = Counted()
    cached = Cached(source, most_bytes=60_000, clock=lambda: AFTER)
    for hour in range(6):
        cached.answer(QUERIES, grid(hour * 600, hour * 600 + 595))
        cached.answer(QUERIES, grid(0, 295))  # used all the time
    assert cached.counts.evicted > 0
    assert cached.counts.held_bytes <= 60_000
    before = len(source.asked)
    cached.answer(QUERIES, grid(0, 295))
    assert len(source.asked) == before
    cached.answer(QUERIES, grid(600, 895))
    assert len(source.asked) == before + 1


# ---------------------------------------------------------------- what it must


@bounded
@given(st.lists(st.tuples(st.integers(0, 700), st.integers(1, 300)), min_size=1, max_size=6))
def test_whatever_was_asked_before_the_answer_is_the_source_s(windows):
    source = Counted()
    cached = Cached(source, clock=lambda: AFTER)
    for start, length in windows:
        asked = grid(start * STEP, (start + length) * STEP)
        same(cached.answer(QUERIES, asked), source.inner.answer(QUERIES, asked))


def test_a_chunk_of_the_past_is_asked_for_once():
    source = Counted()
    cached = Cached(source, clock=lambda: AFTER)
    cached.answer(QUERIES, grid(0, 10 * CHUNK - STEP))
    for start, end in ((0, 100), (7, 700), (CHUNK, 9 * CHUNK), (0, 10 * CHUNK - STEP)):
        cached.answer(QUERIES, grid(start, end))
    assert len(source.asked) == 1
    cached.answer(QUERIES, grid(9 * CHUNK, 12 * CHUNK - STEP))
    assert [(start - BEGIN, end - BEGIN) for _, start, end in source.asked[1:]] == [(10 * CHUNK, 12 * CHUNK - STEP)]


def test_a_live_window_asks_only_for_its_open_end():
    """Six hours at 15 s that move by 15 s: each refresh asks for a chunk and the settling time, not for the whole."""
    now, source = BEGIN + 3 * 3600, Counted()
    cached = Cached(source, clock=lambda: now)
    cached.answer(QUERIES, Grid.covering(now - 6 * 3600, now, 15.0))
    for _ in range(8):
        now += 15
        cached.answer(QUERIES, Grid.covering(now - 6 * 3600, now, 15.0))
    cold, *warm = [(end - start) / 15 + 1 for _, start, end in source.asked]
    assert cold >= 6 * 240
    assert max(warm) <= CHUNK_STEPS + SETTLE_SECONDS / 15 + 1
    assert max(warm) / cold < 0.1


def test_a_query_that_is_new_is_asked_for_alone():
    source = Counted()
    cached = Cached(source, clock=lambda: AFTER)
    cached.answer(QUERIES[:5], grid(0, 600))
    cached.answer(QUERIES, grid(0, 600))
    assert [keys for keys, *_ in source.asked] == [tuple(q.key for q in QUERIES[:5]), (QUERIES[5].key,)]


def test_ten_who_ask_at_once_cost_one_question():
    source = Counted()
    source.waits = Event()
    cached = Cached(source, clock=lambda: AFTER)
    with ThreadPoolExecutor(10) as pool:
        asking = [pool.submit(cached.answer, QUERIES, grid(0, 600)) for _ in range(10)]
        while cached.counts.waited < 9 * 3 * len(QUERIES):
            pass
        source.waits.set()
        answers = [future.result(10) for future in asking]
    assert len(source.asked) == 1
    for answer in answers:
        same(answer, source.inner.answer(QUERIES, grid(0, 600)))


def test_names_and_intervals_are_asked_for_once_and_again_when_they_are_old():
    now, source = AFTER, Counted()
    cached = Cached(source, clock=lambda: now)
    for _ in range(3):
        cached.metric_names(BEGIN, BEGIN + 600)
        cached.scrape_intervals(["vllm:num_requests_running"], "", BEGIN, BEGIN + 600)
    assert [kind for (kind,), *_ in source.asked] == ["names", "interval"]
    now += 61
    cached.metric_names(BEGIN, BEGIN + 600)
    cached.scrape_intervals(["vllm:num_requests_running"], "", BEGIN, BEGIN + 600)
    assert [kind for (kind,), *_ in source.asked] == ["names", "interval", "names"]


def test_that_a_metric_has_no_interval_to_be_seen_is_asked_again_after_a_minute_and_not_at_every_refresh():
    now, source = AFTER, Counted()
    cached = Cached(source, clock=lambda: now)
    for wait in (0, 15, 15, 31):
        now += wait
        assert cached.scrape_intervals(["nobody_has_it"], "", BEGIN, BEGIN + 600) == [None]
    assert [kind for (kind,), *_ in source.asked] == ["interval", "interval"]


@pytest.mark.parametrize("start", [0, 7, 95])
def test_what_a_diagnosis_reads_is_the_same_through_the_cache(lab, start):
    """Rates that are computed here, joined questions, distributions of coarser steps: window by window, against the server itself."""
    cached = _warm(lab)
    window = Window(BEGIN + start, BEGIN + 600 + start)
    got, want = (collect(source, window, {}, Settings()) for source in (cached, lab))
    assert got.replicas == want.replicas
    for signal, reading in want.signals.items():
        assert (got.signals[signal].status, got.signals[signal].metric) == (reading.status, reading.metric)
        np.testing.assert_allclose(got.signals[signal].values, reading.values, rtol=1e-9, err_msg=signal)


@cache
def _warm(lab):
    """A cache that holds pieces of the past, of which later windows need the rest."""
    cached = Cached(lab, clock=lambda: AFTER)
    for since in (40, 900):
        collect(cached, Window(BEGIN + since, BEGIN + 300 + since), {}, Settings())
    return cached
