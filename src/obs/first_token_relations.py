"""What goes with the time to first token: prompt length and prefix-cache hits, minute by minute, on one replica.

Of one replica, the one on which most time was waited: between replicas, differences of traffic would look like a relation.
"""

from __future__ import annotations

import numpy as np

from obs import inside
from obs.correlation import SOME, STRONG, Bins, Correlation, at_end, mean_in, minutes, rank_correlation
from obs.facts import Facts
from obs.first_token_figures import hit_ratio
from obs.means import LEAST_OBSERVATIONS
from obs.relation import Relation, Relations, told, untold
from obs.series import Array, divide
from obs.text import Message, say


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
