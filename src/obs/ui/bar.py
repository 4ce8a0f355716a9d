"""The bar on every page: window, scope, zone, language, refresh, Share, and the age of the data.

The address bar is the only state: a control is set from the view before it is drawn, and what a person does to it becomes
another view. On a narrow screen the bar is folded away under one line (style.css).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from zoneinfo import available_timezones

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.elements.lib.mutable_popover_container import PopoverContainer

from obs import pasted
from obs.errors import CallError
from obs.links import View
from obs.text import Names
from obs.ui import address, last_incident, screen
from obs.ui.markup import show, tag
from obs.ui.reader import Reader
from obs.window import Window, parse_time, rfc3339

PRESETS = ("15m", "1h", "3h", "6h", "12h", "24h", "2d", "7d", "30d")
REFRESH = (0, 15, 30, 60)  # seconds; 0 is off
REFRESH_DEFAULT = 30
_LANGUAGES = {"en": "English", "es": "Español"}  # each in its own language


@dataclass(frozen=True)
class Slots:
    """What of the bar is filled once the answer is there."""

    scope: PopoverContainer
    share: PopoverContainer
    age: DeltaGenerator


def draw(view: View, window: Window | None, now: float, _: Reader) -> Slots:
    """Draws the bar. `window` is None where the link's cannot be judged; `now` is the source's."""
    show(
        tag(
            "details",
            tag("summary", tag("b", _status(window, _)), " ", window_words(view, window, _), " · ", scope_words(view, _)),
            cls="fold",
        )
    )
    with st.container(key="bar", horizontal=True, vertical_alignment="center", gap="small"):
        _steps(view, window, now, _)
        scope = _popover("scope", _("Scope") if view.scope else escaped(scope_words(view, _)), ":material/filter_alt:")
        for label, values in sorted(view.scope.items()):
            _chip(view, label, values, _)
        reader = _popover("reader", escaped(f"{_.zone} · {_.lang.upper()}"), ":material/tune:")
        if reader.open:
            with reader:
                _reader(view, _)
        share = st.popover(_("Share"), type="primary", icon=":material/link:", key="share", on_change="rerun")
        age = st.container(key="age", width="content")
    return Slots(scope, share, age)


def _chip(view: View, label: str, values: tuple[str, ...], _: Reader) -> None:
    """A label that is in force; a click takes it away."""
    words = f"{label}={', '.join(values)}"
    words = words if len(words) <= 40 else words[:39] + "…"
    help = _("Remove the filter {label}", label=Names((label,)))
    rest = replace(view, scope={name: kept for name, kept in view.scope.items() if name != label})
    st.button(escaped(words), icon=":material/close:", key=f"chip-{label}", help=escaped(help), on_click=address.go, args=(rest,))


def refresh_seconds() -> int:
    """How often the view on the screen refreshes while its window moves; 0 for never."""
    return often(screen.current().view)


def often(view: View) -> int:
    """What a view says of it, else the default."""
    return REFRESH_DEFAULT if view.refresh is None else view.refresh


def _popover(key: str, label: str, icon: str) -> PopoverContainer:
    """A popover whose content is drawn only while it is open. That is not for speed: a control that is set while it is not on the screen
    would later send back what it showed before, as if the person had chosen it."""
    return st.popover(label, icon=icon, key=key, on_change="rerun")


def _status(window: Window | None, _: Reader) -> str:
    return _("LIVE") if window is not None and window.live else _("PINNED")


def preset_words(preset: str, _: Reader) -> str:
    """A relative window in words."""
    words = {
        "15m": _("Last 15 min"),
        "1h": _("Last hour"),
        "3h": _("Last 3 h"),
        "6h": _("Last 6 h"),
        "12h": _("Last 12 h"),
        "24h": _("Last 24 h"),
        "2d": _("Last 2 days"),
        "7d": _("Last 7 days"),
        "30d": _("Last 30 days"),
    }
    return words[preset]


def _preset(view: View, window: Window | None) -> str | None:
    """The preset that the view is, if it is one."""
    if window is None or not window.live:
        return None
    if view.start is None and view.end is None:
        return "1h"
    return next((p for p in PRESETS if view.start == f"now-{p}" and view.end in ("now", None)), None)


def window_words(view: View, window: Window | None, _: Reader) -> str:
    """The window for the bar: the preset's words, else date and times in the reader's zone."""
    if window is None:
        return _("no window")
    if preset := _preset(view, window):
        return preset_words(preset, _)
    return _.window(window.start, window.end)


def scope_words(view: View, _: Reader) -> str:
    """The scope for the bar; long values are cut in the middle of the screen, not of the page."""
    if not view.scope:
        return _("everything")
    words = " · ".join(", ".join(values) for _label, values in sorted(view.scope.items()))
    return words if len(words) <= 48 else words[:47] + "…"


def _steps(view: View, window: Window | None, now: float, _: Reader) -> None:
    """Half a window back, the window itself, half a window on, and twice as long."""
    earlier = window.shift(-0.5) if window else None
    later = window.shift(0.5).until(now) if window else None
    wider = window.zoom_out().until(now) if window else None
    _step("earlier", ":material/chevron_left:", _("Half a window back"), view, earlier)
    label = f"**{_status(window, _)}** {escaped(window_words(view, window, _))}"
    chooser = _popover("window", label, ":material/schedule:")
    if chooser.open:
        with chooser:
            _window(view, window, now, _)
    _step("later", ":material/chevron_right:", _("Half a window on"), view, later if window and later != window else None)
    _step("wider", ":material/zoom_out:", _("Zoom out"), view, wider)


def _step(key: str, icon: str, words: str, view: View, window: Window | None) -> None:
    target = _absolute(view, window) if window else view
    st.button(words, icon=icon, key=key, help=words, disabled=window is None, on_click=address.go, args=(target,))


def _absolute(view: View, window: Window) -> View:
    return replace(view, start=rfc3339(round(window.start)), end=rfc3339(round(window.end)))


def _window(view: View, window: Window | None, now: float, _: Reader) -> None:
    preset = st.session_state["preset"] = _preset(view, window)

    def choose() -> None:
        if wish := st.session_state["preset"]:
            address.go(replace(view, start=f"now-{wish}", end="now"))

    st.pills(_("Relative"), PRESETS, default=preset, key="preset", format_func=lambda each: preset_words(each, _), on_change=choose)
    last_incident.draw(view, window, now, _)
    keys, of = ("range_from", "range_to"), (view.start, view.end, _.zone)
    if st.session_state.get("range_of") != of or any(key not in st.session_state for key in keys):
        st.session_state["range_of"] = of  # only for another view, or on opening: nothing changes under a person's fingers
        for key, text in zip(keys, _boxes(view, window, now, _), strict=True):
            st.session_state[key] = text

    def apply() -> None:
        typed = tuple(st.session_state[key] for key in keys)
        first, last = pasted.pair(typed[0]) or pasted.pair(typed[1]) or typed
        try:
            start, end = _typed(first, now, _, last=False), _typed(last, now, _, last=True)
        except CallError as error:
            st.session_state["range_error"] = error.says
        else:
            address.go(replace(view, start=start, end=end))

    with st.form("range", border=False):
        left, right = st.columns(2)
        left.text_input(_("From ({zone})", zone=_.zone), value=st.session_state[keys[0]], key=keys[0])
        right.text_input(_("To ({zone})", zone=_.zone), value=st.session_state[keys[1]], key=keys[1])
        st.form_submit_button(_("Show this window"), on_click=apply, type="primary")
    if wrong := st.session_state.pop("range_error", None):
        st.error(escaped(_.tell(wrong)))
    st.caption(_("A date and time in any common form, Unix seconds, or relative: now-90m. A pasted link gives both ends."))


def _boxes(view: View, window: Window | None, now: float, _: Reader) -> tuple[str, str]:
    """What the boxes hold: the window; where that cannot be, what was asked for, so that it can be put right."""
    if window is not None:
        return _written(window.start, _), _written(window.end, _)
    asked = []
    for text, last in ((view.start, False), (view.end, True)):
        try:
            relative = text is None or text.strip().startswith("now")
            asked.append(text or "" if relative or text is None else _written(parse_time(text, now, _.zone, end=last), _))
        except CallError:
            asked.append(text or "")
    return asked[0], asked[1]


def _written(at: float, _: Reader) -> str:
    return _.moment(at).strftime("%Y-%m-%d %H:%M:%S")


def _typed(text: str, now: float, _: Reader, *, last: bool) -> str:
    """A time as typed: relative forms stay relative, everything else becomes absolute in UTC."""
    at = parse_time(text, now, _.zone, end=last)
    return text.strip() if text.strip().startswith("now") else rfc3339(at)


def _reader(view: View, _: Reader) -> None:
    """Zone, language, refresh."""
    browser = st.context.timezone or "UTC"
    zones = ["", "UTC", *sorted(available_timezones() - {"UTC", "localtime"})]
    shown = st.session_state["zone_wish"] = view.zone if view.zone in zones else ""
    st.session_state["lang_wish"] = _.lang
    st.session_state["refresh_shown"] = often(view)

    def zone() -> None:
        address.go(replace(view, zone=st.session_state["zone_wish"] or ""))

    def lang() -> None:
        address.go(replace(view, lang=st.session_state["lang_wish"] or _.lang))

    def refresh() -> None:
        if (wish := st.session_state["refresh_shown"]) is not None:
            address.go(replace(view, refresh=wish))

    st.selectbox(
        _("Time zone"), zones, zones.index(shown), key="zone_wish", on_change=zone,
        format_func=lambda name: name or _("this browser: {zone}", zone=browser),
    )  # fmt: skip
    st.segmented_control(
        _("Language"), list(_LANGUAGES), default=_.lang, key="lang_wish", on_change=lang, format_func=_LANGUAGES.__getitem__
    )
    choices = sorted({*REFRESH, often(view)})
    st.segmented_control(
        _("Refresh while live"), choices, default=often(view), key="refresh_shown", on_change=refresh,
        format_func=lambda s: _.length(s) if s else _("off"),
    )  # fmt: skip


def escaped(words: str) -> str:
    """Text for a Markdown label of Streamlit: every sign that could mean something there is escaped."""
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]()#+!|<>~$:-." else sign for sign in " ".join(words.split()))
