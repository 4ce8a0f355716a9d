"""The Diagnosis page without an answer: what happened, the four rows as unknown, and the last good answer with its age."""

from __future__ import annotations

import streamlit as st

from obs.text import Message
from obs.titles import ROWS, STATES
from obs.ui.cards import card, first_sentence
from obs.ui.failure import failed
from obs.ui.headline import answered
from obs.ui.icons import icon
from obs.ui.markup import Html, show, tag
from obs.ui.page import outdated
from obs.ui.reader import Reader
from obs.ui.screen import Screen
from obs.ui.strip import strip
from obs.verdict import ROW_IDS, State


def draw(screen: Screen) -> None:
    """The page keeps its shape: nobody has to guess what would stand here."""
    _ = screen.reader
    if screen.failed is None:
        return
    failed(screen.failed, _)
    for row in ROW_IDS:
        with st.container(key=f"card-unknown-{row}"):
            show(_unknown(row, screen.failed, _))
    if screen.past is not None:
        _past(screen)


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
        outdated(screen)
        show(tag("div", answered(diagnosis, _), strip(diagnosis, _), cls="before"))
        for verdict in diagnosis.verdicts:
            with st.container(key=f"card-past-{verdict.row}"):
                show(tag("div", card(verdict, diagnosis, answer.courses, _), cls="before"))
