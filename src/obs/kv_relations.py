"""The article's correlation: preemptions against prompt lengths, active sequences and KV use, minute by minute.

Of one replica, the one with most preemptions: between replicas, differences of traffic would look like a relation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from obs import inside
from obs.correlation import SOME, STRONG, Bins, Correlation, at_end, mean_in, minutes, rank_correlation
from obs.facts import Facts
from obs.series import Array, divide
from obs.text import Message, Quantity, say, say_n

FEW = 10  # pairs; with fewer the sentence says so


@dataclass(frozen=True)
class Relation:
    """`x` against preemptions per second, one pair a bin, NaN where either is not known; `times`: Unix seconds of the bins' ends."""

    signal: str
    title: Message
    unit: str
    x: Array
    preemptions: Array
    times: Array
    found: Correlation
    says: Message


@dataclass(frozen=True)
class Relations:
    """The three relations on one replica; `seconds` is a bin's length."""

    replica: str
    seconds: float
    items: tuple[Relation, ...]


def relations(facts: Facts) -> Relations | None:
    """None where preemptions are not measured in the window."""
    window = inside.inside(facts)
    preemptions = facts.values("preemptions")
    if not np.isfinite(preemptions[:, window]).any():
        return None
    row = int(np.nansum(preemptions[:, window], axis=1).argmax())
    readings = facts.readings
    bins = minutes(facts.grid, readings.start, readings.end, readings.rate_seconds)
    rate, times = at_end(preemptions[row], bins), facts.grid.times[bins.last]
    items = []
    for signal, title, unit, x in (
        ("prompt_length", say("Prompt length, mean"), "tokens", _prompts(facts, row, bins)),
        ("requests_running", say("Running requests"), "count", mean_in(facts.values("requests_running")[row], bins)),
        ("kv_use", say("KV cache use"), "ratio", mean_in(facts.values("kv_use")[row], bins)),
    ):
        found = rank_correlation(x, rate)
        items.append(Relation(signal, title, unit, x, rate, times, found, _says(found, title, x, rate)))
    return Relations(readings.replicas[row].name, bins.seconds, tuple(items))


def _prompts(facts: Facts, row: int, bins: Bins) -> Array:
    reading = facts.reading("prompt_length")
    if reading.total is None or reading.count is None:
        return at_end(reading.values[row], bins)
    return divide(at_end(reading.total[row], bins), at_end(reading.count[row], bins))


def _says(found: Correlation, title: Message, x: Array, rate: Array) -> Message:
    """The relation in one plain sentence, with its sample size."""
    if found.rho is None:
        known = np.isfinite(x) & np.isfinite(rate)
        if not known.any():
            return say("{title} was not measured.", title=title)
        if not (rate[known] > 0).any():
            return say("There were no preemptions: nothing to compare.")
        if np.ptp(x[known]) == 0:
            return say("{title} was the same all the time: nothing to compare.", title=title)
        return say_n("{n} pair is too few to compare.", "{n} pairs are too few to compare.", found.n)
    size = abs(found.rho)
    words = (
        say("No clear relation")
        if size < SOME
        else say("Clearly more preemptions with more of it")
        if found.rho >= STRONG
        else say("Somewhat more preemptions with more of it")
        if found.rho > 0
        else say("Fewer preemptions with more of it")
    )
    few = found.n < FEW
    rho = Quantity(round(found.rho, 2), "count")
    if few:
        return say("{words}: rank correlation {rho}, from {n} pairs only.", words=words, rho=rho, n=found.n)
    return say("{words}: rank correlation {rho}, from {n} pairs.", words=words, rho=rho, n=found.n)
