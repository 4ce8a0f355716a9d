"""Where and when, in words that pages put into their sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from obs.means import Means
from obs.text import Message, Moment, Names, Quantity, say, say_n
from obs.verdict import Episode

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
