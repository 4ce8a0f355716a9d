"""GPU out-of-memory errors, host kills, XID errors and restarts on one time line, a lane each, and in words below it."""

from __future__ import annotations

from collections.abc import Sequence

from obs.gpu_events import Event, Lane
from obs.ui.icons import icon
from obs.ui.markup import Html, show, tag
from obs.ui.reader import Reader
from obs.ui.screen import Screen
from obs.ui.strip import across, axis
from obs.verdict import Diagnosis

MARKS = 120  # of one lane
WORDS = 6  # events of one lane that are told in words


def draw(screen: Screen, lanes: Sequence[Lane]) -> None:
    """The panel."""
    _, answer = screen.reader, screen.answer
    if answer is None:
        return
    diagnosis = answer.diagnosis
    title = tag("div", _("What happened, and what it was"), cls="title", role="heading", aria_level=2)
    rows = [_lane(lane, diagnosis, _) for lane in lanes]
    told = [_told(lane, _) for lane in lanes]
    show(
        tag(
            "section",
            title,
            tag("div", rows, axis(diagnosis.start, diagnosis.end, _), cls="strip happened", role="img", aria_label=_spoken(lanes, _)),
            tag("dl", told, cls="kinds"),
            cls="panel sheet",
        )
    )


def _lane(lane: Lane, diagnosis: Diagnosis, _: Reader) -> Html:
    marks = [
        tag(
            "span",
            cls=f"mark {lane.kind}",
            style=f"left:{_across(event.at, diagnosis):.2f}%",
            title=f"{_.clock(event.at)} {event.replica}: {_.tell(event.says)}",
        )
        for event in _thin(lane, diagnosis)
    ]
    name = tag("span", icon("unknown") if lane.why else None, tag("span", _.tell(lane.title)), cls="lane-name")
    return tag("div", name, tag("span", marks, cls="lane unjudged" if lane.why else "lane"), cls="lane-row")


def _thin(lane: Lane, diagnosis: Diagnosis) -> list[Event]:
    """At most one mark a place: those beside each other would be one line."""
    places: dict[int, Event] = {}
    for event in lane.events:
        places.setdefault(int(_across(event.at, diagnosis) * MARKS / 100), event)
    return list(places.values())


def _across(at: float, diagnosis: Diagnosis) -> float:
    return across(at, diagnosis.start, diagnosis.end)


def _told(lane: Lane, _: Reader) -> Html:
    """What the kind means, and its first events; where nothing measures it, that and what would."""
    if lane.why is not None:
        body = [tag("span", _("not measured: it is not known whether there were any."), " ", _.tell(lane.why))]
    elif not lane.events:
        body = [tag("span", _("none in this window."))]
    else:
        body = [
            tag("span", _.clock(event.at), " ", tag("b", event.replica), " ", _.tell(event.says), cls="event")
            for event in lane.events[:WORDS]
        ]
        if len(lane.events) > WORDS:
            body.append(tag("span", _("{n} more.", n=len(lane.events) - WORDS)))
    head = tag("dt", tag("i", cls=f"mark {lane.kind}"), _.tell(lane.title))
    return tag("div", head, tag("dd", tag("div", _.tell(lane.means), cls="note"), tag("div", body, cls="events")))


def _spoken(lanes: Sequence[Lane], _: Reader) -> str:
    return "; ".join(f"{_.tell(lane.title)}: {_('not measured') if lane.why else len(lane.events)}" for lane in lanes)
