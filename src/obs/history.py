"""What no signal holds: the labels of info metrics over the window, and the alerts that fired. Asked through the source port.

Both say something by being there, so each step asks how many samples lay within it: nothing is too short to be seen, and where a step
holds several, their number tells where in it something began or ended. Where it cannot, those few steps are asked again at the scrape
interval.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np

from obs import promql
from obs.configuration import VERSIONS, of_replica
from obs.errors import SourceError
from obs.seen import History, Shown, Span
from obs.series import Array, Grid, runs
from obs.signals import Readings
from obs.source import Query, Source
from obs.text import Message, say

ALERTS = "ALERTS"
_ENGINE_INFO = re.compile(r"(vllm|sglang|trtllm|lmdeploy|tgi|dynamo|aphrodite)[:_].*_info")
_LOAD = frozenset({"vllm:lora_requests_info"})  # its labels are the load of the moment
_OF_AN_ALERT = ("alertname", "severity", "namespace", "pod", "instance", "model_name", "model")
STEPS = 360  # of the window, at most
CLOSER = 12  # stretches that are asked again
_FIRING = 'alertstate="firing"'
_Series = tuple[str, tuple[tuple[str, str], ...]]  # metric and labels


@runtime_checkable
class Keeper(Protocol):
    """A source that holds what was asked before: a bundle."""

    def kept(self) -> History | None:
        """Of all its own window; None where it holds none."""


def history(source: Source, readings: Readings, scope: Mapping[str, tuple[str, ...]]) -> History:
    """Info metrics of the replicas in view, and the firing alerts of the scope. A source that refuses one of them is a reason, no
    error; one that cannot be reached at all raises SourceError."""
    kept = source.kept() if isinstance(source, Keeper) else None
    if kept is not None:
        return _part(kept, readings, scope)
    names = source.metric_names(readings.start, readings.end)
    recorded = source.about().flavor == "bundle"
    wanted = (*info_metrics(names), *((ALERTS,) if ALERTS in names else ()))
    shown, refused = _shown(source, readings, wanted)
    infos = tuple(s for s in shown if s.metric != ALERTS and of_replica(s.labels, readings.replicas))
    alerts = tuple(s for s in shown if s.metric == ALERTS and in_scope(s.labels, scope))
    no_infos = no_alerts = None
    if not infos:
        no_infos = next((refused[metric] for metric in wanted if metric != ALERTS and metric in refused), None) or (
            say("The labels of info metrics are not in this recording.") if recorded
            else say("No info metric of these replicas was found: versions and configuration are not known.")
        )  # fmt: skip
    if ALERTS in names:
        no_alerts = refused.get(ALERTS)
    elif recorded:
        no_alerts = say("Alerts are not in this recording.")
    else:
        no_alerts = say("This source has no series ALERTS: nothing fired here, or the alerting rules are evaluated elsewhere.")
    return History(infos, alerts, no_infos, no_alerts)


def _part(kept: History, readings: Readings, scope: Mapping[str, tuple[str, ...]]) -> History:
    """What of it lies in the window and the scope."""
    infos = tuple(s for s in _within(kept.infos, readings) if of_replica(s.labels, readings.replicas))
    return replace(kept, infos=infos, alerts=tuple(s for s in _within(kept.alerts, readings) if in_scope(s.labels, scope)))


def _within(shown: Iterable[Shown], readings: Readings) -> Iterable[Shown]:
    for one in shown:
        spans = [s for s in one.spans if s.start <= readings.end and (s.end is None or s.end >= readings.start)]
        if spans:
            yield replace(one, spans=tuple(_cut(span, readings) for span in spans))


def _cut(span: Span, readings: Readings) -> Span:
    end = None if span.end is None or span.end >= readings.end else span.end
    return replace(span, end=end) if span.start >= readings.start else Span(readings.start, end)


def info_metrics(names: Collection[str]) -> tuple[str, ...]:
    """The metrics whose labels tell version or configuration."""
    return tuple(sorted(name for name in names if name in VERSIONS or (_ENGINE_INFO.fullmatch(name) and name not in _LOAD)))


def in_scope(labels: Mapping[str, str], scope: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether an alert concerns the scope: it says nothing else. One without a namespace may concern each of them."""
    said = {
        "namespace": {labels.get(label, "") for label in ("namespace", "exported_namespace")},
        "model": {labels.get(label, "") for label in ("model_name", "model")},
        "replica": {labels.get(label, "") for label in ("pod", "instance")},
    }
    for word, values in scope.items():
        found = said.get(word, {labels.get(word, "")}) - {""}
        if found and not found & set(values):
            return False
    return True


def _shown(source: Source, readings: Readings, metrics: Sequence[str]) -> tuple[tuple[Shown, ...], dict[str, Message]]:
    """The series of these metrics with the stretches in which they were seen, to the scrape where the steps allow or are asked again;
    and why a metric was refused. All are asked for at once."""
    if not metrics:
        return (), {}
    scrape = readings.scrape_seconds
    step = max(scrape, float(np.ceil((readings.end - readings.start) / STEPS / scrape) * scrape))
    grid = Grid.covering(readings.start + step, readings.end, step)  # each step looks back over itself
    found: list[Shown] = []
    doubtful: dict[float, set[str]] = {}  # steps in which a series began or ended, nobody knows where
    try:
        answers = source.answer([_query(metric, step, len(readings.replicas)) for metric in metrics], grid)
    except SourceError as error:
        return (), dict.fromkeys(metrics, error.says)
    for metric, answer in zip(metrics, answers, strict=True):
        for labels, values in zip(answer.labels, answer.values, strict=True):
            spans = []
            for first, last in runs(np.isfinite(values)):
                whole = float(values[first + 1 : last].max(initial=0.0))  # samples in a step
                spans.append(_span(grid, values, first, last, whole) if whole > 1 else _rough(grid, first, last, step > scrape))
                if step > scrape and whole <= 1:
                    for edge in (first if first else None, last if last < grid.count - 1 else None):
                        if edge is not None:
                            doubtful.setdefault(float(grid.times[edge]), set()).add(metric)
            if spans:
                found.append(Shown(metric, labels, tuple(spans)))
    refused = {metric: answer.refused for metric, answer in zip(metrics, answers, strict=True) if answer.refused}
    if doubtful and source.about().flavor != "bundle":
        found = _closer(source, found, doubtful, Grid(grid.start, scrape, round(step / scrape)), len(readings.replicas))
    return tuple(found), refused


def _span(grid: Grid, counts: Array, first: int, last: int, whole: float) -> Span:
    """The stretch of these steps, to the scrape: `whole` samples of a step in its middle tell how far apart they are, and those of the
    first and the last step how far into it the series was there."""
    apart = grid.step / whole
    start = grid.times[first] - (min(counts[first], whole) - 1) * apart if first else grid.times[0] - grid.step
    return Span(float(start), None if last == grid.count - 1 else float(grid.times[last] - (whole - min(counts[last], whole)) * apart))


def _rough(grid: Grid, first: int, last: int, long: bool) -> Span:
    """The stretch of these steps, to a step."""
    at = float(grid.times[first])
    return Span(
        at if first else at - grid.step, None if last == grid.count - 1 else float(grid.times[last]), grid.step if long and first else 0.0
    )


def _closer(source: Source, found: list[Shown], by_step: Mapping[float, set[str]], of: Grid, rows: int) -> list[Shown]:
    """Steps in which a series began or ended, asked again at the scrape interval (the step and count of `of`), those with most of them
    first. All in one question: each step is put over the last one by its offset."""
    edges = sorted(sorted(by_step, key=lambda at: (-len(by_step[at]), at))[:CLOSER])
    fine = Grid(edges[-1] - (of.count - 1) * of.step, of.step, of.count)
    asked = [(edge, metric) for edge in edges for metric in sorted(by_step[edge])]
    try:
        answers = source.answer([_query(metric, of.step, rows, edges[-1] - edge) for edge, metric in asked], fine)
    except SourceError:
        return found  # known to a step, and told so
    seen: dict[float, dict[_Series, tuple[float, float]]] = {edge: {} for edge in edges}
    for (edge, metric), answer in zip(asked, answers, strict=True):
        times = fine.times - (edges[-1] - edge)
        for labels, values in zip(answer.labels, answer.values, strict=True):
            steps = np.flatnonzero(np.isfinite(values))
            if steps.size:
                seen[edge][_series(metric, labels)] = (float(times[steps[0]]), float(times[steps[-1]]))
    for edge in edges:
        found = [_sharpened(shown, edge, seen[edge].get(_series(shown.metric, shown.labels))) for shown in found]
    return found


def _series(metric: str, labels: Mapping[str, str]) -> _Series:
    return metric, tuple(sorted(labels.items()))


def _sharpened(shown: Shown, edge: float, seen: tuple[float, float] | None) -> Shown:
    if seen is None:
        return shown
    spans = []
    for span in shown.spans:
        if span.start == edge:
            span = replace(span, start=seen[0], doubt=0.0)
        if span.end == edge:
            span = replace(span, end=seen[1])
        spans.append(span)
    return replace(shown, spans=tuple(spans))


def _query(metric: str, step: float, rows: int, ago: float = 0.0) -> Query:
    """How many samples each series had within each step, so many seconds before it. A step does not hold the moment that it begins with."""
    back = promql.duration(step - 0.001) + "]" + (f" offset {promql.duration(ago)}" if ago else "")
    text = f"count_over_time({promql.series(metric, '')}[{back})"
    if metric == ALERTS:
        text = f"max by ({', '.join(_OF_AN_ALERT)}) (count_over_time({promql.series(ALERTS, _FIRING)}[{back}))"
    return Query(f"history|{metric}|value", text, (), (), max(1, rows), "max")
