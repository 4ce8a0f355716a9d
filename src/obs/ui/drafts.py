"""A long window in the making: the coarse picture first, then more exact with each run of the page, for every session that looks at it."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from obs.history import history
from obs.links import View
from obs.seen import History
from obs.signals import Readings
from obs.ui import answer as answers
from obs.ui.answer import Answer, Scope
from obs.window import Window

PAGES = ("timeline",)  # these show what is known before all of it is
_KEPT = 16
_Key = tuple[str | None, str | None, float, float, Scope, float]


@dataclass(frozen=True)
class Draft:
    """The answer until now, and how many of the stretches with an incident were read exactly."""

    answer: Answer
    done: int
    left: int
    beyond: int  # more than are read exactly in a window so long


@st.cache_resource(show_spinner=False)
def _furthest() -> dict[_Key, int]:
    """How often each window was read on."""
    return {}


def draft(view: View, window: Window, now: float) -> Draft:
    """What is known of the window. The first call reads it coarsely; raises an ObsError, which is never kept."""
    key = answers.asked_for(view, window, now)
    return _draft(*key, _furthest().get(key, 0))


def read_on(view: View, window: Window, now: float) -> None:
    """Reads the next few stretches exactly."""
    key = answers.asked_for(view, window, now)
    times = _furthest().get(key, 0) + 1
    _draft(*key, times)
    held = _furthest()
    held[key] = times
    while len(held) > _KEPT:
        held.pop(next(iter(held)), None)


@st.cache_resource(show_spinner=False, max_entries=_KEPT, ttl=3600)
def _draft(name: str | None, bundle: str | None, start: float, end: float, scope: Scope, tick: float, times: int) -> Draft:
    read = answers.read_so_far(name, bundle, start, end, scope, tick, times)
    about = answers.source(View(source=name, bundle=bundle)).about()
    return Draft(answers.of_scan(about, read), len(read.parts), len(read.stretches), read.beyond)


def seen(view: View, window: Window, now: float, readings: Readings) -> History:
    """The labels of info metrics and the alerts of the window, of the replicas in `readings`."""
    return _seen(*answers.asked_for(view, window, now), readings)


@st.cache_resource(show_spinner=False, max_entries=_KEPT, ttl=3600)
def _seen(name: str | None, bundle: str | None, start: float, end: float, scope: Scope, tick: float, _readings: Readings) -> History:
    return history(answers.source(View(source=name, bundle=bundle)), _readings, dict(scope))


def forget() -> None:
    """What was made is made again: it was another server's."""
    _draft.clear()
    _seen.clear()
