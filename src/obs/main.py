"""Every page's frame: the view from the address bar, the navigation, the bar, the answer; then the page itself. Run by app.py."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import streamlit as st

from obs import links
from obs.errors import ObsError
from obs.language import negotiate
from obs.links import View
from obs.source import About
from obs.text import Message
from obs.ui import (
    address,
    ages,
    answer,
    bar,
    bundles,
    drafts,
    failure,
    frame,
    leaving,
    metrics,
    progress,
    sample,
    scope,
    screen,
    share,
    stale,
)
from obs.ui.reader import Reader
from obs.ui.screen import Screen
from obs.window import Window

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def main() -> None:
    """One rerun."""
    began = time.perf_counter()
    st.set_page_config(page_title="obs", page_icon=str(HERE / "ui/icon.svg"), layout="wide", initial_sidebar_state="collapsed")
    st.html(HERE / "ui/style.css")
    page = st.navigation(frame.pages(ROOT), position="hidden")
    view, notes = address.read(page.url_path)
    _ = Reader(negotiate(view.lang, st.context.locale), view.zone or frame.browser_zone())
    now = answer.moment(view, time.time())
    about, window, wrong = _window(view, now, _)
    if window is not None:
        _ = replace(_, dated=not _.one_day(window.start, window.end), drawn=(window.start, window.end))

    frame.speak(_.lang, page)
    if view.kiosk:
        st.html(HERE / "ui/kiosk.css")
    frame.top(view, page, _)
    slots = bar.draw(view, window, about.end if about and about.end else now, _)
    if answer.is_sample(view):
        sample.draw(view, window, _)
    failure.noted(notes, _)

    found, failed = None, wrong
    if window is not None:
        try:
            with progress.told(_("Reading the metrics of this window …"), _):
                drafted = page.url_path in drafts.PAGES
                found = drafts.draft(view, window, now).answer if drafted else answer.answer(view, window, now)
        except ObsError as error:
            failed = error.says
        else:
            answer.remember(view, found, time.time())
    past = answer.remembered(view) if found is None else None
    since = answer.failing(view, time.time()) if past is not None else None
    shown = Screen(view, _, notes, about, window, found, failed, past, since, now)
    st.set_page_config(page_title=screen.title(shown))
    screen.keep(screen.lasting(shown) if page.url_path else shown)
    if slots.scope.open:
        with slots.scope:
            scope.draw(view, answer.known(view, window, now), _)
    if slots.share.open:
        with slots.share:
            share.draw(shown)
    with slots.age:
        frame.age(shown, time.time())
    stale.clock(shown)
    if page.url_path not in frame.STILL:
        bundles.offered(shown)
    try:
        page.run()
    except ObsError as error:
        failure.failed(error.says, _)
    except Exception as error:  # noqa: BLE001  (the boundary of the page: logged in full, said as a sentence)
        failure.unexpected(error, _)
    metrics.RENDERED.labels(page.url_path or "diagnosis").observe(time.perf_counter() - began)
    ages.count(time.time())
    if view.kiosk > 1:
        frame.turn(view, page, time.time)
    if shown.moving and bar.refresh_seconds() and page.url_path not in frame.STILL:
        frame.refresh(bar.refresh_seconds())
    else:
        frame.comes_back()


def _window(view: View, now: float, _: Reader) -> tuple[About | None, Window | None, Message | None]:
    """What the source says of itself where that costs nothing (a recording), the window, and what is wrong with either."""
    about = None
    try:
        about = answer.about(view)
        return about, links.resolve(view, now, about, browser_zone=_.zone), None
    except ObsError as error:
        return about, None, error.says


with leaving.attended():
    main()
