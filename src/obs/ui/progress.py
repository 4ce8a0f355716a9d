"""What stands in the page's place while its metrics are read: how many of the queries are answered.

It is drawn by a thread of its own, since the page's waits; and over the page, so that nothing moves when a slow refresh begins or ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import streamlit as st
from streamlit.runtime.scriptrunner import add_script_run_ctx, get_script_run_ctx

from obs import errand
from obs.ui.markup import show, tag
from obs.ui.reader import Reader

LEAST_SECONDS = 0.5  # what is read faster needs no words
EVERY_SECONDS = 0.3


@contextmanager
def told(words: str, _: Reader, of: str = "window") -> Iterator[None]:
    """Within, the words and the count are shown as soon as it takes a moment; nothing of it stays. `of`: what is read, once on a page."""
    with st.container(key=f"progress-{of}"):
        slot = st.empty()
    watch, ended = errand.Watch(), Event()

    def tell() -> None:
        seconds, before = LEAST_SECONDS, (-1, -1)
        while not ended.wait(seconds):
            seconds = EVERY_SECONDS
            if (now := watch.told()) != before:
                before = now
                with slot:
                    _line(words, *now, _)

    thread = Thread(target=tell, name="progress", daemon=True)
    add_script_run_ctx(thread, get_script_run_ctx())
    thread.start()
    try:
        with errand.watched(watch):
            yield
    finally:
        ended.set()
        thread.join()
        slot.empty()


def _line(words: str, answered: int, asked: int, _: Reader) -> None:
    count = _("{n} of {all} queries answered", n=answered, all=asked) if asked else ""
    bar = tag("progress", value=answered, max=asked, aria_hidden="true") if asked else None
    show(tag("div", bar, tag("span", words, " ", count), cls="reading", role="status"))
