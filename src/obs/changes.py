"""The table's last column: the change to test, with this window's figures, and the article's caveats to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from obs.facts import Facts
from obs.series import Mask
from obs.text import Message, Names, Quantity, say
from obs.verdict import Change, Evidence, Stance

FAR = 3.0  # times a finished request's length: what runs is longer, or the space is not theirs
_OFFLOAD = say("Moving KV data to CPU or disk adds transfers, and does not guarantee that an oversized request fits.")
_QUEUE = say("A longer queue delays rejection; it creates no capacity.")
_ONE_LAYER = say("One layer owns the retries: gateway and client retries multiply.")

STAGE_CHANGES = {
    "queue": say("Fix the slow stage, the queue: lower admission concurrency, or more measured capacity"),
    "tokenization": say("Fix the slow stage, tokenization and front end: shorter prompts or more front-end processes"),
    "prefill": say("Fix the slow stage, prefill: test chunked prefill if the phases interfere, or shorter prompts"),
    "network": say("Fix the slow stage, the network: look at what lies between gateway and engine"),
}


def changes(facts: Facts, row: str, steps: Mask, stage: str | None, evidence: Sequence[Evidence]) -> tuple[Change, ...]:
    """What to test for a row; the figures are those of `steps`."""
    if row == "gpu_oom":
        caveat = say("A full KV pool asks for more memory, an out-of-memory error for less: do not turn both knobs at once.")
        return (Change(say("Smaller active batch, shorter limits, or supported quantization"), _longest(facts, steps), (caveat,)),)
    if row == "latency_without_errors":
        return (
            Change(
                say("Lower admission concurrency, or more measured capacity"),
                _room(facts, steps),
                (_QUEUE, _memory(facts, steps), _OFFLOAD),
            ),
        )
    if row == "slow_first_token":
        title = STAGE_CHANGES[stage] if stage else say("Fix the slow stage; test chunked prefill if the phases interfere")
        return (Change(title, None, (_QUEUE,) if stage == "queue" else ()),)
    return (Change(say("Bounded retries, and cancellation of abandoned work"), _retries(evidence), (_ONE_LAYER, _CANCEL)),)


_CANCEL = say("Verify that generation stops when the caller leaves, and load-test it.")


def _median(facts: Facts, signal: str, steps: Mask, mean: bool = False) -> float:
    values = (facts.mean(signal) if mean else facts.values(signal))[:, steps]
    known = values[np.isfinite(values)]
    return float(np.median(known)) if known.size else float("nan")


def overfilled(facts: Facts, steps: Mask) -> Message | None:
    """That a KV pool was full with far fewer requests than it holds by the lengths seen: those are of finished ones, and what fills it
    has not finished. None where that is not so, or the capacity or a length is not known."""
    found = []
    capacities, running, use = (facts.values(signal) for signal in ("kv_capacity_tokens", "requests_running", "kv_use"))
    lengths = facts.mean("prompt_length") + facts.mean("output_length")
    for row, replica in enumerate(facts.readings.replicas):
        known = np.isfinite(capacities[row]) & np.isfinite(running[row]) & (running[row] >= 1)
        full = steps & known & (use[row] >= facts.limit("kv_use"))
        length = lengths[row, steps & np.isfinite(lengths[row])]
        if not full.any() or not length.size:
            continue
        ran, capacity = float(np.median(running[row, full])), float(np.median(capacities[row, full]))
        each = float(np.median(use[row, full])) * capacity / ran
        if each >= FAR * np.median(length):
            found.append((int(full.sum()), replica.name, ran, each, float(np.median(length)), capacity))
    if not found:
        return None
    _, name, ran, each, mean, capacity = max(found)
    return say(
        "The KV cache of {name} was full while {running} ran: that is about {each} for each of them, and a finished request has {length}. "
        "So find out which requests are so long, or what else holds the {capacity}.",
        name=Names((name,)), running=Quantity(ran, "count"), each=Quantity(each, "tokens"), length=Quantity(mean, "tokens"),
        capacity=Quantity(capacity, "tokens"),
    )  # fmt: skip


def _room(facts: Facts, steps: Mask) -> Message | None:
    """How many requests of the lengths seen one replica's KV space holds, against what it was given."""
    if other := overfilled(facts, steps):
        return other
    capacity = _median(facts, "kv_capacity_tokens", steps)
    length = _median(facts, "prompt_length", steps, mean=True) + _median(facts, "output_length", steps, mean=True)
    if not (np.isfinite(capacity) and np.isfinite(length) and length > 0):
        return None
    held = facts.working[:, steps]
    most = float(np.nanmax(held)) if np.isfinite(held).any() else float("nan")
    return say(
        "A replica holds about {fit} requests of this length ({length} each, {capacity} in all); up to {most} ran or waited at once.",
        fit=Quantity(max(1.0, capacity // length), "count"), length=Quantity(length, "tokens"), capacity=Quantity(capacity, "tokens"),
        most=Quantity(most, "count"),
    )  # fmt: skip


def _memory(facts: Facts, steps: Mask) -> Message:
    free = facts.values("gpu_memory_free")[:, steps]
    if not np.isfinite(free).any():
        return say("More GPU memory utilization only if the other allocations still fit.")
    least = Quantity(float(np.nanmin(free)), "bytes")
    return say("More GPU memory utilization only if the other allocations still fit: {free} is free.", free=least)


def _longest(facts: Facts, steps: Mask) -> Message | None:
    lengths = facts.mean("prompt_length")[:, steps]
    if not np.isfinite(lengths).any():
        return None
    return say("Mean prompt length reached {length}.", length=Quantity(float(np.nanmax(lengths)), "tokens"))


def _retries(evidence: Sequence[Evidence]) -> Message | None:
    ratio = next((e for e in evidence if e.signal == "retry_ratio" and e.stance is Stance.SUPPORTS), None)
    if ratio is None or ratio.value is None:
        return None
    return say(
        "Each request became {attempts} attempts at the worst; a budget of {budget} would have allowed {allowed}.",
        attempts=Quantity(1 + ratio.value, "times"), budget=Quantity(0.10, "ratio"), allowed=Quantity(1.10, "times"),
    )  # fmt: skip
