"""Is more work admitted than we finish? The answer of the queue page, from readings that are already there."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from obs import inside, kv, queue_figures
from obs.coverage import beside_names
from obs.facts import Facts
from obs.flow import Flow, flow, mean_over
from obs.question import Said
from obs.series import Array, Mask, divide, settle, total_of, trailing
from obs.text import Message, Quantity, say
from obs.verdict import Episode, State
from obs.wording import unseen, untold, when_words, where_words, with_untold

GAP_SECONDS = 60.0
DRAIN_SECONDS = 300.0  # over this long the queue's course is followed to its end
MOST = 0.8  # of the peak: until there a queue grew
MORE = 1.05  # times what is completed: less is as much
LOST = 1.5  # times what the engines account for: as many attempts are not explained by lag
LEAST_FALL = 0.1  # of the queue in that time: less is no fall
FRESH_SECONDS = 120.0  # of the window's end: an older figure does not say how it is now


def queued(facts: Facts) -> Mask:
    """A queue stands: as many wait as saturate a replica, held; [replicas, steps]."""
    on = (facts.values("requests_waiting") >= facts.limit("waiting")) & ~facts.stalled & ~facts.down
    return settle(on, facts.grid.steps(facts.limit("hold")), facts.grid.steps(GAP_SECONDS))


def little(facts: Facts) -> Array:
    """The wait by Little's law over all replicas, [1, steps]: the mean of waiting requests over the rate window, by what was completed per
    second in it. Seconds; infinite where requests wait and none completes."""
    steps = facts.grid.steps(facts.readings.rate_seconds)
    waiting, done = total_of(facts.values("requests_waiting")), total_of(facts.values("requests_finished"))
    seen = trailing(np.isfinite(waiting).astype(np.float64), steps)
    mean = trailing(waiting, steps) / np.maximum(seen, 1.0)
    wait = np.where(mean > 0, np.where(done > 0, divide(mean, done), np.inf), 0.0)
    return np.where(np.isfinite(waiting) & np.isfinite(done), wait, np.nan)[None, :]


def mean_wait(facts: Facts) -> Array:
    """The mean queue time of all replicas' requests, [1, steps]; NaN where too few finished."""
    total, count = facts.summed("queue_time")
    return facts.shortest(total, count, (count,))[0]


def until_empty(facts: Facts) -> float | None:
    """Seconds from the window's end until nobody waits, if the last five minutes go on like this: 0 where nobody waits, infinite where
    the queue does not get shorter, None where it is not known."""
    waiting, times = total_of(facts.values("requests_waiting")), facts.grid.times
    end = facts.readings.end
    recent = (times > end - DRAIN_SECONDS) & (times <= end) & np.isfinite(waiting)
    if not recent.any() or times[recent][-1] < end - FRESH_SECONDS:
        return None
    now = float(waiting[recent][-1])
    if now == 0:
        return 0.0
    if recent.sum() < inside.LEAST_STEPS:
        return None
    slope = float(np.polyfit(times[recent] - end, waiting[recent], 1)[0])
    return now / -slope if -slope * DRAIN_SECONDS > now * LEAST_FALL else math.inf


def answer(facts: Facts) -> Said:
    """The sentence, the figures and the advice for the window."""
    if not facts.reading("requests_waiting").present:
        why = beside_names(facts.reading("requests_waiting").why) or say("No figure in this window.")
        return Said(State.UNKNOWN, say("Nobody can tell whether a queue stands: waiting requests are not measured. {why}", why=why))
    lost, unknown = unseen(facts)
    said = with_untold(_answer(facts, inside.inside(facts), flow(facts)), untold(facts, "requests_waiting"))
    if unknown is None:
        return said
    if said.state is not State.APPLIES and lost.all():
        return Said(State.UNKNOWN, say("Nobody can tell whether a queue stands. {why}", why=unknown), said.figures)
    return replace(said, advice=(unknown, *said.advice))


def _answer(facts: Facts, window: Mask, work: Flow) -> Said:
    waiting = total_of(facts.values("requests_waiting"))
    figures = queue_figures.figures(facts, window, work, mean_wait(facts)[0], until_empty(facts))
    if not np.isfinite(waiting[window]).any():
        return Said(State.UNKNOWN, say("Nobody can tell whether a queue stands: waiting requests were measured before this window only."))
    found = inside.episodes(facts, queued(facts))
    if found:
        return Said(State.APPLIES, _stands(facts, work, waiting, found, window), figures, _advice(facts, work, window))
    if not np.nan_to_num(work.held[window]).any() and not np.nan_to_num(work.completed[window]).any():
        return Said(State.UNKNOWN, say("No traffic: nothing was admitted and nothing was finished in this window."), figures)
    return Said(State.CLEAR, _keeps_up(work, waiting, window), figures)


def _stands(facts: Facts, work: Flow, waiting: Array, found: tuple[Episode, ...], window: Mask) -> Message:
    """When and where, and how much more came in than went out while the queue grew to most of its peak."""
    when, where = when_words(facts, found), where_words(facts, {name for episode in found for name in episode.replicas})
    seen = np.where(window, np.nan_to_num(waiting, nan=-1.0), -1.0)
    peak = Quantity(float(seen.max()), "count")
    top = int((seen >= seen.max() * MOST).argmax())
    onset = max((e.start for e in found if e.start <= facts.grid.times[top]), default=found[0].start)
    steps = (facts.grid.times > onset - facts.readings.rate_seconds) & (facts.grid.times <= facts.grid.times[top])
    admitted, completed = mean_over(work.admitted, steps), mean_over(work.completed, steps)
    if admitted is None or completed is None:
        return say("Yes: requests queue up on {where}, {when}; up to {peak} wait.", where=where, when=when, peak=peak)
    if admitted < completed * MORE:
        return say(
            "Yes: requests queue up on {where}, {when}; up to {peak} wait. As much is completed as admitted ({completed}), so it stays.",
            where=where, when=when, peak=peak, completed=Quantity(completed, "per_second"),
        )  # fmt: skip
    return say(
        "Yes: requests queue up on {where}, {when}; up to {peak} wait. While it grew, {admitted} were admitted and {completed} completed.",
        where=where, when=when, peak=peak, admitted=Quantity(admitted, "per_second"), completed=Quantity(completed, "per_second"),
    )  # fmt: skip


def _keeps_up(work: Flow, waiting: Array, window: Mask) -> Message:
    peak = Quantity(float(np.nanmax(waiting[window])), "count")
    admitted, completed = mean_over(work.admitted, window), mean_over(work.completed, window)
    if admitted is None or completed is None:
        return say("No: no queue stands; at most {peak} waited.", peak=peak)
    rates = {"admitted": Quantity(admitted, "per_second"), "completed": Quantity(completed, "per_second")}
    if peak.value == 0:
        return say("No: what is admitted is finished ({admitted} in, {completed} out), and nobody waited.", **rates)
    return say(
        "No: what is admitted is finished ({admitted} in, {completed} out); at most {peak} waited, and not for long.", **rates, peak=peak
    )


def _advice(facts: Facts, work: Flow, window: Mask) -> tuple[Message, ...]:
    """The article's, what the queue waits for, and what arrives and is never seen in an engine."""
    if (kv.short(facts) & window).any():
        cause = say("KV space is short meanwhile: look at the KV cache before the queue.")
    elif not facts.has("kv_use"):
        cause = say("Whether KV space is what it waits for is not known: KV cache use is not measured.")
    else:
        cause = say("KV space is not short: the limit of running requests, or the engine's speed, sets the pace.")
    return (say("A longer queue delays rejection; it creates no capacity."), cause, *_lost(work, window))


def _lost(work: Flow, window: Mask) -> tuple[Message, ...]:
    arrived, admitted = mean_over(work.arrivals, window), mean_over(work.admitted, window)
    rejected = mean_over(work.rejected, window) or 0.0
    if not work.at_gateway or arrived is None or admitted is None or arrived < LOST * (admitted + rejected):
        return ()
    return (
        say(
            "The gateway sends {arrived} and the engines account for {admitted}: the clients of the others left, which the engine may not "
            "count, or they never came through. Look at retries and abandoned work.",
            arrived=Quantity(arrived, "per_second"), admitted=Quantity(admitted + rejected, "per_second"),
        ),
    )  # fmt: skip
