"""What the gateways sent and sent again, what came of it in the engines, and what was made for nobody. Arrays of shape [steps]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from obs.facts import Facts
from obs.series import Array, Mask, total_of

_USED_UP = ("limit_exceeded", "exhausted", "URX", "failed_fallbacks")  # what gateways call retries that are used up; the rest was refused
SAME_TOKENS = 1e-3  # of the tokens made: as many were delivered
MOST_STEPS = 0.95


@dataclass(frozen=True)
class Layer:
    """One system that retries (all its rows together), per second. `retries` is NaN where it does not tell them."""

    system: str
    attempts: Array
    retries: Array

    @property
    def originals(self) -> Array:
        """The requests before any retry."""
        return np.maximum(self.attempts - self.retries, 0.0)


def layers(facts: Facts) -> tuple[Layer, ...]:
    """The gateways of the view by system. Systems may stand one behind the other, so they are never added up."""
    reading = facts.reading("gateway_attempts")
    if not reading.present:
        return ()
    systems = facts.systems("gateway_attempts")
    attempts, retries = facts.values("gateway_attempts"), facts.values("gateway_retries")
    found = []
    for system in sorted(set(systems.values())):
        mine = np.array([systems.get(key) == system for key in facts.gateways])
        found.append(Layer(system, total_of(attempts[mine]), total_of(retries[mine])))
    return tuple(found)


def refused(facts: Facts) -> tuple[Array, Array]:
    """Retries per second that a budget or circuit breaker refused, and those that were used up; NaN where neither is told."""
    reading = facts.reading("gateway_retry_overflow")
    parts = reading.parts or {reading.metric or "": reading.values}
    nothing = np.full(facts.grid.count, np.nan)
    kinds: list[Array] = []
    for wanted in (False, True):
        mine = [total_of(values) for name, values in parts.items() if any(word in name for word in _USED_UP) is wanted]
        kinds.append(total_of(np.stack(mine)) if mine else nothing)
    return kinds[0], kinds[1]


@dataclass(frozen=True)
class Tokens:
    """Generated tokens per second of all replicas: those that reached somebody or still may, and those made for nobody."""

    useful: Array
    wasted: Array

    def ratio(self, steps: Mask) -> float | None:
        """The part made for nobody in these steps; None where nothing is known."""
        made = np.nansum((self.useful + self.wasted)[steps])
        return float(np.nansum(self.wasted[steps]) / made) if made > 0 else None


def at_finish(facts: Facts) -> Mask:
    """Replicas that count their tokens only when a request is finished, [replicas]: never one more than what was delivered, so that these
    counters cannot tell of waste. SGLang did so before its realtime counter."""
    delivered = facts.reading("output_length").total
    made = facts.values("generation_tokens")
    if delivered is None:
        return np.zeros(facts.rows, dtype=np.bool_)
    known = np.isfinite(made) & np.isfinite(delivered) & (made > 0)
    same = known & (np.abs(made - np.nan_to_num(delivered)) <= SAME_TOKENS * np.maximum(np.nan_to_num(made), 1e-9))
    return np.asarray(same.sum(axis=1) > MOST_STEPS * np.maximum(known.sum(axis=1), 1), dtype=np.bool_)


def tokens(facts: Facts) -> Tokens:
    """By the share that no finished and no running request accounts for, of the replicas that count tokens while they are made."""
    made = np.where(at_finish(facts)[:, None], np.nan, facts.values("generation_tokens"))
    made = np.where(np.isfinite(facts.waste), made, np.nan)
    return Tokens(total_of(made * (1.0 - facts.waste)), total_of(made * facts.waste))


def failing(facts: Facts, steps: Mask) -> float | None:
    """The part of the attempts that fail: time-outs and other 5xx answers, and at least those that were retried; None where not told."""
    attempts = facts.over_layers("gateway_attempts")[steps]
    sent = np.nansum(attempts)
    if not np.isfinite(attempts).any() or sent <= 0:
        return None
    late, errors, again = (
        float(np.nansum(facts.over_layers(signal)[steps])) for signal in ("gateway_timeouts", "gateway_errors", "gateway_retries")
    )
    return float(np.clip(max(late + max(errors - late, 0.0), again) / sent, 0.0, 1.0))
