"""A read-through cache before a source: what lies in the past is asked for once, by whoever comes first.

Answers are kept in chunks of whole steps, aligned to the clock, so that all windows of one step share them. A chunk is kept once it
ended a settling time ago: until then late samples may still come, and it is asked for again. Who asks for what another thread is
already asking for waits for that answer. One cache belongs to one source: its tenant and credentials are the source's, and a query's
key holds its scope, so nothing crosses between them. Bounded in bytes; what was not used for longest goes first.
"""

from __future__ import annotations

import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock

import numpy as np

from obs.series import Array, Grid
from obs.source import About, Answer, Inspectable, Inspection, Query, Source
from obs.text import Message

CHUNK_STEPS = 60  # a refresh asks again for at most one chunk and the settling time
SETTLE_SECONDS = 300.0  # remote write and slow rule evaluation come late; Prometheus itself looks back as far
NAMES_SECONDS = 60.0  # a metric that appears is found within a minute
INTERVAL_SECONDS = 600.0
BYTES = 256 * 2**20
_ROW_BYTES = 400  # of a row's labels, about

Key = tuple[str, str, float, int, int]  # query key, PromQL, step, stride, chunk


@dataclass
class Counts:
    """What the cache did since it began."""

    hits: int = 0  # chunks
    misses: int = 0
    waited: int = 0  # chunks that another thread was asking for
    evicted: int = 0
    held_bytes: int = 0


class Cached:
    """Implements `obs.source.Source` before another one. Safe to share between threads."""

    def __init__(self, source: Source, *, most_bytes: int = BYTES, clock: Callable[[], float] = time.time) -> None:
        self.source = source
        self.counts = Counts()
        self._most_bytes, self._clock = most_bytes, clock
        self._lock = Lock()
        self._held: OrderedDict[Key, Answer] = OrderedDict()
        self._asked: dict[Key, Future[Answer]] = {}
        self._names: tuple[float, float, float, frozenset[str]] | None = None  # asked at, start, end
        self._intervals: dict[str, tuple[float, float | None]] = {}

    def about(self) -> About:
        """The source's own word; it asks at most once."""
        return self.source.about()

    def metric_names(self, start: float, end: float) -> frozenset[str]:
        """Kept for a minute, for every stretch within the one that was asked for."""
        now, kept = self._clock(), self._names
        if kept is not None and now - kept[0] < NAMES_SECONDS and kept[1] <= start and end <= kept[2] + NAMES_SECONDS:
            return kept[3]
        found = self.source.metric_names(start, end)
        self._names = (now, start, end, found)
        return found

    def scrape_interval(self, metric: str, start: float, end: float) -> float | None:
        """Kept for ten minutes: nobody changes it more often."""
        now, kept = self._clock(), self._intervals.get(metric)
        if kept is None or now - kept[0] >= INTERVAL_SECONDS or kept[1] is None:
            kept = self._intervals[metric] = (now, self.source.scrape_interval(metric, start, end))
        return kept[1]

    def inspect(self, metric: str | None, end: float) -> Inspection:
        """The source's own."""
        return self.source.inspect(metric, end) if isinstance(self.source, Inspectable) else Inspection()

    def timed(self, inspection: Inspection) -> Inspection:
        """The source's own."""
        return self.source.timed(inspection) if isinstance(self.source, Inspectable) else inspection

    def answer(self, queries: Sequence[Query], grid: Grid) -> list[Answer]:
        """From what is held; what is missing is asked for in as few stretches as there are. Raises what the source raises, to everybody
        who waits for the same."""
        first, last = _chunk(grid, 0), _chunk(grid, grid.count - 1)
        keys = [[_key(query, grid, chunk) for chunk in range(first, last + 1)] for query in queries]
        parts: dict[Key, Answer] = {}
        mine: dict[Key, Query] = {}
        theirs: dict[Key, Future[Answer]] = {}
        with self._lock:
            for query, chunks in zip(queries, keys, strict=True):
                for key in chunks:
                    self._sort(key, query, parts, mine, theirs)
        try:
            parts.update(self._ask(mine, grid))
        except BaseException as error:
            self._give_up(mine, error)
            raise
        for key, future in theirs.items():
            parts[key] = future.result()  # raises what the other thread's question raised
        return [_together([parts[key] for key in chunks], first, grid) for chunks in keys]

    def _sort(self, key: Key, query: Query, parts: dict[Key, Answer], mine: dict[Key, Query], theirs: dict[Key, Future[Answer]]) -> None:
        if (held := self._held.get(key)) is not None:
            self._held.move_to_end(key)
            self.counts.hits += 1
            parts[key] = held
        elif (future := self._asked.get(key)) is not None and key not in mine:
            self.counts.waited += 1
            theirs[key] = future
        else:
            self.counts.misses += 1
            mine[key] = query
            self._asked[key] = Future()

    def _ask(self, mine: Mapping[Key, Query], grid: Grid) -> dict[Key, Answer]:
        """One question for all queries that lack the same stretch, from its first missing chunk to its last."""
        lacking: dict[Query, list[int]] = defaultdict(list)
        for key, query in mine.items():
            lacking[query].append(key[-1])
        stretches: dict[tuple[int, int], list[Query]] = defaultdict(list)
        for query, chunks in lacking.items():
            for stretch in _stretches(sorted(chunks)):
                stretches[stretch].append(query)
        found: dict[Key, Answer] = {}
        for (first, last), asked in sorted(stretches.items()):
            part = _stretch(grid, first, last, whole=self._settled(last, grid.step))
            for query, answer in zip(asked, self.source.answer(asked, part), strict=True):
                for chunk in range(first, last + 1):
                    key = _key(query, grid, chunk)
                    found[key] = _cut(answer, part, chunk)
                    self._keep(key, found[key], grid.step)
        return found

    def _keep(self, key: Key, answer: Answer, step: float) -> None:
        """Tells whoever waits, and holds the chunk where it is whole and settled."""
        settled = self._settled(key[-1], step)
        with self._lock:
            if (future := self._asked.pop(key, None)) is not None:
                future.set_result(answer)
            if not settled or answer.refused is not None:
                return
            self._held[key] = answer
            self.counts.held_bytes += _bytes(answer)
            while self.counts.held_bytes > self._most_bytes and self._held:
                self.counts.held_bytes -= _bytes(self._held.popitem(last=False)[1])
                self.counts.evicted += 1

    def _settled(self, chunk: int, step: float) -> bool:
        """Whether a chunk ended so long ago that nothing in it changes any more."""
        return (chunk + 1) * CHUNK_STEPS * step <= self._clock() - SETTLE_SECONDS

    def _give_up(self, mine: Mapping[Key, Query], error: BaseException) -> None:
        """Whoever waits for what was not answered hears why."""
        with self._lock:
            for key in mine:
                if (future := self._asked.pop(key, None)) is not None:
                    future.set_exception(error)


def _key(query: Query, grid: Grid, chunk: int) -> Key:
    return query.key, query.promql, grid.step, query.stride, chunk


def _chunk(grid: Grid, step: int) -> int:
    """The number of the chunk that a step of the grid lies in, counted from 1970."""
    return (round(grid.start / grid.step) + step) // CHUNK_STEPS


def _stretches(chunks: Sequence[int]) -> list[tuple[int, int]]:
    """Chunks that follow one another as (first, last)."""
    found: list[tuple[int, int]] = []
    for chunk in chunks:
        if found and chunk == found[-1][1] + 1:
            found[-1] = (found[-1][0], chunk)
        else:
            found.append((chunk, chunk))
    return found


def _stretch(grid: Grid, first: int, last: int, *, whole: bool) -> Grid:
    """The grid of these chunks; the last one up to its end where it is to be kept, else up to the end of what was asked for."""
    start = first * CHUNK_STEPS * grid.step
    end = (last + 1) * CHUNK_STEPS * grid.step - grid.step
    return Grid(start, grid.step, round(((end if whole else min(end, grid.end)) - start) / grid.step) + 1)


def _cut(answer: Answer, part: Grid, chunk: int) -> Answer:
    """One chunk of an answer over several. Rows without a value in it are left out; those without any at all say that they are there."""
    at = chunk * CHUNK_STEPS - round(part.start / part.step)
    values = answer.values[:, max(at, 0) : at + CHUNK_STEPS]
    known = np.isfinite(answer.values)
    kept = np.flatnonzero(np.isfinite(values).any(axis=1) | ~known.any(axis=1))
    return Answer(tuple(answer.labels[i] for i in kept), values[kept].copy(), answer.refused, answer.notes)


def _together(parts: Sequence[Answer], first: int, grid: Grid) -> Answer:
    """The chunks as one answer over the grid; a series is the same where all its labels are."""
    places: dict[tuple[tuple[str, str], ...], int] = {}
    labels: list[dict[str, str]] = []
    for part in parts:
        for row in part.labels:
            if places.setdefault(tuple(sorted(row.items())), len(places)) == len(labels):
                labels.append(row)
    values: Array = np.full((len(labels), grid.count), np.nan)
    begin = round(grid.start / grid.step)
    for number, part in enumerate(parts):
        at = (first + number) * CHUNK_STEPS - begin
        left, right = max(at, 0), min(at + part.values.shape[1], grid.count)
        rows = [places[tuple(sorted(row.items()))] for row in part.labels]
        if rows and right > left:
            values[rows, left:right] = part.values[:, left - at : right - at]
    refused = next((part.refused for part in parts if part.refused is not None), None)
    notes: list[Message] = []
    for part in parts:
        notes += [note for note in part.notes if note not in notes]
    return Answer(tuple(labels), values, refused, tuple(notes))


def _bytes(answer: Answer) -> int:
    return answer.values.nbytes + _ROW_BYTES * len(answer.labels)
