"""Two windows, figure by figure: what a signal was, what it is, how surely they differ, and by how many minutes that is told.

One line a signal over all replicas, minute by minute: the worst replica of what is a share of something (a full pool is not averaged
away), the sum of counts and rates, and of means the sum over all requests by their number. The effect size is Cliff's delta: how much
likelier a minute of the one window is above a minute of the other than below it; 0 means no difference, 1 and -1 none in common.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from obs import inside
from obs.correlation import Bins, at_end, mean_in, minutes, ranks
from obs.facts import Facts
from obs.flow import flow
from obs.series import Array, divide, total_of, worst
from obs.signals import SIGNALS, Kind, Level
from obs.text import Message, say

LEAST_MINUTES = 5  # in each window: of fewer nothing is said
LARGE, SOME = 0.474, 0.33  # the usual readings of Cliff's delta (Romano et al. 2006): large, medium
LEAST_CHANGE = 0.1  # of the larger of the two: less is no change that a person would act on
FEW_REQUESTS = 20  # under a mean: of fewer, it is chance

LEFT_OUT = frozenset({
    "counter_resets", "up", "scrape_duration", "container_restarts", "container_oom_killed", "gpu_oom_events", "gpu_xid",
    "host_oom_kills", "container_image", "kv_capacity_tokens", "gpu_memory_free", "gpu_memory_total",
})  # fmt: skip
"""Not levels of work: what happened is told by the findings, and what is set by the configuration."""


@dataclass(frozen=True)
class Derived:
    """A figure that the rules make of several signals."""

    title: Message
    unit: str
    figure: Callable[[Facts], Array]


DERIVED: Mapping[str, Derived] = {
    "arrivals": Derived(say("Requests, retries aside"), "per_second", lambda f: _arrivals(f)),
    "ttft_remainder": Derived(say("Remainder of the first token, mean"), "seconds", lambda f: f.remainder),
    "network_time": Derived(say("Network, mean"), "seconds", lambda f: f.network),
    "retry_ratio": Derived(say("Retries per request"), "ratio", lambda f: f.retry_ratio),
    "error_ratio": Derived(say("Errors, time-outs aside"), "ratio", lambda f: f.error_ratio),
    "waste": Derived(say("Tokens made for nobody"), "ratio", lambda f: f.fleet_waste),
}


@dataclass(frozen=True)
class Contrast:
    """One figure in both windows. `before` and `after` are None where it was not measured; `effect` where too few minutes were."""

    id: str
    title: Message
    unit: str
    before: float | None
    after: float | None
    effect: float | None
    minutes: tuple[int, int]  # that the effect rests on: in the other window, in this one

    @property
    def change(self) -> float | None:
        """The difference as a part of the larger of the two, -1 to 1; None where one is missing, 0 where both are 0."""
        if self.before is None or self.after is None:
            return None
        return (self.after - self.before) / max(abs(self.before), abs(self.after), 1e-12)

    @property
    def chance(self) -> float:
        """The effect that 19 of 20 pairs of alike windows with so many minutes stay under (Mann-Whitney, no ties)."""
        n, m = self.minutes
        return 1.96 * ((n + m + 1) / (3 * n * m)) ** 0.5 if n and m else 1.0

    @property
    def moved(self) -> int:
        """1 up, -1 down, 0 neither: by an effect that is neither small nor chance, and a change that is not small."""
        if self.effect is None or self.change is None:
            return 0
        if abs(self.effect) < max(SOME, self.chance) or abs(self.change) < LEAST_CHANGE:
            return 0
        return 1 if self.change > 0 else -1

    @property
    def weight(self) -> float:
        """How much it changed, for the order."""
        return abs(self.effect or 0.0) * abs(self.change or 0.0)


def contrasts(before: Facts, after: Facts) -> tuple[Contrast, ...]:
    """Every figure that either window has, what changed most first."""
    ids = [id_ for id_ in SIGNALS if id_ not in LEFT_OUT] + list(DERIVED)
    found = [contrast(id_, before, after) for id_ in ids]
    return tuple(sorted((c for c in found if c.before is not None or c.after is not None), key=lambda c: -c.weight))


def contrast(id_: str, before: Facts, after: Facts) -> Contrast:
    """One figure in both windows."""
    title, unit = (DERIVED[id_].title, DERIVED[id_].unit) if id_ in DERIVED else (SIGNALS[id_].title, SIGNALS[id_].unit)
    lines = [by_minute(facts, id_) for facts in (before, after)]
    enough = min(len(line) for line in lines) >= LEAST_MINUTES
    effect = cliffs_delta(lines[0], lines[1]) if enough else None
    return Contrast(id_, title, unit, level(before, id_), level(after, id_), effect, (len(lines[0]), len(lines[1])))


def by_minute(facts: Facts, id_: str) -> Array:
    """The figure of each minute of the window that has one, in the figure's unit and the order of time."""
    bins = minutes(facts.grid, facts.readings.start, facts.readings.end, facts.readings.rate_seconds)
    line = _line(facts, id_, bins)
    return line[np.isfinite(line)]


def level(facts: Facts, id_: str) -> float | None:
    """The figure of the window in its unit: of means over all its requests, else the median minute. None where nothing was measured."""
    if id_ in SIGNALS and facts.reading(id_).total is not None:
        return inside.mean(facts, id_)
    line = by_minute(facts, id_)
    return float(np.median(line)) if line.size else None


def requests(facts: Facts) -> float | None:
    """How many requests were finished in the window; None where nobody counted."""
    return inside.counted(facts.values("requests_finished"), inside.inside(facts), facts.grid.step)


def _arrivals(facts: Facts) -> Array:
    """What callers ask for, [1, steps]: attempts less retries at the gateways, else what the engines admit."""
    arrivals = flow(facts).arrivals
    if facts.has("gateway_attempts"):
        arrivals = np.maximum(arrivals - np.nan_to_num(total_of(facts.values("gateway_retries"))), 0.0)
    return arrivals[None, :]


def _line(facts: Facts, id_: str, bins: Bins) -> Array:
    if id_ in DERIVED:
        return mean_in(worst(DERIVED[id_].figure(facts)), bins)
    signal, reading = SIGNALS[id_], facts.reading(id_)
    if reading.total is not None:
        total, count = facts.summed(id_)
        return divide(at_end(total[0], bins), at_end(count[0], bins))
    values = facts.values(id_)
    if signal.unit in ("ratio", "state") or (signal.kind is Kind.MEAN and signal.level is Level.REPLICA):
        return mean_in(worst(values), bins)
    return at_end(total_of(values), bins) if signal.kind is Kind.RATE else mean_in(total_of(values), bins)


def cliffs_delta(before: Array, after: Array) -> float:
    """P(after > before) - P(after < before), from ranks: -1 to 1. Both need at least one value, none of them NaN."""
    n, m = len(before), len(after)
    higher = ranks(np.concatenate([before, after]))[n:].sum() - m * (m + 1) / 2  # pairs in which `after` is above, ties half
    return float(2 * higher / (n * m) - 1)
