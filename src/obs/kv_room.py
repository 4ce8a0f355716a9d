"""What the KV cache allows: requests of the lengths seen in the window that one replica's capacity holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from obs import histogram, inside
from obs.facts import Facts
from obs.histogram import Bounded
from obs.text import Message, say


@dataclass(frozen=True)
class Fit:
    """Prompts of one length: how many one replica holds when each has its prompt alone, and when each has its whole answer too.

    A request holds its prompt from the start and one token more with every step, so the truth wanders from the first to the second.
    """

    title: Message
    length: Bounded  # tokens of the prompt
    by_prompt: float
    with_answer: float | None


@dataclass(frozen=True)
class Room:
    """`capacity`: tokens of the smallest replica. `answer`: mean tokens of an answer in the window, None where not measured."""

    capacity: float
    answer: float | None
    fits: tuple[Fit, ...]


def room(facts: Facts) -> Room | None:
    """None where the capacity is not known, or no prompt's length was observed."""
    window = inside.inside(facts)
    capacity = facts.values("kv_capacity_tokens")[:, window]
    if not np.isfinite(capacity).any():
        return None
    smallest, answer = float(np.nanmin(capacity)), inside.mean(facts, "output_length")
    fits = tuple(_fit(title, length, smallest, answer) for title, length in _lengths(facts))
    return Room(smallest, answer, fits) if fits else None


def _fit(title: Message, length: Bounded, capacity: float, answer: float | None) -> Fit:
    whole = capacity // (length.value + answer) if answer is not None else None
    return Fit(title, length, float(capacity // max(length.value, 1.0)), whole)


def _lengths(facts: Facts) -> list[tuple[Message, Bounded]]:
    window, buckets = inside.inside(facts), facts.readings.buckets.get("prompt_length")
    found: list[tuple[Message, Bounded | None]] = []
    if buckets is not None:
        found = [
            (say("half of the prompts (p50)"), histogram.over(buckets, window, 0.5)),
            (say("95 % of the prompts (p95)"), histogram.over(buckets, window, 0.95)),
            (say("the longest prompt"), histogram.longest(buckets, window)),
        ]
    else:
        mean = inside.mean(facts, "prompt_length")
        found = [(say("the mean prompt"), Bounded(mean, histogram.Side.WITHIN) if mean is not None else None)]
    return [(title, length) for title, length in found if length is not None]
