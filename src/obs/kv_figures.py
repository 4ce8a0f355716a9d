"""The large figures of the KV cache page, each over the window, with what was usual before."""

from __future__ import annotations

import numpy as np

from obs import inside
from obs.facts import Facts
from obs.question import Figure
from obs.series import Mask, total_of
from obs.text import Names, Quantity, say, say_n
from obs.verdict import Episode, State


def figures(facts: Facts, window: Mask, found: tuple[Episode, ...], full: Mask) -> tuple[Figure, ...]:
    """The page's figures over the window. `found`: where KV space is short; `full`: where the cache is full."""
    onset = found[0].start if found else None
    made = (_use(facts, window, found, full), *_preempted(facts, window, onset), _waiting(facts, window, onset))
    return tuple(figure for figure in (*made, _running(facts, window, onset), _capacity(facts, window)) if figure is not None)


def _use(facts: Facts, window: Mask, found: tuple[Episode, ...], full: Mask) -> Figure:
    """The fullest replica: the one that was full for longest, then the one with the highest peak."""
    values = facts.values("kv_use")
    seen = np.where(np.isfinite(values), values, -1.0)[:, window]
    above = (seen >= facts.limit("kv_use")).sum(axis=1)
    row = max(range(facts.rows), key=lambda i: (above[i], seen[i].max()))
    seconds = float(above[row]) * facts.grid.step
    name = Names((facts.readings.replicas[row].name,))
    limit = Quantity(facts.limit("kv_use"), "ratio")
    says = (
        say("on {name}; {limit} or more for {length}", name=name, limit=limit, length=Quantity(seconds, "seconds"))
        if seconds
        else say("on {name}; always under {limit}", name=name, limit=limit)
    )
    state = State.APPLIES if found else State.SUSPECTED if bool((full & window).any()) else State.CLEAR
    peak, before = inside.peak(values[row], window), inside.usual(facts, values[row], found[0].start if found else None)
    return Figure(say("KV cache use, fullest replica"), peak, "ratio", says, before, state)


def _preempted(facts: Facts, window: Mask, onset: float | None) -> tuple[Figure | None, ...]:
    """The highest rate of all replicas together, and how many there were for each completed request of the window."""
    if not facts.has("preemptions"):
        return (Figure(say("Preemptions, highest"), None, "per_second", facts.reading("preemptions").why, None, State.UNKNOWN),)
    rate = total_of(facts.values("preemptions"))
    count = inside.counted(facts.values("preemptions"), window, facts.grid.step) or 0.0
    peak = inside.peak(rate[None, :], window)
    state = State.APPLIES if peak is not None and peak >= facts.limit("preemptions") else State.CLEAR
    says = say("{n} in this window", n=Quantity(round(count), "count"))
    figures = [Figure(say("Preemptions, highest"), peak, "per_second", says, inside.usual(facts, rate, onset), state)]
    done = inside.counted(facts.values("requests_finished"), window, facts.grid.step)
    if done:
        says = say("{n} preemptions, {done} completed", n=Quantity(round(count), "count"), done=Quantity(round(done), "count"))
        figures.append(Figure(say("Preemptions per completed request"), count / done, "count", says))
    return tuple(figures)


def _waiting(facts: Facts, window: Mask, onset: float | None) -> Figure | None:
    """The longest queue of all replicas together, and what it waited for at that moment."""
    waiting = total_of(facts.values("requests_waiting"))
    peak = inside.peak(waiting[None, :], window)
    if peak is None:
        return Figure(say("Waiting requests, highest"), None, "count", facts.reading("requests_waiting").why, None, State.UNKNOWN)
    at = int(np.nanargmax(np.where(window, np.nan_to_num(waiting, nan=-1.0), -1.0)))
    says = say("the engine does not tell what for")
    if facts.has("requests_waiting_capacity"):
        parts = (total_of(facts.values(f"requests_waiting_{reason}"))[at] for reason in ("capacity", "deferred"))
        capacity, deferred = (Quantity(float(part), "count") for part in parts)
        says = say("{capacity} for capacity, {deferred} deferred", capacity=capacity, deferred=deferred)
    held = bool((facts.values("requests_waiting")[:, window] >= facts.limit("waiting")).any())
    state, before = State.APPLIES if held else State.CLEAR, inside.usual(facts, waiting, onset)
    return Figure(say("Waiting requests, highest"), peak, "count", says, before, state)


def _running(facts: Facts, window: Mask, onset: float | None) -> Figure | None:
    running = total_of(facts.values("requests_running"))
    peak = inside.peak(running[None, :], window)
    if peak is None:
        return None
    says = say_n("on {n} replica", "on {n} replicas together", facts.rows)
    return Figure(say("Running requests, highest"), peak, "count", says, inside.usual(facts, running, onset))


def _capacity(facts: Facts, window: Mask) -> Figure | None:
    """What one replica holds; where they differ, the smallest."""
    values = facts.values("kv_capacity_tokens")[:, window]
    if not np.isfinite(values).any():
        return None
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    says = say("a replica") if low == high else say("the smallest replica; the largest {high}", high=Quantity(high, "tokens"))
    return Figure(say("KV cache capacity"), low, "tokens", says)
