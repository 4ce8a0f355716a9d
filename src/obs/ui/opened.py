"""An opened row: every piece of evidence with its chart, the metric that was found, and the PromQL to copy."""

from __future__ import annotations

import streamlit as st

from obs.text import Names
from obs.titles import STANCES
from obs.ui import derived, legend, screen, zoom
from obs.ui.answer import Answer
from obs.ui.cards import one_change
from obs.ui.charts import chart
from obs.ui.markup import Html, join, show, tag
from obs.ui.reader import Reader
from obs.verdict import Evidence, Stance, State, Verdict


def draw(verdict: Verdict, answer: Answer, _: Reader) -> None:
    """All of the row's evidence, in the diagnosis' order, and what is missing for a judgement."""
    for number, piece in enumerate(verdict.evidence):
        with st.container(key=f"piece-{verdict.row}-{number}"):
            words, picture = st.columns([5, 8], gap="medium")
            with words:
                show(_facts(piece, _))
                _queries(piece, answer, _)
            with picture:
                _chart(piece, verdict, answer, _)
    if verdict.state in (State.CLEAR, State.UNKNOWN) and verdict.changes:  # the closed card has only the first one's name
        show(tag("div", tag("div", _("Change to test"), cls="label"), [one_change(change, _) for change in verdict.changes], cls="change"))
    if verdict.missing:
        show(tag("ul", [tag("li", _.tell(each)) for each in verdict.missing], cls="caveats"))


def _queries(piece: Evidence, answer: Answer, _: Reader) -> None:
    """The PromQL to copy, folded away: the query of the figure, or those that a derived figure is computed from, and how."""
    sources = derived.reads(piece, answer.readings)
    if not sources and not piece.promql:
        return
    with st.expander(_("computed from") if sources else "PromQL", type="compact"):
        if not sources:
            st.code(piece.promql or "", language=None, wrap_lines=True)
            return
        show(tag("p", _.tell(derived.RECIPES[piece.signal].how), cls="against"))
        for reading in sources:
            show(tag("div", tag("b", _.tell(reading.signal.title)), " ", tag("code", reading.metric or ""), cls="asked"))
            st.code(reading.promql or "", language=None, wrap_lines=True)


def _facts(piece: Evidence, _: Reader) -> Html:
    """The piece in words and figures."""
    facts = [
        (_("What it is"), _.tell(piece.of) if piece.of is not None else None),
        (_("Threshold"), _.figure(piece.threshold, piece.unit) if piece.threshold is not None else None),
        (_("Before"), _.figure(piece.baseline, piece.unit) if piece.baseline is not None else None),
        (_("Onset"), _.clock(piece.onset) if piece.onset is not None else None),
        (_("Replicas"), _("{names}", names=Names(piece.replicas)) if piece.replicas else None),
        (_("Metric"), piece.metric),
    ]
    listed = [join((tag("dt", name), tag("dd", value))) for name, value in facts if value]
    return tag(
        "div",
        tag("div", _.tell(STANCES[piece.stance]), cls="label"),
        tag("div", _.tell(piece.title), cls="title", role="heading", aria_level=3),
        tag("div", _.figure(piece.value, piece.unit), cls="figure"),
        tag("div", _.tell(piece.says), cls="against") if piece.stance is Stance.MISSING or piece.value is None else None,
        tag("dl", listed),
        cls=f"piece {piece.stance.value}",
    )


def _chart(piece: Evidence, verdict: Verdict, answer: Answer, _: Reader) -> None:
    course = answer.courses.course(piece)
    if course is None:
        show(tag("div", _("Nothing to draw: there is no such figure in this window."), cls="nothing"))
        return
    view = screen.current().view
    plot = chart(piece, course, answer.readings.grid.times, verdict, answer.diagnosis, _)
    several = len(course.names) > 1
    if several:
        show(tag("div", legend.keys(plot, len(course.names) - len(plot.names), None, _), cls="keys"))
    zoom.draw(plot, f"{verdict.row}-{piece.signal}", view, _.tell(piece.says), _)
