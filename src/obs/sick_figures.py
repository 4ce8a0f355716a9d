"""The large figures of the replicas page, and what follows from who is sick."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from obs.outliers import LEAST_REPLICAS, Outlier
from obs.question import Figure
from obs.standing import SICK, UNSEEN, Standing, Stands
from obs.text import Message, Names, Quantity, say
from obs.verdict import State

_LOAD = ("kv_use", "requests_waiting", "requests_running", "preemptions")  # of these a replica has much where the router gives it much
_SPEED = ("ttft", "itl", "queue_time", "e2e_latency")


def figures(found: Sequence[Standing], odd: Sequence[Outlier]) -> tuple[Figure, ...]:
    """How many there are, how many are sick, stand out, restarted or are not seen; the worst figure beside the median replica's."""
    if not found:
        return ()
    unseen = sum(standing.stands in UNSEEN for standing in found)
    sick = sum(standing.stands in SICK for standing in found)
    told = say("{n} seen at the end of the window", n=len(found) - unseen)
    return (
        Figure(say("Replicas"), float(len(found)), "count", told, None, State.UNKNOWN if unseen else State.CLEAR),
        Figure(say("Sick"), float(sick), "count", _lasting(found), None, State.APPLIES if sick else State.CLEAR),
        *_odd(found, odd),
        _restarts(found),
        _worst(found, "kv_use", say("KV cache use, fullest"), "ratio"),
        _worst(found, "ttft", say("Mean time to first token, slowest"), "seconds"),
    )


def _lasting(found: Sequence[Standing]) -> Message:
    lasting = sum(standing.stands in SICK and standing.stands is not Stands.APPLIED for standing in found)
    return say("{n} at the end of the window", n=lasting)


def _odd(found: Sequence[Standing], odd: Sequence[Outlier]) -> tuple[Figure, ...]:
    """None where there are too few for a median to mean anything."""
    if len(found) < LEAST_REPLICAS:
        return ()
    says = say("{name}: {what}", name=Names((odd[0].replica,)), what=odd[0].says) if odd else say("none in any figure compared")
    return (Figure(say("Stand out from the median"), float(len(odd)), "count", says, None, State.SUSPECTED if odd else State.CLEAR),)


def _restarts(found: Sequence[Standing]) -> Figure:
    """Of all replicas of which it is known."""
    title, counts = say("Restarts"), [(standing.cells["restarts"].value, standing) for standing in found]
    known = [(count, standing.replica.name) for count, standing in counts if count is not None]
    if not known:
        return Figure(title, None, "count", say("not measured"), None, State.UNKNOWN)
    total = sum(count for count, _name in known)
    where = Names(tuple(name for count, name in known if count))
    return Figure(title, total, "count", say("of {where}", where=where) if total else None, None, State.SUSPECTED if total else State.CLEAR)


def _worst(found: Sequence[Standing], column: str, title: Message, unit: str) -> Figure:
    known = [(value, s.replica.name) for s in found if (value := s.cells[column].value) is not None]
    if not known:
        return Figure(title, None, unit, found[0].cells[column].why, None, State.UNKNOWN)
    value, name = max(known)
    if len(known) < 2:
        return Figure(title, value, unit, say("on {name}", name=Names((name,))))
    if len(known) < LEAST_REPLICAS:
        return Figure(title, value, unit, say("on {name}; the other {figure}", name=Names((name,)), figure=Quantity(min(known)[0], unit)))
    middle = Quantity(float(np.median([each for each, _name in known])), unit)
    return Figure(title, value, unit, say("on {name}; the median replica {middle}", name=Names((name,)), middle=middle))


def advice(found: Sequence[Standing], odd: Sequence[Outlier]) -> tuple[Message, ...]:
    """Whether to look at one replica or at what all share."""
    sick = [standing for standing in found if standing.stands in SICK]
    if len(found) < 2 or not (sick or odd):
        return ()
    said = []
    if len(sick) == len(found):
        said.append(say("The cause lies in what all share: admission, retries, a change of version or settings. Look at the diagnosis."))
    elif sick:
        said.append(say("Compare it with a healthy one before you change a setting of all: its requests, its GPU, its version."))
    for outlier in odd[:1]:
        name = Names((outlier.replica,))
        if outlier.signal.id in _LOAD:
            said.append(say("{name} has more to do than the others: the router may be sticky.", name=name))
        elif outlier.signal.id == "generation_tokens":
            said.append(
                say("{name} makes fewer tokens than the others: see whether it gets as much work, then look at its GPU.", name=name)
            )
        elif outlier.signal.id in _SPEED:
            said.append(say("{name} is slower than the others: look at its GPU, its host and the length of its prompts.", name=name))
    return tuple(said)
