"""From readings to a diagnosis: judge the four rows, put them in order, say it. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from obs.confidence import confidence
from obs.coverage import JUDGED_BY_ENGINE, would_tell
from obs.facts import Facts
from obs.findings import findings
from obs.oom import out_of_memory
from obs.order import headline, incidents, main_incident, summary, told
from obs.peaks import with_peaks
from obs.row import NOW_SECONDS, UNEXPLAINED, Row, rows
from obs.signals import Readings
from obs.symptoms import ERRORS
from obs.text import Message, say
from obs.thresholds import in_force
from obs.verdict import Diagnosis, Episode, Finding, Stance, State, Verdict


def diagnose(readings: Readings, overrides: Mapping[str, float] | None = None) -> Diagnosis:
    """The diagnosis of one view. `overrides` are thresholds by name; an unknown name is a `CallError`."""
    return put_together(readings, overrides or {}, *look(readings, overrides or {}))


def look(readings: Readings, overrides: Mapping[str, float]) -> tuple[tuple[Row, ...], tuple[Finding, ...]]:
    """The four rows and the findings, not yet in order."""
    return look_at(Facts(readings, in_force(overrides)))


def look_at(facts: Facts) -> tuple[tuple[Row, ...], tuple[Finding, ...]]:
    """The same, of facts."""
    oom = out_of_memory(facts)
    return with_peaks(facts, rows(facts, oom)), findings(facts, oom)


def put_together(readings: Readings, overrides: Mapping[str, float], judged: Sequence[Row], found: tuple[Finding, ...]) -> Diagnosis:
    """The diagnosis from rows and findings: what explains what, in one sentence."""
    applying = [part for row in judged for part in row.applying]
    all_incidents = incidents(applying)
    main = main_incident(all_incidents)
    now = main_incident(incidents([part for part in applying if _lasts(part.episode, readings.end)]))
    first = main.primary if main else None
    cause = dict.fromkeys(main.others(), first) if main else {}
    verdicts = tuple(_verdict(readings, row, cause.get(row.id), first) for row in judged)
    blind, blind_now = (_insufficient(readings, verdicts, judged, late) for late in (False, True))
    seconds = readings.end - readings.start
    at_end = None if now or blind else blind_now
    others = [incident for incident in all_incidents if incident is not main]
    seen = blind is not None and readings.engine_seen
    unknown = [row.coverage for verdict, row in zip(verdicts, judged, strict=True) if seen and _blinds(verdict.row, verdict.state, row)]
    dark = next((coverage.unseen for coverage in unknown if coverage.unseen), None)
    lacking, remedy = (None, None) if dark else would_tell(unknown, readings) or (None, None)
    line = headline(main, len(readings.replicas), seconds, dark or blind, lacking.title if lacking else None)
    return Diagnosis(
        start=readings.start, end=readings.end, step_seconds=readings.grid.step,
        primary=first or ("insufficient" if blind else "none"),
        now=now.primary if now else ("insufficient" if blind_now else "none"),
        headline=line, summary=summary(main, others, found, line, seconds, at_end, remedy),
        verdicts=verdicts, findings=found, thresholds=in_force(overrides), replicas=tuple(r.name for r in readings.replicas),
        incidents=tuple(told(group) for group in all_incidents),
    )  # fmt: skip


def _lasts(episode: Episode, end: float) -> bool:
    return episode.end is None or episode.end >= end - NOW_SECONDS


def _verdict(readings: Readings, row: Row, cause: str | None, first: str | None) -> Verdict:
    state, reason = _state(row, first, row.suspected, row.coverage.blind, bool(row.applying))
    lasts = any(_lasts(part.episode, readings.end) for part in row.applying)
    now, _ = _state(row, first, row.suspected_now, row.coverage.blind_now, lasts)
    return Verdict(
        row=row.id, state=state, state_now=now, confidence=confidence(state, row.evidence, row.episodes, readings.end),
        stage=row.stage, episodes=row.episodes, evidence=row.evidence, missing=row.coverage.missing,
        changes=row.changes, reason=reason, follows_from=cause,
    )  # fmt: skip


def _state(row: Row, first: str | None, suspected: Message | None, blind: Message | None, applies: bool) -> tuple[State, Message | None]:
    if applies:
        return State.APPLIES, None
    if suspected and not (suspected == UNEXPLAINED and first == "slow_first_token"):  # which explains the latency
        return State.SUSPECTED, suspected
    if blind:
        return State.UNKNOWN, blind
    if any(e.stance is Stance.CONTRADICTS and e.signal == ERRORS.id for e in row.evidence):
        return State.CLEAR, say("latency rises with errors: they come first.")
    return State.CLEAR, None


def _insufficient(readings: Readings, verdicts: Sequence[Verdict], judged: Sequence[Row], at_end: bool) -> Message | None:
    """Why the engine's own signals cannot tell; None where they can. A missing gateway or OOM counter alone is no reason."""
    if not readings.engine_seen:
        return say("no metric of a known LLM engine was found in this window and scope.")
    for verdict, row in zip(verdicts, judged, strict=True):
        if _blinds(verdict.row, verdict.state_now if at_end else verdict.state, row):
            return row.coverage.blind_now if at_end else row.coverage.blind
    return None


def _blinds(id: str, state: State, row: Row) -> bool:
    """Whether a row that the engines' own signals judge is unknown for want of them."""
    return id in JUDGED_BY_ENGINE and row.coverage.by_engine and state is State.UNKNOWN
