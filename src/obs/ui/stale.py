"""What stays on a page whose source does not answer: the last good answer, marked with its age, and why there is no newer one."""

from __future__ import annotations

import time

from obs.ui import ages
from obs.ui.icons import icon
from obs.ui.markup import show, tag
from obs.ui.reader import Reader
from obs.ui.screen import Screen


def dated(screen: Screen) -> None:
    """The time of what follows, and how old it is."""
    _ = screen.reader
    if screen.past is None:
        return
    made, now = screen.past[1], time.time()
    words = _("Last known, as of {time}, {age} old", time=_at(made, now, _), age=ages.hole())
    show(tag("div", icon("suspected"), tag("span", ages.sentence(words, made, now, _)), cls="asof"))


def why(screen: Screen) -> None:
    """Since when there is no answer, why, and what that means."""
    _ = screen.reader
    if screen.failed is None:
        return
    since = screen.failing if screen.failing is not None else time.time()
    title = _("No answer since {time}: of what came after, nothing is known.", time=_at(since, time.time(), _))
    show(tag("div", tag("b", title), " ", _.tell(screen.failed), cls="failed brief", role="alert"))


def _at(at: float, now: float, _: Reader) -> str:
    """The time of day, with the day where it is another."""
    return _.clock(at) if _.one_day(at, now) else f"{_.day(at)} {_.clock(at)}"
