"""Two figures side by side, minute by minute on one replica, and what their rank correlation says in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from obs.correlation import Correlation
from obs.series import Array
from obs.text import Message, Quantity, say, say_n

FEW = 10  # pairs; with fewer the sentence says so


@dataclass(frozen=True)
class Relation:
    """`x`, in `unit`, against the page's own figure `y`: one pair a bin, NaN where either is not known. `times`: Unix seconds of the bins'
    ends. `signal` is where `x` comes from."""

    signal: str
    title: Message
    unit: str
    x: Array
    y: Array
    times: Array
    found: Correlation
    says: Message


@dataclass(frozen=True)
class Relations:
    """The relations on one replica; `seconds` is a bin's length."""

    replica: str
    seconds: float
    items: tuple[Relation, ...]


def untold(found: Correlation, title: Message, x: Array, y: Array) -> Message:
    """Why there is no correlation."""
    known = np.isfinite(x) & np.isfinite(y)
    if not known.any():
        return say("{title} was not measured.", title=title)
    if found.n and np.ptp(x[known]) == 0:
        return say("{title} was the same all the time: nothing to compare.", title=title)
    return say_n("{n} pair is too few to compare.", "{n} pairs are too few to compare.", found.n)


def told(found: Correlation, words: Message) -> Message:
    """The words with the figure and its sample size."""
    rho = Quantity(round(found.rho or 0.0, 2), "count")
    if found.n < FEW:
        return say("{words}: rank correlation {rho}, from {n} pairs only.", words=words, rho=rho, n=found.n)
    return say("{words}: rank correlation {rho}, from {n} pairs.", words=words, rho=rho, n=found.n)
