"""Which replica stands far from the median of all, in which figure, and when: the odd one of a fleet, before any row applies to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from obs import inside
from obs.facts import Facts
from obs.series import Array, Mask, median, runs, settle
from obs.signals import Kind, Signal
from obs.text import Message, Quantity, say

LEAST_REPLICAS = 3  # of two, nobody can tell which is the odd one
BLOCK_SECONDS = 60.0  # levels are averaged over this long: a scrape is a moment
MOST_BLOCKS = 240  # of a window; longer ones have longer blocks
HOLD_SECONDS = 300.0  # as for an imbalance: shorter is chance
GAP_SECONDS = 60.0
SPREAD = 6.0  # times the median distance from the median (four standard deviations of a bell): ordinary spread is none


@dataclass(frozen=True)
class Rule:
    """How far is far: at least `least` away (a threshold's name, or a figure), and `times` the median or more; or, where `low`, as many
    times less."""

    signal: str
    least: str | float
    times: float
    low: bool = False


RULES = (
    Rule("kv_use", "imbalance", 1.5),
    Rule("requests_waiting", "waiting", 2.0),
    Rule("preemptions", "preemptions", 3.0),
    Rule("ttft", "ttft_rise", 2.0),
    Rule("queue_time", "latency_rise", 2.0),
    Rule("itl", "itl_rise", 1.5),
    Rule("e2e_latency", "latency_rise", 2.0),
    Rule("requests_running", 4.0, 2.0),
    Rule("generation_tokens", 10.0, 2.0, low=True),
    Rule("gpu_memory", 0.1, 1.1),
)


@dataclass(frozen=True)
class Outlier:
    """One replica's figure over its longest stretch away from the median, and the median of all meanwhile. Unix seconds; `end` None = it
    lasts."""

    replica: str
    signal: Signal
    value: float
    usual: float
    start: float
    end: float | None

    @property
    def says(self) -> Message:
        """The figure against the median."""
        value, usual = Quantity(self.value, self.signal.unit), Quantity(self.usual, self.signal.unit)
        return say("{title} {value}, the median of all {usual}", title=self.signal.title, value=value, usual=usual)

    @property
    def distance(self) -> float:
        """How many times apart the two are: what orders outliers of different signals."""
        high, low = max(self.value, self.usual), min(self.value, self.usual)
        return high / max(low, high / 100.0) if high > 0 else 1.0


def outliers(facts: Facts) -> tuple[Outlier, ...]:
    """The worst of each replica, farthest first; of no more than half of the replicas by construction. Empty below three replicas."""
    if facts.rows < LEAST_REPLICAS:
        return ()
    found: dict[str, Outlier] = {}
    for rule in RULES:
        for outlier in _of(facts, rule):
            if outlier.replica not in found or outlier.distance > found[outlier.replica].distance:
                found[outlier.replica] = outlier
    return tuple(sorted(found.values(), key=lambda o: (-o.distance, o.replica)))


def _of(facts: Facts, rule: Rule) -> Iterator[Outlier]:
    values, times, seconds = _blocks(facts, rule.signal)
    enough = np.isfinite(values).sum(axis=0) >= LEAST_REPLICAS
    if not enough.any():
        return
    middle = median(values.T)
    spread = median(np.abs(values - middle).T)
    least = facts.limit(rule.least) if isinstance(rule.least, str) else rule.least
    away = (middle - values) if rule.low else (values - middle)
    with np.errstate(invalid="ignore"):
        several = values * rule.times <= middle if rule.low else values >= rule.times * middle
        far = (away >= least) & several & (away > SPREAD * spread) & enough
    hold = max(1, int(np.ceil(min(HOLD_SECONDS, _window(facts) / 2) / seconds)))
    for row in np.flatnonzero((held := settle(far, hold, int(GAP_SECONDS // seconds))).any(axis=1)):
        first, last = max(runs(held[row]), key=lambda run: run[1] - run[0])
        steps = slice(first, last + 1)
        end = None if last == len(times) - 1 else float(times[last]) + seconds
        yield Outlier(
            facts.readings.replicas[row].name, facts.reading(rule.signal).signal,
            float(np.nanmean(values[row, steps])), float(np.nanmean(middle[steps])), float(times[first]), end,
        )  # fmt: skip


def _window(facts: Facts) -> float:
    return facts.readings.end - facts.readings.start


def _blocks(facts: Facts, signal: str) -> tuple[Array, Array, float]:
    """The figure of each replica in each block of the window, [replicas, blocks], where each begins, and how long it is. A level is
    averaged; a mean is the one at the block's end, which looks back by itself, so that no mean is made of means."""
    window: Mask = inside.inside(facts)
    chunk = max(1, int(np.ceil(max(BLOCK_SECONDS, _window(facts) / MOST_BLOCKS) / facts.grid.step)))
    mean = facts.reading(signal).signal.kind is Kind.MEAN
    whole = facts.mean(signal) if mean else facts.values(signal)
    values = np.where(facts.excused, np.nan, whole)[:, window]
    times = facts.grid.times[window]
    count = max(1, values.shape[1] // chunk)
    cut = values[:, values.shape[1] - count * chunk :] if values.shape[1] >= chunk else values
    shaped = cut.reshape(len(cut), count, -1)
    starts = times[len(times) - cut.shape[1] :][:: shaped.shape[2]]
    if mean:
        return shaped[:, :, -1], starts, shaped.shape[2] * facts.grid.step
    known = np.isfinite(shaped)
    total = np.where(known, shaped, 0.0).sum(axis=2)
    seen = known.sum(axis=2)
    return np.where(seen > 0, total / np.maximum(seen, 1), np.nan), starts, shaped.shape[2] * facts.grid.step
