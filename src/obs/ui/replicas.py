"""The replicas page: which one is sick?"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import streamlit as st

from obs import heat, sick
from obs.course import Course
from obs.errors import SourceError
from obs.facts import Facts
from obs.outliers import LEAST_REPLICAS, Outlier
from obs.text import Message
from obs.ui import answer as answers
from obs.ui import page, replica_heat, replica_table
from obs.ui.answer import Answer
from obs.ui.icons import icon
from obs.ui.markup import Html, show, tag
from obs.ui.panel import panel
from obs.ui.screen import Screen

ODD = 8  # outliers that are named; the table has them all
_SIGNAL = "replicas_signal"
_MADE: WeakKeyDictionary[Facts, tuple[sick.Fleet, Message | None]] = WeakKeyDictionary()


def draw(screen: Screen) -> None:
    """The page, or the sentence that stands in its place."""
    _ = screen.reader
    answer = page.begin(screen, _("Which one is sick?"))
    if answer is None:
        return
    facts = answer.courses.facts
    found, mean = _fleet(screen, answer)
    page.says(found.said, screen)
    if not found.standings:
        return
    replica_table.draw(screen, found.standings, mean)
    if len(found.standings) >= LEAST_REPLICAS:
        _odd(screen, found.outliers)
    _map(screen, facts, found)


def _fleet(screen: Screen, answer: Answer) -> tuple[sick.Fleet, Message | None]:
    """Made once for each answer: of a thousand replicas it takes a second, and a click on the page is no new question. With the reason
    why the time to first token is a mean, where p95 of each replica was not read."""
    facts = answer.courses.facts
    if facts in _MADE:
        return _MADE[facts]
    try:
        tails, why = answers.tails(screen.view, answer, screen.moving)
    except SourceError as error:  # it fails just now: the rest of the page stands, and the next answer asks again
        return sick.fleet(facts, answer.diagnosis), error.says
    _MADE[facts] = sick.fleet(facts, answer.diagnosis, tails), why
    return _MADE[facts]


def _odd(screen: Screen, odd: Sequence[Outlier]) -> None:
    """Who stands out in what, with the figure and the median of all."""
    _ = screen.reader
    if not odd:
        return
    lines = [_line(outlier, screen) for outlier in odd[:ODD]]
    more = len(odd) - ODD
    note = _("Five minutes or more far from the median of all replicas in one figure. The farthest figure of each is named.")
    show(
        tag(
            "section",
            tag("div", _("Far from the median"), cls="title", role="heading", aria_level=2),
            tag("div", note, cls="note"),
            tag("ul", lines, cls="odd"),
            tag("div", _("{n} more: they stand in the table.", n=more), cls="note") if more > 0 else None,
            cls="panel sheet",
        )
    )


def _line(outlier: Outlier, screen: Screen) -> Html:
    _ = screen.reader
    name = replica_table.link(screen, outlier.replica)
    when = tag("span", _.span(outlier.start, outlier.end), cls="when")
    return tag("li", icon("suspected"), name, tag("span", _.tell(outlier.says)), when)


def _map(screen: Screen, facts: Facts, found: sick.Fleet) -> None:
    """The chosen signal: replica by time, and as lines."""
    _ = screen.reader
    offered = heat.offered(facts)
    if not offered:
        return
    first = next((outlier.signal.id for outlier in found.outliers if outlier.signal.id in offered), offered[0])
    with st.container(key="panel-heat"):
        signal = facts.reading(_choice(offered, first, facts, screen)).signal
        order = [standing.place for standing in found.standings]
        note = _("The sickest on top. A field shows its highest figure, of a mean that of all its requests. A click opens one.")
        replica_heat.draw(screen, heat.heat(facts, signal.id, order), signal, note)
    mean = facts.reading(signal.id).total is not None
    lines = facts.mean(signal.id) if mean else facts.values(signal.id)
    panel(
        screen, "lines", _("{signal}, by replica", signal=signal.title),
        Course(tuple(r.name for r in facts.readings.replicas), lines), signal.unit, signals=(signal.id,),
    )  # fmt: skip


def _choice(offered: Sequence[str], first: str, facts: Facts, screen: Screen) -> str:
    """The signal that is shown: the one in which a replica stands out, until another is chosen."""
    _ = screen.reader
    if screen.view.kiosk:  # a wall screen has nothing to choose
        return first
    if st.session_state.get(_SIGNAL) not in offered:
        st.session_state.pop(_SIGNAL, None)
    titles = {signal: _.tell(facts.reading(signal).signal.title) for signal in offered}
    return str(st.selectbox(_("Signal"), offered, key=_SIGNAL, index=offered.index(first), format_func=titles.__getitem__))
