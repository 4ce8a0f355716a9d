"""Whether prefill slows down the tokens of who already streams: the case for chunked prefill.

Minute by minute over all replicas: the slowest tokens (p99 of the inter-token latency) against the prompt tokens that were computed
meanwhile. Only tokens of the very steps in which a long prompt is computed wait for it, so the mean hardly shows it. More running
requests slow tokens down as well, so the same is asked of them, and prefill is blamed where it goes with the latency more closely.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from obs.correlation import SOME, Bins, Correlation, at_end, mean_in, rank_correlation
from obs.facts import Facts
from obs.first_token_relations import bins_of
from obs.histogram import quantile
from obs.relation import told, untold
from obs.series import Array, Mask, total_of
from obs.text import Message, Quantity, say

SLOWEST = 0.99
LEAST_TOKENS = 100  # in a minute: fewer have no slowest hundredth
SLOWER = 2.0  # times the latency of the calm third: less is not worth a change
LEAST_BINS = 3  # minutes in each third


@dataclass(frozen=True)
class Interference:
    """`prefill` (prompt tokens computed per second) against `itl` (seconds), one pair a bin ending at `times`. `itl` is p99 where
    `tail`, else the mean, where no distribution was read. `slower` is its mean in the third of the bins with most prefill over that in
    the third with least; None where it cannot be told."""

    tail: bool
    prefill: Array
    itl: Array
    times: Array
    found: Correlation
    slower: float | None
    says: Message
    advice: Message | None


def interference(facts: Facts) -> Interference | None:
    """None where prompt tokens or inter-token latencies were not observed in the window."""
    if not facts.has("prompt_tokens", "itl"):
        return None
    bins = bins_of(facts)
    tail = "itl" in facts.readings.buckets
    itl, prefill = _latency(facts, bins, tail), at_end(computed(facts), bins)
    running = mean_in(total_of(facts.values("requests_running")), bins)
    found, by_load = rank_correlation(prefill, itl), rank_correlation(running, itl)
    busy, calm = _thirds(prefill, itl)
    slower = None
    if min(busy.sum(), calm.sum()) >= LEAST_BINS:
        slower = float(np.mean(itl[busy]) / np.mean(itl[calm]))
    blamed = found.rho is not None and found.rho >= max(SOME, by_load.rho or 0.0)
    says = _says(found, by_load, prefill, itl)
    advice = _advice(tail, prefill, itl, busy, calm, slower) if slower is not None and slower >= SLOWER and blamed else None
    return Interference(tail, prefill, itl, facts.grid.times[bins.last], found, slower, says, advice)


def computed(facts: Facts) -> Array:
    """Prompt tokens per second that were not found in the prefix cache, over all replicas, [steps]; all where hits are not counted."""
    tokens, hits = facts.values("prompt_tokens"), facts.values("prefix_cache_hits")
    return total_of(np.maximum(tokens - np.nan_to_num(hits), 0.0))


def _latency(facts: Facts, bins: Bins, tail: bool) -> Array:
    """The slowest tokens of each bin where there were enough; else the mean."""
    if not tail:
        return at_end(facts.joint_mean("itl"), bins)
    buckets = facts.readings.buckets["itl"]
    rates = np.nan_to_num(buckets.rates[:, bins.last])
    enough = rates[-1] * facts.readings.rate_seconds >= LEAST_TOKENS
    return np.where(enough, quantile(buckets.bounds, rates, SLOWEST)[0], np.nan)


def _thirds(prefill: Array, itl: Array) -> tuple[Mask, Mask]:
    """The third of the bins with most prefill, and the third with least."""
    known = np.isfinite(prefill) & np.isfinite(itl)
    if not known.any():
        return known, known
    low, high = np.quantile(prefill[known], [1 / 3, 2 / 3])
    return known & (prefill >= high) & (high > low), known & (prefill <= low) & (high > low)


def _says(found: Correlation, by_load: Correlation, prefill: Array, itl: Array) -> Message:
    if found.rho is None:
        return untold(found, say("Prefill"), prefill, itl)
    words = (
        say("Tokens come no later while prompts are computed")
        if found.rho < SOME
        else say("Tokens come later the more prompt tokens are computed")
    )
    sentence = told(found, words)
    if by_load.rho is None or found.rho < SOME:
        return sentence
    rho = Quantity(round(by_load.rho, 2), "count")
    if by_load.rho > found.rho:
        return say("{sentence} They go with the running requests more closely ({rho}).", sentence=sentence, rho=rho)
    return say("{sentence} With the running requests they go less closely ({rho}).", sentence=sentence, rho=rho)


def _advice(tail: bool, prefill: Array, itl: Array, busy: Mask, calm: Mask, slower: float) -> Message:
    """The case for chunked prefill, with this window's figures."""
    values = {
        "much": Quantity(float(np.mean(prefill[busy])), "tokens_per_second"),
        "late": Quantity(float(np.mean(itl[busy])), "seconds"),
        "little": Quantity(float(np.mean(prefill[calm])), "tokens_per_second"),
        "early": Quantity(float(np.mean(itl[calm])), "seconds"),
        "slower": Quantity(slower, "times"),
    }
    figures = (
        say("with {much} of prompts computed the slowest tokens (p99) take {late}, with {little} {early}: {slower} as long", **values)
        if tail
        else say("with {much} of prompts computed a token takes {late}, with {little} {early}: {slower} as long", **values)
    )
    return say("The phases interfere: {figures}. Test chunked prefill, or a smaller chunk.", figures=figures)
