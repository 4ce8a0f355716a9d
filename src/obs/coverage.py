"""Whether a row could be judged at all: what it needs, what of it is missing, and for how much of the window nothing is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from obs.facts import Facts
from obs.series import Mask
from obs.signals import Status
from obs.text import Message, Quantity, say

# Each group is needed; any one signal of a group is enough.
NEEDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "gpu_oom": (("gpu_oom_events",),),
    "latency_without_errors": (
        ("kv_use",), ("requests_waiting",), ("e2e_latency", "itl", "ttft"), ("gateway_errors", "gateway_responses", "engine_errors"),
    ),
    "slow_first_token": (("ttft", "gateway_ttft"),),
    "load_after_timeouts": (("gateway_retries",), ("gateway_timeouts",), ("gateway_attempts",)),
}  # fmt: skip
# What explains a row; without it the row can be suspected, and it is said what would tell.
HELPS: dict[str, tuple[str, ...]] = {
    "gpu_oom": ("gpu_memory",),
    "latency_without_errors": ("preemptions",),
    "slow_first_token": ("queue_time", "prefill_time", "gateway_ttft"),
    "load_after_timeouts": ("requests_running",),
}
BLIND_RATIO = 0.2  # of the window, or
BLIND_SECONDS = 120.0  # at its end: then nobody can say that a row is clear
JUDGED_BY_ENGINE = ("latency_without_errors", "slow_first_token")


@dataclass(frozen=True)
class Coverage:
    """`missing` says what is not there; `blind` why the row cannot be called clear over the window; `blind_now` at its end."""

    missing: tuple[Message, ...]
    blind: Message | None
    blind_now: Message | None


def coverage(facts: Facts, row: str) -> Coverage:
    """What of a row's needs is measured."""
    missing, blind = [], None
    for group in NEEDS[row]:
        if not any(_measured(facts, signal) for signal in group):
            why = next((facts.reading(s).why for s in group if facts.reading(s).why), None)
            title = facts.reading(group[0]).signal.title
            says = say("{title}: {why}", title=title, why=why or say("no figure in this window"))
            missing.append(says)
            blind = blind or says
    for signal in HELPS[row]:
        reading = facts.reading(signal)
        if not reading.present:
            missing.append(say("{title}: {why}", title=reading.signal.title, why=reading.why or say("no figure in this window")))
    end = facts.grid.times >= facts.readings.end - BLIND_SECONDS
    if row in JUDGED_BY_ENGINE:
        inside = facts.grid.times >= facts.readings.start
        share = _share(_blind(facts), inside)
        if blind is None and share > BLIND_RATIO:
            blind = say(
                "for {share} of the window nothing is known: the scrapes fail or the series are gone", share=Quantity(share, "ratio")
            )
        if blind is None and not _traffic(facts, inside):
            blind = say("no traffic: nothing was observed in this window")
        blind_now = blind if blind and not _traffic(facts, end) else None
        if blind_now is None and _share(_blind(facts), end) > 0.5:
            blind_now = say("nothing is known at the end of the window: the scrapes fail or the series are gone")
        return Coverage(tuple(missing), blind, blind_now or (blind if missing and blind is missing[0] else None))
    return Coverage(tuple(missing), blind, blind)


def _measured(facts: Facts, signal: str) -> bool:
    """Measured, and not vanished before the end."""
    reading = facts.reading(signal)
    return reading.present and reading.status is not Status.STALE


def _blind(facts: Facts) -> Mask:
    """Where a replica should be seen and is not: its scrape fails, or it stalls and its figures are old. Shape [replicas, steps]."""
    return facts.down | facts.stalled


def _share(mask: Mask, inside: Mask) -> float:
    """The blind part of the worst minutes: of all replicas that are there."""
    if not mask.size:
        return 1.0
    return float(mask[:, inside].mean()) if inside.any() else 0.0


def _traffic(facts: Facts, inside: Mask) -> bool:
    """Any request seen: held, begun or finished."""
    for signal in ("ttft", "e2e_latency", "itl"):
        count = facts.reading(signal).count
        if count is not None and (np.nan_to_num(count)[:, inside] > 0).any():
            return True
    return bool((np.nan_to_num(facts.working)[:, inside] > 0).any())
