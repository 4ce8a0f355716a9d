"""The window that a page compares with: which one it is, how it is chosen, and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import streamlit as st

from obs import links
from obs.errors import CallError, ObsError
from obs.links import View
from obs.text import Message
from obs.trial import TRIALS
from obs.ui import address, progress
from obs.ui import answer as answers
from obs.ui.answer import Answer
from obs.ui.bar import escaped
from obs.ui.reader import Reader
from obs.ui.screen import Screen
from obs.window import Window, parse_time, rfc3339

_OFFSETS: Mapping[str, float | None] = {"before": None, "1h": 3600.0, "1d": 86400.0, "1w": 7 * 86400.0}  # None: the window's own length
_SETTLE_SECONDS = 120.0  # after a change: what was running still ran under the old settings


@dataclass(frozen=True)
class Versus:
    """The other window with its answer, or why there is none."""

    window: Window | None
    answer: Answer | None
    failed: Message | None = None


def asked(screen: Screen) -> Versus:
    """The comparison that the link names; without one the stretch before, on a recording that begins there the one after."""
    _ = screen.reader
    if screen.window is None:
        return Versus(None, None)
    try:
        window = links.comparison(screen.view, screen.now, screen.about, browser_zone=_.zone) or _default(screen, screen.window)
        view = other_view(screen.view, window)
        with progress.told(_("Reading the metrics of the other window …"), _, "other"):
            return Versus(window, answers.answer(view, window, screen.now))
    except ObsError as error:
        return Versus(None, None, error.says)


def _default(screen: Screen, own: Window) -> Window:
    about = screen.about
    early = about is not None and about.start is not None and own.start - own.seconds < about.start
    return _resolved(screen, own.shift(1.0 if early else -1.0))


def _resolved(screen: Screen, window: Window) -> Window:
    view = replace(screen.view, start=rfc3339(round(window.start)), end=rfc3339(round(window.end)))
    return links.resolve(view, screen.now, screen.about, browser_zone=screen.reader.zone)


def choose(screen: Screen, other: Window | None) -> None:
    """What to compare with, and which change was tested when."""
    _, own, view = screen.reader, screen.window, screen.view
    if own is None:
        return
    words = {"before": _("the stretch before"), "1h": _("an hour earlier"), "1d": _("a day earlier"), "1w": _("a week earlier")}
    with st.container(key="versus", horizontal=True, vertical_alignment="bottom", gap="small"):
        wish = st.session_state["versus_wish"] = next((key for key in _OFFSETS if other and _shifted(own, key) == _whole(other)), None)

        def offset() -> None:
            if key := st.session_state["versus_wish"]:
                start, end = _shifted(own, key)
                address.go(replace(view, compare=(rfc3339(start), rfc3339(end))))

        st.pills(_("Compare with"), list(_OFFSETS), default=wish, key="versus_wish", format_func=lambda key: words[key], on_change=offset)
        st.session_state["change_wish"], tested = view.change or "", ["", *TRIALS]

        def change() -> None:
            address.go(replace(view, change=st.session_state["change_wish"] or None))

        st.selectbox(
            _("Change that was tested"), tested, tested.index(view.change or ""), key="change_wish", on_change=change,
            format_func=lambda id_: _.tell(TRIALS[id_].title) if id_ else _("none"),
        )  # fmt: skip
        with st.popover(_("At a moment …"), icon=":material/more_time:", key="moment"):
            _moment(screen, own, _)


def _moment(screen: Screen, own: Window, _: Reader) -> None:
    """The moment of a change: as much time before it as after it, without the minutes in which old requests still run."""
    st.caption(_("Sets both windows around the moment of a change, each as long as this one. The first two minutes after it are left out."))

    def around() -> None:
        try:
            at = parse_time(st.session_state["moment_at"], screen.now, _.zone)
        except CallError as error:
            st.session_state["moment_error"] = error.says
            return
        first, last = at + _SETTLE_SECONDS, at + _SETTLE_SECONDS + own.seconds
        last = min(last, screen.now) if first < screen.now else last
        address.go(replace(
            screen.view, start=rfc3339(round(first)), end=rfc3339(round(last)),
            compare=(rfc3339(round(at - own.seconds)), rfc3339(round(at))),
        ))  # fmt: skip

    with st.form("moment_form", border=False):
        st.text_input(_("Moment ({zone})", zone=_.zone), key="moment_at", placeholder=_.moment(own.start).strftime("%Y-%m-%d %H:%M:%S"))
        st.form_submit_button(_("Compare before and after"), on_click=around, type="primary")
    if wrong := st.session_state.pop("moment_error", None):
        st.error(escaped(_.tell(wrong)))


def _shifted(own: Window, key: str) -> tuple[float, float]:
    by = _OFFSETS[key] or own.seconds
    return round(own.start - by), round(own.end - by)


def _whole(window: Window) -> tuple[float, float]:
    return round(window.start), round(window.end)


def other_view(view: View, window: Window) -> View:
    """The other window as a view of its own."""
    return replace(view, page="", start=rfc3339(round(window.start)), end=rfc3339(round(window.end)), compare=None, change=None)
