"""The Data page: every signal, the metric that was found for it, and why others have none."""

from __future__ import annotations

from obs.signals import Reading, Status
from obs.ui.failure import failed, noted
from obs.ui.icons import icon
from obs.ui.markup import Html, show, tag
from obs.ui.reader import Reader
from obs.ui.screen import Screen

_ORDER = (Status.ABSENT, Status.STALE, Status.NO_TRAFFIC, Status.MEASURED)


def draw(screen: Screen) -> None:
    """One line a signal: what is not there first, since that is what one comes for."""
    _ = screen.reader
    if screen.answer is None:
        if screen.failed is not None:
            failed(screen.failed, _)
        return
    answer = screen.answer
    readings = sorted(answer.readings.signals.values(), key=lambda reading: _ORDER.index(reading.status))
    measured = sum(reading.status is Status.MEASURED for reading in readings)
    show(
        tag(
            "div",
            tag("span", _("{measured} of {all} signals are measured", measured=measured, all=len(readings))),
            cls="headline",
            role="heading",
            aria_level=1,
        )
    )
    noted(answer.readings.notes, _)
    head = tag("tr", [tag("th", words) for words in (_("Signal"), _("State"), _("Metric"), _("Why"))])
    show(tag("table", tag("thead", head), tag("tbody", [_line(reading, _) for reading in readings]), cls="table signals"))


def status_words(status: Status, _: Reader) -> str:
    """Four displays for four different things."""
    words = {
        Status.MEASURED: _("measured"),
        Status.NO_TRAFFIC: _("no traffic"),
        Status.ABSENT: _("absent"),
        Status.STALE: _("stale"),
    }
    return words[status]


def _line(reading: Reading, _: Reader) -> Html:
    sign = "clear" if reading.status is Status.MEASURED else "unknown"
    return tag(
        "tr",
        tag("td", _.tell(reading.signal.title)),
        tag("td", tag("span", icon(sign), status_words(reading.status, _), cls="verdict")),
        tag("td", tag("code", reading.metric) if reading.metric else None),
        tag("td", _.tell(reading.why) if reading.why else ""),
    )
