"""Row 1's evidence, in the article's order: events, then weights and KV allocation, activations, request lengths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from obs.evidence import make, missing, span
from obs.facts import Facts
from obs.oom import OutOfMemory
from obs.series import Mask, backward_max, runs
from obs.symptoms import GPU_FULL, OUT_OF_MEMORY
from obs.text import say
from obs.verdict import Episode, Evidence, Stance

LEADS_SECONDS = 300.0  # what asked for the memory did so before the event
_ASKED_FOR_MEMORY = (
    ("kv_use", "ratio", say("KV cache use")),
    ("prompt_length", "tokens", say("Prompt length, mean")),
    ("requests_running", "count", say("Running requests")),
)


def oom_evidence(facts: Facts, oom: OutOfMemory, episodes: Sequence[Episode]) -> tuple[Evidence, ...]:
    """What was counted, how full the GPU was, and what asked for memory meanwhile."""
    steps = span(facts, episodes)
    applies = bool(episodes)
    out = []
    if facts.has("gpu_oom_events"):
        count = float(facts.oom_events[:, steps].sum())
        stance = Stance.SUPPORTS if count else Stance.CONTRADICTS
        onset = episodes[0].start if applies else None
        where = tuple(facts.readings.replicas[r].name for r in np.flatnonzero((oom.events & steps).any(axis=1)))
        out.append(make(facts, "gpu_oom_events", OUT_OF_MEMORY.title, "count", stance, value=count, onset=onset, replicas=where))
    else:
        out.append(missing(facts, OUT_OF_MEMORY))
    lead = steps | _before(facts, episodes)
    memory = np.where(lead, facts.values("gpu_memory"), np.nan)
    if np.isfinite(memory).any():
        full, value = facts.limit("gpu_memory"), float(np.nanmax(memory))
        other = Stance.NEUTRAL if applies else Stance.CONTRADICTS
        stance = Stance.SUPPORTS if value >= full else other
        out.append(make(facts, "gpu_memory", GPU_FULL.title, "ratio", stance, value=value, threshold=full))
    else:
        out.append(missing(facts, GPU_FULL))
    for signal, unit, title in _ASKED_FOR_MEMORY:
        figures = facts.mean(signal)
        values, usual = np.where(lead, figures, np.nan), np.where(lead, np.nan, figures)
        if np.isfinite(values).any():
            before = float(np.nanmedian(usual)) if applies and np.isfinite(usual).any() else None
            out.append(make(facts, signal, title, unit, Stance.NEUTRAL, value=float(np.nanmax(values)), baseline=before))
    deaths = sum(len(runs(row)) for row in backward_max(oom.deaths & steps, facts.grid.steps(LEADS_SECONDS)))  # it goes, and it comes back
    if deaths:
        out.append(
            make(facts, "up", say("Restarts"), "count", Stance.SUPPORTS if applies else Stance.NEUTRAL, value=float(deaths), id="restarts")
        )
    return tuple(out)


def _before(facts: Facts, episodes: Sequence[Episode]) -> Mask:
    out = np.zeros(facts.grid.count, dtype=np.bool_)
    for episode in episodes:
        out |= (facts.grid.times >= episode.start - LEADS_SECONDS) & (facts.grid.times <= episode.start)
    return out
