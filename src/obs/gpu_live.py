"""What a plan takes from the window: the lengths of sequences that were seen, the model's name, what engines show of themselves."""

from __future__ import annotations

import re

import numpy as np

from obs import histogram, inside
from obs.facts import Facts
from obs.histogram import Bounded, Side
from obs.memory.listed import models
from obs.memory.setup import Length

_OTHERS = {"mini", "nano", "tiny", "lite", "distill", "draft", "flash", "air", "vl", "vision", "coder", "embedding", "reranker"}


def lengths(facts: Facts) -> tuple[Length, ...]:
    """Prompt lengths of the window at p50, p95 and the longest, each with the mean answer: a sequence holds both. The mean alone where
    there are no buckets; empty where nothing was observed. Lengths are bounds where the buckets tell no more: the label says so."""
    window, buckets = inside.inside(facts), facts.readings.buckets.get("prompt_length")
    answer = inside.mean(facts, "output_length") or 0.0
    if buckets is None:
        mean = inside.mean(facts, "prompt_length")
        return (Length("mean", mean + answer),) if mean is not None else ()
    found = (("p50", histogram.over(buckets, window, 0.5)), ("p95", histogram.over(buckets, window, 0.95)),
             ("max", histogram.longest(buckets, window)))  # fmt: skip
    return tuple(Length(_label(label, length), length.value + answer) for label, length in found if length is not None)


def _label(label: str, length: Bounded) -> str:
    return {Side.AT_MOST: f"{label} ≤", Side.MORE_THAN: f"{label} >", Side.WITHIN: label}[length.side]


def running(facts: Facts) -> int:
    """The most sequences that ran at once on one replica; 1 where it is not known."""
    peak = inside.peak(facts.values("requests_running"), inside.inside(facts))
    return max(1, round(peak)) if peak is not None else 1


def level(facts: Facts, signal: str) -> float | None:
    """The lowest figure of any replica in the window: what the tightest one has."""
    values = facts.values(signal)[:, inside.inside(facts)]
    return float(np.nanmin(values)) if np.isfinite(values).any() else None


def guessed(facts: Facts) -> str | None:
    """The listed model that the engines' model name means, its id; None where it fits none or several. "Qwen/Qwen3-32B-AWQ" is Qwen3
    32B; what is called a mini or a distillation of a model is another one."""
    names = {replica.model for replica in facts.readings.replicas if replica.model}
    if len(names) != 1:
        return None
    words = _words(names.pop())
    if _OTHERS & set(words):
        return None
    fits = [id_ for id_ in models() if (wanted := _words(id_)) and _in_order(wanted, words)]
    longest = max((len(_words(id_)) for id_ in fits), default=0)
    best = [id_ for id_ in fits if len(_words(id_)) == longest]
    return best[0] if len(best) == 1 else None


def _in_order(wanted: list[str], words: list[str]) -> bool:
    rest = iter(words)
    return all(word in rest for word in wanted)


def _words(name: str) -> list[str]:
    """Runs of letters and of figures: "llama-3.1-70b" and "Meta-Llama-3.1-70B-Instruct" share llama, 3, 1, 70, b."""
    return re.findall(r"[a-z]+|\d+", name.lower().rpartition("/")[2])
