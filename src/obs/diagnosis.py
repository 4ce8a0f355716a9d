"""From readings to a diagnosis: hold the conditions, judge the four rows, put them in order, say it. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from obs import evidence as weigh
from obs.changes import changes
from obs.confidence import confidence
from obs.coverage import JUDGED_BY_ENGINE, Coverage, coverage
from obs.facts import Facts
from obs.findings import findings
from obs.judge import Judged, episodes, judge
from obs.oom import OutOfMemory, oom_episodes, out_of_memory
from obs.oom_evidence import oom_evidence
from obs.order import Applying, follows, headline, primary, summary
from obs.series import Mask, settle
from obs.signals import Readings
from obs.stage_evidence import stage_evidence
from obs.symptoms import ERRORS
from obs.text import Message, say
from obs.thresholds import in_force
from obs.verdict import ROW_IDS, Diagnosis, Episode, Evidence, Stance, State, Verdict

NOW_SECONDS = 60.0  # a row that ended in the last minute still applies "now"


@dataclass(frozen=True)
class _Row:
    """One row, judged, before it is put in order with the others."""

    id: str
    episodes: tuple[Episode, ...]
    evidence: tuple[Evidence, ...]
    suspected: Message | None
    coverage: Coverage
    stage: str | None = None
    memory: bool = False


def diagnose(readings: Readings, overrides: Mapping[str, float] | None = None) -> Diagnosis:
    """The diagnosis of one view. `overrides` are thresholds by name; an unknown name is a `CallError`."""
    thresholds = in_force(overrides or {})
    facts = Facts(readings, thresholds)
    names = tuple(replica.name for replica in readings.replicas)
    oom = out_of_memory(facts)
    judged = judge(facts)
    rows = [_oom_row(facts, oom, names), *(_row(facts, judged[row], names) for row in ROW_IDS[1:])]
    applying = [_applying(row) for row in rows if row.episodes]
    first = primary(applying)
    cause = follows(applying)
    verdicts = tuple(_verdict(facts, row, cause.get(row.id), first) for row in rows)
    found = findings(facts, oom)
    now = [_applying(row) for row in rows if any(_lasts(e, readings.end) for e in row.episodes)]
    mine = next((row.episodes for row in rows if row.id == first), ())
    blind = _insufficient(readings, verdicts, rows, now=False)
    line = headline(first, mine, len(names), blind)
    return Diagnosis(
        start=readings.start, end=readings.end, step_seconds=readings.grid.step,
        primary=first or ("insufficient" if blind else "none"),
        now=primary(now) or ("insufficient" if _insufficient(readings, verdicts, rows, now=True) else "none"),
        headline=line, summary=summary(first, applying, mine, found, line),
        verdicts=verdicts, findings=found, thresholds=thresholds, replicas=names,
    )  # fmt: skip


def _applying(row: _Row) -> Applying:
    return Applying(row.id, row.episodes[0].start, row.memory, row.stage)


def _lasts(episode: Episode, end: float) -> bool:
    return episode.end is None or episode.end >= end - NOW_SECONDS


def _oom_row(facts: Facts, oom: OutOfMemory, names: tuple[str, ...]) -> _Row:
    found = oom_episodes(facts, oom, names)
    inside = weigh.span(facts, ())
    suspected = None
    if (oom.suspected & inside).any():
        suspected = say("a process died with full GPU memory and no other cause; no counter tells whether it was out of memory")
    elif (oom.events & inside).any():
        suspected = say("an out-of-memory event was counted, and nothing else shows what it did")
    return _Row("gpu_oom", found, oom_evidence(facts, oom, found), suspected, coverage(facts, "gpu_oom"))


def _row(facts: Facts, judged: Judged, names: tuple[str, ...]) -> _Row:
    found = episodes(facts, judged, names)
    row = judged.symptom.id
    held = weigh.of_row(facts, judged, found)
    stage, memory = None, False
    if judged.stages is not None:
        mask = (judged.applies if found else judged.shown) & weigh.span(facts, found)
        stage = judged.stages.leading(mask)[0] if mask.any() else None
        held = (*held, *stage_evidence(facts, judged.stages, mask, stage))
    if row == "latency_without_errors" and found:
        steps = weigh.span(facts, found)
        memory = any((h.mask & judged.applies & steps).any() for h in judged.held if h.condition.id in ("kv_use", "preemptions"))
    return _Row(row, found, held, _suspicion(facts, judged), coverage(facts, row), stage if found else None, memory)


def _suspicion(facts: Facts, judged: Judged) -> Message | None:
    """One without the other: the symptom without what explains it, or preemptions, a queue or retries without the symptom."""
    inside = weigh.span(facts, ())
    excused = facts.excused.all(axis=0) if judged.symptom.every else facts.excused
    long = facts.grid.steps(facts.limit("hold"))
    if settle(judged.shown & ~judged.explained & ~excused & inside, long, 0).any():
        return say("the symptom is seen, and nothing measured explains it")
    if judged.flat is not None and settle(judged.shown & ~judged.flat & ~_errors(judged) & ~excused & inside, long, 0).any():
        return say("the symptom is seen, and whether there are errors is not known")
    quiet = [h for h in judged.held if h.condition.id in ("preemptions", "retry_ratio")]
    if any((h.mask & ~judged.shown & ~excused & inside).any() for h in quiet):
        return say("what would cause it is seen, the symptom is not")
    return None


def _errors(judged: Judged) -> Mask:
    """Where what speaks against the row holds."""
    return judged.conditions(judged.symptom.against)[0].mask


def _verdict(facts: Facts, row: _Row, cause: str | None, first: str | None) -> Verdict:
    lasts = any(_lasts(e, facts.readings.end) for e in row.episodes)
    state, reason = _state(row, first)
    now = State.APPLIES if lasts else (State.UNKNOWN if row.coverage.blind_now else (State.CLEAR if state is State.APPLIES else state))
    steps = weigh.span(facts, row.episodes)
    return Verdict(
        row=row.id, state=state, state_now=now, confidence=confidence(state, row.evidence, row.episodes, facts.readings.end),
        stage=row.stage, episodes=row.episodes, evidence=row.evidence, missing=row.coverage.missing,
        changes=changes(facts, row.id, steps, row.stage, row.evidence), reason=reason, follows_from=cause,
    )  # fmt: skip


def _state(row: _Row, first: str | None) -> tuple[State, Message | None]:
    if row.episodes:
        return State.APPLIES, None
    if row.suspected and not (first == "slow_first_token" and row.id == "latency_without_errors"):
        return State.SUSPECTED, row.suspected
    if row.coverage.blind:
        return State.UNKNOWN, row.coverage.blind
    if any(e.stance is Stance.CONTRADICTS and e.signal == ERRORS.id for e in row.evidence):
        return State.CLEAR, say("latency rises with errors: they come first")
    return State.CLEAR, None


def _insufficient(readings: Readings, verdicts: Sequence[Verdict], rows: Sequence[_Row], now: bool) -> Message | None:
    """Why the engine's own signals cannot tell; None where they can. A missing gateway or OOM counter alone is no reason."""
    if not readings.engine_seen:
        return say("no metric of a known LLM engine was found")
    for verdict, row in zip(verdicts, rows, strict=True):
        if verdict.row in JUDGED_BY_ENGINE and row.coverage.by_engine and (verdict.state_now if now else verdict.state) is State.UNKNOWN:
            return (row.coverage.blind_now if now else row.coverage.blind) or row.coverage.blind
    return None
