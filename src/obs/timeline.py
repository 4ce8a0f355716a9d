"""What happened in a window, and what changed around it: the answer of the timeline page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from obs.configuration import capacity, configuration
from obs.events import Event, lifecycle
from obs.facts import Facts
from obs.question import Figure, Said
from obs.seen import History, Shown, Span
from obs.shifts import shifts
from obs.signals import Replica
from obs.text import Message, Moment, Quantity, say, say_n
from obs.titles import ROWS
from obs.verdict import Diagnosis, Incident, State

BEFORE_SECONDS = 900.0  # a change so long before an incident may have to do with it
AFTER_SECONDS = 60.0  # and one that shows a minute after its onset
AROUND_LEAST, AROUND_SHARE = 60.0, 0.15  # of an incident that its window shows on both sides
WHOLE_SECONDS = 30.0  # a window begins and ends on a multiple of this
_DAY = 64800.0


@dataclass(frozen=True)
class Alert:
    """The stretches in which an alert fired, over all of its series; `always`: it never began and never ended within the window."""

    name: str
    severity: str
    spans: tuple[Span, ...]
    series: int
    always: bool


@dataclass(frozen=True)
class Timeline:
    """Everything that the page shows beside the diagnosis, in the order of time."""

    events: tuple[Event, ...]
    alerts: tuple[Alert, ...]
    no_alerts: Message | None  # why nothing is known of them
    no_configuration: Message | None


def timeline(facts: Facts, diagnosis: Diagnosis, seen: History) -> Timeline:
    """Puts together what the readings and the history tell."""
    readings = facts.readings
    changed = configuration(seen.infos, readings.replicas, readings.start) if seen.infos else capacity(facts)
    events = sorted((*lifecycle(facts, diagnosis.findings), *changed, *shifts(facts)), key=lambda event: event.at)
    return Timeline(tuple(events), alerts(seen.alerts, readings.start), seen.no_alerts, seen.no_infos)


def alerts(shown: Iterable[Shown], start: float) -> tuple[Alert, ...]:
    """One alert for each name: those that began or ended within the window first, then by name."""
    by_name: dict[str, list[Shown]] = {}
    for each in shown:
        by_name.setdefault(each.labels.get("alertname", ""), []).append(each)
    found = []
    for name, series in by_name.items():
        spans = _union([span for each in series for span in each.spans])
        severity = next((each.labels["severity"] for each in series if each.labels.get("severity")), "")
        always = len(spans) == 1 and spans[0].start <= start + 1 and spans[0].end is None
        found.append(Alert(name, severity, spans, len(series), always))
    return tuple(sorted(found, key=lambda alert: (alert.always, alert.name)))


def _union(spans: Sequence[Span]) -> tuple[Span, ...]:
    merged: list[Span] = []
    for span in sorted(spans, key=lambda s: s.start):
        last = merged[-1] if merged else None
        if last is not None and (last.end is None or span.start <= last.end):
            end = None if last.end is None or span.end is None else max(last.end, span.end)
            merged[-1] = Span(last.start, end, last.doubt)
        else:
            merged.append(span)
    return tuple(merged)


def shortly_before(incident: Incident, events: Sequence[Event], replicas: Sequence[Replica] = ()) -> tuple[Event, ...]:
    """The changes that came shortly before an incident, or as it began; the nearest first. One of replicas of another
    namespace or model has nothing to do with it."""
    pool = {replica.name: (replica.namespace, replica.model) for replica in replicas}
    where = {pool.get(name) for name in incident.replicas}
    near = [
        e
        for e in events
        if incident.start - BEFORE_SECONDS - e.doubt <= e.at <= incident.start + AFTER_SECONDS + e.doubt
        and (not where or not e.replicas or where & {pool.get(name) for name in e.replicas})
    ]
    return tuple(sorted(near, key=lambda e: abs(e.at - incident.start)))


def window_of(incident: Incident, start: float, end: float) -> tuple[float, float]:
    """The window that shows an incident with what was before and after it, within what the page shows (`start` to `end`)."""
    last = end if incident.end is None else incident.end
    around = max(AROUND_LEAST, (last - incident.start) * AROUND_SHARE)
    first = (incident.start - around) // WHOLE_SECONDS * WHOLE_SECONDS
    until = -(-(last + around) // WHOLE_SECONDS) * WHOLE_SECONDS
    return max(min(first, incident.start), min(start, incident.start)), min(until, end)


def answer(diagnosis: Diagnosis, found: Timeline) -> Said:
    """How many incidents, the longest, and how much changed."""
    incidents = diagnosis.incidents
    figures = _figures(diagnosis, found)
    if not incidents:
        if diagnosis.primary == "insufficient":
            return Said(State.UNKNOWN, diagnosis.headline, figures)
        return Said(State.CLEAR, say("No row of the table applied in this window."), figures)
    longest = max(incidents, key=lambda i: _length(i, diagnosis.end))
    dated = diagnosis.end - diagnosis.start > _DAY
    at, length = Moment(longest.start, dated), Quantity(_length(longest, diagnosis.end), "seconds")
    if len(incidents) == 1:
        return Said(State.APPLIES, say("One incident: {row} at {at}, {length} long.", row=ROWS[longest.row], at=at, length=length), figures)
    return Said(
        State.APPLIES,
        say("{n} incidents. The longest: {row} at {at}, {length} long.", n=len(incidents), row=ROWS[longest.row], at=at, length=length),
        figures,
    )


def _figures(diagnosis: Diagnosis, found: Timeline) -> tuple[Figure, ...]:
    whole = max(1.0, diagnosis.end - diagnosis.start)
    seconds = sum(min(_length(i, diagnosis.end), whole) for i in diagnosis.incidents)
    firing = [alert for alert in found.alerts if not alert.always]
    share = say("{share} of the window", share=Quantity(min(1.0, seconds / whole), "ratio"))
    unknown = State.UNKNOWN if diagnosis.primary == "insufficient" else None
    return (
        Figure(say("Incidents"), None if unknown else float(len(diagnosis.incidents)), "count", state=unknown),
        Figure(say("Time in incidents"), None if unknown else float(seconds), "seconds", None if unknown else share, state=unknown),
        Figure(
            say("Changes"), float(len(found.events)) if found.events or not unknown else None, "count", _kinds(found.events),
            state=None if found.events else unknown,
        ),
        Figure(
            say("Alerts that fired"), None if found.no_alerts else float(len(firing)), "count",
            found.no_alerts, state=State.UNKNOWN if found.no_alerts else None,
        ),
    )  # fmt: skip


def _kinds(events: Sequence[Event]) -> Message | None:
    own = sum(event.kind in ("restart", "replicas", "version", "configuration") for event in events)
    return say_n("{n} of them to the replicas", "{n} of them to the replicas", own) if events else None


def _length(incident: Incident, end: float) -> float:
    return (end if incident.end is None else incident.end) - incident.start
