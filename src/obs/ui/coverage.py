"""The Data page: can I trust this page? The same facts as `obs coverage`."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from obs import api
from obs.errors import SourceError
from obs.signals import Readings, Status
from obs.source import Inspectable, Inspection
from obs.text import Names
from obs.titles import STATUSES
from obs.trust import Engine, Line, Trust
from obs.ui import answer as answers
from obs.ui import page
from obs.ui.answer import Answer
from obs.ui.icons import icon
from obs.ui.markup import Html, join, show, tag
from obs.ui.reader import Reader
from obs.ui.screen import Screen

_SIGNS = {Status.MEASURED: "clear", Status.NO_TRAFFIC: "unknown", Status.ABSENT: "unknown", Status.STALE: "suspected"}
HOUR = 3600.0


def draw(screen: Screen) -> None:
    """The answer, the figures, what runs and where it comes from, and every signal: what is not there first."""
    _ = screen.reader
    answer = page.begin(screen, _("Can I trust this page?"))
    if answer is None:
        return
    found = api.trusted(answer.readings, answer.diagnosis, answer.about, inspection(screen, answer))
    page.says(found.said, screen)
    show(_about(found, _))
    missing = [line for line in found.lines if line.reading.status is not Status.MEASURED]
    measured = [line for line in found.lines if line.reading.status is Status.MEASURED]
    if missing:
        show(_signals(_("Not measured ({n})", n=len(missing)), missing, _))
    if measured:
        show(_signals(_("Measured ({n})", n=len(measured)), measured, _))


def inspection(screen: Screen, answer: Answer) -> Inspection:
    """What the source's adapter tells; asked once an hour at most. A source that fails just now is told by the rest of the page."""
    source = answers.source(screen.view)
    if not isinstance(source, Inspectable):
        return Inspection()
    try:
        found = _inspected(screen.view.source, screen.view.bundle, answer.readings.end // HOUR, screen, answer.readings)
    except SourceError:
        found = Inspection()
    return source.timed(found)


@st.cache_resource(show_spinner=False, max_entries=32, ttl=HOUR)
def _inspected(name: str | None, bundle: str | None, hour: float, _screen: Screen, _readings: Readings) -> Inspection:
    return api.inspected(answers.source(_screen.view), _readings)


def _about(found: Trust, _: Reader) -> Html:
    """The source and the engines, as a list of names and what they are."""
    facts = [(_.tell(title), _.tell(says)) for title, says in found.facts]
    listed = [join((tag("dt", title), tag("dd", says))) for title, says in facts] + [_engine(each, _) for each in found.engines]
    return tag("div", tag("dl", listed, cls="about"), cls="panel sheet")


def _engine(each: Engine, _: Reader) -> Html:
    words = _.tell(each.counted)
    return join((tag("dt", each.title), tag("dd", words)))


def _signals(title: str, lines: Sequence[Line], _: Reader) -> Html:
    head = tag("tr", [tag("th", words) for words in (_("Signal"), _("State"), _("Metric"), _("Without it"))])
    body = tag("tbody", [_line(line, _) for line in lines])
    return tag(
        "div",
        tag("div", title, cls="title", role="heading", aria_level=2),
        tag("table", tag("thead", head), body, cls="table signals"),
        cls="panel sheet",
    )


def _line(line: Line, _: Reader) -> Html:
    """One signal. Its reason stands under its metric; what suffers is marked, so that it is seen without reading."""
    reading = line.reading
    others = _("also looked for: {names}", names=Names(line.others)) if reading.metric and line.others else None
    metric = [
        tag("code", reading.metric) if reading.metric else None,
        tag("div", _.tell(reading.why), cls="why") if reading.why else None,
        tag("div", others, cls="why") if others else None,
    ]
    suffers = [
        tag(
            "div",
            icon("suspected") if each.needed else None,
            tag("span", _.tell(each.says)),
            cls="suffers needed" if each.needed else "suffers",
        )
        for each in line.suffers
    ]
    state = tag("span", icon(_SIGNS[reading.status]), _.tell(STATUSES[reading.status]), cls="verdict")
    return tag("tr", tag("td", _.tell(reading.signal.title)), tag("td", state), tag("td", metric), tag("td", suffers))
