"""Shifts: a level that the traffic, or the length of prompts, leaves within minutes for another one, and stays there.

A daily curve is no shift: it takes hours. A shift makes most of its way within two steps, and the medians before and after it differ.
"""

from __future__ import annotations

import numpy as np

from obs import inside
from obs.events import Event
from obs.facts import Facts
from obs.series import Array, anywhere, median, total_of
from obs.text import Message, Quantity, say

SIDE_SECONDS = 300.0  # on both sides of a shift, its level is the median of this long
SIDE_STEPS = 3  # and of this many steps at least
FACTOR = 1.5  # less is no shift
AT_ONCE = 0.75  # of the way that a shift makes at once; a ramp does not
FOOT = 0.15  # of the way: under it nothing has begun
SMOOTH_SECONDS = 15.0  # on both sides: one noisy scrape is no foot
LEAST_PER_SECOND = 0.05  # under three requests a minute, a rate is chance
MOST = 20  # shifts of a kind, the largest


def traffic(facts: Facts) -> Array:
    """Requests that begin per second over all replicas, [steps]: those that got a first token, else those that finished. NaN while a
    replica's scrapes fail, as its share is not known."""
    begun = facts.reading("ttft").count
    rate = total_of(begun) if begun is not None and np.isfinite(begun).any() else total_of(facts.values("requests_finished"))
    return np.where(anywhere(facts.down), np.nan, rate)


def prompt_length(facts: Facts) -> Array:
    """The mean prompt length of all replicas' requests, tokens, [steps]; NaN where too few requests tell."""
    return facts.joint_mean("prompt_length")


def shifts(facts: Facts) -> tuple[Event, ...]:
    """The shifts within the window, in the order of time."""
    found = []
    for kind, values, unit, least in (
        ("traffic", traffic(facts), "per_second", LEAST_PER_SECOND),
        ("prompt_length", prompt_length(facts), "tokens", 1.0),
    ):
        for at, before, after in jumps(facts, values, least):
            found.append(
                Event(kind, at, _words(kind, Quantity(before, unit), Quantity(after, unit)), doubt=_doubt(facts), up=after > before)
            )
    return tuple(sorted(found, key=lambda event: event.at))


def jumps(facts: Facts, values: Array, least: float) -> list[tuple[float, float, float]]:
    """(when, level before, level after) of each jump of a line. Levels under `least` count as `least` when they are compared.

    A rate that jumps shows it over its whole rate window; "at once" is twice that, and the jump lies in the middle, or where the line
    left its old level, if that was before.
    """
    side, rise = max(SIDE_STEPS, facts.grid.steps(SIDE_SECONDS)), facts.grid.steps(facts.readings.rate_seconds)
    before, after = _levels(values, side, 0)
    soon_before, soon_after = _levels(values, min(side, max(2, rise // 2)), rise)
    far, quick = _apart(before, after, least), _apart(soon_before, soon_after, least)
    score = np.where(inside.inside(facts) & (far >= np.log(FACTOR)) & (quick >= AT_ONCE * far), quick, 0.0)
    found: list[tuple[float, float, float]] = []
    while len(found) < MOST and score.max(initial=0.0) > 0:
        best = int(score.argmax())
        near = slice(max(0, best - rise), best + 2 * rise + 1)
        top = np.flatnonzero(score[near] >= 0.9 * score[best]) + near.start
        middle = int(top[len(top) // 2])
        at, old, new = float(facts.grid.times[middle]), float(before[middle]), float(after[middle])
        if not _doubt(facts):
            left = _left(values, middle, old, new, 2 * rise, facts.grid.steps(SMOOTH_SECONDS)) * facts.grid.step
            at -= max(facts.readings.rate_seconds / 2, left + FOOT * facts.readings.rate_seconds)
        found.append((max(at, facts.readings.start), old, new))
        score[max(0, middle - 3 * rise) : middle + 3 * rise + 1] = 0.0
    return sorted(found)


def _left(values: Array, at: int, old: float, new: float, reach: int, smooth: int) -> int:
    """How many steps before `at` a line was last at its old level, `smooth` steps on both sides taken together; 0 where it was not."""
    way = (values[max(0, at - reach - smooth) : at + smooth + 1] - old) / (new - old)
    if len(way) <= 2 * smooth:
        return 0
    there = np.flatnonzero(median(np.lib.stride_tricks.sliding_window_view(way, 2 * smooth + 1)) <= FOOT)
    return len(way) - 2 * smooth - 1 - int(there[-1]) if there.size else 0


def _levels(values: Array, width: int, apart: int) -> tuple[Array, Array]:
    """The median of the `width` steps that end `apart` steps before each step, and of those that begin `apart` steps after it; NaN where
    fewer than half of them, or than two, are known."""
    edge = np.full(width + apart, np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(np.concatenate([edge, values, edge]), width)
    known = np.isfinite(windows).sum(axis=1) >= max(2, width / 2)
    level = np.where(known, median(windows), np.nan)
    return level[: len(values)], level[width + 2 * apart : width + 2 * apart + len(values)]


def _apart(before: Array, after: Array, least: float) -> Array:
    """How far two levels are apart, as the logarithm of their ratio; 0 where either is unknown."""
    return np.nan_to_num(np.abs(np.log(np.maximum(after, least) / np.maximum(before, least))))


def _doubt(facts: Facts) -> float:
    """Where a step holds several scrapes, a jump shows in the step after it."""
    return 2 * facts.grid.step if facts.grid.step > facts.readings.scrape_seconds else 0.0


def _words(kind: str, before: Quantity, after: Quantity) -> Message:
    if kind == "prompt_length":
        return say("prompts of {before} became {after} on average", before=before, after=after)
    if before.value < LEAST_PER_SECOND:
        return say("traffic begins: {after}", after=after)
    if after.value < LEAST_PER_SECOND:
        return say("traffic ends: it was {before}", before=before)
    if after.value > before.value:
        return say("traffic rises from {before} to {after}", before=before, after=after)
    return say("traffic falls from {before} to {after}", before=before, after=after)
