"""Conditions as evidence: the figure that decided, its baseline and threshold, since when, where, and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from obs.conditions import Condition, Held
from obs.facts import Facts
from obs.judge import Judged
from obs.onset import began
from obs.series import Array, Mask, anywhere, divide, trailing
from obs.text import Message, Quantity, Value, say
from obs.verdict import Episode, Evidence, Stance


def span(facts: Facts, episodes: Sequence[Episode]) -> Mask:
    """The steps to read figures from: the episodes, else the window. Shape [steps]."""
    if not episodes:
        return facts.inside
    out = np.zeros(facts.grid.count, dtype=np.bool_)
    for episode in episodes:
        out |= episode.shown_at(facts.grid.times)
    return out


def of_row(facts: Facts, judged: Judged, episodes: Sequence[Episode]) -> tuple[Evidence, ...]:
    """Every condition of a row as evidence, in the table's order."""
    steps = span(facts, episodes)
    against = {condition.id for condition in judged.symptom.against}
    shown = judged.shown.any(where=np.broadcast_to(steps, judged.shown.shape))
    return tuple(_weigh(facts, held, steps, bool(episodes), held.condition.id in against, bool(shown)) for held in judged.held)


def _weigh(facts: Facts, held: Held, steps: Mask, applies: bool, against: bool, shown: bool) -> Evidence:
    """One condition: supports where it holds (or where what would speak against the row is quiet), contradicts where it does not."""
    condition, mask = held.condition, held.mask & steps
    if not applies and mask.shape[0] == facts.rows and condition.stays is False:
        mask = mask & ~facts.excused  # a warm-up, a stall: not judged, so it speaks for nothing
    holds = bool(mask.any())
    values = held.values if holds else _lasting(facts, held)
    peak = _peak(values, mask if holds else np.broadcast_to(steps, held.mask.shape))
    if peak is None:
        return missing(facts, condition)
    row, at = peak
    if against:
        stance = Stance.CONTRADICTS if holds else (Stance.SUPPORTS if applies else Stance.NEUTRAL)
    else:
        stance = Stance.SUPPORTS if holds else (Stance.NEUTRAL if applies else Stance.CONTRADICTS)
        if holds and not applies and not shown and not condition.telling:
            stance = Stance.NEUTRAL
    value, limit = float(values[row, at]), held.limits.at(row, at)
    passed = not holds and bool(value >= limit)
    if passed and not against:
        stance = Stance.NEUTRAL
    first = int(mask[row].argmax()) if holds else None
    onset = began(held, row, first, facts.grid.step) if first is not None else None
    usual_at = onset if onset is not None else (first if first is not None else at)
    baseline = _finite(held.baseline.at(row, usual_at))
    names = facts.readings.replicas
    replicas = tuple(names[r].name for r in np.flatnonzero(mask.any(axis=1))) if mask.shape[0] == len(names) and holds else ()
    when = facts.grid.start + at * facts.grid.step
    found = make(
        facts, condition.signal, condition.title, condition.unit, stance,
        value=value, baseline=baseline, threshold=_finite(held.limits.at(row, at)), id=condition.id,
        onset=facts.grid.start + onset * facts.grid.step if onset is not None else None, replicas=replicas,
        of=peak_words(facts, when, 0.0 if holds else facts.limit("hold")) if value > 0 else None,
    )  # fmt: skip
    if not passed:
        return found
    return replace(found, says=say("{figure}: too short, or during a warm-up or an outage, which is not judged", figure=found.says))


def _lasting(facts: Facts, held: Held) -> Array:
    """The figures as they last: means over the time that a condition must hold. A peak of seconds is no figure of a window."""
    steps = facts.grid.steps(facts.limit("hold"))
    known = np.isfinite(held.values).astype(np.float64)
    return np.where(held.known, divide(trailing(np.where(held.known, held.values, 0.0), steps), trailing(known, steps)), np.nan)


def make(
    facts: Facts, signal: str, title: Message, unit: str, stance: Stance, *, value: float, baseline: float | None = None,
    threshold: float | None = None, onset: float | None = None, replicas: tuple[str, ...] = (), id: str | None = None,
    of: Message | None = None,
) -> Evidence:  # fmt: skip
    """Evidence with its sentence, and the metric and PromQL of its signal."""
    reading = facts.reading(signal)
    says = sentence(title, unit, value, baseline, threshold, of)
    return Evidence(
        id or signal, title, stance, unit, says, value, baseline, threshold, onset, replicas, reading.metric, reading.promql, of
    )  # fmt: skip


def peak_words(facts: Facts, at: float, seconds: float = 0.0) -> Message:
    """That a figure is the highest, and when; `seconds`: of means over this long."""
    when = facts.moment(at)
    if seconds:
        return say("highest over {length}, at {at}", length=Quantity(seconds, "seconds"), at=when)
    return say("highest, at {at}", at=when)


def sentence(
    title: Message, unit: str, value: float, baseline: float | None, threshold: float | None, of: Message | None = None
) -> Message:  # fmt: skip
    """The figure with what it is, its threshold and what it was before."""
    known: dict[str, Value] = {"title": title, "value": Quantity(value, unit)}
    if threshold is not None:
        known["threshold"] = Quantity(threshold, unit)
    if baseline is not None:
        known["baseline"] = Quantity(baseline, unit)
    if of is None:
        if threshold is not None and baseline is not None:
            return say("{title} {value} (threshold {threshold}, before {baseline})", **known)
        if threshold is not None:
            return say("{title} {value} (threshold {threshold}, no baseline)", **known)
        return say("{title} {value} (before {baseline})", **known) if baseline is not None else say("{title} {value}", **known)
    if threshold is not None and baseline is not None:
        return say("{title} {value} ({of}; threshold {threshold}, before {baseline})", of=of, **known)
    if threshold is not None:
        return say("{title} {value} ({of}; threshold {threshold}, no baseline)", of=of, **known)
    if baseline is not None:
        return say("{title} {value} ({of}; before {baseline})", of=of, **known)
    return say("{title} {value} ({of})", of=of, **known)


def pooled(facts: Facts, evidence: Evidence, steps: Mask) -> Evidence:
    """Says so where most of a figure's time no replica has a mean of its own."""
    lent = anywhere(facts.lent(evidence.signal))[steps]
    if evidence.value is None or lent.sum() * 2 <= lent.size:
        return evidence
    says = say("{figure}: of its replicas together, as each has too few requests for a mean of its own", figure=evidence.says)
    return replace(evidence, says=says)


def missing(facts: Facts, condition: Condition) -> Evidence:
    """A condition whose figure is not there, and why."""
    reading = facts.reading(condition.signal)
    why = reading.why or say("no figure in this window.")
    says = say("{title}: {why}", title=condition.title, why=why)
    return Evidence(condition.id, condition.title, Stance.MISSING, condition.unit, says, metric=reading.metric, promql=reading.promql)


def _peak(values: Array, mask: Mask) -> tuple[int, int] | None:
    """(row, step) of the largest finite value under the mask."""
    seen = np.where(mask & ~np.isnan(values), values, -np.inf)
    if seen.size == 0 or not (seen > -np.inf).any():
        return None
    row, step = np.unravel_index(int(seen.argmax()), seen.shape)
    return int(row), int(step)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
