"""What goes with the time to first token: prompt length and prefix-cache hits, minute by minute, on one replica.

Of one replica, the one on which most time was waited: between replicas, differences of traffic would look like a relation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from obs import inside
from obs.correlation import SOME, STRONG, Bins, Correlation, at_end, mean_in, minutes, rank_correlation
from obs.facts import Facts
from obs.first_token_figures import hit_ratio
from obs.means import LEAST_OBSERVATIONS
from obs.series import Array, divide
from obs.text import Message, Quantity, say, say_n

FEW = 10  # pairs; with fewer the sentence says so


@dataclass(frozen=True)
class Relation:
    """`x` against the mean time to first token, one pair a bin, NaN where either is not known; `times`: Unix seconds of the bins' ends."""

    signal: str
    title: Message
    unit: str
    x: Array
    ttft: Array
    times: Array
    found: Correlation
    says: Message


@dataclass(frozen=True)
class Relations:
    """The relations on one replica; `seconds` is a bin's length."""

    replica: str
    seconds: float
    items: tuple[Relation, ...]


def busiest(facts: Facts) -> int | None:
    """The replica on which most time was waited for first tokens in the window; None where nothing was observed."""
    total = facts.reading("ttft").total
    if total is None or not facts.rows:
        return None
    waited = np.nansum(total[:, inside.inside(facts)], axis=1)
    return int(waited.argmax()) if waited.max() > 0 else None


def bins_of(facts: Facts) -> Bins:
    """The window's minutes."""
    readings = facts.readings
    return minutes(facts.grid, readings.start, readings.end, readings.rate_seconds)


def mean_in_bins(facts: Facts, signal: str, row: int, bins: Bins) -> Array:
    """The mean of what was observed in each bin; NaN where it was too little."""
    reading = facts.reading(signal)
    if reading.total is None or reading.count is None:
        return np.full(bins.last.size, np.nan)
    total, count = at_end(reading.total[row], bins), at_end(reading.count[row], bins)
    return np.where(count * facts.readings.rate_seconds >= LEAST_OBSERVATIONS, divide(total, count), np.nan)


def relations(facts: Facts) -> Relations | None:
    """None where nothing was observed in the window."""
    row = busiest(facts)
    if row is None:
        return None
    bins = bins_of(facts)
    only = np.arange(facts.rows) == row
    ttft, times = mean_in_bins(facts, "ttft", row, bins), facts.grid.times[bins.last]
    items = []
    for signal, title, unit, x in (
        ("prompt_length", say("Prompt length, mean"), "tokens", mean_in_bins(facts, "prompt_length", row, bins)),
        ("prefix_cache_hits", say("Prefix cache hits"), "ratio", mean_in(hit_ratio(facts, only), bins)),
    ):
        found = rank_correlation(x, ttft)
        items.append(Relation(signal, title, unit, x, ttft, times, found, _says(found, title, x, ttft)))
    return Relations(facts.readings.replicas[row].name, bins.seconds, tuple(items))


def _says(found: Correlation, title: Message, x: Array, ttft: Array) -> Message:
    """The relation in one plain sentence, with its sample size."""
    if found.rho is None:
        return untold(found, title, x, ttft)
    size = abs(found.rho)
    words = (
        say("No clear relation")
        if size < SOME
        else say("The more of it, the later the first token, clearly")
        if found.rho >= STRONG
        else say("The more of it, the later the first token, somewhat")
        if found.rho > 0
        else say("The more of it, the earlier the first token, clearly")
        if size >= STRONG
        else say("The more of it, the earlier the first token, somewhat")
    )
    return told(found, words)


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
