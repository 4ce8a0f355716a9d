"""How often a source is asked again, and when it is left alone: at most one retry of what is transient, in this one layer, from a budget,
and none at all while it is down. A monitoring tool that insists makes an outage worse.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from threading import Lock

BUDGET_RATIO = 0.1  # retries for each request; Site Reliability Engineering, ch. 21, gives clients as much
BUDGET_RESERVE = 3.0  # retries that a quiet process has in hand
PAUSE_SECONDS = (0.05, 0.25)  # before a retry, at random in between: many sessions do not come back at once
FAILURES = 5  # in a row, over all threads: then the source is down
OPEN_SECONDS = (5.0, 60.0)  # how long it is left alone: at first, and at most; twice as long each time


class RetryBudget:
    """One retry for every ten requests, and a few in reserve. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held = BUDGET_RESERVE
        self.spent = self.refused = 0

    def asked(self) -> None:
        """A request was made."""
        with self._lock:
            self._held = min(BUDGET_RESERVE, self._held + BUDGET_RATIO)

    def spend(self) -> bool:
        """Whether one retry may be made; it is taken from the budget."""
        with self._lock:
            if self._held < 1.0 - 1e-9:
                self.refused += 1
                return False
            self._held -= 1.0
            self.spent += 1
            return True


def pause_seconds() -> float:
    """How long to wait before a retry."""
    return random.uniform(*PAUSE_SECONDS)  # noqa: S311  (no secret)


class Circuit:
    """Opens after several failures in a row; then one request in a while may try whether the source is back. Safe to share."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._failures = 0
        self._open_for, self._until = OPEN_SECONDS[0], 0.0
        self._trying = False
        self.opened = 0

    def wait_seconds(self) -> float:
        """0 where a request may be made; else how long until one may. The first to come after that is the one that tries."""
        with self._lock:
            if self._failures < FAILURES:
                return 0.0
            left = self._until - self._clock()
            if left > 0:
                return left
            self._until, self._trying = self._clock() + self._open_for, True  # whoever comes meanwhile waits for what this one finds
            return 0.0

    def worked(self) -> None:
        """The source answered, if only with an error of its own: it is there."""
        with self._lock:
            self._failures, self._open_for, self._trying = 0, OPEN_SECONDS[0], False

    def failed(self) -> None:
        """The source could not be reached, or broke off."""
        with self._lock:
            self._failures += 1
            if self._failures < FAILURES or (self._failures > FAILURES and not self._trying):
                return  # what was under way when it opened fails too, and proves nothing new
            if self._trying:
                self._open_for = min(OPEN_SECONDS[1], self._open_for * 2)
            self._until, self._trying = self._clock() + self._open_for, False
            self.opened += 1
