"""The last incident as a way to set the window: looked for in the last day, then in the last week, or in all that a recording holds.

Again, from an incident's own window, it leads to the one before.
"""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from obs.errors import ObsError
from obs.links import View
from obs.timeline import window_of
from obs.ui import address, failure
from obs.ui import answer as answers
from obs.ui.reader import Reader
from obs.verdict import Incident
from obs.window import Window, rfc3339

_SPANS = (86400.0, 7 * 86400.0)  # seconds


def draw(view: View, window: Window | None, now: float, _: Reader) -> None:
    """The button; while it is looked for, what is read."""
    if not st.button(_("Last incident"), key="last-incident", icon=":material/history:"):
        return
    try:
        found = _look(view, window, now, _)
    except ObsError as error:
        failure.failed(error.says, _)
        return
    if found is None:
        st.info(_("No incident before this one was found."))
        return
    incident, start, end = found
    first, last = window_of(incident, start, end)
    address.go(replace(view, start=rfc3339(round(first)), end=rfc3339(round(last)), row=None))
    st.rerun()


def _look(view: View, window: Window | None, now: float, _: Reader) -> tuple[Incident, float, float] | None:
    """The incident, and the stretch in which it was found."""
    held = answers.about(view)
    stretches = [Window(now - seconds, now) for seconds in _SPANS]
    if held is not None and held.start is not None and held.end is not None:
        stretches = [Window(held.start, held.end)]
    for stretch in stretches:
        with st.spinner(_("Reading {length} …", length=_.length(stretch.seconds)), show_time=False):
            answer = answers.answer(view, stretch, now)
        incident = last(answer.diagnosis.incidents, window, stretch.start, stretch.end)
        if incident is not None:
            return incident, stretch.start, stretch.end
    return None


def last(incidents: tuple[Incident, ...], shown: Window | None, start: float, end: float) -> Incident | None:
    """The latest incident; where its window or an earlier one's is what is shown, the one before that."""
    own = [window_of(incident, start, end) for incident in incidents]
    if shown is not None and (shown.start, shown.end) in own:
        return incidents[own.index((shown.start, shown.end)) - 1] if own.index((shown.start, shown.end)) else None
    return incidents[-1] if incidents else None
