"""The sample recording: what it is, the incidents in it one click away, and how to look at one's own."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from obs.links import View
from obs.source import About
from obs.ui import address, bar
from obs.ui.markup import show, tag
from obs.ui.reader import Reader
from obs.window import Window, parse_time, rfc3339

SAMPLE = "sample"  # the name that the recording gives itself
_DAY = "2026-11-30T"


def _incidents(_: Reader) -> list[tuple[str, str, str]]:
    """(name, from, to) of what was done to the server, with minutes of quiet before it."""
    return [
        (_("KV pressure"), "11:00:00", "11:10:00"),
        (_("Slow prefill"), "11:09:30", "11:18:00"),
        (_("Retry storm"), "11:17:30", "11:27:30"),
        (_("Slow tokenization"), "11:26:30", "11:32:30"),
        (_("Slow network"), "11:32:30", "11:37:30"),
        (_("Abandoned work"), "11:37:00", "11:45:30"),
        (_("Queue without KV pressure"), "11:45:30", "11:51:30"),
        (_("Crash and restart"), "11:51:30", "11:57:00"),
        (_("Slow queue"), "11:56:30", "12:03:00"),
        (_("Rejected at admission"), "12:03:30", "12:06:30"),
    ]


def draw(view: View, window: Window | None, about: About, _: Reader) -> None:
    """The label and one button an incident; the one that is shown is marked."""
    if about.name != SAMPLE:
        return
    show(
        tag(
            "div",
            tag("b", _("Sample recording.")),
            " ",
            _("A real vLLM server behind a real Envoy, recorded on 30 November 2026 while incidents were provoked."),
            " ",
            _("To read your own Prometheus, start obs with OBS_PROMETHEUS_URL set to its address."),
            cls="sample",
            role="note",
        )
    )
    with st.container(key="incidents", horizontal=True, gap="small"):
        for name, start, end in _incidents(_):
            asked = Window(parse_time(f"{_DAY}{start}Z", 0), parse_time(f"{_DAY}{end}Z", 0))
            shown = window is not None and (window.start, window.end) == (asked.start, asked.end)
            target = replace(view, start=rfc3339(asked.start), end=rfc3339(asked.end), scope={}, row=None)
            st.button(
                bar.escaped(name), key=f"incident-{start}", type="primary" if shown else "secondary", on_click=address.go, args=(target,)
            )
