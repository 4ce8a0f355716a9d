"""What surrounds every page: its navigation, the age of what it shows, and its refresh."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import streamlit as st
from streamlit.navigation.page import Page

from obs import links
from obs.errors import CallError
from obs.links import View
from obs.signals import Readings
from obs.ui import address, ages
from obs.ui.markup import Html, join, show, tag
from obs.ui.reader import Reader
from obs.ui.screen import Screen
from obs.window import zone_info

ROOT = Path(__file__).resolve().parents[3]
STILL = ("incidents",)  # pages where texts are written: they do not run again by themselves
TURNS = ("", "kv", "queue", "first-token", "retries", "memory", "replicas")  # what a wall screen that turns its pages shows, in this order
_FRESH = "fresh"
_TURNED = "turned"
_DAY = 86400
_LEVELS = ("requests_running", "requests_waiting", "kv_use")


def pages(root: Path) -> list[Page]:
    """The pages that there are, in the order of the links: a page's file has the name of its address."""
    scripts = [(name, root / f"pages/{name or 'diagnosis'}.py") for name in links.PAGES]
    return [
        st.Page(script, title="obs", url_path=name) if name else st.Page(script, title="obs", default=True)
        for name, script in scripts
        if script.exists()
    ]


def titles(_: Reader) -> dict[str, str]:
    """What the navigation calls each page."""
    return {
        "": _("Diagnosis"),
        "kv": _("KV cache"),
        "queue": _("Queue"),
        "first-token": _("First token"),
        "retries": _("Retries"),
        "memory": _("GPU memory"),
        "replicas": _("Replicas"),
        "data": _("Data"),
        "timeline": _("Timeline"),
        "compare": _("Compare"),
        "incidents": _("Incidents"),
    }


def browser_zone() -> str:
    """The browser's time zone; UTC where it names none that is known."""
    try:
        return zone_info(st.context.timezone or "UTC").key
    except CallError:
        return "UTC"


# Runs again where its text changes, hence the page's name in it. The links come one by one, a moment after it.
_SCRIPT = """<script>
document.documentElement.lang = LANG;
(function reach(tries) {
  const row = document.querySelector(".st-key-top"), here = row?.querySelector("[class*='st-key-nav-PAGE-here']");
  if (!here || row.querySelectorAll("a").length < COUNT) return tries && setTimeout(reach, 50, tries - 1);
  const [outer, inner] = [row.getBoundingClientRect(), here.getBoundingClientRect()];
  row.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
})(200);
</script>"""


def speak(lang: str, page: Page) -> None:
    """Tells the browser the page's language, so that a screen reader pronounces it right, and brings the open page's link into view.

    All words put in are ours, never outside text.
    """
    script = _SCRIPT.replace("LANG", json.dumps(lang)).replace("PAGE", page.url_path or "diagnosis")
    st.html(script.replace("COUNT", str(len(pages(ROOT)))), unsafe_allow_javascript=True)


def top(view: View, page: Page, _: Reader) -> None:
    """The product's name and a link to each page, which keeps the view."""
    names = titles(_)
    with st.container(key="top", horizontal=True, vertical_alignment="center", gap="medium"):
        show(tag("span", "obs", cls="brand"))
        for each in pages(ROOT):
            here = "-here" if each.url_path == page.url_path else ""
            with st.container(key=f"nav-{each.url_path or 'diagnosis'}{here}", width="content"):
                st.page_link(each, label=names[each.url_path], query_params=address.query(replace(view, row=None, incident=None)))


def age(screen: Screen, now: float) -> None:
    """How old the newest sample is, for a window that moves; how long and how fine the window is, for one that does not."""
    _ = screen.reader
    if screen.answer is None:
        return
    readings, about = screen.answer.readings, screen.answer.about
    words: list[str | Html] = [f"{about.name} · {about.flavor} {about.version}".strip()]
    words.append(_("{length} at {step}", length=_.length(readings.end - readings.start), step=_.length(readings.grid.step)))
    if screen.moving:
        newest = _newest(readings)
        if newest is None:
            words.insert(0, _("no sample in this window"))
        else:
            words.insert(0, join(ages.sentence(_("newest sample {age} old", age=ages.hole()), newest, now, _)))
    show(tag("span", words[0], [part for word in words[1:] for part in (" · ", word)], cls="age"))


def _newest(readings: Readings) -> float | None:
    """The last step with a level of an engine. Of a rate only where there is no level: it still shows minutes after the last sample."""
    for signals in (_LEVELS, tuple(readings.signals)):
        found = [readings.signals[signal] for signal in signals if readings.signals[signal].present]
        if found:
            known = np.any([np.isfinite(reading.values).any(axis=0) for reading in found], axis=0)
            return float(readings.grid.times[known][-1])
    return None


def refresh(seconds: int) -> None:
    """Runs the whole page again after so many seconds, so that bar, answer and Share always tell of the same window."""
    st.session_state[_FRESH] = True

    @st.fragment(run_every=seconds)
    def tick() -> None:
        if not st.session_state.pop(_FRESH, False):  # the first time is part of the page's own run
            st.rerun()

    tick()


def turn(view: View, page: Page, clock: Callable[[], float]) -> None:
    """On a wall screen that turns its pages: to the next one when this one has been shown for so long, however often it refreshed."""
    here, since = st.session_state.get(_TURNED, ("", 0.0))
    if here != page.url_path or not since:
        since = clock()
        st.session_state[_TURNED] = (page.url_path, since)
    end = since + view.kiosk
    after = TURNS[(TURNS.index(page.url_path) + 1) % len(TURNS)] if page.url_path in TURNS else TURNS[0]

    @st.fragment(run_every=max(1.0, end - clock()))
    def watch() -> None:
        if clock() >= end - 0.5:
            to = next(each for each in pages(ROOT) if each.url_path == after)
            st.switch_page(to, query_params=address.query(replace(view, row=None, incident=None)))

    watch()


def comes_back() -> None:
    """For a page that stands still: draws it anew after a lost connection.

    Streamlit's page does that only where it has a timer. Without, a server that has forgotten the session would not know what the next
    click means, and that click would be lost.
    """

    @st.fragment(run_every=_DAY)
    def nothing() -> None:
        """The timer is all that is wanted."""

    nothing()
