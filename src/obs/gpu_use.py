"""What fills the GPU of one replica: what its exporter and its engine show, what a model's shape adds, and which of it is which."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from obs import inside
from obs.facts import Facts
from obs.memory.figure import Band, Figure, Origin
from obs.memory.plan import Plan
from obs.text import Message, say

_SPLIT = ("weights_memory", "kv_memory", "graph_memory")


@dataclass(frozen=True)
class Use:
    """The last figures in the window of the replica with the fullest GPU, in bytes; None where nothing shows it. `peak`: the highest use in
    the window, as a part of all memory."""

    replica: str
    total: float | None
    used: float | None
    free: float | None
    peak: float | None
    weights: float | None
    kv: float | None
    graphs: float | None
    capacity_tokens: float | None

    @property
    def exported(self) -> bool:
        """Whether an exporter shows the GPU's memory."""
        return self.used is not None or self.free is not None

    @property
    def split(self) -> bool:
        """Whether the engine shows its own split."""
        return self.weights is not None


@dataclass(frozen=True)
class Part:
    """One part of the GPU's memory. `kind` is drawn: weights, kv, graphs, other, outside, free."""

    kind: str
    title: Message
    size: Figure | Band


def fullest(facts: Facts) -> Use | None:
    """Of the replicas that show their GPU the one that came nearest to full, else the first that shows its split or its KV capacity, else
    the first; None without replicas."""
    if not facts.rows:
        return None
    window = inside.inside(facts)
    ratio = np.where(window, facts.values("gpu_memory"), np.nan)
    peaks = np.where(np.isfinite(ratio), ratio, -1.0).max(axis=1)
    row = int(peaks.argmax())
    if peaks[row] < 0:
        told = [facts.values(signal)[:, window] for signal in (*_SPLIT, "kv_capacity_tokens")]
        row = next((int(np.isfinite(each).any(axis=1).argmax()) for each in told if np.isfinite(each).any()), 0)
    total, share = (_last(facts, signal, row) for signal in ("gpu_memory_total", "gpu_memory"))
    weights, kv, graphs = (_last(facts, signal, row) for signal in _SPLIT)
    used = total * share if total is not None and share is not None else None
    peak = float(peaks[row]) if peaks[row] >= 0 else None
    name, free = facts.readings.replicas[row].name, _last(facts, "gpu_memory_free", row)
    return Use(name, total, used, free, peak, weights, kv, graphs, _last(facts, "kv_capacity_tokens", row))


def _last(facts: Facts, signal: str, row: int) -> float | None:
    values = facts.values(signal)[row, inside.inside(facts)]
    known = values[np.isfinite(values)]
    return float(known[-1]) if known.size else None


def parts(use: Use, plan: Plan | None) -> tuple[Part, ...]:
    """The parts of the GPU's memory, from what is measured; weights and KV cache from the plan's shape where the engine does not tell them.
    Empty where neither the exporter nor the engine shows anything to split."""
    if not use.exported and not use.split:
        return ()
    exporter, engine = say("as the GPU's exporter shows it"), say("as the engine measured it at its start")
    weights, kv = (_measured(size, engine) for size in (use.weights, use.kv))
    if weights is None and plan is not None:
        weights = plan.weights_on_gpu
    if kv is None and plan is not None and use.capacity_tokens is not None:
        how = say("the capacity in tokens that the engine shows, times the bytes of a token in this model")
        kv = Figure(use.capacity_tokens * plan.token_on_gpu.value, Origin.COMPUTED, how)
    graphs = _measured(use.graphs, engine)
    told = [(kind, title, size) for kind, title, size in (
        ("weights", say("Weights"), weights), ("kv", say("KV cache"), kv), ("graphs", say("CUDA graphs"), graphs),
    ) if size is not None]  # fmt: skip
    found = [Part(kind, title, size) for kind, title, size in told]
    if use.used is not None:
        rest = use.used - sum(size.value for _kind, _title, size in told)
        names = _rest({kind for kind, _title, _size in told})
        how = say("used memory less what is named above it") if found else exporter
        if rest >= 0:
            found.append(Part("other", names, Figure(rest, Origin.COMPUTED if found else Origin.MEASURED, how)))
    if use.free is not None:
        found.append(Part("free", say("Free"), Figure(use.free, Origin.MEASURED, exporter)))
    return tuple(found)


def _rest(told: set[str]) -> Message:
    """What is in the part that nothing names."""
    if {"weights", "kv"} <= told:
        return say("Activations, context and what else")
    if "weights" in told:
        return say("KV cache, activations and what else")
    return say("Weights, activations and what else") if "kv" in told else say("Used: weights, KV cache and all else")


def _measured(value: float | None, how: Message) -> Figure | None:
    return None if value is None else Figure(value, Origin.MEASURED, how)


def overfull(use: Use, plan: Plan | None) -> bool:
    """Whether weights and KV cache of the chosen model are more than what is used: then it is another model, dtype or layout."""
    if use.used is None or plan is None or use.split:
        return False
    kv = (use.capacity_tokens or 0.0) * plan.token_on_gpu.value
    return plan.weights_on_gpu.value + kv > use.used * 1.02


def planned(plan: Plan) -> tuple[Part, ...]:
    """The parts of a planned GPU: of what is a band, the end that leaves least for the KV cache."""
    return (
        Part("weights", say("Weights"), plan.weights_on_gpu),
        Part("kv", say("KV cache"), plan.pool),
        Part("graphs", say("CUDA graphs"), plan.graphs),
        Part("other", say("Activations"), plan.activations),
        Part("other", say("Context, workspaces, communication"), plan.other),
        Part("outside", say("Left to others"), plan.outside),
    )
