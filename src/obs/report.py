"""A diagnosis for people who are not in front of the page: for a terminal, and as Markdown for a ticket. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from obs.language import quantity_text, render, value_text
from obs.order import DAY_SECONDS
from obs.signals import Readings
from obs.source import About
from obs.text import Message, Moment, Names, Quantity, say
from obs.timeline import Timeline
from obs.titles import ROWS, STAGES, STANCES, STATES
from obs.verdict import ROW_IDS, Diagnosis, Episode, Evidence, Stance, State, Verdict
from obs.window import rfc3339, zone_info

_STATE_MARKS = {State.APPLIES: "●", State.SUSPECTED: "▲", State.CLEAR: "✓", State.UNKNOWN: "?"}
_STANCE_MARKS = {Stance.SUPPORTS: "+", Stance.CONTRADICTS: "-", Stance.NEUTRAL: "·", Stance.MISSING: "?"}
Scope = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Report:
    """What a report is made of: the diagnosis, what it read, and how its reader wants it."""

    diagnosis: Diagnosis
    readings: Readings
    about: About
    scope: Scope = field(default_factory=dict)
    lang: str = "en"
    zone: str = "UTC"
    link: str | None = None  # the pinned address of the view, where there is a dashboard
    happened: Timeline | None = None  # changes and alerts; None where the report holds none

    def text(self, message: Message | None) -> str:
        """A message for the reader; "" for none."""
        return render(message, self.lang, self.zone) if message else ""

    def when(self, at: float | None) -> str:
        """A moment with its date, RFC 3339 in the reader's zone."""
        if at is None:
            return ""
        return rfc3339(at) if self.zone == "UTC" else datetime.fromtimestamp(round(at), zone_info(self.zone)).isoformat()


def to_text(report: Report) -> str:
    """For a terminal: the answer first, then the four rows with their evidence, the findings, and what is missing."""
    lines = [line for line in (report.text(report.diagnosis.headline), rest(report), subject(report)) if line] + [""]
    for verdict in report.diagnosis.verdicts:
        lines.append(f"{_STATE_MARKS[verdict.state]} {report.text(ROWS[verdict.row])}: {state_text(verdict, report)}")
        lines += [f"    {line}" for line in _said_once(_details(verdict, report))]
        if verdict.state in (State.APPLIES, State.SUSPECTED):
            lines += [f"    {report.text(say('Change to test'))}: {text}" for text in changes(verdict, report)]
        lines.append("")
    lines += [f"! {finding}" for finding in _findings(report)]
    lines += [f"* {report.text(note)}" for note in report.readings.notes]
    return "\n".join(lines).rstrip() + "\n"


def to_markdown(report: Report) -> str:
    """For a ticket or a retrospective: as the text, with the metric names and the PromQL of what decided."""
    escape = markdown_escape
    lines = [f"## {escape(report.text(report.diagnosis.headline))}", ""]
    lines += [escape(rest(report)), ""] if rest(report) else []
    lines += [f"{escape(subject(report))}" + (f" · <{report.link}>" if report.link else ""), ""]
    head = [report.text(m) for m in (say("Symptom"), say("State"), say("First evidence"), say("Change to test"))]
    lines += [f"| {' | '.join(head)} |", "|---|---|---|---|"]
    for verdict in report.diagnosis.verdicts:
        first = "; ".join(evidence_text(e, report) for e in _decisive(verdict)[:3])
        change = "; ".join(report.text(c.title) for c in verdict.changes)
        cells = [report.text(ROWS[verdict.row]), state_text(verdict, report), first, change]
        bold = "**" if verdict.state is State.APPLIES else ""
        lines.append("| " + " | ".join(f"{bold}{escape(cell)}{bold}" if i < 2 else escape(cell) for i, cell in enumerate(cells)) + " |")
    for verdict in report.diagnosis.verdicts:
        if verdict.state not in (State.APPLIES, State.SUSPECTED):
            continue
        lines += ["", f"### {escape(report.text(ROWS[verdict.row]))}: {escape(state_text(verdict, report))}", ""]
        lines += [f"- {escape(line)}" for line in since(verdict, report)]
        for e in verdict.evidence:
            metric = f" ({code(e.metric)})" if e.metric else ""
            lines.append(f"- {report.text(STANCES[e.stance])}: {escape(evidence_text(e, report))}{metric}")
        lines += [f"- {report.text(say('Change to test'))}: {escape(text)}" for text in changes(verdict, report)]
    found = _findings(report)
    lines += (["", f"### {report.text(say('Outside the table'))}", ""] + [f"- {escape(f)}" for f in found]) if found else []
    missing = [f"- {escape(report.text(m))}" for v in report.diagnosis.verdicts for m in v.missing]
    lines += ["", f"### {report.text(say('Missing'))}", "", *dict.fromkeys(missing)] if missing else []
    lines += _promql_block(report.diagnosis)
    return "\n".join(lines).rstrip() + "\n"


def share_markdown(report: Report) -> str:
    """One line for a chat or a ticket, linked: when with date and zone, what was looked at, the row, its first evidence, and where."""
    d = report.diagnosis
    verdict = d.verdict(d.primary) if d.primary in ROW_IDS else None
    replicas = report.readings.replicas
    where = "/".join(
        ",".join(report.scope.get(label, ()) or sorted(held)) if len(held) == 1 or label in report.scope else ""
        for label, held in (("namespace", {r.namespace for r in replicas} - {""}), ("model", {r.model for r in replicas} - {""}))
    ).strip("/")
    if verdict is None or not verdict.episodes:
        words = [report.text(d.headline).rstrip(".")]
        when = _absolute(d.start, d.end, report)
    else:
        last = verdict.episodes[-1]
        when = _absolute(last.start, last.end, report)
        first = next((e for e in verdict.evidence if e.stance is Stance.SUPPORTS and e.value is not None), None)
        figure = ""
        if first is not None and first.value is not None:
            figure = report.text(say("{title} {value}", title=first.title, value=Quantity(first.value, first.unit)))
        on = (
            report.text(say("{n} of {all} replicas", n=len(last.replicas), all=len(d.replicas)))
            if last.replicas and len(d.replicas) > 1
            else ""
        )
        words = [part for part in (report.text(ROWS[verdict.row]), figure, on) if part]
    line = markdown_escape(f"{', '.join(part for part in (when, where) if part)}: {', '.join(words)}")
    return f"[{line}]({report.link})" if report.link else line


def _absolute(start: float, end: float | None, report: Report) -> str:
    """A stretch with its date and zone: `1 Nov 2026 21:15:15-22:00:45 UTC`; one that lasts says so."""
    from babel.dates import format_date  # the locale data is wanted only here

    def moment(at: float, dated: bool) -> str:
        local = datetime.fromtimestamp(at, zone_info(report.zone))
        return (format_date(local.date(), "d MMM y", locale=report.lang) + " " if dated else "") + local.strftime("%H:%M:%S")

    if end is None:
        return report.text(say("since {moment} {zone}", moment=moment(start, True), zone=report.zone))
    same = moment(start, True)[:-8] == moment(end, True)[:-8]
    return f"{moment(start, True)}-{moment(end, not same)} {report.zone}"


def markdown_escape(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", text.replace("\n", " "))


def code(text: str) -> str:
    """Text as inline code, whatever backticks it holds."""
    text = text.replace("\n", " ")
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    return f"{fence} {text} {fence}" if "`" in text else f"`{text}`"


def rest(report: Report) -> str:
    """The summary without the headline that it begins with."""
    return report.text(report.diagnosis.summary).removeprefix(report.text(report.diagnosis.headline)).strip()


def subject(report: Report) -> str:
    """What was looked at: the stretch, the source, the scope."""
    d, about = report.diagnosis, report.about
    scope = " ".join(f"{label}={value_text(Names(values), report.lang)}" for label, values in report.scope.items())
    stretch = say(
        "{start} to {end} ({length}, step {step})",
        start=report.when(d.start),
        end=report.when(d.end),
        length=Quantity(d.end - d.start, "seconds"),
        step=Quantity(d.step_seconds, "seconds"),
    )
    return " · ".join(part for part in (report.text(stretch), f"{about.name}, {about.flavor} {about.version}".strip(), scope) if part)


def state_text(verdict: Verdict, report: Report) -> str:
    """The state, what it is now, how sure, and the slow stage."""
    words = [report.text(STATES[verdict.state])]
    if verdict.state is not verdict.state_now:
        words.append(report.text(say("now {state}", state=STATES[verdict.state_now])))
    if verdict.confidence is not None and verdict.state is State.APPLIES:
        words.append(report.text(say("confidence {confidence}", confidence=Quantity(verdict.confidence, "ratio"))))
    if verdict.stage is not None and verdict.stage in STAGES:
        words.append(report.text(say("stage: {stage}", stage=STAGES[verdict.stage])))
    return ", ".join(words)


def since(verdict: Verdict, report: Report) -> Iterator[str]:
    """Why the row has its state, and its episodes."""
    if verdict.reason:
        yield report.text(verdict.reason)
    for episode in verdict.episodes:
        yield episode_text(episode, report)


def _details(verdict: Verdict, report: Report) -> Iterator[str]:
    """Why, since when, the evidence with its onset, what is missing."""
    yield from since(verdict, report)
    for e in verdict.evidence:
        dated = report.diagnosis.end - report.diagnosis.start > DAY_SECONDS
        onset = say("since {at}", at=Moment(e.onset, dated)) if e.onset is not None else None
        yield f"{_STANCE_MARKS[e.stance]} " + ", ".join(part for part in (evidence_text(e, report), report.text(onset)) if part)
    for message in verdict.missing:
        yield f"{_STANCE_MARKS[Stance.MISSING]} {report.text(message)}"


def _said_once(lines: Iterable[str]) -> list[str]:
    """What is missing is a reason and a piece of evidence too: the lines less those whose words stand in one before."""
    said: list[str] = []
    for line in lines:
        if not any(line.removeprefix(f"{_STANCE_MARKS[Stance.MISSING]} ") in earlier for earlier in said):
            said.append(line)
    return said


def _promql_block(diagnosis: Diagnosis) -> list[str]:
    """The queries of what supports a row, ready to paste, each once."""
    rows = [v for v in diagnosis.verdicts if v.state in (State.APPLIES, State.SUSPECTED)]
    queries = dict.fromkeys(e.promql for v in rows for e in v.evidence if e.promql and e.stance is Stance.SUPPORTS)
    fence = "`" * max([3, *(len(run) + 1 for query in queries for run in re.findall("`+", query))])
    return ["", "### PromQL", "", f"{fence}promql", *queries, fence] if queries else []


def episode_text(episode: Episode, report: Report) -> str:
    """From when to when, and on which replicas."""
    start, end, names = report.when(episode.start), report.when(episode.end), Names(episode.replicas)
    if episode.end is None:
        message = say("since {start} on {replicas}", start=start, replicas=names) if episode.replicas else say("since {start}", start=start)
    elif episode.replicas:
        message = say("{start} to {end} on {replicas}", start=start, end=end, replicas=names)
    else:
        message = say("{start} to {end}", start=start, end=end)
    return report.text(message)


def evidence_text(e: Evidence, report: Report) -> str:
    """The sentence; where it holds no figure of its own, the figure before it."""
    sentence = report.text(e.says)
    figure = quantity_text(Quantity(e.value, e.unit), report.lang) if e.value is not None else ""
    return sentence if not figure or figure in sentence else f"{report.text(e.title)} {figure}: {sentence}"


def _decisive(verdict: Verdict) -> list[Evidence]:
    """What to show first: for a row that applies what supports it, otherwise what speaks against it, then what is missing."""
    order = [Stance.SUPPORTS, Stance.CONTRADICTS, Stance.NEUTRAL, Stance.MISSING]
    if verdict.state is State.CLEAR:
        order[0], order[1] = order[1], order[0]
    if verdict.state is State.UNKNOWN:
        order = [Stance.MISSING, *order[:3]]
    return sorted(verdict.evidence, key=lambda e: order.index(e.stance))


def changes(verdict: Verdict, report: Report) -> list[str]:
    """Each change to test with its figures and its caveats, in one paragraph."""
    return [
        " ".join(part if part[-1:] in ".!?:" else f"{part}." for part in map(report.text, (c.title, c.detail, *c.caveats)) if part)
        for c in verdict.changes
    ]


def _findings(report: Report) -> list[str]:
    return [
        f"{report.text(f.title)}, {episode_text(Episode(f.start, f.end, f.replicas), report)}: {report.text(f.says)}"
        for f in report.diagnosis.findings
    ]
