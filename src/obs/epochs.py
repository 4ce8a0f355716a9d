"""Whether the server at an address is still the one whose answers are held. Another one's are never mixed with them.

A server that was only started anew still has its past; one that is another has none of it, or another. So where the process is
another one, a piece that is held is asked for again: the same figures mean the same data. Each known process keeps its epoch, so
that two replicas behind one address do not drive each other's chunks out.
"""

from __future__ import annotations

from threading import Lock

import numpy as np

from obs import chunks
from obs.chunks import CHUNK_STEPS
from obs.series import Grid
from obs.source import Answer, Query, Recognisable

ASKED_SECONDS = 60.0
_MOST = 16  # processes that are remembered


class Epochs:
    """The epoch of the source's answers, a number. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.now = 0
        self._last = 0
        self._asked: float | None = None
        self._doubted = False
        self._known: dict[str, int] = {}  # when a process started, and its epoch
        self._piece: tuple[Query, float, int, Answer] | None = None

    def keep(self, query: Query, step: float, chunk: int, answer: Answer) -> None:
        """A piece by which the source is known again: the newest one that has figures."""
        if answer.labels and (self._piece is None or (chunk + 1) * step >= (self._piece[2] + 1) * self._piece[1]):
            self._piece = (query, step, chunk, answer)

    def doubt(self) -> None:
        """It failed: who answers next may be another."""
        self._doubted = True

    def due(self, clock: float) -> bool:
        """Whether it is time to ask who it is: a minute after the first question, so that a cold page does not wait for it."""
        if self._asked is None:
            self._asked = clock
        return self._doubted or not 0 <= clock - self._asked < ASKED_SECONDS

    def recognised(self, source: Recognisable, clock: float) -> bool:
        """Asks who it is; whether that is another one than before. Raises SourceError."""
        started = source.started()
        with self._lock:
            known, before, piece = self._known.get(started), self.now, self._piece
        if known is None:
            known = before if piece is None or _same(source, piece) else self._last + 1
        with self._lock:
            self._asked, self._doubted = clock, False
            self._known[started] = self.now = known
            self._last = max(self._last, known)
            while len(self._known) > _MOST:
                self._known.pop(next(iter(self._known)))
            if known != before:
                self._piece = None
        return known != before


def _same(source: Recognisable, piece: tuple[Query, float, int, Answer]) -> bool:
    """Whether the source still says of a piece what it said."""
    query, step, chunk, held = piece
    grid = Grid(chunk * CHUNK_STEPS * step, step, CHUNK_STEPS)
    found = chunks.cut(source.answer([query], grid)[0], grid, chunk)
    theirs, ours = ({tuple(sorted(row.items())): values for row, values in zip(a.labels, a.values, strict=True)} for a in (found, held))
    return theirs.keys() == ours.keys() and all(np.allclose(theirs[row], ours[row], rtol=1e-9, equal_nan=True) for row in ours)
