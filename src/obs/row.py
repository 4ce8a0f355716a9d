"""One row of the table, judged over a window, before it is put in order with the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from obs import evidence as weigh
from obs.changes import changes
from obs.coverage import Coverage, coverage
from obs.facts import Facts
from obs.judge import Judged, episodes, judge
from obs.oom import OutOfMemory, oom_episodes
from obs.oom_evidence import oom_evidence
from obs.order import Applying
from obs.retry_evidence import retry_evidence
from obs.series import Mask, settle
from obs.stage_evidence import averaged, stage_evidence
from obs.text import Message, say
from obs.verdict import ROW_IDS, Change, Episode, Evidence

UNEXPLAINED = say("the symptom is seen, and nothing measured explains it.")
NOW_SECONDS = 60.0  # what was so in the last minute is so now


@dataclass(frozen=True)
class Row:
    """A row with what it rests on. `applying` has one entry an episode; `suspected` is why, over the window and at its end."""

    id: str
    applying: tuple[Applying, ...]
    evidence: tuple[Evidence, ...]
    changes: tuple[Change, ...]
    coverage: Coverage
    suspected: Message | None
    suspected_now: Message | None
    stage: str | None = None

    @property
    def episodes(self) -> tuple[Episode, ...]:
        """When it applied."""
        return tuple(a.episode for a in self.applying)


def rows(facts: Facts, oom: OutOfMemory) -> tuple[Row, ...]:
    """The four rows, in the table's order."""
    names = tuple(replica.name for replica in facts.readings.replicas)
    judged = judge(facts)
    return (_oom_row(facts, oom, names), *(_row(facts, judged[row], names) for row in ROW_IDS[1:]))


def _oom_row(facts: Facts, oom: OutOfMemory, names: tuple[str, ...]) -> Row:
    found = oom_episodes(facts, oom, names)
    deaths = say("a process died with full GPU memory and no other cause; no counter tells whether it was out of memory.")
    events = say("an out-of-memory event was counted, and nothing else shows what it did.")
    suspected = _first(facts, (oom.suspected, deaths), (oom.events, events))
    evidence = oom_evidence(facts, oom, found)
    change = changes(facts, "gpu_oom", weigh.span(facts, found), None, evidence)
    return Row("gpu_oom", tuple(Applying("gpu_oom", e) for e in found), evidence, change, coverage(facts, "gpu_oom"), *suspected)


def _row(facts: Facts, judged: Judged, names: tuple[str, ...]) -> Row:
    found = episodes(facts, judged, names)
    row = judged.symptom.id
    main = main_episode(found)
    steps = weigh.span(facts, main)
    evidence = weigh.of_row(facts, judged, main)
    stage = None
    if judged.stages is not None:
        mask = (judged.applies if found else judged.shown) & steps
        stage = judged.stages.leading(mask)[0] if mask.any() else None
        told = [e for e in evidence if e.signal != "network" and (e.signal != "gateway_ttft" or e.value is not None)]  # the stage says it
        evidence = (
            *(averaged(facts, e, mask, bool(found)) for e in told),
            *stage_evidence(facts, judged.stages, mask, stage, bool(found)),
        )
    if judged.symptom.every:
        evidence = (*evidence, *retry_evidence(facts, steps, bool(found)))
    evidence = tuple(weigh.pooled(facts, e, steps) for e in evidence)
    stage = stage if found else None
    applying = tuple(_applying(facts, judged, episode) for episode in found)
    return Row(
        row, applying, evidence, changes(facts, row, steps, stage, evidence), coverage(facts, row), *_suspicion(facts, judged), stage=stage
    )


def main_episode(found: tuple[Episode, ...]) -> tuple[Episode, ...]:
    """The one that a row's evidence, stage and change are of: the one that lasts, else the longest, as the headline chooses; () of none."""
    return tuple(sorted(found, key=lambda e: (e.end is not None, -((e.end or 0.0) - e.start)))[:1])


def _applying(facts: Facts, judged: Judged, episode: Episode) -> Applying:
    """An episode with what the order asks of it: whether KV space is among the reasons, and the slow stage."""
    steps = weigh.span(facts, (episode,))
    memory = judged.conditions_hold(("kv_use", "preemptions"), judged.applies & steps)
    stage = judged.stages.leading(judged.applies & steps)[0] if judged.stages is not None else None
    mine = [i for i, replica in enumerate(facts.readings.replicas) if replica.name in episode.replicas]
    told = bool(np.isfinite(facts.values("kv_use")[mine]).any(axis=1).all())
    return Applying(judged.symptom.id, episode, memory, stage, memory_told=told)


def _suspicion(facts: Facts, judged: Judged) -> tuple[Message | None, Message | None]:
    """One without the other: the symptom without what explains it, or preemptions or retries without the symptom."""
    excused = facts.excused.all(axis=0) if judged.symptom.every else facts.excused
    hold = facts.grid.steps(facts.limit("hold"))
    alone = settle(judged.shown & ~judged.explained & ~excused, hold, 0)
    untold = np.zeros_like(alone)
    if judged.told is not None:
        untold = settle(judged.shown & ~judged.told & ~excused, hold, 0)
    cause = np.zeros_like(alone)
    for held in judged.held:
        if held.condition.id in ("preemptions", "retry_ratio"):
            cause |= held.mask & ~judged.shown & ~excused
    half = judged.symptom.every and not all(facts.has(condition.signal) for condition in judged.symptom.symptom)
    return _first(
        facts,
        (alone, UNEXPLAINED),
        (untold, say("the symptom is seen, and whether there are errors is not known.")),
        (cause & half, say("retries are seen, and whether they answer time-outs is not known.")),
        (cause, say("what would cause it is seen, the symptom is not.")),
    )


def _first(facts: Facts, *reasons: tuple[Mask, Message]) -> tuple[Message | None, Message | None]:
    """The first reason that holds in the window, and the first that holds at its end."""
    inside = weigh.span(facts, ())
    end = facts.grid.times >= min(facts.readings.end - NOW_SECONDS, facts.grid.end)
    over = next((says for mask, says in reasons if (mask & inside).any()), None)
    return over, next((says for mask, says in reasons if (mask & end).any()), None)
