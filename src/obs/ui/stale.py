"""What stays on a page whose source does not answer: the last good answer, marked with its age, and why there is no newer one."""

from __future__ import annotations

import time

from obs.ui import ages
from obs.ui import answer as answers
from obs.ui.icons import icon
from obs.ui.markup import show, tag
from obs.ui.reader import Reader
from obs.ui.screen import Screen

CLOCK_SECONDS = 60.0  # less is a matter for the Data page


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


def clock(screen: Screen) -> None:
    """A word where the source's clock and this machine's do not agree: what moves with the time then lacks its end, or looks old."""
    _ = screen.reader
    ahead = answers.clock(screen.view) if screen.moving and screen.answer is not None else None
    if ahead is None or abs(ahead) < CLOCK_SECONDS:
        return
    length = _.length(abs(ahead))
    if ahead > 0:
        words = _(
            "The clock of the source is {length} ahead of this machine's: what is newest there is not read. Set both by NTP.", length=length
        )
    else:
        words = _("The clock of the source is {length} behind this machine's: its newest samples look old. Set both by NTP.", length=length)
    show(tag("div", icon("suspected"), " ", tag("span", words), cls="clock", role="status"))


def _at(at: float, now: float, _: Reader) -> str:
    """The time of day, with the day where it is another."""
    return _.clock(at) if _.one_day(at, now) else f"{_.day(at)} {_.clock(at)}"
