"""A verdict that is derived again from kept readings: is it the same, and if not, which rule changed since? Pure."""

from __future__ import annotations

from collections.abc import Mapping

from obs.text import Message, Names, Quantity, Sentences, say
from obs.titles import ROWS, STATES
from obs.verdict import Diagnosis, State

_SAME = 1e-9
_TOLD = 4


def differs(states: Mapping[str, str], found: Diagnosis) -> bool:
    """Whether a row is judged otherwise than it was: `states` by row id, as they were kept."""
    return any(states.get(verdict.row, verdict.state.value) != verdict.state.value for verdict in found.verdicts)


def changed(states: Mapping[str, str], thresholds: Mapping[str, float], made_by: str, version: str, found: Diagnosis) -> Sentences | None:
    """What the reader is told where the verdict is not the one of then; None where it is.

    `thresholds` are those in force then (none known: empty); `made_by` and `version` name obs then and now.
    """
    if not differs(states, found):
        return None
    rows = [
        say("{row}: then {then}, now {now}.", row=ROWS[v.row], then=STATES[State(states[v.row])], now=STATES[v.state])
        for v in found.verdicts
        if states.get(v.row, v.state.value) != v.state.value and states[v.row] in set(State)
    ]
    moved = [
        say("Threshold {id}: then {then}, now {now}.", id=Names((id_,)), then=Quantity(value, now.unit), now=Quantity(now.value, now.unit))
        for id_, value in thresholds.items()
        if (now := found.thresholds.get(id_)) is not None and abs(now.value - value) > _SAME * max(1.0, abs(value))
    ]
    why: list[Message] = moved[:_TOLD]
    if made_by and made_by != version:
        why.append(say("The rules may have changed: it was judged by {then}, and this is {now}.", then=made_by, now=version))
    if not why:
        why.append(say("No threshold has changed: the rules themselves have, or the PromQL that is set."))
    return Sentences((say("The verdict is not the one that was given when these readings were kept."), *rows, *why))
