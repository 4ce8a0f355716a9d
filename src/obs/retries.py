"""Are we doing work twice, or for nobody? The answer of the retries page: the diagnosis' own verdict, and what was made for nobody."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from obs import inside, retries_figures
from obs.facts import Facts
from obs.question import Said
from obs.retries_flow import tokens
from obs.retry_evidence import CANCELLED_RATIO
from obs.series import Array, Mask, total_of
from obs.text import Message, Quantity, say
from obs.verdict import Episode, Finding, State, Verdict
from obs.wording import when_words

FEW_LEFT = 5.0  # callers that left in the window: fewer are chance


def answer(facts: Facts, verdict: Verdict, findings: Sequence[Finding]) -> Said:
    """The sentence, the figures and the advice. `verdict`: of load_after_timeouts; `findings`: the diagnosis'."""
    window = inside.inside(facts)
    nobody = tuple(Episode(each.start, each.end, each.replicas) for each in findings if each.id == "abandoned_work")
    figures = retries_figures.figures(facts, verdict, nobody, window, during(facts, verdict.episodes))
    says = _says(facts, verdict, nobody, window)
    return Said(says.state, says.says, figures, _advice(facts, verdict, nobody, window))


def _says(facts: Facts, verdict: Verdict, nobody: tuple[Episode, ...], window: Mask) -> Said:
    twice = verdict.state is State.APPLIES
    if twice:
        return Said(State.APPLIES, _twice(facts, verdict, nobody, window))
    if nobody:
        when, part = when_words(facts, nobody), _wasted(facts, during(facts, nobody))
        return Said(State.APPLIES, say("Yes, for nobody: {part} of the generated tokens reach nobody, {when}.", part=part, when=when))
    if verdict.state is State.SUSPECTED:
        return Said(State.SUSPECTED, say("Perhaps twice: {why}", why=verdict.reason or say("no figure in this window.")))
    if verdict.state is State.UNKNOWN:
        return Said(State.UNKNOWN, _unknown(facts, verdict, window))
    again = retries_figures.again(facts, window)
    if again is None:
        return Said(State.UNKNOWN, say("Nobody can tell: no request passed a gateway in this window."))
    if again >= facts.limit("retry_ratio"):
        return Said(State.SUSPECTED, _over_budget(facts, again))
    return Said(State.CLEAR, _no(facts, again, window))


def _twice(facts: Facts, verdict: Verdict, nobody: tuple[Episode, ...], window: Mask) -> Message:
    steps = during(facts, verdict.episodes)
    ratio = inside.peak(facts.retry_ratio, steps)
    attempts = Quantity(round(1.0 + (ratio or 0.0), 1), "count")
    when = when_words(facts, verdict.episodes)
    if nobody or (inside.peak(facts.fleet_waste, steps) or 0.0) >= facts.limit("waste"):
        return say(
            "Yes, both: each request becomes up to {attempts} attempts, and {part} of the generated tokens reach nobody, {when}.",
            attempts=attempts, part=_wasted(facts, steps), when=when,
        )  # fmt: skip
    return say("Yes, twice: each request becomes up to {attempts} attempts, {when}.", attempts=attempts, when=when)


def during(facts: Facts, episodes: tuple[Episode, ...]) -> Mask:
    """The window's steps within these episodes; the whole window where there is none."""
    window, times = inside.inside(facts), facts.grid.times
    mask = np.zeros_like(window)
    for episode in episodes:
        mask |= window & episode.shown_at(times)
    return mask if mask.any() else window


def _wasted(facts: Facts, steps: Mask) -> Quantity:
    ratio = tokens(facts).ratio(steps)
    return Quantity(float("nan") if ratio is None else ratio, "ratio")


def _unknown(facts: Facts, verdict: Verdict, window: Mask) -> Message:
    """What is not known, and what is."""
    why = verdict.reason or say("no figure in this window.")
    if tokens(facts).ratio(window) is None:
        return say("Nobody can tell whether work is done twice or for nobody: {why}", why=why)
    return say(
        "Nobody can tell whether work is done twice: {why} Of the generated tokens {part} reach nobody.",
        why=why, part=_wasted(facts, window),
    )  # fmt: skip


def _over_budget(facts: Facts, again: float) -> Message:
    return say(
        "Some of it twice: retries are {retried} of the requests, over the budget of {budget}, but not for long, or without time-outs, or "
        "the load does not stay.",
        retried=Quantity(again, "ratio"), budget=Quantity(facts.limit("retry_ratio"), "ratio"),
    )  # fmt: skip


def _no(facts: Facts, again: float, window: Mask) -> Message:
    retried = Quantity(again, "ratio")
    budget = Quantity(facts.limit("retry_ratio"), "ratio")
    if tokens(facts).ratio(window) is None:
        return say("No: retries are {retried} of the requests (budget {budget}).", retried=retried, budget=budget)
    return say(
        "No: retries are {retried} of the requests (budget {budget}), and {part} of the generated tokens reach nobody.",
        retried=retried, budget=budget, part=_wasted(facts, window),
    )  # fmt: skip


def _advice(facts: Facts, verdict: Verdict, nobody: tuple[Episode, ...], window: Mask) -> tuple[Message, ...]:
    """The change to test with its figures, and whom the engines go on working for."""
    found: list[Message] = []
    if verdict.state is State.APPLIES and not verdict.follows_from:
        for change in verdict.changes:
            detail = change.detail
            whole = say("{change}. {detail}", change=change.title, detail=detail) if detail else say("{change}.", change=change.title)
            found.append(whole)
    elif nobody:
        found.append(say("Cancel abandoned work: propagate that the caller left, verify that generation stops, and load-test it."))
    return (*found, *_still_running(facts, window))


def _still_running(facts: Facts, window: Mask) -> tuple[Message, ...]:
    """Callers that left, and no abort in the engines."""
    step = facts.grid.step
    left = inside.counted(_left(facts)[None, :], window, step)
    aborts = inside.counted(facts.values("engine_aborts"), window, step)
    if left is None or aborts is None or left < FEW_LEFT or aborts >= CANCELLED_RATIO * left:
        return ()
    return (
        say(
            "{left} requests timed out or lost their client, and the engines count {aborts} aborts. That alone proves nothing, as vLLM "
            "does not count clients that leave; the tokens do. Verify under load that generation stops when the caller leaves.",
            left=Quantity(round(left), "count"), aborts=Quantity(round(aborts), "count"),
        ),
    )  # fmt: skip


def _left(facts: Facts) -> Array:
    """Time-outs and cancelled requests per second, [steps]; NaN where neither is counted."""
    return total_of(np.stack([facts.over_layers(signal) for signal in ("gateway_timeouts", "gateway_cancelled")]))
