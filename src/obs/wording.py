"""Where and when, in words that pages put into their sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from obs import inside
from obs.coverage import BLIND_RATIO
from obs.facts import Facts
from obs.means import Means
from obs.question import Said
from obs.series import Mask, anywhere
from obs.text import Message, Moment, Names, Quantity, Sentences, say, say_n
from obs.verdict import Episode, State

_DAY = 86400.0


def where_words(facts: Means, names: Iterable[str]) -> Message:
    """Which replicas: all of them, or their names."""
    wanted = set(names)
    ordered = tuple(replica.name for replica in facts.readings.replicas if replica.name in wanted)
    if len(ordered) > 1 and len(ordered) == len(facts.readings.replicas):
        return say("all {n} replicas", n=len(ordered))
    return say("{names}", names=Names(ordered))


def when_words(facts: Means, found: Sequence[Episode]) -> Message:
    """Since when, or from when to when, or how often."""
    dated = facts.readings.end - facts.readings.start > _DAY
    first = found[0]
    if len(found) > 1:
        total = sum((facts.readings.end if e.end is None else e.end) - e.start for e in found)
        return say_n(
            "{n} time since {start}, {length} in all", "{n} times since {start}, {length} in all", len(found),
            start=Moment(first.start, dated), length=Quantity(total, "seconds"),
        )  # fmt: skip
    if first.end is None:
        return say("since {start}", start=Moment(first.start, dated))
    return say(
        "from {start} to {end}, {length} long",
        start=Moment(first.start, dated), end=Moment(first.end, dated), length=Quantity(first.end - first.start, "seconds"),
    )  # fmt: skip


def untold(facts: Facts, signal: str) -> tuple[Message, ...]:
    """Which of the replicas that are seen in the window never show a figure of this signal, and what would tell; () where all do."""
    window, reading = inside.inside(facts), facts.reading(signal)
    seen = np.isfinite(facts.values(signal) if reading.count is None else reading.count)[:, window].any(axis=1)
    lacking: Mask = np.asarray(facts.measured[:, window].any(axis=1) & ~seen, dtype=np.bool_)
    if not lacking.any():
        return ()
    where = where_words(facts, (r.name for r, lacks in zip(facts.readings.replicas, lacking, strict=True) if lacks))
    words = say("Of {where} nobody can tell: {title} is not measured there.", where=where, title=reading.signal.title)
    return (words, reading.why) if reading.why else (words,)


def with_untold(said: Said, lacks: tuple[Message, ...]) -> Said:
    """An answer that holds for a part of the replicas: what is not measured is never called fine."""
    if not lacks:
        return said
    if said.state is State.CLEAR:
        says = Message("{all}", {"all": Sentences((said.says, lacks[0]))})
        return replace(said, state=State.UNKNOWN, says=says, advice=(*lacks[1:], *said.advice))
    return replace(said, advice=(*said.advice, Message("{all}", {"all": Sentences(lacks)})))


def unseen(facts: Facts) -> tuple[Mask, Message | None]:
    """The replicas of which nothing is known for too much of the window or at its end, [replicas], and that in words: they make no
    engine step, so that their gauges stand still, or their scrapes fail. None where there is no such replica."""
    window = inside.inside(facts)
    blind = (facts.stalled | facts.down)[:, window]
    if not blind.size:
        return np.zeros(facts.rows, dtype=np.bool_), None
    mask = np.asarray((blind.mean(axis=1) > BLIND_RATIO) | blind[:, -1], dtype=np.bool_)
    if not mask.any():
        return mask, None
    where = where_words(facts, (r.name for r, lost in zip(facts.readings.replicas, mask, strict=True) if lost))
    first = float(facts.grid.times[window][anywhere(blind[mask]).argmax()])
    words = say(
        "On {where} nothing is known since {start} or so: the engine makes no step and its figures stand still, or its scrapes fail.",
        where=where, start=Moment(first, facts.readings.end - facts.readings.start > _DAY),
    )  # fmt: skip
    return mask, words
