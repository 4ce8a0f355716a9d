"""Whether a row could be judged at all: what it needs, what of it is missing, and for how much of the window nothing is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from obs.facts import Facts
from obs.series import Mask, anywhere, runs
from obs.signals import LOOKED_FOR, SIGNALS, Level, Readings, Signal, Status
from obs.text import Message, Names, Quantity, Sentences, say

# Each group is needed; any one signal of a group is enough.
NEEDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "gpu_oom": (("gpu_oom_events",),),
    "latency_without_errors": (
        ("kv_use",), ("preemptions",), ("requests_waiting",), ("e2e_latency",), ("itl",), ("ttft",), ("gateway_responses", "engine_errors"),
    ),
    "slow_first_token": (("ttft",),),
    "load_after_timeouts": (("gateway_retries",), ("gateway_timeouts",), ("gateway_attempts",)),
}  # fmt: skip
# What explains a row; without it the row can be suspected, and it is said what would tell.
HELPS: dict[str, tuple[str, ...]] = {
    "gpu_oom": ("gpu_memory",),
    "latency_without_errors": (),
    "slow_first_token": ("queue_time", "prefill_time", "gateway_ttft"),
    "load_after_timeouts": ("requests_running",),
}
BESIDE = {"gpu_oom": "gpu_oom_events", "load_after_timeouts": "gateway_attempts"}  # rows of other exporters, which may be there alone
BLIND_RATIO = 0.2  # of the window, or
BLIND_SECONDS = 120.0  # at its end: then nobody can say that a row is clear
TELLING = ("ttft", "e2e_latency", "requests_waiting", "kv_use", "itl", "preemptions", "gateway_responses")  # the most telling first
PREEMPTIONS = "preemptions"
TIMES = ("ttft", "itl", "e2e_latency")  # of a request: where prefill and decode are apart, one of the two may observe none
JUDGED_BY_ENGINE = ("latency_without_errors", "slow_first_token")


@dataclass(frozen=True)
class Coverage:
    """`missing` says what is not there; `blind` why the row cannot be called clear over the window; `blind_now` at its end. `lacking` are
    the signals that it needs and that are not there, each with why."""

    missing: tuple[Message, ...]
    blind: Message | None
    blind_now: Message | None
    by_engine: bool = True  # what is missing is the engine's own: then no row can be ruled out
    lacking: tuple[tuple[str, Message], ...] = ()
    unseen: Message | None = None  # why too much of the window was not seen at all


def coverage(facts: Facts, row: str) -> Coverage:
    """What of a row's needs is measured."""
    named = tuple((group[0], says) for group in NEEDS[row] if (says := _lacking(facts, group)) is not None)
    lacking = [says for _signal, says in named]
    helps = [_absent(facts, signal) for signal in HELPS[row] if not facts.has(signal)]
    if row == "latency_without_errors" and not facts.has(PREEMPTIONS) and PREEMPTIONS not in dict(named):
        helps.append(_needless(facts))
    first = lacking[0] if lacking else None
    blind = first
    if row not in JUDGED_BY_ENGINE:
        blind = blind or (None if _told(facts, BESIDE[row]) else dark(facts))
        return Coverage((*lacking, *helps), blind, first, by_engine=False, lacking=named)
    inside = facts.grid.times >= facts.readings.start
    end = facts.grid.times >= min(facts.readings.end - BLIND_SECONDS, facts.grid.end)  # a coarse grid has its last step there
    unseen = _unseen(facts, inside)
    blind = blind or unseen
    blind_now = first or _unseen_at(facts, end)
    if blind_now is None and not _traffic(facts, end):
        blind_now = say("no traffic: nothing was observed at the end of this window.")
    by_engine = unseen is not None or any(SIGNALS[signal].level is Level.REPLICA for signal, _says in named)
    if blind is None and row == "slow_first_token" and not facts.network_told:
        why = beside_names(facts.reading("gateway_ttft").why) or say("No figure in this window.")
        blind = blind_now = say("the engines' first token is as usual, but the time in front of them is not measured. {why}", why=why)
    return Coverage((*lacking, *helps), blind, blind_now, by_engine, named, unseen)


def would_tell(found: Sequence[Coverage], readings: Readings) -> tuple[Signal, Message | None] | None:
    """Of what these rows lack the one signal that would tell most, and what gives it, without the names that were looked for; None where
    they lack none."""
    lacking = {signal: says for each in found for signal, says in each.lacking}
    first = next((signal for signal in TELLING if signal in lacking), None)
    if first is None:
        return None
    reading = readings.signals[first]
    return reading.signal, lacking[first] if reading.status is Status.MEASURED else beside_names(reading.why)


def _lacking(facts: Facts, group: tuple[str, ...]) -> Message | None:
    """Why none of a group's signals tells; None where one does, on every replica that works."""
    reasons = [_why(facts, signal) for signal in group]
    return None if None in reasons else reasons[0]


def _why(facts: Facts, signal: str) -> Message | None:
    """Why a signal cannot be judged; None where it can."""
    reading = facts.reading(signal)
    absent = _absent(facts, signal) if not reading.present or reading.status is Status.STALE else None
    if absent and (signal != PREEMPTIONS or reading.status is Status.STALE):
        return absent
    if reading.signal.level is Level.GATEWAY:
        return None
    seen = np.isfinite(reading.count if reading.count is not None else reading.values)
    inside = facts.grid.times >= facts.readings.start
    end = facts.grid.times >= min(facts.readings.end - BLIND_SECONDS, facts.grid.end)  # a coarse grid has its last step there
    busy = (np.nan_to_num(facts.working)[:, inside] > 0).any(axis=1)
    told = np.asarray(seen[:, inside].any(axis=1), dtype=np.bool_)
    never = busy & ~told & ~_told_otherwise(facts, signal, told, inside)
    gone = busy & told & ~seen[:, end].any(axis=1) & facts.measured[:, end].any(axis=1)
    if absent or not (never | gone).any():
        return absent if never.any() else None
    where = say("{title}: not measured on {replicas}.", title=reading.signal.title, replicas=_names(facts, never | gone))
    return Message("{first}", {"first": Sentences((where, reading.why))}) if reading.why else where  # an engine that does not tell it


def _told_otherwise(facts: Facts, signal: str, told: Mask, inside: Mask) -> Mask:
    """The replicas of which something else tells what this signal would. [replicas]"""
    if signal == PREEMPTIONS:  # a request is preempted for want of KV space, and for nothing else
        use = facts.values("kv_use")[:, inside]
        return np.asarray(np.isfinite(use).any(axis=1) & ~(use >= facts.limit("kv_use")).any(axis=1), dtype=np.bool_)
    if signal not in TIMES:
        return np.zeros(len(told), dtype=np.bool_)
    whole = [(r.namespace, r.model, r.system) for r in facts.readings.replicas]
    parts = [(place, r.pool) for place, r in zip(whole, facts.readings.replicas, strict=True)]
    tell = {part for part, is_told in zip(parts, told, strict=True) if is_told}
    return np.array([part not in tell and any(other[0] == part[0] for other in tell) for part in parts], dtype=np.bool_)


def _needless(facts: Facts) -> Message:
    """That the engine counts no preemptions, and that there was no need of any."""
    return say(
        "{absent} KV cache use stayed under {limit}, and with room in the pool none is preempted.",
        absent=_absent(facts, PREEMPTIONS), limit=Quantity(facts.limit("kv_use"), "ratio"),
    )  # fmt: skip


def _absent(facts: Facts, signal: str) -> Message:
    reading = facts.reading(signal)
    return say("{title}: {why}", title=reading.signal.title, why=reading.why or say("no figure in this window."))


def _blind(facts: Facts) -> Mask:
    """Where a replica should be seen and is not: its scrape fails, or it makes no step and holds work or may hold it. [replicas, steps]"""
    untold = facts.silent & ~np.isfinite(facts.values("requests_running"))
    return facts.down | facts.stalled | untold


def _unseen(facts: Facts, inside: Mask) -> Message | None:
    """Why the window cannot be judged: too much of it unseen on some replica, or nothing that happened in it."""
    blind = _blind(facts)
    if not blind.size or not inside.any():
        return say("no replica of an engine was found.")
    shares = blind[:, inside].mean(axis=1)
    if (shares > BLIND_RATIO).any():
        return say(
            "for {share} of the window nothing is known of {replicas}: the scrapes fail, or the engine makes no step.",
            share=Quantity(float(shares.max()), "ratio"),
            replicas=_names(facts, shares > BLIND_RATIO),
        )
    return dark(facts) or (None if _traffic(facts, inside) else say("no traffic: nothing was observed in this window."))


def gap(facts: Facts) -> tuple[float, float, float] | None:
    """(from, to, share) of the longest stretch of the window without a figure of any replica, and the part of the window that all such
    stretches take together; None where they are not too much of it. What the source has forgotten, or never knew, looks like this."""
    times, start, end = facts.grid.times, facts.readings.start, facts.readings.end
    long = facts.grid.steps(facts.limit("hold"))
    dark = [(first, last) for first, last in runs(facts.inside & ~anywhere(facts.measured)) if last - first + 1 >= long]
    share = sum(last - first + 1 for first, last in dark) / max(1, int(facts.inside.sum()))
    if share <= BLIND_RATIO:
        return None
    first, last = max(dark, key=lambda run: run[1] - run[0])
    return max(start, float(times[first])), min(end, float(times[last]) + facts.grid.step), share


def dark(facts: Facts) -> Message | None:
    """What is said of a row where too much of the window has no figure at all."""
    found = gap(facts)
    if found is None:
        return None
    start, end = map(facts.moment, found[:2])
    return say("there are no figures of any replica from {start} to {end}.", start=start, end=end)


def untold(facts: Facts) -> tuple[Message, ...]:
    """The same as a remark on the whole answer; none where there is no rest to speak of: the answer itself says so."""
    found = gap(facts)
    if found is None or found[2] == 1.0:
        return ()
    start, end = map(facts.moment, found[:2])
    return (
        say(
            "For {share} of this window there are no figures, from {start} to {end}: what is said here is of the rest.",
            share=Quantity(found[2], "ratio"), start=start, end=end,
        ),
    )  # fmt: skip


def _told(facts: Facts, signal: str) -> bool:
    """Whether a signal of another exporter has figures for most of the window, whatever the engines have."""
    return bool(np.isfinite(facts.values(signal))[:, facts.inside].any(axis=0).mean() > 1 - BLIND_RATIO)


def _unseen_at(facts: Facts, end: Mask) -> Message | None:
    """Why nothing is known at the window's end: not seen, not working, or not warm yet."""
    blind = _blind(facts)
    late = blind[:, end].mean(axis=1) > 0.5 if blind.size else np.zeros(0, dtype=np.bool_)
    if late.any():
        return say(
            "nothing is known of {replicas} at the end of the window: the scrapes fail, or the engine makes no step.",
            replicas=_names(facts, late),
        )
    warming = facts.warming[:, end].all(axis=1) & facts.measured[:, end].any(axis=1)
    if warming.any():
        return say("{replicas} started minutes ago: a warm-up is not judged.", replicas=_names(facts, warming))
    return None


def _names(facts: Facts, rows: ArrayLike) -> Names:
    return Names(tuple(facts.readings.replicas[row].name for row in np.flatnonzero(rows)))


def _traffic(facts: Facts, inside: Mask) -> bool:
    """Any request seen: held, begun or finished."""
    for signal in ("ttft", "e2e_latency", "itl"):
        count = facts.reading(signal).count
        if count is not None and (np.nan_to_num(count)[:, inside] > 0).any():
            return True
    return bool((np.nan_to_num(facts.working)[:, inside] > 0).any())


def beside_names(why: Message | None) -> Message | None:
    """Of why a signal has no figure what would give it, without the names that were looked for; None where nothing else is said."""
    if why is None or why.template == LOOKED_FOR.template:
        return None
    whole = next((value for value in why.values.values() if isinstance(value, Sentences)), None)
    if whole is None:
        return why
    kept = tuple(each for each in map(beside_names, whole.items) if each is not None)
    return Message("{first}", {"first": Sentences(kept)}) if kept else None
