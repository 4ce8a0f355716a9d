"""Which stage makes the first token slow: the stage whose mean rose most over its own baseline.

Means only: TTFT = queue + prefill + remainder, and the gateway's first token less the engine's is the network. The queue and
prefill histograms are observed when a request finishes, TTFT at its first token: while a queue grows, the wait stands in the
remainder first. So where requests queue up, the remainder is the queue's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from obs.baseline import Blocks, usual
from obs.facts import Facts
from obs.series import Array, Mask, divide
from obs.symptoms import STAGES


@dataclass(frozen=True)
class Stages:
    """Means, what is usual of them, and rises over it by stage, [replicas, steps] each, seconds; NaN where a stage is not measured.
    `queued`: where more requests wait than is usual, so that the remainder is no stage of its own."""

    means: tuple[Array, ...]
    usual: tuple[Blocks, ...]
    rises: Array  # [len(STAGES), replicas, steps]
    queued: Mask

    def share(self, rise: Array) -> Array:
        """The slowest stage's part of `rise`, the first token's own, or of all stages' rises if that is more. Seconds."""
        known = np.nan_to_num(self.rises)
        total = np.maximum(known.sum(axis=0), rise)
        return np.nan_to_num(divide(known.max(axis=0), total))

    def leading(self, mask: Mask) -> tuple[str | None, float]:
        """The stage that takes most of the rise where `mask` is true, and its share of the rises."""
        sums = np.where(mask[None], np.nan_to_num(self.rises), 0.0).sum(axis=(1, 2))
        if sums.sum() <= 0:
            return None, 0.0
        best = int(sums.argmax())
        return STAGES[best], float(sums[best] / sums.sum())


def stages(facts: Facts, queued: Mask) -> Stages:
    """The stages of the first token. `queued`: where more requests wait than is usual."""
    queue, prefill, rest = facts.mean("queue_time"), facts.mean("prefill_time"), facts.remainder
    means = (queue, rest, prefill, facts.network)
    base = tuple(_usual(facts, stage) for stage in means)
    rises = np.empty((len(means), facts.rows, facts.grid.count))
    for rise, mean, blocks in zip(rises, means, base, strict=True):
        before = blocks.steps()
        np.maximum(mean - np.where(np.isfinite(before), before, 0.0), 0.0, out=rise)
    rises[0] = np.where(queued, np.nan_to_num(rises[0]) + np.nan_to_num(rises[1]), rises[0])
    rises[1] = np.where(queued, 0.0, rises[1])
    return Stages(means, base, rises, queued)


def _usual(facts: Facts, values: Array) -> Blocks:
    """A stage's baseline: out of line is twice the usual and the rise that counts for a first token."""
    ratio, rise, absolute = facts.limit("ttft_ratio"), facts.limit("ttft_rise") / 2, facts.limit("ttft_limit")
    return usual(values, facts.grid, lambda base: np.where(np.isfinite(base), np.maximum(base * ratio, base + rise), absolute))
