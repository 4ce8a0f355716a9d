"""The Incidents page: what was kept, found by its words; one of them opened; and the window on the screen to be kept."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from obs import links
from obs.errors import CallError
from obs.notes.incident import Incident, NotesError
from obs.notes.store import Store
from obs.text import Message
from obs.ui import address, bundles, incident, incident_new, notes, prose
from obs.ui.bar import escaped
from obs.ui.markup import Html, show, tag
from obs.ui.screen import Screen

_FIRST = 50  # incidents that are listed; a search finds the others
_TOLD = 180  # characters of the notes in the list


def draw(screen: Screen) -> None:
    """The page. Without a store, or with one that fails, it says so, and everything else works."""
    _ = screen.reader
    st.html(Path(__file__).with_name("incidents.css"))
    store = notes.store()
    if store is None:
        show(_heading(screen))
        show(_off(screen))
        bundles.draw(screen)
        return
    try:
        if screen.view.incident:
            _one(store, screen, screen.view.incident)
        else:
            _list(store, screen)
    except NotesError as error:
        unanswered(error.says, screen)
    if not screen.view.incident:
        bundles.draw(screen)


def unanswered(says: Message, screen: Screen) -> None:
    """The sentence of a database that does not answer."""
    _ = screen.reader
    show(tag("div", tag("b", _("The notes cannot be used now.")), " ", _.tell(says), cls="off", role="alert"))


def _heading(screen: Screen) -> Html:
    _ = screen.reader
    return tag("div", _("What happened before?"), cls="question", role="heading", aria_level=1)


def _off(screen: Screen) -> Html:
    _ = screen.reader
    return tag(
        "div",
        tag("b", _("Incidents are not kept here yet.")),
        tag("p", _("To switch it on, start obs with OBS_NOTES_DIR set to a folder that it may write to:")),
        tag("pre", "OBS_NOTES_DIR=/var/lib/obs/notes"),
        tag("p", _("A saved incident has a title, notes in Markdown, its window, the verdict at the time, and the readings in one file.")),
        cls="off",
    )


def _one(store: Store, screen: Screen, wanted: str) -> None:
    _ = screen.reader
    try:
        one = store.get(wanted)
    except CallError as error:
        show(tag("div", tag("p", _.tell(error.says)), cls="off", role="alert"))
        _back(screen)
        return
    if screen.view.start is None and screen.view.end is None:
        address.go(notes.opened(one, screen.view, _))
        st.rerun()
    _back(screen)
    incident.draw(store, one, screen)


def _back(screen: Screen) -> None:
    _ = screen.reader
    show(tag("a", "← ", _("All incidents"), href=links.url("", incident.listed(screen.view)), target="_self", cls="back"))


def _list(store: Store, screen: Screen) -> None:
    _ = screen.reader
    with st.container(key="incidents-head", horizontal=True, vertical_alignment="center"):
        show(_heading(screen))
        incident_new.draw(store, screen)
    words = st.text_input(
        _("Search"), key="incident_words", placeholder=_("title, notes, namespace, model, row …"), icon=":material/search:"
    )  # fmt: skip
    found = store.found(words)
    if not found:
        none = _("No incident has all of these words.") if words.strip() else _("No incident was kept yet.")
        show(tag("div", none, cls="nothing"))
    show(tag("div", [_line(one, screen) for one in found[:_FIRST]], cls="kept"))
    if len(found) > _FIRST:
        st.caption(_("The latest {shown} of {all}. A search finds the others.", shown=_FIRST, all=len(found)))
    _deleted(store, screen)


def _line(one: Incident, screen: Screen) -> Html:
    _ = screen.reader
    told = prose.plain(one.notes)
    return tag(
        "a",
        tag("span", one.title, cls="title"),
        notes.facts(one, _),
        tag("span", told[:_TOLD] + ("…" if len(told) > _TOLD else ""), cls="told") if told else None,
        href=links.url("", notes.opened(one, screen.view, _)),
        target="_self",
        cls="kept-line",
    )


def _deleted(store: Store, screen: Screen) -> None:
    """What was deleted, to be taken back."""
    _ = screen.reader
    away = store.found(deleted=True)
    if not away:
        return
    with st.expander(_("Deleted: {n}", n=len(away))):
        for one in away[:_FIRST]:
            with st.container(key=f"deleted-{one.id}", horizontal=True, vertical_alignment="center"):
                show(tag("div", tag("b", one.title), " ", notes.facts(one, _)))
                if st.button(_("Take back"), key=f"restore-{one.id}", help=escaped(one.title)):
                    store.restore(one.id)
                    st.rerun()
