"""Where each row applies: its symptom and what explains it, held together, by replica and step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from obs.conditions import GAP_SECONDS, Condition, Held, hold
from obs.facts import Facts
from obs.onset import BELONGS_SECONDS, NEAR_SECONDS, began, load_began
from obs.series import Array, Mask, anywhere, backward_max, near, runs, settle
from obs.stages import Stages, stages
from obs.symptoms import ERRORS, FIRST_TOKEN, LATENCY, PRESSURE, RETRIES, SYMPTOMS, WORK_LEFT, Symptom
from obs.verdict import Episode

ERRORS_KNOWN_SECONDS = 300.0  # with little traffic an answer may be minutes ago
TAIL_SECONDS = 60.0  # rates and means look back: what ends this soon after the window's start was before it


@dataclass(frozen=True)
class Judged:
    """One row over the grid; masks of shape [replicas, steps], or [1, steps] for a row judged at the gateway."""

    symptom: Symptom
    shown: Mask  # the symptom holds
    explained: Mask  # an explanation holds
    applies: Mask
    held: tuple[Held, ...]  # in the order of the article's first evidence
    stages: Stages | None = None
    flat: Mask | None = None  # latency without errors: where the errors are known, and few
    told: Mask | None = None  # and where they are known

    def conditions_hold(self, ids: Iterable[str], where: Mask) -> bool:
        """Whether any of these conditions holds anywhere under `where`."""
        return any(bool((held.mask & where).any()) for held in self.held if held.condition.id in ids)


def judge(facts: Facts) -> dict[str, Judged]:
    """The three rows that are judged by conditions held over time; `gpu_oom` is judged by events, in obs.oom."""
    held = {c.id: hold(facts, c) for c in (*LATENCY, *PRESSURE, ERRORS, *FIRST_TOKEN, *RETRIES, *WORK_LEFT)}
    _, latency, first_token, load = SYMPTOMS
    return {
        latency.id: _latency(facts, latency, held),
        first_token.id: _first_token(facts, first_token, held),
        load.id: _load(facts, load, held),
    }


def _any(held: dict[str, Held], conditions: Iterable[Condition], shape: tuple[int, int]) -> Mask:
    out = np.zeros(shape, dtype=np.bool_)
    for condition in conditions:
        out = out | held[condition.id].mask
    return out


def _together(facts: Facts, one: Mask, other: Mask) -> Mask:
    """Where both hold, or one holds while the other is near."""
    steps = facts.grid.steps(NEAR_SECONDS)
    return (one & near(other, steps)) | (other & near(one, steps))


def _settled(facts: Facts, mask: Mask, excused: Mask | None = None) -> Mask:
    """What lasts, outside the excuses; an episode that runs into a stall or a death within minutes belongs to that."""
    grid = facts.grid
    hold, gap = grid.steps(facts.limit("hold")), grid.steps(GAP_SECONDS)
    if excused is None:
        return settle(mask, hold, gap)
    out = settle(mask & ~excused, hold, gap)
    ended = facts.stalled | facts.gone
    for row in np.flatnonzero(out.any(axis=1) & ended.any(axis=1)):
        for first, last in runs(out[row]):
            ahead = ended[row, first : last + grid.steps(GAP_SECONDS) + 2]
            if ahead.any() and int(ahead.argmax()) * grid.step < BELONGS_SECONDS:
                out[row, first : last + 1] = False
    return out & ~excused


def _latency(facts: Facts, row: Symptom, held: dict[str, Held]) -> Judged:
    shape = (facts.rows, facts.grid.count)
    shown, explained = _any(held, LATENCY, shape), _any(held, PRESSURE, shape)
    told = backward_max(held[ERRORS.id].known, facts.grid.steps(ERRORS_KNOWN_SECONDS)) & ~near(
        facts.errors_untold, facts.grid.steps(NEAR_SECONDS)
    )
    flat = ~held[ERRORS.id].mask & told
    applies = _settled(facts, _together(facts, shown, explained) & flat, facts.excused)
    return Judged(row, shown, explained, applies, tuple(held[c.id] for c in (*PRESSURE, *LATENCY, ERRORS)), flat=flat, told=told)


def _first_token(facts: Facts, row: Symptom, held: dict[str, Held]) -> Judged:
    told = near(anywhere(held["ttft"].known)[None, :], facts.grid.steps(NEAR_SECONDS))
    edge = held["gateway_ttft"].mask & ~told  # only where no engine tells
    shown = held["ttft"].mask | held["network"].mask | edge
    by_stage = stages(facts, held["waiting"].mask)
    explained = by_stage.share(np.maximum(_rise(held["ttft"]), np.where(edge, _rise(held["gateway_ttft"]), 0.0))) >= facts.limit(
        "stage_share"
    )
    applies = _settled(facts, shown & near(explained, facts.grid.steps(NEAR_SECONDS)), facts.excused)
    return Judged(row, shown, explained, applies, tuple(held[c.id] for c in FIRST_TOKEN), by_stage)


def _rise(held: Held) -> Array:
    """How far a figure stands over its baseline; 0 where it is not known."""
    return np.nan_to_num(held.values - np.nan_to_num(held.baseline.steps()))


def _load(facts: Facts, row: Symptom, held: dict[str, Held]) -> Judged:
    shape = (len(facts.gateways), facts.grid.count)
    shown = _together(facts, held[RETRIES[0].id].mask, held[RETRIES[1].id].mask)
    explained = _any(held, WORK_LEFT, shape)
    applies = _settled(facts, shown & explained)
    return Judged(row, shown, explained, applies, tuple(held[c.id] for c in (*RETRIES, *WORK_LEFT)))


def episodes(facts: Facts, judged: Judged, names: tuple[str, ...]) -> tuple[Episode, ...]:
    """The stretches in which the row applies anywhere, that meet the window. `end` is None where it lasts."""
    grid, window = facts.grid, facts.readings
    found = []
    together = settle(anywhere(judged.applies)[None, :], 1, grid.steps(GAP_SECONDS))[0]
    leading = [h for h in judged.held if h.condition is not ERRORS]
    for first, last in runs(together):
        rows = [r for r in range(judged.applies.shape[0]) if judged.applies[r, first : last + 1].any()]
        starts: list[int] = []
        if judged.symptom.every:
            starts = [load_began(facts, leading[0], row, first) for row in rows]
        else:
            for row in rows:
                begin = first + int(judged.applies[row, first : last + 1].argmax())
                known = [began(h, row, begin, grid.step) for h in leading if h.mask[row if len(h.mask) > 1 else 0, first : last + 1].any()]
                starts += [s for s in known if s is not None]
        end = None if last >= grid.count - 2 else grid.start + last * grid.step
        if end is not None and end <= window.start + TAIL_SECONDS:
            continue
        where = () if judged.symptom.every else tuple(names[r] for r in rows)
        begun = max(0, min(starts, default=first) - 1)  # `first` is widened by what is near; a scrape shows what was since the one before
        found.append(Episode(grid.start + begun * grid.step, end, where))
    return tuple(found)
