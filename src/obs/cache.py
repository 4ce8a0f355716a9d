"""A read-through cache before a source: what lies in the past is asked for once, by whoever comes first.

A chunk (`obs.chunks`) is kept once it ended a settling time ago: until then late samples may still come, and it is asked for again.
Questions run in threads of their own (`obs.errand`): who asks for what is being asked for already waits for that answer, who leaves
is not waited for, and what nobody waits for is given up. One cache belongs to one source: its tenant and credentials are the
source's, and a query's key holds its scope, so nothing crosses between them. Bounded in bytes; what was not used for longest goes first.
"""

from __future__ import annotations

import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

from obs import chunks, errand
from obs.chunks import CHUNK_STEPS, Key
from obs.epochs import Epochs
from obs.errand import Errand
from obs.errors import SourceError
from obs.refusals import LeftError, is_down
from obs.series import Grid
from obs.source import About, Answer, Inspectable, Inspection, Instant, Query, Recognisable, Source

SETTLE_SECONDS = 300.0  # remote write and slow rule evaluation come late; Prometheus itself looks back as far
NAMES_SECONDS = 60.0  # a metric that appears is found within a minute
INTERVAL_SECONDS = 600.0
INTERVALS = 5000  # that are kept: a scope has its own
BYTES = 256 * 2**20
T = TypeVar("T")


@dataclass
class Counts:
    """What the cache did since it began."""

    hits: int = 0  # chunks
    misses: int = 0
    waited: int = 0  # chunks that another thread was asking for
    evicted: int = 0
    held_bytes: int = 0


@dataclass(frozen=True)
class _Asked:
    """What is being asked for, and for whom."""

    future: Future[Any]
    errand: Errand


class Cached:
    """Implements `obs.source.Source` before another one. Safe to share between threads.

    `renewed` is called when another server answers at the source's address: what was made of the former one's answers is of no use.
    """

    def __init__(
        self,
        source: Source,
        *,
        most_bytes: int = BYTES,
        clock: Callable[[], float] = time.time,
        renewed: Callable[[], None] = lambda: None,
    ) -> None:
        self.source = source
        self.counts = Counts()
        self._most_bytes, self._clock, self._renewed = most_bytes, clock, renewed
        self._lock = Lock()
        self._held: OrderedDict[Key, Answer] = OrderedDict()
        self._asked: dict[Hashable, _Asked] = {}
        self._epochs = Epochs()
        self._names: tuple[float, float, float, frozenset[str]] | None = None  # asked at, start, end
        self._intervals: dict[tuple[str, str], tuple[float, float | None]] = {}  # by metric and matchers: asked at, seconds

    def about(self) -> About:
        """The source's own word; it asks at most once."""
        return self._alone("about", self.source.about)

    def metric_names(self, start: float, end: float) -> frozenset[str]:
        """Kept for a minute, for every stretch within the one that was asked for."""
        self._recognise()
        now, kept = self._clock(), self._names
        if kept is not None and now - kept[0] < NAMES_SECONDS and kept[1] <= start and end <= kept[2] + NAMES_SECONDS:
            return kept[3]
        epoch = self._epochs.now
        found = self._alone(("names", start, end), lambda: self.source.metric_names(start, end))
        with self._lock:
            if epoch == self._epochs.now:  # else it is the answer of a server that is gone
                self._names = (now, start, end, found)
        return found

    def scrape_intervals(self, metrics: Sequence[str], matchers: str, start: float, end: float) -> list[float | None]:
        """Kept for ten minutes, since nobody changes them more often; that there is none to be seen, for one."""
        now, epoch = self._clock(), self._epochs.now
        kept = {metric: self._intervals.get((metric, matchers), (float("-inf"), None)) for metric in metrics}
        missing = tuple(
            metric for metric, (at, found) in kept.items() if now - at >= (NAMES_SECONDS if found is None else INTERVAL_SECONDS)
        )
        if missing:
            found = self._alone(("interval", missing, matchers), lambda: self.source.scrape_intervals(missing, matchers, start, end))
            fresh = {metric: (now, seconds) for metric, seconds in zip(missing, found, strict=True)}
            kept |= fresh
            with self._lock:
                if epoch == self._epochs.now:
                    self._intervals |= {(metric, matchers): one for metric, one in fresh.items()}
                while len(self._intervals) > INTERVALS:
                    self._intervals.pop(next(iter(self._intervals)), None)
        return [kept[metric][1] for metric in metrics]

    def inspect(self, metric: str | None, end: float) -> Inspection:
        """The source's own."""
        source = self.source
        if not isinstance(source, Inspectable):
            return Inspection()
        return self._alone(("inspect", metric, end), lambda: source.inspect(metric, end))

    def at(self, queries: Sequence[Query], moment: float) -> list[Answer]:
        """The source's own: of a moment nothing is kept here. A bundle has none, and stands behind no cache."""
        source = self.source
        if not isinstance(source, Instant):
            raise TypeError(f"{type(source).__name__} answers for no moment alone")
        return self._alone(("at", tuple(queries), moment), lambda: source.at(queries, moment))

    def timed(self, inspection: Inspection) -> Inspection:
        """The source's own."""
        return self.source.timed(inspection) if isinstance(self.source, Inspectable) else inspection

    def answer(self, queries: Sequence[Query], grid: Grid) -> list[Answer]:
        """From what is held; what is missing is asked for in as few stretches as there are. Raises what the source raises, to everybody
        who waits for the same."""
        self._recognise()
        while True:
            try:
                return self._answer(queries, grid)
            except LeftError:
                errand.check()  # others gave up what this one had just begun to wait for: it is asked again

    def _answer(self, queries: Sequence[Query], grid: Grid) -> list[Answer]:
        epoch, own = self._epochs.now, Errand()
        first, last = chunks.number(grid, 0), chunks.number(grid, grid.count - 1)
        keys = [[chunks.key(query, grid, chunk, epoch) for chunk in range(first, last + 1)] for query in queries]
        parts: dict[Key, Answer] = {}
        mine: dict[Key, Query] = {}
        asked: dict[Key, _Asked] = {}
        with self._lock:
            for query, of_query in zip(queries, keys, strict=True):
                for key in of_query:
                    if (held := self._held.get(key)) is not None:
                        self._held.move_to_end(key)
                        self.counts.hits += 1
                        parts[key] = held
                    elif (found := self._asked.get(key)) is not None:
                        self.counts.waited += key not in mine
                        asked[key] = found
                    else:
                        self.counts.misses += 1
                        mine[key] = query
                        asked[key] = self._asked[key] = _Asked(Future(), own)
        with ExitStack() as stack:
            for each in {id(one.errand): one.errand for one in asked.values()}.values():
                stack.enter_context(each.waited_for())
            if mine:
                own.begin(lambda: self._ask(mine, grid, epoch))
            parts.update((key, errand.awaited(one.future)) for key, one in asked.items())
        return [chunks.together([parts[key] for key in of_query], first, grid) for of_query in keys]

    def _ask(self, mine: Mapping[Key, Query], grid: Grid, epoch: int) -> None:
        """One question for all queries that lack the same stretch, from its first missing chunk to its last."""
        try:
            lacking: dict[Query, list[int]] = defaultdict(list)
            for key, query in mine.items():
                lacking[query].append(key[-1])
            stretches: dict[tuple[int, int], list[Query]] = defaultdict(list)
            for query, numbers in lacking.items():
                for stretch in chunks.stretches(sorted(numbers)):
                    stretches[stretch].append(query)
            for (first, last), asked in sorted(stretches.items()):
                part = chunks.stretch(grid, first, last, whole=self._settled(last, grid.step))
                for query, answer in zip(asked, self.source.answer(asked, part), strict=True):
                    for chunk in range(first, last + 1):
                        self._keep(chunks.key(query, grid, chunk, epoch), chunks.cut(answer, part, chunk), query, grid.step)
        except BaseException as error:  # noqa: BLE001  (handed to everybody who waits)
            self._fail(mine, error)

    def _keep(self, key: Key, answer: Answer, query: Query, step: float) -> None:
        """Tells whoever waits, and holds the chunk where it is whole and settled."""
        settled = self._settled(key[-1], step)
        with self._lock:
            if (asked := self._asked.pop(key, None)) is not None:
                asked.future.set_result(answer)
            if not settled or answer.refused is not None or key in self._held:
                return
            self._held[key] = answer
            self._epochs.keep(query, step, key[-1], answer)
            self.counts.held_bytes += chunks.held_bytes(answer)
            while self.counts.held_bytes > self._most_bytes and self._held:
                self.counts.held_bytes -= chunks.held_bytes(self._held.popitem(last=False)[1])
                self.counts.evicted += 1

    def _settled(self, chunk: int, step: float) -> bool:
        """Whether a chunk ended so long ago that nothing in it changes any more."""
        return (chunk + 1) * CHUNK_STEPS * step <= self._clock() - SETTLE_SECONDS

    def _fail(self, mine: Mapping[Key, Query], error: BaseException) -> None:
        """Whoever waits for what was not answered hears why."""
        if is_down(error):
            self._epochs.doubt()
        with self._lock:
            for key in mine:
                if (asked := self._asked.pop(key, None)) is not None:
                    asked.future.set_exception(error)

    def _alone(self, key: Hashable, work: Callable[[], T]) -> T:
        """What `work` gives, once for everybody who wants it at the same time."""
        while True:
            own: _Asked | None = None
            with self._lock:
                if (asked := self._asked.get(key)) is None:
                    asked = self._asked[key] = own = _Asked(Future(), Errand())
            try:
                with asked.errand.waited_for():
                    if own is not None:
                        asked.errand.begin(lambda own=own: self._do(key, own.future, work))  # type: ignore[misc]
                    found: T = errand.awaited(asked.future)
                    return found
            except LeftError:
                errand.check()

    def _do(self, key: Hashable, future: Future[T], work: Callable[[], T]) -> None:
        try:
            found, error = work(), None
        except BaseException as raised:  # noqa: BLE001  (handed to everybody who waits)
            found, error = None, raised
        with self._lock:
            self._asked.pop(key, None)
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(found)  # type: ignore[arg-type]

    def _recognise(self) -> None:
        """Whether it is still the same server: asked once a minute, and after a failure."""
        source = self.source
        if not isinstance(source, Recognisable) or not self._epochs.due(self._clock()):
            return
        try:
            new = self._alone("started", lambda: self._epochs.recognised(source, self._clock()))
        except SourceError:  # what is held can still be read; what is not is asked for, and why it fails is said then
            return
        if new:
            with self._lock:
                self._names = None
                self._intervals.clear()
            self._renewed()
