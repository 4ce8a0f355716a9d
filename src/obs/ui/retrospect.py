"""The incidents of a window as a list, each with its length, row, peak figures and link; and the changes."""

from __future__ import annotations

from collections.abc import Sequence

from obs.events import Event
from obs.text import Names
from obs.timeline import Timeline, shortly_before
from obs.titles import ROWS, STAGES
from obs.ui.icons import icon
from obs.ui.lanes import link, moment, stretch
from obs.ui.markup import Html, show, tag
from obs.ui.reader import Reader
from obs.ui.screen import Screen
from obs.verdict import Diagnosis, Incident, Peak

_PEAKS, _BEFORE, _CHANGES = 4, 3, 20


def incidents(diagnosis: Diagnosis, found: Timeline, screen: Screen) -> None:
    """One line an incident, in the order of time; nothing where there was none."""
    _ = screen.reader
    if not diagnosis.incidents:
        return
    titles = (_("When"), _("Row"), _("Where"), _("Peak figures"), _("Changed shortly before"))
    lines = [_incident(incident, diagnosis, found.events, screen) for incident in diagnosis.incidents]
    table = tag("table", tag("thead", tag("tr", [tag("th", title) for title in titles])), tag("tbody", lines), cls="table told")
    title = tag("div", _("Incidents"), cls="title", role="heading", aria_level=2)
    show(tag("div", title, table, cls="panel sheet"))


def _incident(incident: Incident, diagnosis: Diagnosis, events: Sequence[Event], screen: Screen) -> Html:
    _ = screen.reader
    near = shortly_before(incident, events, screen.answer.readings.replicas if screen.answer else ())
    seconds = (diagnosis.end if incident.end is None else incident.end) - incident.start
    span = stretch(incident.start, incident.end, _)
    lasts = _("{length} until the window's end", length=_.length(seconds)) if incident.end is None else _.length(seconds)
    title = _("Show {row}, {span}, on the Diagnosis", row=ROWS[incident.row], span=span)
    when = tag("a", span, href=link(incident, diagnosis, screen.view), target="_self", title=title)
    stage = tag("div", _("slow stage: {stage}", stage=STAGES[incident.stage]), cls="note") if incident.stage else None
    others = (
        tag("div", _("with it: {rows}", rows=Names(tuple(_.tell(ROWS[row]) for row in incident.others))), cls="note")
        if incident.others
        else None
    )
    return tag(
        "tr",
        tag("td", tag("b", when), tag("div", lasts, cls="note")),
        tag("td", tag("span", icon("applies"), tag("b", _.tell(ROWS[incident.row])), cls="verdict"), stage, others),
        tag("td", _where(incident.replicas, diagnosis, _)),
        tag("td", [_peak(peak, _) for peak in incident.peaks[:_PEAKS]] or "–"),
        tag("td", [_change(event, incident, _) for event in near[:_BEFORE]] or _("nothing that was seen")),
    )  # fmt: skip


def _where(replicas: tuple[str, ...], diagnosis: Diagnosis, _: Reader) -> str:
    if not replicas:
        return _("at the gateway")
    if len(diagnosis.replicas) > 1:
        return _("{count} of {n}: {names}", count=len(replicas), n=len(diagnosis.replicas), names=Names(replicas))
    return replicas[0]


def _peak(peak: Peak, _: Reader) -> Html:
    return tag("div", _.tell(peak.title), " ", tag("b", _.figure(peak.value, peak.unit)), cls="peak")


def _change(event: Event, incident: Incident, _: Reader) -> Html:
    early = incident.start - (event.at - event.doubt)
    when = _("as it began") if early < 1 else _("{length} before", length=_.length(early))
    if event.doubt and early >= 1:
        when = _("up to {length} before", length=_.length(early))
    return tag("div", tag("b", when), " ", _.tell(event.says), _on(event, _), cls="peak")


def _on(event: Event, _: Reader) -> str:
    return f" ({_('on {replicas}', replicas=Names(event.replicas))})" if event.replicas else ""


def changes(found: Timeline, screen: Screen) -> None:
    """Every change with its time; what is beyond the first twenty is folded away."""
    _ = screen.reader
    if not found.events:
        return
    first, rest = found.events[:_CHANGES], found.events[_CHANGES:]
    more = tag("details", tag("summary", _("{n} more changes", n=len(rest))), _listed(rest, _)) if rest else None
    title = tag("div", _("Changes"), cls="title", role="heading", aria_level=2)
    show(tag("div", title, _listed(first, _), more, cls="panel sheet"))


def _listed(events: Sequence[Event], _: Reader) -> Html:
    return tag(
        "ul", [tag("li", tag("b", moment(event, _)), tag("span", _.tell(event.says), _on(event, _))) for event in events], cls="changes"
    )
