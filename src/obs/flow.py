"""Work in and out of the engines, per second and over all replicas: what arrives, is admitted, completed, rejected.

Engines count what they finish and what they hold, not what they admit. Admitted is therefore counted back: what was finished, failed
or aborted, and by how much the held work grew. Whom the engine does not count (a client that left, on vLLM V1) is missing in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from obs.facts import Facts
from obs.series import Array, Mask, total_of


@dataclass(frozen=True)
class Flow:
    """Per second, [steps] each; NaN where it cannot be told. `arrivals` are the gateway's attempts, else admitted and rejected."""

    arrivals: Array
    at_gateway: bool
    admitted: Array
    completed: Array
    rejected: Array
    held: Array  # running and waiting requests


def flow(facts: Facts) -> Flow:
    """The flow over the grid; each rate looks back over the readings' rate window."""
    completed, rejected = total_of(facts.values("requests_finished")), total_of(facts.values("admission_rejections"))
    admitted = np.maximum(completed + _counted_out(facts) + growth(facts), 0.0)
    at_gateway = facts.has("gateway_attempts")
    arrivals = facts.over_layers("gateway_attempts") if at_gateway else admitted + np.nan_to_num(rejected)
    return Flow(arrivals, at_gateway, admitted, completed, rejected, total_of(facts.working))


def growth(facts: Facts) -> Array:
    """By how much the held work of all replicas grew, per second over the rate window, [steps]. A replica that started in it counts as
    having held nothing before: what the old process held is lost, not finished."""
    steps = facts.grid.steps(facts.readings.rate_seconds)
    before = np.full_like(facts.working, np.nan)
    before[:, steps:] = facts.working[:, :-steps]
    recent = _started_within(facts, steps)
    grown = np.where(recent, np.nan_to_num(facts.working), facts.working - before)
    return total_of(np.where(np.isfinite(facts.working), grown, np.nan)) / (steps * facts.grid.step)


def _started_within(facts: Facts, steps: int) -> Mask:
    clock = np.arange(facts.grid.count)
    last = np.maximum.accumulate(np.where(facts.started, clock, -steps - 1), axis=1)
    return np.asarray(clock - last < steps, dtype=np.bool_)


def _counted_out(facts: Facts) -> Array:
    """Errors and aborts per second: what left without an answer."""
    errors, aborts = (np.nan_to_num(total_of(facts.values(signal))) for signal in ("engine_errors", "engine_aborts"))
    return np.asarray(errors + aborts)


def mean_over(values: Array, steps: Mask) -> float | None:
    """The mean of a rate over these steps; None where none is known."""
    seen = values[steps]
    seen = seen[np.isfinite(seen)]
    return float(seen.mean()) if seen.size else None
