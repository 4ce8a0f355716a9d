"""One saved incident: what was seen, what was written, and its earlier texts. Two who edit it lose nothing."""

from __future__ import annotations

import time
from dataclasses import replace

import streamlit as st

from obs import links
from obs.errors import CallError
from obs.links import View
from obs.notes.incident import LONGEST_NOTES, LONGEST_TITLE, Conflict, Incident
from obs.notes.store import Store
from obs.titles import ROWS, STATES
from obs.ui import address, incident_new, notes, prose
from obs.ui.icons import icon
from obs.ui.markup import Html, show, tag
from obs.ui.screen import Screen
from obs.verdict import ROW_IDS, State


def listed(view: View) -> View:
    """The list of incidents, with nothing of the one that is open but who reads."""
    return View(page="incidents", zone=view.zone, lang=view.lang)


def draw(store: Store, one: Incident, screen: Screen) -> None:
    """The incident; while it is edited, the form in the place of the notes."""
    _ = screen.reader
    incident_new.said(screen)
    show(tag("div", tag("div", one.title, cls="headline", role="heading", aria_level=1), notes.facts(one, _), cls="incident"))
    if one.deleted is not None:
        _deleted(store, one, screen)
        return
    show(tag("div", _ways(one, screen), cls="ways"))
    if one.judged is not None:
        show(_verdicts(one, screen))
    base = st.session_state.get(_key(one))
    if base is None:
        _notes(store, one, screen)
    else:
        _edit(store, one, screen, base)
    _earlier(store, one, screen)


def _key(one: Incident) -> str:
    return f"editing-{one.id}"


def _ways(one: Incident, screen: Screen) -> list[Html]:
    """Where the window opens: from the bundle beside the notes, and where it was seen."""
    _ = screen.reader
    view = replace(notes.kept_view(one, _), zone=screen.view.zone, lang=screen.view.lang)
    kept = notes.has_bundle(one)
    ways = []
    if kept:
        ways.append((_("Open from the kept readings"), replace(view, source=None, bundle=one.bundle)))
    if not kept or view.bundle is None:
        ways.append((_("Open the window") if not kept else _("Open in Prometheus"), view))
    links_ = [tag("a", words, href=links.url("", target), target="_self") for words, target in ways]
    if one.bundle is not None and not kept:
        links_.append(tag("span", _("The file with its readings ({id}) is not here.", id=one.bundle)))
    return links_


def _verdicts(one: Incident, screen: Screen) -> Html:
    """The verdict at the time, as it was said and row by row."""
    _ = screen.reader
    judged = one.judged
    if judged is None:
        return tag("div")
    states = {state.value: state for state in State}
    rows = [
        tag("li", icon(judged.states[row]), " ", _.tell(ROWS[row]), ": ", tag("b", _.tell(STATES[states[judged.states[row]]])))
        for row in ROW_IDS
        if judged.states.get(row) in states
    ]
    title = _("The verdict when it was kept ({version})", version=judged.made_by)
    return tag("div", tag("div", title, cls="label"), tag("p", judged.headline), tag("ul", rows), cls="then")


def _notes(store: Store, one: Incident, screen: Screen) -> None:
    _ = screen.reader
    with st.container(key="notes"):
        if one.notes.strip():
            prose.show(one.notes)
        else:
            show(tag("div", _("Nothing was written yet."), cls="nothing"))
    with st.container(key="incident-acts", horizontal=True, gap="small"):
        if st.button(_("Edit"), icon=":material/edit:", key="edit"):
            st.session_state[_key(one)] = one.version
            st.rerun()
        with st.popover(_("Delete …"), icon=":material/delete:", key="delete"):
            st.caption(_("It can be taken back from the end of the list."))
            if st.button(_("Delete this incident"), key="delete_now"):
                done = store.delete(one.id, one.version, time.time())
                if isinstance(done, Conflict):
                    st.error(_("Somebody has changed it meanwhile; it was not deleted. Read it again."))
                else:
                    address.go(listed(screen.view))
                    st.rerun()


def _edit(store: Store, one: Incident, screen: Screen, base: int) -> None:
    """The form. `base` is the version that the text was begun from; whoever saved since is shown beside it."""
    _ = screen.reader
    seen = st.session_state.get(f"seen-{one.id}", base)  # what was on the screen when Save was pressed, not what is there now
    if one.version != base:
        st.session_state[f"seen-{one.id}"] = one.version
        _theirs(one, screen)
    with st.form("edit_form"):
        title = st.text_input(_("Title"), value=one.title, max_chars=LONGEST_TITLE, key=f"title-{one.id}-{base}")
        text = st.text_area(
            _("Notes (Markdown)"), value=one.notes, max_chars=LONGEST_NOTES, height=320, key=f"text-{one.id}"
        )  # fmt: skip
        with st.container(horizontal=True, gap="small"):
            words = _("Save") if one.version == base else _("Save my text as it stands")
            save = st.form_submit_button(words, type="primary", key="save")  # its words change: without a key the click would be lost
            leave = st.form_submit_button(_("Leave without saving"), key="leave")
    if leave:
        _done(one)
    if save:
        try:
            saved = store.save(one.id, seen, title, text, time.time())
        except CallError as error:
            st.error(_.tell(error.says))
            return
        if isinstance(saved, Conflict):
            st.rerun()  # both texts are shown
        _done(one)


def _theirs(one: Incident, screen: Screen) -> None:
    """What somebody else saved while this text was written."""
    _ = screen.reader
    show(
        tag(
            "div",
            tag("b", _("Somebody else has saved this incident while you were writing.")),
            " ",
            _("Nothing is lost: their text stands here, yours in the form below. Put together what belongs together, and save."),
            cls="off",
            role="alert",
        )
    )
    with st.container(key="theirs"):
        show(tag("div", _("Their text, of {time}: {title}", time=_.clock(one.changed), title=one.title), cls="label"))
        st.code(one.notes or " ", language=None, wrap_lines=True)


def _done(one: Incident) -> None:
    for key in (_key(one), f"seen-{one.id}"):
        st.session_state.pop(key, None)
    st.rerun()


def _earlier(store: Store, one: Incident, screen: Screen) -> None:
    """Every text that was saved, also the ones that another save came before."""
    _ = screen.reader
    kept = store.revisions(one.id)
    if len(kept) < 2:
        return
    with st.expander(_("Every text that was saved: {n}", n=len(kept))):
        for each in kept:
            which = _("version {n}", n=each.version) if each.version else _("kept beside, because another was saved first")
            when = f"{_.date(each.saved)} {_.clock(each.saved)}"
            show(tag("div", tag("b", when), " · ", which, " · ", each.title))
            st.code(each.notes or " ", language=None, wrap_lines=True)


def _deleted(store: Store, one: Incident, screen: Screen) -> None:
    _ = screen.reader
    show(tag("div", _("This incident was deleted. Its texts are kept, and it can be taken back."), cls="off", role="alert"))
    if st.button(_("Take back"), key="restore"):
        store.restore(one.id)
        st.rerun()
    _earlier(store, one, screen)
