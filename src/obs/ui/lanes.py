"""What happened in a window as lanes over one time axis: rows of the table with their replicas, findings, changes, alerts.

A block leads to its incident on the Diagnosis, a mark to the minutes around its change. A lane of which nothing is known is hatched and
says why: that is not an empty one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from obs import links
from obs.coverage import dark
from obs.events import Event
from obs.facts import Facts
from obs.links import View
from obs.series import Array, anywhere, runs
from obs.shifts import prompt_length, traffic
from obs.text import Names
from obs.timeline import Alert, Timeline, window_of
from obs.titles import ROWS
from obs.ui.icons import icon
from obs.ui.markup import Html, tag
from obs.ui.reader import Reader
from obs.ui.spark import sparkline
from obs.ui.strip import across, axis, ticks
from obs.verdict import Diagnosis, Finding, Incident, State, Verdict
from obs.window import rfc3339

_SIGNED = 24  # marks in a lane that still have room for their signs
_REPLICAS, _ALERTS = 6, 12  # lanes of replicas under a row, and of alerts; the others are counted
_AROUND_SECONDS = 600.0  # on both sides of a change or a finding, where it leads to
_LEAST_WIDTH = 0.35  # percent: a block of a moment must be seen
_SIGNS = {"restart": "↻", "version": "◆", "configuration": "◆"}
_WAYS = {"replicas": "−+", "traffic": "↓↑", "prompt_length": "↓↑"}


class Lanes:
    """Makes the lanes of one answer."""

    def __init__(self, facts: Facts, diagnosis: Diagnosis, found: Timeline, view: View, _: Reader) -> None:
        self.facts, self.diagnosis, self.found, self.view, self._ = facts, diagnosis, found, view, _
        self.start, self.end = diagnosis.start, diagnosis.end
        self.gaps = self._gaps()

    def html(self) -> Html:
        """All of them, with the times above and below."""
        _ = self._
        blind = None if self.facts.readings.replicas else _("not measured in this window")
        rows = [
            axis(self.start, self.end, _),
            *(lane for verdict in self.diagnosis.verdicts for lane in self._row(verdict)),
            *self._findings(),
            _group(_("Changes")),
            self._course(_("Requests"), "traffic", traffic(self.facts), "per_second"),
            self._course(_("Prompt length, mean"), "prompt_length", prompt_length(self.facts), "tokens"),
            self._marks(_("Restarts"), ("restart",), blind),
            self._marks(_("Replicas that came or went"), ("replicas",), blind),
            self._marks(
                _("Versions and configuration"),
                ("version", "configuration"),
                _.tell(self.found.no_configuration) if self.found.no_configuration else None,
            ),
            *self._alerts(),
            axis(self.start, self.end, _),
        ]
        rules = [tag("i", style=f"left:{self._across(at):.2f}%") for at in ticks(self.start, self.end, _)]
        over = tag("div", rules, cls="rules", aria_hidden="true")
        label = _("When each row applied, findings, changes and alerts, on one time axis")
        return tag(
            "div", over, rows, cls="strip tl", role="group", aria_label=label, data_start=self.start, data_end=self.end
        )  # fmt: skip

    def _gaps(self) -> list[Html]:
        """Where no replica had any figure: hatched in the lanes of the rows, since nothing is known there."""
        readings, measured = self.facts.readings, anywhere(self.facts.measured)
        least = readings.grid.steps(self.facts.limit("hold"))
        edges = [
            (self._across(float(readings.grid.times[first]) - readings.grid.step), self._across(float(readings.grid.times[last])))
            for first, last in runs(~measured)
            if last - first >= least and readings.grid.times[last] > readings.start
        ]
        words = self._("no figures of any replica")
        return [
            tag("i", cls="gap", style=f"left:{left:.2f}%;width:{right - left:.2f}%", title=words) for left, right in edges if right > left
        ]

    def _row(self, verdict: Verdict) -> list[Html]:
        """A row's lane, and under it those of the replicas, the longest first, where there are several in view."""
        _ = self._
        applies = bool(verdict.episodes)
        look = "applies" if applies else "unknown" if verdict.state is State.UNKNOWN else "clear"
        blocks = []
        for episode in verdict.episodes:
            incident = self._incident(episode.start)
            own = incident is not None and incident.row == verdict.row
            href = self._to(incident) if incident else None
            blocks.append(
                self._block(
                    episode.start, episode.end, "applies primary" if own else "follows", _.tell(ROWS[verdict.row]), href, episode.replicas
                )
            )
        unjudged = verdict.state is State.UNKNOWN and not applies and verdict.reason != dark(self.facts)  # all of it, not the gap alone
        title = tag("span", icon(look), tag("span", _.tell(ROWS[verdict.row])), cls=f"lane-name {look}")
        lanes = [_lane(title, blocks if unjudged else [*self.gaps, *blocks], "lane unjudged" if unjudged else "lane")]
        if len(self.facts.readings.replicas) < 2:
            return lanes
        seconds: dict[str, float] = {}
        for episode in verdict.episodes:
            for name in episode.replicas:
                seconds[name] = seconds.get(name, 0.0) + (self.end if episode.end is None else episode.end) - episode.start
        ordered = sorted(seconds, key=lambda name: (-seconds[name], name))
        for name in ordered[:_REPLICAS]:
            mine = [self._block(e.start, e.end, "applies", name, None) for e in verdict.episodes if name in e.replicas]
            lanes.append(_lane(tag("span", tag("span", name), cls="lane-name sub"), mine, "lane sub"))
        if len(ordered) > _REPLICAS:
            more = _("and {n} more replicas", n=len(ordered) - _REPLICAS)
            lanes.append(_lane(tag("span", more, cls="lane-name sub"), (), "lane none"))
        return lanes

    def _findings(self) -> list[Html]:
        """One lane a kind; restarts are changes."""
        _ = self._
        kinds: dict[str, list[Finding]] = {}
        for finding in self.diagnosis.findings:
            if finding.id != "restarted":
                kinds.setdefault(finding.id, []).append(finding)
        if not kinds:
            return []
        lanes = [_group(_("Outside the table"))]
        for same in kinds.values():
            title = _.tell(same[0].title)
            blocks = [self._block(f.start, f.end, "suspected", title, self._around(f.start, f.end, page=""), f.replicas) for f in same]
            lanes.append(_lane(tag("span", icon("suspected"), tag("span", title), cls="lane-name suspected"), blocks, "lane"))
        return lanes

    def _course(self, title: str, kind: str, values: Array, unit: str) -> Html:
        """The course of a figure, with its shifts marked."""
        _, readings = self._, self.facts.readings
        line = sparkline(readings.grid.times, values, (self.start, self.end), title)
        if line is None:
            return _lane(
                tag("span", tag("span", title), cls="lane-name"), _words(_("not measured in this window")), "lane tall unjudged words"
            )
        inside = (readings.grid.times >= self.start) & (readings.grid.times <= self.end)
        top = _("up to {figure}", figure=_.figure(float(np.nanmax(values[inside])), unit))
        name = tag("span", tag("span", title), tag("span", top, cls="top"), cls="lane-name")
        return _lane(name, (line, *self._each((kind,))), "lane tall")

    def _marks(self, title: str, kinds: Sequence[str], unknown: str | None) -> Html:
        name = tag("span", tag("span", title), cls="lane-name")
        marks = self._each(kinds)
        if marks or not unknown:
            return _lane(name, marks or _words(self._("none seen")), "lane" if marks else "lane none words")
        return _lane(name, _words(unknown), "lane unjudged words")

    def _each(self, kinds: Sequence[str]) -> list[Html]:
        """The marks of these kinds; so many that their signs would cover each other are lines only."""
        mine = [event for event in self.found.events if event.kind in kinds]
        return [self._mark(event, "mark dense" if len(mine) > _SIGNED else "mark") for event in mine]

    def _mark(self, event: Event, cls: str) -> Html:
        """A change: a line with its sign; where it is known to a long step only, the step is shaded."""
        _ = self._
        at, left = self._across(event.at), self._across(event.at - event.doubt)
        where = f" · {_('on {replicas}', replicas=Names(event.replicas))}" if event.replicas else ""
        words = f"{_.tell(event.says)}{where} · {moment(event, _)}"
        sign = tag("a", tag("span", _sign(event), aria_hidden="true"), href=self._around(event.at, event.at), target="_self",
                   cls=cls, style=f"left:{at:.2f}%", title=words, aria_label=words)  # fmt: skip
        shade = tag("i", cls="doubt", style=f"left:{left:.2f}%;width:{at - left:.2f}%") if at - left > _LEAST_WIDTH else None
        return tag("span", shade, sign)

    def _alerts(self) -> list[Html]:
        _ = self._
        telling = [alert for alert in self.found.alerts if not alert.always]
        always = [alert for alert in self.found.alerts if alert.always]
        lanes = [_group(_("Prometheus alerts"))]
        if self.found.no_alerts is not None:
            name = tag("span", tag("span", _("Alerts")), cls="lane-name")
            return [*lanes, _lane(name, _words(_.tell(self.found.no_alerts)), "lane unjudged words")]
        lanes += [self._alert(alert) for alert in telling[:_ALERTS]]
        if not telling:
            lanes.append(_lane(tag("span", tag("span", _("Alerts")), cls="lane-name"), _words(_("none fired")), "lane none words"))
        more = [_("and {n} more alerts", n=len(telling) - _ALERTS)] if len(telling) > _ALERTS else []
        more += [_("fires all the time: {names}", names=Names(tuple(alert.name for alert in always)))] if always else []
        if more:
            lanes.append(_lane(tag("span", cls="lane-name sub"), _words(" · ".join(more)), "lane none words"))
        return lanes

    def _alert(self, alert: Alert) -> Html:
        name = tag("span", tag("span", alert.name), tag("span", alert.severity, cls="top") if alert.severity else None, cls="lane-name")
        return _lane(
            name, [self._block(s.start, s.end, "alert", alert.name, self._around(s.start, s.end, page="")) for s in alert.spans], "lane"
        )

    def _block(self, start: float, end: float | None, look: str, title: str, href: str | None, replicas: tuple[str, ...] = ()) -> Html:
        _ = self._
        left, right = self._across(start), self._across(end)
        length = _.length((self.end if end is None else end) - start)
        where = f" · {_('on {replicas}', replicas=Names(replicas))}" if replicas else ""
        words = f"{title}: {stretch(start, end, _)} · {length}{where}"
        return tag(
            "a" if href else "span", tag("span", length) if right - left > 6 and href else None,
            cls=f"block {look}", style=f"left:{left:.2f}%;width:{max(right - left, _LEAST_WIDTH):.2f}%", title=words,
            href=href, target="_self" if href else None, aria_label=words if href else None,
        )  # fmt: skip

    def _incident(self, at: float) -> Incident | None:
        return next((i for i in self.diagnosis.incidents if i.start <= at and (i.end is None or at <= i.end)), None)

    def _to(self, incident: Incident) -> str:
        return link(incident, self.diagnosis, self.view)

    def _around(self, start: float, end: float | None, page: str | None = None) -> str:
        first, last = start - _AROUND_SECONDS, min((self.end if end is None else end) + _AROUND_SECONDS, self.end)
        at = replace(self.view, start=rfc3339(round(max(first, self.start))), end=rfc3339(round(last)), row=None)
        return links.url("", at if page is None else replace(at, page=page))

    def _across(self, at: float | None) -> float:
        return across(at, self.start, self.end)


def link(incident: Incident, diagnosis: Diagnosis, view: View) -> str:
    """The incident's window on the Diagnosis, with its row opened."""
    start, end = window_of(incident, diagnosis.start, diagnosis.end)
    return links.url("", replace(view, page="", start=rfc3339(round(start)), end=rfc3339(round(end)), row=incident.row))


def stretch(start: float, end: float | None, _: Reader) -> str:
    """When something was; the day once, where it began and ended on the same."""
    if end is not None and _.dated and _.one_day(start, end):
        return f"{_.day(start)} {_.clock(start)} – {_.clock(end)}"
    return _.span(start, end)


def moment(event: Event, _: Reader) -> str:
    """When an event happened; between two times where no more is known."""
    if event.doubt:
        start, same = event.at - event.doubt, _.one_day(event.at - event.doubt, event.at)
        return _("between {start} and {end}", start=_at(start, _), end=_.clock(event.at) if same else _at(event.at, _))
    return _at(event.at, _)


def _sign(event: Event) -> str:
    return _SIGNS.get(event.kind) or _WAYS[event.kind][bool(event.up)]


def _at(at: float, _: Reader) -> str:
    return f"{_.day(at)} {_.clock(at)}" if _.dated else _.clock(at)


def _lane(name: Html, content: Html | Iterable[Html], cls: str) -> Html:
    return tag("div", name, tag("span", content, cls=cls), cls="lane-row")


def _group(words: str) -> Html:
    return tag("div", words, cls="label group")


def _words(words: str) -> Html:
    return tag("span", words, cls="said-here")
