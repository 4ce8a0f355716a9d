"""The large figures of the retries page, each over the window."""

from __future__ import annotations

import numpy as np

from obs import inside
from obs.edge import MOST_RETRIES
from obs.facts import Facts
from obs.question import Figure
from obs.retries_flow import at_finish, layers, refused, tokens
from obs.retry_evidence import ABANDONED_LEAST, ABANDONED_RATIO
from obs.series import Array, Mask
from obs.text import Message, Quantity, say
from obs.verdict import Episode, State, Verdict

FEW_TIMEOUTS = 0.01  # of the attempts


def figures(facts: Facts, verdict: Verdict, nobody: tuple[Episode, ...], window: Mask, steps: Mask) -> tuple[Figure, ...]:
    """`nobody`: when work was abandoned, as the diagnosis found it; `steps`: while the row applied, else the window."""
    applies = verdict.state is State.APPLIES
    return (
        _attempts(facts, window, steps, applies),
        _retries(facts, window, applies),
        _timeouts(facts, window, applies),
        _refused(facts, window),
        _left(facts, window),
        _unattended(facts, window, applies or bool(nobody)),
        _tokens(facts, window, applies, bool(nobody)),
    )


def _counted(facts: Facts, rates: Array, window: Mask) -> float | None:
    """How many of a single line in the window; None where it is not known."""
    return inside.counted(rates[None, :], window, facts.grid.step)


def again(facts: Facts, window: Mask) -> float | None:
    """Retries over original requests in the window, of the layer with most; None where no layer tells."""
    found = []
    for layer in layers(facts):
        retries, originals = (_counted(facts, values, window) for values in (layer.retries, layer.originals))
        if retries is not None and originals:
            found.append(retries / originals)
    return max(found, default=None)


def _attempts(facts: Facts, window: Mask, steps: Mask, applies: bool) -> Figure:
    title = say("Attempts for each request, most")
    peak = inside.peak(facts.retry_ratio, steps)
    if peak is None:
        return Figure(title, None, "times", facts.reading("gateway_retries").why, None, State.UNKNOWN)
    most = max(layers(facts), key=lambda layer: float(np.nansum(layer.retries[window])))
    counts = [_counted(facts, values, window) or 0.0 for values in (most.originals, most.attempts)]
    originals, attempts = (Quantity(round(count), "count") for count in counts)
    words = say("{originals} requests, {attempts} attempts in this window", originals=originals, attempts=attempts)
    if peak > 0:
        highest = np.where(steps, np.nan_to_num(facts.retry_ratio, nan=-1.0), -1.0).max(axis=0)
        at = facts.moment(float(facts.grid.times[int(highest.argmax())]))
        words = say("highest, at {at}; {words}", at=at, words=words)
    if peak >= MOST_RETRIES:
        words = say("or more, while hardly any request is new; {words}", words=words)
    over = peak >= facts.limit("retry_ratio")
    return Figure(title, 1.0 + peak, "times", words, None, State.APPLIES if applies else State.SUSPECTED if over else State.CLEAR)


def _retries(facts: Facts, window: Mask, applies: bool) -> Figure:
    """Against both budgets: the client's and the gateway's."""
    title, ratio = say("Retries per request"), again(facts, window)
    if ratio is None:
        return Figure(title, None, "ratio", facts.reading("gateway_retries").why, None, State.UNKNOWN)
    client, gateway = facts.limit("retry_ratio"), facts.limit("gateway_retry_budget")
    budgets = {"client": Quantity(client, "ratio"), "gateway": Quantity(gateway, "ratio")}
    if ratio >= gateway:
        words = say("over both budgets, {client} and {gateway}", **budgets)
    elif ratio >= client:
        words = say("over the client's budget of {client}, within the gateway's {gateway}", **budgets)
    else:
        words = say("within the budgets of {client} and {gateway}", **budgets)
    state = State.CLEAR if ratio < client else State.APPLIES if applies else State.SUSPECTED
    return Figure(title, ratio, "ratio", words, None, state)


def _timeouts(facts: Facts, window: Mask, applies: bool) -> Figure:
    title = say("Time-outs")
    count = _counted(facts, facts.over_layers("gateway_timeouts"), window)
    if count is None:
        return Figure(title, None, "count", facts.reading("gateway_timeouts").why, None, State.UNKNOWN)
    sent = _counted(facts, facts.over_layers("gateway_attempts"), window)
    part = min(1.0, count / sent) if sent else 1.0
    words = say("{part} of the attempts", part=Quantity(part, "ratio")) if sent else None
    few = count < facts.limit("timeouts") or part < FEW_TIMEOUTS
    state = State.APPLIES if applies else State.CLEAR if few else State.SUSPECTED
    return Figure(title, float(round(count)), "count", words, None, state)


def _refused(facts: Facts, window: Mask) -> Figure:
    """What the budget refused, and what was tried to the end: a budget that bites is no trouble of its own."""
    title = say("Retries refused or used up")
    over, used = (_counted(facts, values, window) for values in refused(facts))
    if over is None and used is None:
        return Figure(title, None, "count", facts.reading("gateway_retry_overflow").why, None, State.UNKNOWN)
    parts = {"over": Quantity(_whole(over), "count"), "used": Quantity(_whole(used), "count")}
    if used is None:
        words = say("{over} refused by a budget; how many were used up is not told", over=parts["over"])
    elif over is None:
        words = say("{used} used up; how many a budget refused is not told", used=parts["used"])
    else:
        words = say("{over} refused by a budget, {used} used up", **parts)
    return Figure(title, _whole((over or 0.0) + (used or 0.0)), "count", words)


def _whole(count: float | None) -> float:
    return float("nan") if count is None else float(round(count))


def _left(facts: Facts, window: Mask) -> Figure:
    """Clients that left, and what the engines aborted."""
    title = say("Clients that left")
    left = _counted(facts, facts.over_layers("gateway_cancelled"), window)
    aborts = inside.counted(facts.values("engine_aborts"), window, facts.grid.step)
    words = say("aborts in the engines: {aborts}", aborts=Quantity(_whole(aborts), "count")) if aborts is not None else None
    if left is None:
        why = facts.reading("gateway_cancelled").why
        return Figure(title, None, "count", _both(why, words), None, State.UNKNOWN)
    return Figure(title, _whole(left), "count", words)


def _both(first: Message | None, other: Message | None) -> Message | None:
    return say("{other}. {first}", first=first, other=other) if first and other else first or other


def _unattended(facts: Facts, window: Mask, seen: bool) -> Figure:
    """`seen`: whether the diagnosis found retries or abandoned work; else it may be a ramp that two gauges see at two moments."""
    title, held = say("Held for nobody, most"), facts.unattended[0]
    peak = inside.peak(held[None, :], window)
    if peak is None:
        return Figure(title, None, "count", facts.reading("gateway_active").why, None, State.UNKNOWN)
    at = int(np.nanargmax(np.where(window, np.nan_to_num(held, nan=-1.0), -1.0)))
    work = float(facts.work[0][at])
    many = peak >= max(ABANDONED_LEAST, ABANDONED_RATIO * work)
    words = say("of {work} in the engines: no gateway holds them open", work=Quantity(work, "count"))
    return Figure(title, float(round(peak)), "count", words, None, State.CLEAR if not many else State.APPLIES if seen else State.SUSPECTED)


def _tokens(facts: Facts, window: Mask, applies: bool, nobody: bool) -> Figure:
    title, found = say("Tokens made for nobody"), tokens(facts)
    ratio = found.ratio(window)
    if ratio is None:
        lacking = next((s for s in ("generation_tokens", "output_length") if not facts.has(s)), "generation_tokens")
        late = say("not told: tokens are counted only when a request is finished") if at_finish(facts).any() else None
        return Figure(title, None, "ratio", facts.reading(lacking).why or late, None, State.UNKNOWN)
    wasted = _counted(facts, found.wasted, window) or 0.0
    much = ratio >= facts.limit("waste")
    state = State.APPLIES if nobody or (much and applies) else State.SUSPECTED if much else State.CLEAR
    return Figure(
        title,
        ratio,
        "ratio",
        say("of those of the whole window, about {tokens}", tokens=Quantity(float(round(wasted)), "tokens")),
        None,
        state,
    )
