"""Conditions: one figure held against its threshold, over time, by replica.

A condition is on from where its figure crosses the limit until it is back under the release, and counts only where it is held.
The limit is the largest of a floor, a multiple of the baseline and a rise over the baseline; without a baseline an absolute
limit decides, and where there is none of that either, the condition is never on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from obs.baseline import Blocks, usual
from obs.facts import Facts, crossed
from obs.series import Array, Mask, divide, painted, settle, spans, worst
from obs.text import Message

GAP_SECONDS = 60.0  # a shorter dip, or a hole in the data, does not end it
RELEASE = 0.5  # a condition ends half way back to the baseline
RELEASE_OF_FLOOR = 0.85  # one without a baseline a little under its limit: KV use flaps between 0.85 and 1 while preempting


@dataclass(frozen=True)
class Limit:
    """How a limit is made; each field is the name of a threshold, or None."""

    floor: str | None = None
    ratio: str | None = None
    rise: str | None = None
    absolute: str | None = None  # where there is no baseline
    by_prompt: bool = False  # the absolute limit grows with the prompt lengths seen


@dataclass(frozen=True)
class Condition:
    """One condition of a row. `words` says it, with `{limit}` for its threshold."""

    id: str
    signal: str  # whose metric and PromQL stand beside it
    title: Message
    words: Message
    unit: str
    figure: Callable[[Facts], Array]
    limit: Limit
    mean_of: str | None = None  # the signal whose mean it is: it must last longer than the look-back of that mean
    stays: bool = False  # it is on as usual, and matters where it stays so beside others
    telling: bool = True  # by itself it says something: a full pool with steady latency does its job


@dataclass(frozen=True)
class Held:
    """A condition, held: arrays of shape [rows, steps]. `mask` is where it holds, `known` where it has a figure."""

    condition: Condition
    values: Array
    baseline: Blocks
    limits: Blocks
    mask: Mask
    known: Mask


def limits(facts: Facts, limit: Limit, base: Array) -> Array:
    """The limit for each baseline, NaN where nothing gives one."""
    known = np.isfinite(base)
    out = np.full_like(base, facts.limit(limit.floor) if limit.floor else 0.0)
    if limit.ratio:
        out = np.where(known, np.maximum(out, base * facts.limit(limit.ratio)), out)
    if limit.rise:
        out = np.where(known, np.maximum(out, base + facts.limit(limit.rise)), out)
    if limit.ratio or limit.rise:
        other: float | Array = facts.limit(limit.absolute) if limit.absolute else (facts.limit(limit.floor) if limit.floor else np.nan)
        if limit.by_prompt:
            other = other + facts.prefill_allowance.reshape(-1, *[1] * (base.ndim - 1))
        out = np.where(known, out, np.maximum(out, other))
    return out


def hold(facts: Facts, condition: Condition) -> Held:
    """Hold a condition against the facts."""
    values, grid = condition.figure(facts), facts.grid

    def out_of_line(base: Array) -> Array:
        above = limits(facts, condition.limit, base)
        return np.where(np.isnan(above), np.inf, above)

    base = usual(values, grid, _steady if condition.stays else out_of_line)
    on = Blocks(limits(facts, condition.limit, base.values), base.size, grid.count)
    known = ~np.isnan(values)
    crossing = _ever(values, on)  # the others are never on: most replicas, most of the time
    mask = np.zeros(values.shape, dtype=np.bool_)
    if crossing.any():
        mask[crossing] = _held(facts, condition, values[crossing], base.steps(crossing), on.steps(crossing))
    span = facts.look_back(condition.mean_of) if condition.mean_of else np.zeros((1, grid.count))
    span = span if len(span) == len(values) else np.broadcast_to(span.max(axis=0), values.shape)
    return Held(condition, values, base, on, _lasting(facts, mask, span), known)


def way(facts: Facts, conditions: Iterable[Condition]) -> Array:
    """How much of the way from its baseline to its limit any of these figures went on any replica, [steps]: 1 is at the limit, whether
    it is held or not. 0 where nothing is known."""
    most: Array = np.zeros(facts.grid.count)
    for condition in conditions:
        held = hold(facts, condition)
        base = np.nan_to_num(held.baseline.steps())
        most = np.fmax(most, worst(divide(held.values - base, held.limits.steps() - base)))
    return most


def _ever(values: Array, on: Blocks) -> Mask:
    """Which rows reach their limit at some step."""
    whole = on.count // on.size * on.size
    blocks = values[:, :whole].reshape(len(values), on.count // on.size, on.size)  # -1 would not do where there is no row
    with np.errstate(invalid="ignore"):
        crossing = (blocks >= on.values[:, : blocks.shape[1], None]).any(axis=(1, 2))
        return np.asarray(crossing | (values[:, whole:] >= on.values[:, -1:]).any(axis=1), dtype=np.bool_)


def _held(facts: Facts, condition: Condition, values: Array, base: Array, on: Array) -> Mask:
    """From where each row crosses its limit until it is back under the release; holes in the data are bridged as long as a dip."""
    relative = np.isfinite(base) & (bool(condition.limit.ratio or condition.limit.rise) and not condition.stays)
    off = np.where(relative, base + (on - base) * RELEASE, on * RELEASE_OF_FLOOR)
    gap = facts.grid.steps(GAP_SECONDS)
    return settle(crossed(values, on, off) & settle(~np.isnan(values), 1, gap), 1, gap)


def _steady(base: Array) -> Array:
    """What is usual of a figure that is not out of line when it is high: not much more than before."""
    return np.where(np.isfinite(base), base * 1.5 + 5.0, np.inf)


def _lasting(facts: Facts, mask: Mask, span: Array) -> Mask:
    """Drop what is too short: less than the hold, or no longer than one single slow request stays in the figure."""
    row, first, last = spans(mask)
    if not row.size:
        return mask
    looked = np.broadcast_to(span, mask.shape)
    edges = np.stack([row * mask.shape[1] + first, row * mask.shape[1] + last + 1], axis=1).ravel()
    flat = np.append(np.where(mask, looked, 0.0).ravel(), 0.0)  # so that a stretch may end at the very end
    single = np.maximum.reduceat(flat, edges)[::2] + facts.readings.rate_seconds
    long = (last - first + 1) * facts.grid.step >= np.maximum(facts.limit("hold"), single + facts.grid.step)
    return painted(mask.shape, row[long], first[long], last[long])
