"""The large figures of the queue page, each over the window."""

from __future__ import annotations

import numpy as np

from obs import histogram, inside
from obs.facts import Facts
from obs.flow import Flow, mean_over
from obs.question import Figure
from obs.series import Array, Mask, total_of
from obs.text import Message, Names, Quantity, say
from obs.verdict import State

HELD_STEPS = 3  # a plateau at the top is at least this many scrapes long


def figures(facts: Facts, window: Mask, work: Flow, mean_wait: Array, empty: float | None) -> tuple[Figure, ...]:
    """`mean_wait`: the mean queue time, [steps]; `empty`: seconds until nobody waits, as `obs.queue.until_empty` has it."""
    return (
        _arrivals(window, work),
        *_finished(facts, window, work),
        _waiting(facts, window),
        _queue_time(facts, window, mean_wait),
        concurrency(facts, window),
        _until_empty(facts, empty),
    )


def _arrivals(window: Mask, work: Flow) -> Figure:
    rate, peak = mean_over(work.arrivals, window), inside.peak(work.arrivals, window)
    highest = Quantity(peak if peak is not None else np.nan, "per_second")
    counted = say("counted back from the engines; up to {peak}", peak=highest)
    says = say("attempts at the gateway; up to {peak}", peak=highest) if work.at_gateway else counted
    return Figure(say("Arrivals"), rate, "per_second", says)


def _finished(facts: Facts, window: Mask, work: Flow) -> tuple[Figure, Figure]:
    rate, admitted = mean_over(work.completed, window), mean_over(work.admitted, window)
    says = say("{admitted} admitted", admitted=Quantity(admitted if admitted is not None else np.nan, "per_second"))
    completed = Figure(say("Completed"), rate, "per_second", says, inside.usual(facts, work.completed, None))
    if not np.isfinite(work.rejected[window]).any():
        why = facts.reading("admission_rejections").why
        return completed, Figure(say("Rejected at admission"), None, "count", why, None, State.UNKNOWN)
    count = inside.counted(work.rejected, window, facts.grid.step) or 0.0
    state = State.SUSPECTED if count >= 1 else State.CLEAR
    words = say("up to {peak}", peak=Quantity(float(np.nanmax(work.rejected[window])), "per_second")) if count >= 1 else say("none")
    return completed, Figure(say("Rejected at admission"), float(round(count)), "count", words, None, state)


def _waiting(facts: Facts, window: Mask) -> Figure:
    waiting = total_of(facts.values("requests_waiting"))
    seen = waiting[window]
    seen = seen[np.isfinite(seen)]
    if not seen.size:
        return Figure(say("Waiting requests, highest"), None, "count", None, None, State.UNKNOWN)
    held = bool((facts.values("requests_waiting")[:, window] >= facts.limit("waiting")).any())
    says = say("{now} at the end of the window", now=Quantity(float(seen[-1]), "count"))
    before = inside.usual(facts, waiting, None)
    return Figure(say("Waiting requests, highest"), float(seen.max()), "count", says, before, State.APPLIES if held else State.CLEAR)


def _queue_time(facts: Facts, window: Mask, mean_wait: Array) -> Figure:
    """p95 of the window where there are buckets, else the highest mean; Little's law beside it."""
    law = say("by Little's law {wait} on average", wait=Quantity(_by_law(facts, window), "seconds"))
    buckets = facts.readings.buckets.get("queue_time")
    found = histogram.over(buckets, window, 0.95) if buckets is not None else None
    if found is None:
        peak = inside.peak(mean_wait, window)
        return Figure(say("Queue time, highest mean"), peak, "seconds", law)
    words = {
        histogram.Side.AT_MOST: say("or less: in the first bucket; {law}", law=law),
        histogram.Side.MORE_THAN: say("or more: in the last bucket; {law}", law=law),
        histogram.Side.WITHIN: law,
    }
    return Figure(say("Queue time, p95"), found.value, "seconds", words[found.side])


def _by_law(facts: Facts, window: Mask) -> float:
    """Little's law over the window: the mean number that wait, by what is completed per second. NaN where either is not known."""
    waiting = mean_over(total_of(facts.values("requests_waiting")), window)
    done = mean_over(total_of(facts.values("requests_finished")), window)
    if waiting is None or done is None:
        return float("nan")
    return waiting / done if done > 0 else float("inf") if waiting > 0 else float("nan")


def concurrency(facts: Facts, window: Mask) -> Figure:
    """The most requests that ran on one replica. Engines do not expose their limit: a level that is held while others wait is likely it."""
    running = facts.values("requests_running")
    title = say("Running on one replica, highest")
    peak = inside.peak(running, window)
    if peak is None:
        return Figure(title, None, "count", facts.reading("requests_running").why, None, State.UNKNOWN)
    top = (running >= peak) & window
    row = int(top.any(axis=1).argmax())
    held = (top & (facts.values("requests_waiting") > 0)).sum(axis=1)
    row = int(held.argmax()) if held.any() else row
    name = Names((facts.readings.replicas[row].name,))
    return Figure(title, peak, "count", _limit_words(facts, peak, float(held[row]), name))


def _limit_words(facts: Facts, peak: float, held: float, name: Names) -> Message:
    if peak > 1 and held >= HELD_STEPS:
        length = Quantity(held * facts.grid.step, "seconds")
        return say("on {name}, for {length} while others waited: likely its limit, which it does not tell", name=name, length=length)
    return say("on {name}, which does not tell its limit", name=name)


def _until_empty(facts: Facts, seconds: float | None) -> Figure:
    title = say("Until the queue is empty")
    if seconds is None:
        return Figure(title, None, "seconds", say("not known: no figures at the end of the window"), None, State.UNKNOWN)
    if seconds == 0:
        return Figure(title, 0.0, "seconds", say("nobody waits at the end of the window"), None, State.CLEAR)
    waiting = total_of(facts.values("requests_waiting"))
    now = float(waiting[np.isfinite(waiting)][-1])
    if np.isinf(seconds):
        state = State.APPLIES if now >= facts.limit("waiting") else State.SUSPECTED
        return Figure(title, seconds, "seconds", say("never, if it goes on like the last five minutes"), None, state)
    return Figure(title, seconds, "seconds", say("if it goes on like the last five minutes"), None, State.SUSPECTED)
