"""The article's correlation: preemptions against prompt lengths, active sequences and KV use, minute by minute.

Of one replica, the one with most preemptions: between replicas, differences of traffic would look like a relation.
"""

from __future__ import annotations

import numpy as np

from obs import inside
from obs.correlation import SOME, STRONG, Bins, Correlation, at_end, mean_in, minutes, rank_correlation
from obs.facts import Facts
from obs.relation import Relation, Relations, told, untold
from obs.series import Array, divide
from obs.text import Message, say


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
        if known.any() and not (rate[known] > 0).any():
            return say("There were no preemptions: nothing to compare.")
        return untold(found, title, x, rate)
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
    return told(found, words)
