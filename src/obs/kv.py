"""Is KV space short, and for whom? The answer of the KV cache page, from readings that are already there.

Space is short where the cache is full *and* that costs something: requests are preempted, or they queue up. A full cache alone does
its job. KV use is never averaged or summed over replicas: the worst one is named.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from obs import inside, kv_figures
from obs.changes import overfilled
from obs.coverage import beside_names
from obs.facts import Facts, crossed
from obs.question import Figure, Said
from obs.series import Array, Mask, anywhere, divide, settle, total_of, trailing
from obs.text import Message, Names, Quantity, Sentences, say
from obs.verdict import Episode, State
from obs.wording import unseen, untold, when_words, where_words, with_untold

RELEASE = 0.85  # of the threshold: KV use flaps while preempting
GAP_SECONDS = 60.0
REQUEST_MINUTES = 5.0  # preemptions per completed request are counted over this long


def full(facts: Facts) -> Mask:
    """The KV cache is at its threshold or above, held; [replicas, steps]."""
    limit = facts.limit("kv_use")
    on = crossed(facts.values("kv_use"), limit, limit * RELEASE) & np.isfinite(facts.values("kv_use"))
    seen = on & ~facts.stalled & ~facts.down  # an engine that makes no step shows what it last had
    return settle(seen, facts.grid.steps(facts.limit("hold")), facts.grid.steps(GAP_SECONDS))


def short(facts: Facts) -> Mask:
    """The cache is full, and meanwhile requests are preempted or queue up, held; [replicas, steps]."""
    preempted = facts.recent_rate("preemptions") >= facts.limit("preemptions")
    queued = facts.values("requests_waiting") >= facts.limit("waiting")
    return settle((preempted | queued) & full(facts), facts.grid.steps(facts.limit("hold")), facts.grid.steps(GAP_SECONDS))


def per_request(facts: Facts) -> Array:
    """Preemptions per completed request over five minutes, [replicas, steps]; NaN where nothing was completed."""
    steps = facts.minutes(REQUEST_MINUTES)
    known = np.isfinite(facts.values("preemptions")) & np.isfinite(facts.values("requests_finished"))
    ratio = divide(trailing(facts.values("preemptions"), steps), trailing(facts.values("requests_finished"), steps))
    return np.where(known, ratio, np.nan)


def answer(facts: Facts) -> Said:
    """The sentence, the figures and the advice for the window."""
    if not facts.reading("kv_use").present:
        why = beside_names(facts.reading("kv_use").why) or say("No figure in this window.")
        return Said(State.UNKNOWN, say("Nobody can tell whether KV space is short: KV cache use is not measured. {why}", why=why))
    lost, unknown = unseen(facts)
    said = with_untold(_answer(facts, inside.inside(facts)), untold(facts, "kv_use"))
    if unknown is None:
        return said
    if said.state is not State.APPLIES and lost.all():
        return Said(State.UNKNOWN, say("Nobody can tell whether KV space is short. {why}", why=unknown), said.figures)
    return replace(said, advice=(unknown, *said.advice))


def _answer(facts: Facts, window: Mask) -> Said:
    found = inside.episodes(facts, short(facts))
    figures = kv_figures.figures(facts, window, found, full(facts))
    if found:
        advice = (_before_the_queue(facts, window), overfilled(facts, window))
        return Said(State.APPLIES, _is_short(facts, found), figures, tuple(each for each in advice if each is not None))
    held = full(facts) & window
    if held.any():
        names = _names(facts, anywhere(held.T))
        peak = Quantity(inside.peak(facts.values("kv_use"), window) or np.nan, "ratio")
        return Said(State.SUSPECTED, _full_only(facts, names, peak), figures, (_before_the_queue(facts, window),))
    return _is_not_short(facts, window, figures)


def _is_short(facts: Facts, found: tuple[Episode, ...]) -> Message:
    where = where_words(facts, {name for episode in found for name in episode.replicas})
    return say("Yes: KV space is short on {where}, {when}.", where=where, when=when_words(facts, found))


def _full_only(facts: Facts, names: tuple[str, ...], peak: Quantity) -> Message:
    if not facts.has("preemptions") and not facts.has("requests_waiting"):
        return say(
            "Perhaps: the KV cache is full on {where} (up to {peak}), and neither preemptions nor waiting requests are measured.",
            where=where_words(facts, names), peak=peak,
        )  # fmt: skip
    return say(
        "Not yet: the KV cache is full on {where} (up to {peak}), but hardly anything is preempted and no queue stands.",
        where=where_words(facts, names), peak=peak,
    )  # fmt: skip


def _is_not_short(facts: Facts, window: Mask, figures: tuple[Figure, ...]) -> Said:
    values, limit = facts.values("kv_use")[:, window], facts.limit("kv_use")
    if not np.isfinite(values).any():
        says = say("Nobody can tell whether KV space is short: KV cache use was measured before this window only.")
        return Said(State.UNKNOWN, says, figures)
    seen = np.where(np.isfinite(values), values, -1.0)
    row = int(seen.max(axis=1).argmax())
    peak, name = Quantity(float(seen.max()), "ratio"), Names((facts.readings.replicas[row].name,))
    if seen.max() < limit:
        says = say(
            "No: KV cache use stays under {limit}; it reached {peak} on {name}.", limit=Quantity(limit, "ratio"), peak=peak, name=name
        )
        return Said(State.CLEAR, says, figures, _otherwise(facts, window))
    hold, advice = Quantity(facts.limit("hold"), "seconds"), (_before_the_queue(facts, window),)
    if (seen[:, -1] >= limit).any():
        says = say("Perhaps: KV cache use has reached {peak} on {name}, but not yet for {hold}.", peak=peak, name=name, hold=hold)
        return Said(State.SUSPECTED, says, figures, advice)
    says = say("No: KV cache use reached {peak} on {name}, but not for {hold}.", peak=peak, name=name, hold=hold)
    return Said(State.CLEAR, says, figures, advice)


def _names(facts: Facts, rows: Mask) -> tuple[str, ...]:
    return tuple(replica.name for replica, wanted in zip(facts.readings.replicas, rows, strict=True) if wanted)


def _before_the_queue(facts: Facts, window: Mask) -> Message:
    """The article's advice, with this window's own figures."""
    preempted = inside.counted(facts.values("preemptions"), window, facts.grid.step)
    waiting = inside.peak(total_of(facts.values("requests_waiting"))[None, :], window)
    rule = say("Check preemption before increasing the queue.")
    if preempted is None or waiting is None:
        lacking = (
            say("Here preemptions are not measured: find out whether there are any before you change anything.")
            if preempted is None
            else say("Here waiting requests are not measured: find out how many there are before you change anything.")
        )
        return Message("{all}", {"all": Sentences((rule, lacking))})
    figures = say(
        "In this window requests were preempted {count} times while up to {waiting} waited: a longer queue would delay their rejection "
        "and create no room. Reduce admitted work, or change the tested memory allocation.",
        count=Quantity(round(preempted), "count"), waiting=Quantity(waiting, "count"),
    )  # fmt: skip
    return Message("{all}", {"all": Sentences((rule, figures))})


def _otherwise(facts: Facts, window: Mask) -> tuple[Message, ...]:
    """Requests that wait although there is room, where it is known that there is."""
    told = np.isfinite(facts.values("kv_use")[:, window]).any(axis=1)
    waiting = inside.peak(facts.values("requests_waiting")[told], window)
    if waiting is None or waiting < facts.limit("waiting"):
        return ()
    return (
        say(
            "Up to {waiting} requests waited on one replica all the same: not for KV space, so look at the limit of running requests.",
            waiting=Quantity(waiting, "count"),
        ),
    )
