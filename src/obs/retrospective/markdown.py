"""The report as Markdown: for a wiki or a ticket, in the order of the HTML, without its charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from obs.report import code, markdown_escape
from obs.retrospective.document import Document, Happened, Part
from obs.retrospective.html import MARKS
from obs.verdict import State


def written(doc: Document) -> str:
    """The file's content."""
    return "\n".join(_lines(doc)).rstrip() + "\n"


def _lines(doc: Document) -> Iterator[str]:
    w, escape = doc.words, markdown_escape
    yield from (f"# {MARKS[doc.state.value]} {escape(doc.headline)}", "")
    yield from (escape(doc.rest), "") if doc.rest else ()
    yield from (escape(doc.subject) + (f" · <{doc.link}>" if doc.link else ""), "")
    yield from (f"## {w['table']}", "")
    rows = [[p.title, f"{MARKS[p.state.value]} {p.words}", p.first, " ".join(p.changes)] for p in doc.parts]
    yield from _table([w["symptom"], w["state"], w["evidence"], w["change"]], rows)
    yield from (f"## {w['timeline']}", "")
    yield from _table([w["time"], w["event"]], doc.timeline) if doc.timeline else (w["nothing"], "")
    yield from (f"## {w['impact']}", "", f"*{w['to_write']}*", "")
    for part in doc.parts:
        if part.state in (State.APPLIES, State.SUSPECTED):
            yield from _part(part, doc)
    yield from _list(w["findings"], doc.findings)
    yield from _happened(doc.happened, w) if doc.happened else ()
    yield from _list(w["missing"], doc.missing)
    yield from (f"## {w['actions']}", "", f"*{w['to_do']}*", "", f"## {w['lessons']}", "", f"*{w['to_learn']}*", "")
    yield from (f"## {w['queries']}", "", *(f"- {escape(note)}" for note in doc.notes), "")
    yield from _table([w["signal"], w["state"], w["metric"], "PromQL"], doc.queries, coded=(2, 3))
    yield from (f"## {w['thresholds']}", "")
    yield from _table([w["threshold"], w["value"], w["source"], w["reason"]], doc.thresholds, coded=(0,))
    yield from (f"## {w['versions']}", "", *(f"- {escape(line)}" for line in doc.versions), "")


def _happened(found: Happened, w: Mapping[str, str]) -> Iterator[str]:
    yield from (f"## {w['changes']}", "")
    yield from _table([w["time"], w["event"], w["where"]], found.changes) if found.changes else (w["no_changes"], "")
    yield from (markdown_escape(found.unknown), "") if found.unknown else ()
    yield from (f"### {w['alerts']}", "")
    if found.alerts:
        yield from _table([w["alert"], w["severity"], w["time"]], found.alerts)
    else:
        yield from (markdown_escape(found.no_alerts or w["no_alerts"]), "")


def _list(title: str, lines: Sequence[str]) -> Iterator[str]:
    yield from (f"## {title}", "", *(f"- {markdown_escape(line)}" for line in lines), "") if lines else ()


def _part(part: Part, doc: Document) -> Iterator[str]:
    w, escape = doc.words, markdown_escape
    yield from (f"## {MARKS[part.state.value]} {escape(part.title)}: {escape(part.words)}", "")
    yield from (*(f"- {escape(line)}" for line in part.since), "") if part.since else ()
    pieces = [[p.bearing, p.says, p.since, p.where, p.metric] for p in part.pieces]
    yield from _table([w["bearing"], w["figure"], w["since"], w["where"], w["metric"]], pieces, coded=(4,))
    yield from (f"### {w['change']}", "", *(f"- {escape(line)}" for line in part.changes), "") if part.changes else ()


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], coded: Sequence[int] = ()) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        cells = [code(cell).replace("|", "\\|") if i in coded and cell else markdown_escape(cell) for i, cell in enumerate(row)]
        yield f"| {' | '.join(cells)} |"
    yield ""
