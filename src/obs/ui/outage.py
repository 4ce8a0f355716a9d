"""The Diagnosis page without an answer: the last good one with its age and what happened, or the four rows as unknown."""

from __future__ import annotations

import streamlit as st

from obs.text import Message
from obs.titles import ROWS, STATES
from obs.ui import stale
from obs.ui.cards import card, first_sentence
from obs.ui.failure import failed
from obs.ui.headline import answered
from obs.ui.icons import icon
from obs.ui.markup import Html, show, tag
from obs.ui.reader import Reader
from obs.ui.screen import Screen
from obs.ui.strip import strip
from obs.verdict import ROW_IDS, State


def draw(screen: Screen) -> None:
    """The last good answer of this view with its age; where there is none, the page keeps its shape, so that nobody has to guess."""
    _ = screen.reader
    if screen.failed is None:
        return
    if screen.past is not None:
        _past(screen)
        return
    failed(screen.failed, _)
    for row in ROW_IDS:
        with st.container(key=f"card-unknown-{row}"):
            show(_unknown(row, screen.failed, _))


def _unknown(row: str, why: Message, _: Reader) -> Html:
    state = tag("div", icon("unknown"), tag("span", _.tell(STATES[State.UNKNOWN])), cls="state")
    return tag(
        "section",
        tag("div", tag("div", _.tell(ROWS[row]), cls="name", role="heading", aria_level=2), state, cls="what"),
        tag("p", first_sentence(_.tell(why)), cls="reason"),
        cls="row unknown lost",
        aria_label=f"{_.tell(ROWS[row])}: {_.tell(STATES[State.UNKNOWN])}",
    )


def _past(screen: Screen) -> None:
    """What this view showed last. It is marked as old, and nothing of it can be opened: its source is not there."""
    _ = screen.reader
    if screen.past is None:
        return
    answer = screen.past[0]
    diagnosis = answer.diagnosis
    with st.container(key="past"):
        stale.dated(screen)
        show(answered(diagnosis, _, past=True))
        stale.why(screen)
        show(tag("div", strip(diagnosis, _), cls="before"))
        for verdict in diagnosis.verdicts:
            with st.container(key=f"card-past-{verdict.row}"):
                show(tag("div", card(verdict, diagnosis, answer.courses, _), cls="before"))
