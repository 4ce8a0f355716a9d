"""The stages of the first token as evidence: each mean with what it was before, the slow one in support."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from obs.evidence import sentence
from obs.facts import Facts
from obs.series import Array, Mask
from obs.stages import Stages
from obs.symptoms import STAGES
from obs.text import Message, Quantity, say
from obs.verdict import Evidence, Stance

_OF = (
    ("queue_time", say("Queue, mean")),
    ("ttft_remainder", say("Tokenization and front end, mean")),
    ("prefill_time", say("Prefill, mean")),
    ("network_time", say("Network, mean")),
)
MIXED = say("Remainder of the first token, mean")
_FRONT_END = say("neither queue nor prefill, and few requests wait; no engine measures it")
_WAITED = say("neither queue nor prefill; while requests queue up, the wait of those that have not finished is in it")
FINISHING_RATIO = 0.8  # of the requests that begin: fewer finish, and the stages lag
_SIGNAL = {"ttft_remainder": "ttft", "network_time": "gateway_ttft"}


def stage_evidence(facts: Facts, stages: Stages, mask: Mask, leading: str | None, applies: bool) -> tuple[Evidence, ...]:
    """One piece of evidence a stage: means over `mask` ([replicas, steps], where the row holds), else over the window."""
    where = mask if mask.any() else np.broadcast_to(facts.grid.times >= facts.readings.start, mask.shape)
    of = mean_words(mask, applies)
    out = []
    for number, (id, title) in enumerate(_OF):
        reading = facts.reading(_SIGNAL.get(id, id))
        means, usual = stages.means[number][where], stages.usual[number].steps()[where]
        if not np.isfinite(means).any():
            says = say("{title}: {why}", title=title, why=reading.why or say("no figure in this window."))
            out.append(Evidence(id, title, Stance.MISSING, "seconds", says))
            continue
        value = float(np.nanmean(means))
        before = float(np.nanmedian(usual)) if np.isfinite(usual).any() else None
        stance = Stance.SUPPORTS if STAGES[number] == leading else Stance.NEUTRAL
        mixed = id == "ttft_remainder" and stance is not Stance.SUPPORTS and _waits(stages, means, where)
        title = MIXED if mixed else title
        says = sentence(title, "seconds", value, before, None, of)
        if id == "ttft_remainder":
            says = say("{figure}: {what}", figure=says, what=_WAITED if mixed else _FRONT_END)
        out.append(Evidence(id, title, stance, "seconds", says, value, before, metric=reading.metric, promql=reading.promql, of=of))
    return tuple(out) if (lag := _lag(facts, where)) is None else (*out, lag)


def _waits(stages: Stages, means: Array, where: Mask) -> bool:
    """Whether most of the remainder was seen while requests queued up: then nobody can tell the front end from the wait of those that
    have not finished."""
    rest = np.nan_to_num(means)
    return bool(rest[stages.queued[where]].sum() * 2 > rest.sum())


def mean_words(mask: Mask, applies: bool) -> Message:
    """What the means of a row's stages are of: the same stretch for all of them, so that they add up."""
    if not mask.any():
        return say("mean of the window")
    return say("mean while the row applied") if applies else say("mean while it was slow")


def averaged(facts: Facts, evidence: Evidence, mask: Mask, applies: bool) -> Evidence:
    """The first token's own evidence over the same stretch as its stages, so that they add up; as it is where the row holds nowhere."""
    means = facts.mean("ttft")[mask] if evidence.signal == "ttft" and mask.any() else np.array([])
    if not np.isfinite(means).any():
        return evidence
    value, of = float(np.nanmean(means)), mean_words(mask, applies)
    says = sentence(evidence.title, evidence.unit, value, evidence.baseline, evidence.threshold, of)
    return replace(evidence, value=value, says=says, of=of)


def _lag(facts: Facts, where: Mask) -> Evidence | None:
    """A warning where fewer requests finish than begin: queue and prefill are observed at the finish, so they tell of the past."""
    begun, done = facts.reading("ttft").count, facts.values("requests_finished")
    if begun is None or not np.isfinite(done).any():
        return None
    arrivals, completions = (
        float(np.nansum(np.where(where, rates, 0.0))) / max(1, int(where.any(axis=0).sum())) for rates in (begun, done)
    )
    if completions >= FINISHING_RATIO * arrivals:
        return None
    says = say(
        "{done} finish and {begun} begin: queue and prefill times are observed at the finish, so they lag behind.",
        done=Quantity(completions, "per_second"), begun=Quantity(arrivals, "per_second"),
    )  # fmt: skip
    reading = facts.reading("requests_finished")
    return Evidence(
        "requests_finished",
        reading.signal.title,
        Stance.NEUTRAL,
        "per_second",
        says,
        completions,
        metric=reading.metric,
        promql=reading.promql,
    )
