"""What a plan takes from the window: the lengths of sequences that were seen, the model's name, what engines show of themselves; and what
is preset where nobody chose."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from obs import histogram, inside
from obs.errors import CallError
from obs.facts import Facts
from obs.gpu_use import Use
from obs.histogram import Bounded, Side
from obs.memory.choice import GIVEN, MEASURED, Choice
from obs.memory.compare import Live, live_from_labels
from obs.memory.figure import GIB
from obs.memory.kv import KvCache
from obs.memory.listed import Gpu, gpu, gpus, models
from obs.memory.setup import Length, Setup, default_limits, given_gpu, listed_gpu, measured_gpu
from obs.memory.split import Parallel
from obs.seen import Shown
from obs.text import say

EXAMPLE, _CARD = "llama-3.1-70b", "h100-80gb"  # where nothing tells what runs
_SEVERAL = 5e10  # parameters from which a model is preset on several GPUs
_OTHERS = {"mini", "nano", "tiny", "lite", "distill", "draft", "flash", "air", "vl", "vision", "coder", "embedding", "reranker"}


def preset(facts: Facts, use: Use | None) -> Choice:
    """What runs as far as the window shows it, else an example."""
    share = level(facts, "gpu_memory_share")
    measured = use is not None and use.total is not None
    chosen = Choice(
        guessed(facts) or EXAMPLE, MEASURED if measured else _CARD, share=min(1.0, max(0.01, 0.9 if share is None else round(share, 3))),
        at_once=running(facts),
    )  # fmt: skip
    return of_card(of_model(chosen), use)


def of_model(chosen: Choice) -> Choice:
    """The choice with what its model presets; as it is where that is none."""
    try:
        shape = chosen.shape
    except CallError:
        return chosen
    return replace(chosen, tensor=4 if shape.parameters > _SEVERAL else 1, longest=shape.context or 4096)


def of_card(chosen: Choice, use: Use | None) -> Choice:
    """The choice with the limits that its engine would set on its card."""
    card = _card(chosen, use)
    tokens, seqs = default_limits(card) if card is not None else (8192, 256)
    return replace(chosen, tokens=tokens, seqs=seqs)


def _card(chosen: Choice, use: Use | None) -> Gpu | None:
    if chosen.gpu == MEASURED:
        total = use.total if use is not None else None
        return min(gpus().values(), key=lambda card: abs(card.gib * GIB - total)) if total is not None else None
    return None if chosen.gpu == GIVEN else gpu(chosen.gpu)


def setup(chosen: Choice, facts: Facts, use: Use | None) -> Setup:
    """The deployment that a choice means in this window. Raises `CallError`."""
    if chosen.gpu == MEASURED:
        if use is None or use.total is None:
            raise CallError(say("The plan is for the GPU as it was measured, and no exporter shows it in this window. Choose a GPU."))
        memory = measured_gpu(use.total)
    else:
        memory = given_gpu(chosen.gib) if chosen.gpu == GIVEN else listed_gpu(gpu(chosen.gpu))
    return Setup(
        chosen.shape, memory, weights=chosen.weights, kv=KvCache(chosen.kv), parallel=Parallel(chosen.tensor, chosen.pipeline),
        gpu_memory_utilization=chosen.share, max_num_batched_tokens=chosen.tokens, max_num_seqs=chosen.seqs, max_model_len=chosen.longest,
        lengths=lengths(facts), sequences=chosen.at_once,
    )  # fmt: skip


def names(facts: Facts) -> tuple[str, ...]:
    """What the engines in view call their models."""
    return tuple(dict.fromkeys(replica.model for replica in facts.readings.replicas if replica.model))


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


def engine(infos: Iterable[Shown], facts: Facts) -> Live:
    """What the engine with the smallest KV cache tells of it by its labels; what they do not tell is as it is measured, or not known."""
    told = [live_from_labels(shown.labels) for shown in infos if shown.metric.endswith("cache_config_info")]
    least = min(told, key=lambda live: live.capacity_tokens or math.inf, default=Live())
    return least if least.utilization is not None else replace(least, utilization=level(facts, "gpu_memory_share"))


def level(facts: Facts, signal: str) -> float | None:
    """The lowest figure of any replica in the window: what the tightest one has."""
    values = facts.values(signal)[:, inside.inside(facts)]
    return float(np.nanmin(values)) if np.isfinite(values).any() else None


def guessed(facts: Facts) -> str | None:
    """The listed model that the engines' model name means, its id; None where it fits none or several. "Qwen/Qwen3-32B-AWQ" is Qwen3
    32B; what is called a mini or a distillation of a model is another one."""
    found = names(facts)
    if len(found) != 1:
        return None
    words = _words(found[0])
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
