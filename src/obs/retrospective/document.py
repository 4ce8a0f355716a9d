"""What stands in the report of a window, in the order in which it is read, as text in the reader's language. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from obs import __version__
from obs.course import Courses, at_gateway
from obs.events import Event
from obs.language import NONE_SHOWN, quantity_text
from obs.order import DAY_SECONDS
from obs.report import Report, changes, episode_text, evidence_text, rest, since, state_text, subject
from obs.report_json import SCHEMA
from obs.retrospective.chart import Chart, chart
from obs.text import Moment, Quantity, say
from obs.thresholds import source
from obs.timeline import Timeline
from obs.titles import ROWS, STANCES, STATUSES
from obs.verdict import Episode, Evidence, Stance, State, Verdict

CHARTS = 4  # of one row: its first evidence, as the table has it

TITLES = {
    "table": say("The symptom table"),
    "symptom": say("Symptom"),
    "state": say("State"),
    "evidence": say("First evidence"),
    "change": say("Change to test"),
    "timeline": say("Timeline"),
    "time": say("Time"),
    "event": say("What happened"),
    "bearing": say("Bearing"),
    "figure": say("Figure"),
    "since": say("Since"),
    "where": say("Where"),
    "metric": say("Metric"),
    "findings": say("Outside the table"),
    "changes": say("Changes"),
    "alerts": say("Prometheus alerts"),
    "alert": say("Alert"),
    "severity": say("Severity"),
    "no_changes": say("No change was seen in this window."),
    "no_alerts": say("None fired in this window."),
    "missing": say("Missing"),
    "impact": say("Impact"),
    "actions": say("Actions"),
    "lessons": say("Lessons"),
    "to_write": say("To be written: who was affected, how, and for how long."),
    "to_do": say("To be written: what is done, by whom, until when."),
    "to_learn": say("To be written: what went well, what went badly, where we were lucky."),
    "queries": say("Queries"),
    "signal": say("Signal"),
    "thresholds": say("Thresholds in force"),
    "threshold": say("Threshold"),
    "value": say("Value"),
    "source": say("Source"),
    "reason": say("Reason"),
    "versions": say("Versions"),
    "open": say("Open this window in the dashboard"),
    "nothing": say("No row applied and nothing outside the table was found in this window."),
}


@dataclass(frozen=True)
class Piece:
    """One piece of evidence."""

    bearing: str
    says: str
    since: str
    where: str
    metric: str
    stance: Stance


@dataclass(frozen=True)
class Part:
    """One row of the symptom table."""

    row: str
    title: str
    state: State
    words: str  # the state with what belongs to it
    since: tuple[str, ...]
    pieces: tuple[Piece, ...]
    changes: tuple[str, ...]
    charts: tuple[Chart, ...]
    first: str  # its first evidence, for the table


@dataclass(frozen=True)
class Happened:
    """Changes and alerts as tables, row by row, and what is not known of either."""

    changes: tuple[tuple[str, str, str], ...]  # when, what, where
    unknown: str
    alerts: tuple[tuple[str, str, str], ...]  # name, severity, when
    no_alerts: str


@dataclass(frozen=True)
class Document:
    """All of it. `at` moments are written out; `lines` are tables, row by row."""

    lang: str
    words: dict[str, str]
    headline: str
    rest: str
    subject: str
    link: str | None
    state: State
    parts: tuple[Part, ...]
    timeline: tuple[tuple[str, str], ...]
    findings: tuple[str, ...]
    happened: Happened | None
    missing: tuple[str, ...]
    queries: tuple[tuple[str, str, str, str], ...]  # signal, status, metric, PromQL or the reason why there is none
    thresholds: tuple[tuple[str, str, str, str], ...]  # id, value, source, reason
    versions: tuple[str, ...]
    notes: tuple[str, ...]


def document(report: Report) -> Document:
    """The report of a diagnosis."""
    d, text = report.diagnosis, report.text
    courses = Courses(report.readings, d.thresholds)
    primary = next((v.state for v in d.verdicts if v.row == d.primary), None)
    return Document(
        lang=report.lang,
        words={name: text(message) for name, message in TITLES.items()},
        headline=text(d.headline),
        rest=rest(report),
        subject=subject(report),
        link=report.link,
        state=primary or (State.CLEAR if d.primary == "none" else State.UNKNOWN),
        parts=tuple(_part(verdict, report, courses) for verdict in d.verdicts),
        timeline=tuple((report.when(at), words) for at, words in sorted(_events(report))),
        findings=tuple(f"{text(f.title)}, {episode_text(Episode(f.start, f.end, f.replicas), report)}: {text(f.says)}" for f in d.findings),
        happened=_happened(report.happened, report) if report.happened else None,
        missing=tuple(dict.fromkeys(text(m) for v in d.verdicts for m in v.missing)),
        queries=tuple(_query(signal, report) for signal in report.readings.signals),
        thresholds=tuple(
            (t.id, quantity_text(Quantity(t.value, t.unit), report.lang), text(source(t)), text(t.reason)) for t in d.thresholds.values()
        ),
        versions=(f"obs {__version__} (schema {SCHEMA})", f"{report.about.name}: {report.about.flavor} {report.about.version}".strip()),
        notes=tuple(text(note) for note in report.readings.notes),
    )


def _part(verdict: Verdict, report: Report, courses: Courses) -> Part:
    shown = verdict.state in (State.APPLIES, State.SUSPECTED)
    telling = [e for e in verdict.evidence if e.stance is Stance.SUPPORTS] or list(verdict.evidence)
    return Part(
        row=verdict.row,
        title=report.text(ROWS[verdict.row]),
        state=verdict.state,
        words=state_text(verdict, report),
        since=tuple(since(verdict, report)),
        pieces=tuple(_piece(e, report) for e in verdict.evidence),
        changes=tuple(changes(verdict, report)) if shown else (),
        charts=tuple(_charts(verdict, report, courses)) if shown else (),
        first=report.text(verdict.reason)
        if verdict.state is State.UNKNOWN and verdict.reason
        else "; ".join(evidence_text(e, report) for e in telling[:3]),
    )


def _piece(e: Evidence, report: Report) -> Piece:
    dated = report.diagnosis.end - report.diagnosis.start > DAY_SECONDS
    since_ = report.text(say("{at}", at=Moment(e.onset, dated))) if e.onset is not None else ""
    return Piece(report.text(STANCES[e.stance]), evidence_text(e, report), since_, names(e.replicas), e.metric or "", e.stance)


def _charts(verdict: Verdict, report: Report, courses: Courses) -> Iterator[Chart]:
    """The courses of what supports the row."""
    told = [e for e in verdict.evidence if e.stance is Stance.SUPPORTS and e.value is not None]
    for e in told[:CHARTS]:
        course = courses.course(e)
        if course is not None:
            yield chart(e, course, report, verdict.episodes, gateway=at_gateway(e))


def _events(report: Report) -> Iterator[tuple[float, str]]:
    """What began and what ended, each with its moment."""
    d, text = report.diagnosis, report.text
    for verdict in d.verdicts:
        for episode in verdict.episodes:
            title, where = text(ROWS[verdict.row]), names(episode.replicas)
            begins = say("{what} begins on {where}.", what=title, where=where) if where else say("{what} begins.", what=title)
            yield episode.start, text(begins)
            if episode.end is not None:
                yield episode.end, text(say("{what} ends.", what=title))
    for f in d.findings:
        yield f.start, f"{text(f.title)}: {text(f.says)}"
        if f.end is not None:
            yield f.end, text(say("{what} ends.", what=text(f.title)))


def _happened(found: Timeline, report: Report) -> Happened:
    """What changed, with its moment, and the alerts that fired."""

    def when(event: Event) -> str:
        if not event.doubt:
            return report.when(event.at)
        return report.text(say("between {start} and {end}", start=report.when(event.at - event.doubt), end=report.when(event.at)))

    return Happened(
        tuple((when(event), report.text(event.says), names(event.replicas)) for event in found.events),
        report.text(found.no_configuration),
        tuple(
            (alert.name, alert.severity, "; ".join(episode_text(Episode(span.start, span.end, ()), report) for span in alert.spans))
            for alert in found.alerts
        ),
        report.text(found.no_alerts),
    )


def names(replicas: Sequence[str]) -> str:
    """The first few of them."""
    return ", ".join(replicas[:4]) + (", …" if len(replicas) > 4 else "")


def _query(signal: str, report: Report) -> tuple[str, str, str, str]:
    reading = report.readings.signals[signal]
    why = report.text(reading.why) if reading.why else NONE_SHOWN
    return report.text(reading.signal.title), report.text(STATUSES[reading.status]), reading.metric or NONE_SHOWN, reading.promql or why
