"""The sample recording: what it is, the incidents in it one click away, and how to look at one's own."""

from __future__ import annotations

import math
from dataclasses import replace

import streamlit as st

from obs import bundle
from obs.links import View
from obs.ui import address, bar
from obs.ui.markup import join, show, tag
from obs.ui.reader import Reader
from obs.window import Window, rfc3339

_AROUND, _WHOLE = 60.0, 30.0  # seconds that are shown before and after an incident: more, and the one before it is in view too


def draw(view: View, window: Window | None, _: Reader) -> None:
    """The label and one button an incident; the one that is shown is marked."""
    about = _("A real vLLM server behind a real Envoy, recorded on 30 November 2026 while incidents were provoked.")
    yours = _("To read your own Prometheus, start obs with OBS_PROMETHEUS_URL set to its address.")
    label = tag("b", _("Sample recording."))
    wide = tag("div", label, " ", about, " ", yours, cls="sample wide-only", role="note")
    show(join((wide, tag("details", tag("summary", label, " ", _("What is it?")), about, " ", yours, cls="sample narrow-only"))))
    with st.container(key="incidents", horizontal=True, gap="small"):
        for name, asked in windows(_):
            shown = window is not None and (window.start, window.end) == (asked.start, asked.end)
            target = replace(view, start=rfc3339(asked.start), end=rfc3339(asked.end), scope={}, row=None)
            key = f"incident-{asked.start:.0f}"
            st.button(bar.escaped(name), key=key, type="primary" if shown else "secondary", on_click=address.go, args=(target,))


def windows(_: Reader) -> list[tuple[str, Window]]:
    """The incidents in words, each with the window that shows it. Those of one kind that follow each other are one."""
    words = {
        "kv_pressure": _("KV pressure"),
        "slow_first_token_prefill": _("Slow prefill"),
        "retry_storm": _("Retry storm"),
        "slow_first_token_tokenization": _("Slow tokenization"),
        "slow_first_token_network": _("Slow network"),
        "abandoned": _("Abandoned work"),
        "overload_no_kv": _("Overload without KV pressure"),
        "crash_restart": _("Crash and restart"),
        "slow_first_token_queue": _("Slow queue"),
    }
    found: dict[str, Window] = {}
    for incident in bundle.incidents():
        kind = "abandoned" if incident.name.startswith("abandoned") else incident.name
        if kind in words:
            start = found[kind].start if kind in found else math.floor((incident.start - _AROUND) / _WHOLE) * _WHOLE
            found[kind] = Window(start, math.ceil((incident.end + _AROUND) / _WHOLE) * _WHOLE)
    found["kv_pressure"] = Window(*bundle.OPENING)  # where the recording opens
    return [(words[kind], window) for kind, window in found.items()]
