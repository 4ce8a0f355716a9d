"""Row 4's arithmetic: attempts for each request, the budgets, layers that multiply, what is refused, and work that nobody waits for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from obs.evidence import make
from obs.facts import Facts
from obs.series import Array, Mask, total_of
from obs.text import Message, Sentences, say
from obs.verdict import Evidence, Stance

ABANDONED_LEAST = 5.0  # requests: fewer are on their way
ABANDONED_RATIO = 0.3  # of what the engines hold
CANCELLED_RATIO = 0.1  # of the time-outs: fewer aborts, and what timed out still runs


def retry_evidence(facts: Facts, steps: Mask, applies: bool) -> tuple[Evidence, ...]:
    """What the row's own conditions do not say. Figures are those of the worst minute of `steps`, shape [steps]."""
    found = (
        _attempts(facts, steps, applies),
        _layers(facts, steps, applies),
        _refused(facts, steps, applies),
        *_nobody(facts, steps, applies),
    )
    return tuple(evidence for evidence in found if evidence is not None)


def _worst(values: Array, steps: Mask) -> float | None:
    inside = values[..., steps]
    known = inside[np.isfinite(inside)]
    return float(known.max()) if known.size else None


def _stance(holds: bool, applies: bool) -> Stance:
    return Stance.SUPPORTS if holds and applies else Stance.NEUTRAL if holds or applies else Stance.CONTRADICTS


def _attempts(facts: Facts, steps: Mask, applies: bool) -> Evidence | None:
    """Attempts for each original request, against the gateway's own budget."""
    ratio = _worst(facts.retry_ratio, steps)
    if ratio is None:
        return None
    budget = facts.limit("gateway_retry_budget")
    title = say("Attempts per request (gateway budget)")
    return make(
        facts,
        "gateway_attempts",
        title,
        "times",
        _stance(ratio >= budget, applies),
        value=1 + ratio,
        threshold=1 + budget,
        id="amplification",
    )


def _layers(facts: Facts, steps: Mask, applies: bool) -> Evidence | None:
    """The product over the layers that retry: each multiplies what the one before it sends."""
    product = _worst(facts.layers_product, steps)
    if product is None:
        return None
    title = say("Attempts per request over all layers, if one stands behind the other")
    holds = product >= 1 + facts.limit("retry_ratio")
    return make(facts, "gateway_retries", title, "times", _stance(holds, applies), value=product, id="layers")


def _refused(facts: Facts, steps: Mask, applies: bool) -> Evidence | None:
    """Retries that the budget or the circuit breaker refused: it bites."""
    refused = _worst(total_of(facts.values("gateway_retry_overflow"))[None, :], steps)
    if refused is None:
        return None
    title = facts.reading("gateway_retry_overflow").signal.title
    return make(
        facts, "gateway_retry_overflow", title, "per_second", Stance.NEUTRAL if applies or refused else Stance.CONTRADICTS, value=refused
    )


def _nobody(facts: Facts, steps: Mask, applies: bool) -> tuple[Evidence | None, Evidence | None]:
    """What the engines hold beyond what the gateway still holds open, and aborts against time-outs."""
    orphans = _worst(facts.unattended, steps)
    work = _worst(facts.work, steps) or 0.0
    abandoned = None
    if orphans is not None:
        many = orphans >= max(ABANDONED_LEAST, ABANDONED_RATIO * work)
        title = say("Requests in the engines that no gateway holds open")
        abandoned = make(facts, "gateway_active", title, "count", _stance(many, applies), value=orphans, id="abandoned_requests")
    share = _worst(facts.aborts_per_timeout, steps)
    cancelled = None
    if share is not None and facts.has("engine_aborts"):
        title = say("Engine aborts for each time-out")
        few, why = share < CANCELLED_RATIO, facts.reading("engine_aborts").why
        cancelled = make(facts, "engine_aborts", title, "ratio", _stance(few, applies), value=share, threshold=CANCELLED_RATIO)
        if few and why:  # an engine that does not count those who leave shows few, whatever it does
            says = Message("{first}", {"first": Sentences((say("{figure}.", figure=cancelled.says), why))})
            cancelled = replace(cancelled, stance=Stance.NEUTRAL, says=says)
    return abandoned, cancelled
