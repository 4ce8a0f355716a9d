"""The answer for a view: readings and diagnosis together, made once and shared by every session that looks at the same window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count

import streamlit as st

from obs import api, bundle, config, diagnosis, links, narrow, scan
from obs.bundle import Bundle
from obs.cache import Cached
from obs.collect import FINE_SECONDS
from obs.config import Settings
from obs.course import Courses
from obs.errors import CallError, ObsError
from obs.links import View
from obs.scan import Scan
from obs.signals import Readings
from obs.source import About, Inspectable, Inspection, Source
from obs.standing import Tails
from obs.text import Message
from obs.ui.metrics import WATCHED
from obs.verdict import Diagnosis
from obs.window import Window, parse_time

MINUTE = 60.0
LONG_TICK = 120.0  # of a window that is read coarsely
TICK = 15.0  # seconds; a live window ends on a multiple, so that sessions and reruns ask for the same one
_SETTLED_SECONDS = 600.0  # a window that ended this long ago gets no late samples any more
_KEPT = 48  # answers
Scope = tuple[tuple[str, tuple[str, ...]], ...]


def moment(view: View, clock: float) -> float:
    """`now` for a view: where its window moves, on a multiple of its tick; a pinned one may end this very second, and is not cut."""
    try:
        first, last = parse_time(view.start or "now-1h", clock), parse_time(view.end or "now", clock, end=True)
    except CallError:  # said where the window is made
        first, last = clock, clock
    if links.is_pinned(view) and last <= clock:
        return clock
    tick = _tick(clock - first)
    return clock // tick * tick


def _tick(seconds: float) -> float:
    """How often a moving window of this length moves: what takes seconds to read is not begun anew every few of them."""
    return TICK if seconds <= FINE_SECONDS else LONG_TICK


@dataclass(frozen=True)
class Answer:
    """What was read and what it means."""

    about: About
    readings: Readings
    diagnosis: Diagnosis
    courses: Courses


@st.cache_resource(show_spinner=False)
def settings() -> Settings:
    """The settings, read once."""
    return config.load()


@st.cache_resource(show_spinner=False, max_entries=32)
def _source(name: str | None, bundle: str | None) -> Source:
    found = api.open_source(View(source=name, bundle=bundle), settings())
    if isinstance(found, Bundle):
        return found
    cached = WATCHED[name or "default"] = Cached(found, most_bytes=settings().cache_megabytes * 2**20, renewed=_renewed)
    return cached


def _renewed() -> None:
    """Another server answers at a source's address: the answers that were made of the former one's readings are made again."""
    from obs.ui import drafts  # it is made of this module

    for made in (_answer, read_so_far, _groups, _tails):
        made.clear()
    drafts.forget()


def source(view: View) -> Source:
    """The source that the view names; a CallError where there is none of that name."""
    return _source(view.source, view.bundle)


def answer(view: View, window: Window, now: float) -> Answer:
    """Collects and diagnoses, or returns what was made before. Raises an ObsError, which is never kept."""
    return _answer(*asked_for(view, window, now))


def asked_for(view: View, window: Window, now: float) -> tuple[str | None, str | None, float, float, Scope, float]:
    """What a view asks, as a key: the same for every session that looks at the same window."""
    moving = window.end > now - _SETTLED_SECONDS
    return view.source, view.bundle, window.start, window.end, _scope(view), now // _tick(window.seconds) if moving else 0.0


def _scope(view: View) -> Scope:
    return tuple(sorted((label, tuple(values)) for label, values in view.scope.items()))


_Key = tuple[str | None, str | None, str | None, str | None, Scope]


@st.cache_resource(show_spinner=False)
def _past() -> dict[_Key, tuple[Answer, float]]:
    """The last good answer of each view, with the time of its making; the oldest goes first."""
    return {}


def _key(view: View) -> _Key:
    return view.source, view.bundle, view.start, view.end, _scope(view)


def remember(view: View, found: Answer, clock: float) -> None:
    """Keeps an answer for the time when its source fails."""
    past, key = _past(), _key(view)
    _failing().pop(key, None)
    held = past.pop(key, None)
    past[key] = held if held is not None and held[0] is found else (found, clock)
    while len(past) > _KEPT:
        past.pop(next(iter(past)), None)


def remembered(view: View) -> tuple[Answer, float] | None:
    """The last good answer of this view, and when it was made; None where this process has had none."""
    return _past().get(_key(view))


@st.cache_resource(show_spinner=False)
def _failing() -> dict[_Key, float]:
    """Since when each view has had no answer."""
    return {}


def failing(view: View, clock: float) -> float:
    """Since when this view has had no answer; it failed now, at `clock`."""
    held = _failing()
    since = held.setdefault(_key(view), clock)
    while len(held) > _KEPT:
        held.pop(next(iter(held)), None)
    return since


@st.cache_resource(show_spinner=False, max_entries=_KEPT, ttl=3600)
def _answer(name: str | None, bundle: str | None, start: float, end: float, scope: Scope, tick: float) -> Answer:
    steps = count(1)
    key = (name, bundle, start, end, scope, tick)
    read = scan.within_budget(lambda: read_so_far(*key, 0), lambda _before: read_so_far(*key, next(steps)))
    found = of_scan(_source(name, bundle).about(), read)
    return replace(found, readings=api.recalled(_source(name, bundle), found.readings, found.diagnosis, dict(scope)))


@st.cache_resource(show_spinner=False, max_entries=_KEPT, ttl=3600)
def read_so_far(name: str | None, bundle: str | None, start: float, end: float, scope: Scope, tick: float, times: int) -> Scan:
    """A window after it was read on so many times (`obs.scan.further`). The last one before is kept, so each costs its own stretches."""
    asked = _source(name, bundle)
    if times == 0:
        return scan.begin(asked, Window(start, end), dict(scope), settings())
    return scan.further(asked, read_so_far(name, bundle, start, end, scope, tick, times - 1), dict(scope), settings())


def of_scan(about: About, read: Scan) -> Answer:
    """What a scan has found until now."""
    readings, found = scan.told(read, settings())
    return Answer(about, readings, found, Courses(readings, found.thresholds))


def judged(about: About, readings: Readings) -> Answer:
    """The diagnosis of readings, with the lines that go with it."""
    found = diagnosis.diagnose(readings, settings().thresholds)
    return Answer(about, readings, found, Courses(readings, found.thresholds))


def known(view: View, window: Window | None, now: float) -> Mapping[str, list[str]]:
    """The namespaces, models and replicas to choose from in the window, whatever the scope is; none where nothing could be read."""
    if window is None:
        return {}
    try:
        replicas = answer(replace(view, scope={}), window, now).readings.replicas
    except ObsError:
        return {}
    found = {
        "namespace": {replica.namespace for replica in replicas},
        "model": {replica.model for replica in replicas},
        "replica": {replica.name for replica in replicas},
    }
    return {label: sorted(values - {""}) for label, values in found.items()}


def tails(view: View, answer: Answer, moving: bool) -> tuple[Tails, Message | None]:
    """Each replica's first tokens over the window, and the reason where they are not read. A window that moves asks once a minute. Raises
    SourceError, which is never kept."""
    readings = answer.readings
    until = readings.end // MINUTE * MINUTE if moving else readings.end
    return _tails(view.source, view.bundle, round(readings.end - readings.start), until, _scope(view), readings)


@st.cache_resource(show_spinner=False, max_entries=_KEPT, ttl=3600)
def _tails(
    name: str | None, bundle: str | None, seconds: int, until: float, scope: Scope, _readings: Readings
) -> tuple[Tails, Message | None]:  # fmt: skip
    return api.tailed(_source(name, bundle), _readings, dict(scope), until)


def groups(answer: Answer) -> Mapping[tuple[str, str], Answer]:
    """An answer for each (namespace, model) among the replicas: the same readings, narrowed, so nothing is asked again."""
    found = narrow.groups(answer.readings)
    if len(found) < 2:
        return {}
    readings = answer.readings
    key = (answer.about.name, readings.start, readings.end, readings.grid.step)
    return _groups(key, answer)


@st.cache_resource(show_spinner=False, max_entries=8)
def _groups(key: tuple[str, float, float, float], _answer: Answer) -> Mapping[tuple[str, str], Answer]:
    readings = _answer.readings
    return {
        (namespace, model): judged(_answer.about, narrow.narrow(readings, namespace=namespace, model=model))
        for namespace, model in narrow.groups(readings)
    }


def is_sample(view: View) -> bool:
    """Whether the view is of the recording that ships with obs."""
    try:
        return source(view) is bundle.sample()
    except ObsError:
        return False


def lasting(view: View) -> View:
    """The view with its recording's own name, so that its link means the same where another source is the default."""
    found = source(view)
    return replace(view, source=None, bundle=found.id) if isinstance(found, Bundle) else view


def about(view: View) -> About | None:
    """What the source says of itself, where that asks nobody: a recording knows its stretch, a server would have to be reached first."""
    found = source(view)
    return found.about() if isinstance(found, Bundle) else None


def clock(view: View) -> float | None:
    """How far the source's clock is ahead of this machine's, seconds, as its last answer said; None where it does not say."""
    found = source(view)
    return found.timed(Inspection()).clock_seconds if isinstance(found, Inspectable) else None
