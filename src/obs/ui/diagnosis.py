"""The Diagnosis page: the answer as a sentence, when each row applied, the four rows, and what lies outside the table."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from obs.text import Names
from obs.thresholds import source
from obs.ui import address, fleet, opened, outage
from obs.ui.answer import Answer
from obs.ui.cards import card
from obs.ui.failure import noted
from obs.ui.headline import answered, unmatched
from obs.ui.icons import icon, kind
from obs.ui.markup import Html, join, show, tag
from obs.ui.reader import Reader
from obs.ui.screen import Screen
from obs.ui.strip import strip
from obs.verdict import Diagnosis, Finding, Verdict


def draw(screen: Screen) -> None:
    """The page, or the sentence that stands in its place."""
    _ = screen.reader
    if screen.answer is None:
        outage.draw(screen)
        return
    answer = screen.answer
    nothing = bool(screen.view.scope) and not answer.readings.replicas
    show(unmatched(screen.view, _) if nothing else answered(answer.diagnosis, _))
    fleet.draw(screen)
    show(strip(answer.diagnosis, _))
    for verdict in answer.diagnosis.verdicts:
        _row(verdict, answer, screen)
    if answer.diagnosis.findings:
        show(_findings(answer.diagnosis, _))
    noted(answer.readings.notes, _)
    with st.expander(_("Thresholds in force"), key="thresholds", type="compact", on_change="rerun") as thresholds:
        if thresholds.open:
            show(_thresholds(answer.diagnosis, _))


def _row(verdict: Verdict, answer: Answer, screen: Screen) -> None:
    """One card; opening it puts `row=` into the link, so that a shared link opens it too."""
    _, view = screen.reader, screen.view
    primary = "-primary" if answer.diagnosis.primary == verdict.row else ""
    key = f"open-{verdict.row}"
    st.session_state[key] = view.row == verdict.row

    def toggle() -> None:
        address.go(replace(view, row=verdict.row if st.session_state[key] else None))

    with st.container(key=f"card-{kind(verdict)}{primary}-{verdict.row}"):
        show(card(verdict, answer.diagnosis, answer.courses, _))
        with st.expander(_("All evidence: charts, metrics, PromQL"), key=key, type="compact", on_change=toggle) as inside:
            if inside.open:
                opened.draw(verdict, answer, _)


def _findings(diagnosis: Diagnosis, _: Reader) -> Html:
    kinds: dict[str, list[Finding]] = {}
    for finding in diagnosis.findings:
        kinds.setdefault(f"{finding.id} {_.tell(finding.title)}", []).append(finding)
    return tag(
        "div",
        tag("div", _("Outside the table"), cls="label"),
        tag("div", [_kind(same, diagnosis, _) for same in kinds.values()], cls="findings"),
    )


def _kind(same: list[Finding], diagnosis: Diagnosis, _: Reader) -> Html:
    """The findings of one kind: the first in full, the others behind a count."""
    if len(same) == 1:
        return tag("div", _head(same[0], None, _), _finding(same[0], diagnosis, _), cls="finding")
    more = [tag("li", _finding(finding, diagnosis, _)) for finding in same[1:]]
    rest = tag("details", tag("summary", _("{n} more of this kind", n=len(more))), tag("ul", more))
    return tag("div", _head(same[0], len(same), _), _finding(same[0], diagnosis, _), rest, cls="finding")


def _head(finding: Finding, count: int | None, _: Reader) -> Html:
    times = tag("span", "× ", str(count), cls="count") if count else None
    return tag("div", icon("suspected"), tag("span", _.tell(finding.title), " "), times, cls="name", role="heading", aria_level=2)


def _finding(finding: Finding, diagnosis: Diagnosis, _: Reader) -> Html:
    end = finding.end if finding.end is not None else diagnosis.end
    where = _("on {replicas}", replicas=Names(finding.replicas)) if finding.replicas else None
    facts = " · ".join(part for part in (_.span(finding.start, finding.end), _.length(end - finding.start), where) if part)
    return join((tag("div", facts, cls="since"), tag("p", _.tell(finding.says))))


def _thresholds(diagnosis: Diagnosis, _: Reader) -> Html:
    head = tag("tr", [tag("th", words) for words in (_("Threshold"), _("Value"), _("Why"), _("Source"))])
    rows = [
        tag(
            "tr",
            tag("td", t.id),
            tag("td", _.figure(t.value, t.unit), cls="number"),
            tag("td", _.tell(t.reason)),
            tag("td", _.tell(source(t))),
        )
        for t in diagnosis.thresholds.values()
    ]
    return tag("table", tag("thead", head), tag("tbody", rows), cls="table")
