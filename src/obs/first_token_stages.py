"""Where the first token's time goes: means by stage over all replicas, which add up to the mean time to first token that was measured.

Queue and prefill are measured, but observed when a request finishes, the first token at once. What is neither is the front end's
(tokenization, template, images, IPC); no engine measures it. While requests queue up, the wait of those that have not finished is in
it too, so there it is only called the remainder. The network is the gateway's time less the engine's, and stands on top.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from obs.conditions import hold
from obs.facts import Facts
from obs.series import Array, Mask, divide
from obs.symptoms import PRESSURE
from obs.text import Message
from obs.titles import REMAINDER, STAGES

TITLES: dict[str, Message] = {
    "queue": STAGES["queue"],
    "prefill": STAGES["prefill"],
    "tokenization": STAGES["tokenization"],
    "remainder": REMAINDER,
    "network": STAGES["network"],
}
OVER = 1.1  # times the first token: stages that told more are of requests that began earlier, not of rounding


@dataclass(frozen=True)
class Breakdown:
    """Mean seconds by stage, shape [len(TITLES), steps] in that order; NaN where nothing is known. Without the network they add up to
    `ttft`, the engines' mean. `cut`: where queue and prefill told more than that, and are drawn in proportion."""

    stages: Array
    ttft: Array
    cut: Mask

    def over(self, steps: Mask) -> dict[str, float]:
        """The mean by stage over these steps, each step counted once as a mean of its requests; what nobody measured is left out."""
        found = {}
        for name, values in zip(TITLES, self.stages, strict=True):
            known = steps & np.isfinite(values)
            if known.any() and (name not in ("tokenization", "remainder") or values[known].any()):
                found[name] = float(values[known].mean())
        return found


def breakdown(facts: Facts, rows: Mask) -> Breakdown:
    """The stages of these replicas, [replicas], over the grid."""
    ttft, queue, prefill = (facts.joint_mean(signal, rows) for signal in ("ttft", "queue_time", "prefill_time"))
    told = np.nan_to_num(queue) + np.nan_to_num(prefill)
    known = np.isfinite(ttft)
    share = np.where(told > ttft, np.nan_to_num(divide(ttft, told)), 1.0)
    queue, prefill = (np.where(known, part * share, np.nan) for part in (queue, prefill))
    rest = np.maximum(ttft - told, 0.0)
    apart = np.where(np.isfinite(queue) & np.isfinite(prefill), _free(facts, rows), 0.0)
    stages = np.stack([queue, prefill, rest * apart, rest * (1.0 - apart), _network(facts, rows)])
    return Breakdown(stages, ttft, np.asarray(known & (told > OVER * ttft), dtype=np.bool_))


def _made(facts: Facts, rows: Mask) -> Array:
    """First tokens per second, [chosen replicas, steps]."""
    count = facts.reading("ttft").count
    return np.zeros((int(rows.sum()), facts.grid.count)) if count is None else np.nan_to_num(count[rows])


def _free(facts: Facts, rows: Mask) -> Array:
    """The part of the first tokens that come from replicas without a queue, [steps]: there the rest is the front end's."""
    made = _made(facts, rows)
    queued = hold(facts, next(condition for condition in PRESSURE if condition.id == "waiting")).mask[rows]
    return 1.0 - np.nan_to_num(divide((made * queued).sum(axis=0), made.sum(axis=0)))


def _network(facts: Facts, rows: Mask) -> Array:
    """The time between gateway and engine, weighed by the first tokens of the replicas of which it is known, [steps]."""
    network = facts.network[rows]
    made = np.where(np.isfinite(network), _made(facts, rows), 0.0)
    return divide((np.nan_to_num(network) * made).sum(axis=0), made.sum(axis=0))
