"""What fills the GPU, and what would still fit? The answer of the GPU memory page, from readings that are already there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from obs import inside
from obs.facts import Facts
from obs.gpu_events import Lane, lanes
from obs.gpu_use import Use, fullest
from obs.memory.figure import size_of
from obs.question import Figure, Said
from obs.text import Message, Moment, Names, Quantity, say, say_n
from obs.verdict import State

_DAY = 86400.0


def answer(facts: Facts) -> Said:
    """The sentence, the figures and the advice for the window."""
    use, found = fullest(facts), lanes(facts)
    if use is None:
        return Said(State.UNKNOWN, say("Nobody can tell: no replica of an engine is in this window and scope."))
    state, says = _answer(facts, use, found)
    return Said(state, says, figures(facts, use, found), _advice(facts, state, use))


def _answer(facts: Facts, use: Use, found: Sequence[Lane]) -> tuple[State, Message]:
    errors = found[0].events
    if errors:
        where = Names(tuple(dict.fromkeys(event.replica for event in errors)))
        first = Moment(errors[0].at, facts.readings.end - facts.readings.start > _DAY)
        return State.APPLIES, say_n(
            "The GPU ran out of memory {n} time, on {where}, first at {first}.",
            "The GPU ran out of memory {n} times, on {where}, first at {first}.",
            len(errors),
            where=where,
            first=first,
        )
    name = Names((use.replica,))
    if not use.exported or use.peak is None:
        if use.weights is not None:
            return State.UNKNOWN, say(
                "Nobody can tell what is free: no exporter shows the GPU's memory. The engine on {name} tells its weights, {weights}.",
                name=name, weights=size_of(use.weights),
            )  # fmt: skip
        return State.UNKNOWN, say("Nobody can tell how full the GPU is: no exporter shows its memory.")
    limit, ratio = facts.limit("gpu_memory"), Quantity(use.peak, "ratio")
    free = size_of(use.free if use.free is not None else float("nan"))
    if use.peak >= limit:
        return State.SUSPECTED, say(
            "Nearly nothing is left: {ratio} of the GPU memory was used on {name}; {free} free.", ratio=ratio, name=name, free=free
        )
    return State.CLEAR, say(
        "There is room: at most {ratio} of the GPU memory was used, on {name}; {free} free.", ratio=ratio, name=name, free=free
    )


def figures(facts: Facts, use: Use, found: Sequence[Lane]) -> tuple[Figure, ...]:
    """Used and free, the KV cache in tokens, and how often what happened."""
    return (_used(facts, use), _free(facts), *_capacity(facts), *(_events(lane) for lane in found))


def _used(facts: Facts, use: Use) -> Figure:
    title = say("GPU memory used, fullest")
    if use.peak is None:
        return Figure(title, None, "ratio", say("not measured"), None, State.UNKNOWN)
    name, limit = Names((use.replica,)), facts.limit("gpu_memory")
    says = say("on {name}", name=name)
    if use.used is not None and use.total is not None:
        says = say("on {name}; now {used} of {total}", name=name, used=size_of(use.used), total=size_of(use.total))
    before = inside.usual(facts, facts.values("gpu_memory")[[r.name for r in facts.readings.replicas].index(use.replica)], None)
    return Figure(title, use.peak, "ratio", says, before, State.SUSPECTED if use.peak >= limit else State.CLEAR)


def _free(facts: Facts) -> Figure:
    title, values = say("GPU memory free, least"), facts.values("gpu_memory_free")[:, inside.inside(facts)]
    if not np.isfinite(values).any():
        return Figure(title, None, "binary_bytes", say("not measured"), None, State.UNKNOWN)
    least = float(np.nanmin(values))
    row = int(np.nanargmin(np.where(np.isfinite(values), values, np.inf).min(axis=1)))
    name = Names((facts.readings.replicas[row].name,))
    return Figure(title, least, "binary_bytes", say("{decimal}, on {name}", decimal=Quantity(least, "decimal_bytes"), name=name))


def _capacity(facts: Facts) -> tuple[Figure, ...]:
    values = facts.values("kv_capacity_tokens")[:, inside.inside(facts)]
    if not np.isfinite(values).any():
        return ()
    return (Figure(say("KV cache capacity"), float(np.nanmin(values)), "tokens", say("of one replica, as its engine shows it")),)


def _events(lane: Lane) -> Figure:
    if lane.why is not None:
        return Figure(lane.title, None, "count", say("not measured"), None, State.UNKNOWN)
    state = {"restart": State.SUSPECTED}.get(lane.kind, State.APPLIES) if lane.events else State.CLEAR
    where = Names(tuple(dict.fromkeys(event.replica for event in lane.events)))
    return Figure(lane.title, float(len(lane.events)), "count", say("on {name}", name=where) if lane.events else None, None, state)


def _advice(facts: Facts, state: State, use: Use) -> tuple[Message, ...]:
    """What would tell, where nothing does; and the article's caveats to what people change first."""
    found = [
        say(
            "Raise gpu_memory_utilization only after you have confirmed that the other allocations still fit: activations, CUDA graphs, "
            "communication and other processes live in what it leaves."
        ),
        say("Moving KV data to CPU or disk adds transfers, and does not make an oversized active request fit."),
    ]
    if not use.exported:
        return (facts.reading("gpu_memory").why or say("no figure in this window."), *found)
    if state is State.APPLIES:
        return tuple(found)
    return (
        say("An engine takes its share at its start and keeps it: a full GPU is not a full KV cache, and hardly moves under load."),
        *found,
    )
