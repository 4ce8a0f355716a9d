"""The timeline page: what happened, and what changed? Rows, findings, changes and alerts on one axis; the incidents, each with its link."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import streamlit as st

from obs.text import say_n
from obs.timeline import answer, timeline
from obs.ui import drafts, drag, lanes, page, retrospect
from obs.ui.drafts import Draft
from obs.ui.failure import noted
from obs.ui.markup import Html, show, tag
from obs.ui.reader import Reader
from obs.ui.screen import Screen

HERE = Path(__file__).resolve().parent


def draw(screen: Screen) -> None:
    """The page, or the sentence that stands in its place. While stretches are left to be read exactly, it shows what is known, reads on,
    and runs again."""
    _ = screen.reader
    st.html(HERE / "timeline.css")
    question = _("What happened, and what changed?")
    if screen.answer is None or screen.window is None:
        page.begin(screen, question)
        return
    draft = drafts.draft(screen.view, screen.window, screen.now)
    facts, diagnosis = draft.answer.courses.facts, draft.answer.diagnosis
    found = timeline(facts, diagnosis, drafts.seen(screen.view, screen.window, screen.now, facts.readings))
    show(tag("div", question, cls="question", role="heading", aria_level=1))
    page.says(answer(diagnosis, found), replace(screen, answer=None))  # its notes come last here, once all is read
    show(lanes.Lanes(facts, diagnosis, found, screen.view, _).html())
    show(_read(draft, _))
    retrospect.incidents(diagnosis, found, screen)
    retrospect.changes(found, screen)
    drag.over(screen)
    if draft.left:
        drafts.read_on(screen.view, screen.window, screen.now)
        st.rerun()
    noted(draft.answer.readings.notes, _)


def _read(draft: Draft, _: Reader) -> Html:
    """How finely the window was read, what is still being read, and what can be done with the lanes: one line that keeps its place."""
    step = _.length(draft.answer.readings.grid.step)
    words = [_("Drag over the lanes to set the window; a block leads to its incident.")]
    if draft.left:
        total = draft.done + draft.left
        words.insert(
            0, _("Read in steps of {step}; reading {done} of {total} stretches exactly …", step=step, done=draft.done + 1, total=total)
        )
    elif draft.done:
        exactly = say_n(
            "Read in steps of {step}, and exactly in {n} stretch where something happened.",
            "Read in steps of {step}, and exactly in {n} stretches where something happened.", draft.done, step=step,
        )  # fmt: skip
        words.insert(0, _.tell(exactly))
    bar = tag("progress", value=draft.done, max=draft.done + draft.left, aria_hidden="true") if draft.left else None
    return tag("div", bar, tag("span", " ".join(words)), cls="reading", role="status")
