"""Questions under way, and who waits for them: one that nobody waits for any more is given up, and its source sees the connection close.

Who waits may leave at any moment: a page that was closed, another window that was chosen. Several may wait for the same question; it
goes on until the last of them has left, and a moment longer, because a page that is only drawn anew asks the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock, Thread, Timer
from typing import TypeVar

from obs.refusals import LeftError

T = TypeVar("T")
GRACE_SECONDS = 1.0  # from the last one's leaving to giving up
POLL_SECONDS = 0.1  # how often who waits is asked whether to go on


class Stop:
    """Whether a question is to be given up; and what has to be cut off then. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._cuts: list[Callable[[], None]] = []
        self.stopped = False
        self.asked = self.answered = 0  # queries

    def stop(self) -> None:
        """Gives it up: at once, in all threads that work on it."""
        with self._lock:
            self.stopped, cuts = True, list(self._cuts)
        for cut in cuts:
            cut()

    def check(self) -> None:
        """Raises LeftError once it is given up."""
        if self.stopped:
            raise LeftError

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Within, one query more is under way."""
        with self._lock:
            self.asked += 1
        try:
            yield
        finally:
            with self._lock:
                self.answered += 1

    @contextmanager
    def cutting(self, cut: Callable[[], None]) -> Iterator[None]:
        """Within, `cut` is called when it is given up; it must not raise, and comes from another thread."""
        with self._lock:
            self._cuts.append(cut)
            stopped = self.stopped
        try:
            if stopped:
                cut()
            yield
        finally:
            with self._lock:
                self._cuts.remove(cut)


class Watch:
    """The questions that somebody waits for, and how far they are."""

    def __init__(self) -> None:
        self._stops: list[Stop] = []

    def see(self, stop: Stop) -> None:
        """One question more."""
        if stop not in self._stops:
            self._stops.append(stop)

    def told(self) -> tuple[int, int]:
        """How many queries are answered, of how many that were begun by now."""
        stops = tuple(self._stops)
        return sum(stop.answered for stop in stops), sum(stop.asked for stop in stops)


def _never() -> None:
    """Who waits to the end."""


_STOP: ContextVar[Stop | None] = ContextVar("stop", default=None)
_CHECK: ContextVar[Callable[[], None]] = ContextVar("check", default=_never)
_WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)


def current() -> Stop | None:
    """The stop of the question that this thread works on; None where nobody can give it up."""
    return _STOP.get()


@contextmanager
def attended(check: Callable[[], None]) -> Iterator[None]:
    """Within, whoever waits for an answer calls `check` now and then; it raises when there is nobody to answer to any more."""
    kept = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(kept)


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Within, `watch` sees what is waited for."""
    kept = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(kept)


def check() -> None:
    """Raises where who asked in this thread has left."""
    _CHECK.get()()


def awaited(future: Future[T]) -> T:
    """The result, or what `check` raises meanwhile."""
    if _CHECK.get() is _never:
        return future.result()
    while True:
        try:
            return future.result(POLL_SECONDS)
        except TimeoutError:
            if future.done():  # the work's own
                raise
            check()


def together(works: Sequence[Callable[[], T]], most: int) -> list[T]:
    """What the works give, at most so many of them at once, in threads; raises what the first of them raised. Who leaves ends them all."""
    mine, watch = Stop(), _WATCH.get()
    stop = _STOP.get() or mine

    def one(work: Callable[[], T]) -> T:
        _STOP.set(stop)  # a pool's thread has a context of its own
        _WATCH.set(watch)
        with attended(mine.check):
            return work()

    with ThreadPoolExecutor(min(most, max(1, len(works)))) as pool:
        futures = [pool.submit(one, work) for work in works]
        try:
            return [awaited(future) for future in futures]
        except BaseException:
            mine.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class Errand:
    """One question for everybody who waits for it, in a thread of its own."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting, self._done = 0, False
        self._stop = Stop()

    def begin(self, work: Callable[[], None]) -> None:
        """Starts `work`, which hands over its results by itself and raises nothing."""

        def run() -> None:
            _STOP.set(self._stop)
            try:
                work()
            finally:
                self._done = True

        Thread(target=run, name="errand", daemon=True).start()

    @contextmanager
    def waited_for(self) -> Iterator[None]:
        """Within, somebody waits. Left by the last one before it is done, it is given up a moment later."""
        with self._lock:
            self._waiting += 1
        if (watch := _WATCH.get()) is not None:
            watch.see(self._stop)
        try:
            yield
        finally:
            with self._lock:
                self._waiting -= 1
                left = not self._waiting and not self._done
            if left:
                timer = Timer(GRACE_SECONDS, self._give_up)
                timer.daemon = True
                timer.start()

    def _give_up(self) -> None:
        with self._lock:
            if self._waiting or self._done:
                return
        self._stop.stop()
