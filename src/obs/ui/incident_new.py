"""Keeping the window on the screen: a title, notes, and the readings in a file beside them."""

from __future__ import annotations

import time
from dataclasses import replace

import streamlit as st

from obs import api, links, shelf
from obs.bundle import Bundle, content_id
from obs.errors import CallError, ObsError
from obs.notes.incident import LONGEST_NOTES, LONGEST_TITLE, Draft, NotesError
from obs.notes.store import Store
from obs.text import Message
from obs.ui import address, notes
from obs.ui import answer as answers
from obs.ui.markup import show, tag
from obs.ui.screen import Screen
from obs.window import Window

_SAID = "incident_said"
_TITLE, _TEXT, _READINGS = "keep_title", "keep_text", "keep_readings"


def draw(store: Store, screen: Screen) -> None:
    """The button, and the form while it is open."""
    _ = screen.reader
    popover = st.popover(
        _("Keep this window"), type="primary", icon=":material/bookmark_add:", key="keep", on_change="rerun", disabled=screen.window is None
    )  # fmt: skip
    if not popover.open or screen.window is None:
        return
    _begun(screen)
    with popover, st.form("keep_form", border=False):
        show(tag("div", _.window(screen.window.start, screen.window.end), cls="label"))
        title = st.text_input(_("Title"), st.session_state[_TITLE], key=_TITLE, max_chars=LONGEST_TITLE)
        text = st.text_area(_("Notes (Markdown)"), st.session_state[_TEXT], key=_TEXT, max_chars=LONGEST_NOTES, height=160)
        with_readings = st.checkbox(
            _("Keep the readings too, so that it opens when Prometheus has forgotten it"), st.session_state[_READINGS], key=_READINGS
        )
        if st.form_submit_button(_("Keep"), type="primary"):
            _keep(store, screen, screen.window, title, text, with_readings)


def _begun(screen: Screen) -> None:
    """What the form begins with, once: a moving window has another headline by the time that Keep is pressed, and a field whose
    beginning changes is another field to Streamlit, without what was typed."""
    for key, begin in ((_TITLE, _title(screen)), (_TEXT, ""), (_READINGS, screen.answer is not None)):
        if key not in st.session_state:
            st.session_state[key] = begin


def said(screen: Screen) -> None:
    """What the reader should know of the save that led here."""
    for message in st.session_state.pop(_SAID, ()):
        st.warning(screen.reader.tell(message))


def _title(screen: Screen) -> str:
    return screen.reader.tell(screen.answer.diagnosis.headline).rstrip(".")[:LONGEST_TITLE] if screen.answer else ""


def _keep(store: Store, screen: Screen, window: Window, title: str, text: str, with_readings: bool) -> None:
    """Saves, and opens what was saved. Readings that cannot be had do not cost the notes: the sentence says so."""
    _ = screen.reader
    wrong: list[Message] = []
    held = None
    if with_readings:
        try:
            with st.spinner(_("Reading what goes into the file …"), show_time=False):
                held = _readings(store, screen, window)
        except ObsError as error:
            wrong.append(error.says)
    view = answers.lasting(screen.view) if screen.answer is not None else screen.view
    view = replace(links.pinned(view, window, zone=_.zone, lang=_.lang), page="", incident=None, kiosk=0)
    judged = notes.judged(screen.answer, _) if screen.answer is not None else None
    try:
        one = store.add(Draft(title, text, links.url("", view), window.start, window.end, judged, held), time.time())
    except (CallError, NotesError) as error:
        st.error(_.tell(error.says))
        return
    st.session_state[_SAID] = tuple(wrong)
    address.go(notes.opened(one, screen.view, _))
    st.rerun()


def _readings(store: Store, screen: Screen, window: Window) -> str:
    """The content id of the bundle: the one that is on the screen, or a new one beside the notes. Raises ObsError."""
    source = answers.source(screen.view)
    if isinstance(source, Bundle):
        data = shelf.uploaded(source.id)
        if data is not None:
            shelf.write(store.folder, data, source.id)
        return source.id
    settings = answers.settings()
    data = api.packed(source, window, screen.view.scope, settings)
    id_ = content_id(data)
    shelf.write(store.folder, data, id_)
    return id_
