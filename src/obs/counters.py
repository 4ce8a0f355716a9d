"""Rates of many counters from one request: samples by name, and PromQL's own arithmetic here.

PromQL has no way to take the rate of several metrics in one expression (the name is lost, and what is left is alike), and joining
expressions with `or` costs Prometheus twice the work and more (docs/performance.md). Samples by name cost it next to nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from obs.promql import by_names, duration, selector
from obs.series import Array, Grid
from obs.source import Answer, Counter, Query

SAMPLES = 3_000_000  # of one request at most: some 75 MB
EDGE = 1e-3  # seconds; stamps are whole milliseconds
_MATCHER = re.compile(r'\s*([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*"([^"\\]*)"\s*(?:,|$)')
Series = Sequence[tuple[Mapping[str, str], Array, Array]]  # labels, stamps, values


def matchers(text: str) -> tuple[tuple[str, str, str], ...] | None:
    """(label, operator, value) of each matcher; None where one is not understood, so that the source must apply it."""
    found, at = [], 0
    while at < len(text.rstrip()):
        one = _MATCHER.match(text, at)
        if one is None:
            return None
        found.append((one[1], one[2], one[3]))
        at = one.end()
    return tuple(found)


def harmless(text: str) -> bool:
    """Whether a series that has none of the labels passes: then these matchers may stand in a question about other metrics too."""
    wanted = matchers(text)
    return wanted is not None and fits({}, wanted)


def fits(labels: Mapping[str, str], wanted: Iterable[tuple[str, str, str]]) -> bool:
    """Whether a series is one of those that the matchers select; a label that is not there is empty, as in PromQL."""
    for label, operator, value in wanted:
        own = labels.get(label, "")
        same = own == value if operator in ("=", "!=") else re.fullmatch(value, own) is not None
        if same == operator.startswith("!"):
            return False
    return True


def grouped(queries: Iterable[tuple[int, Query]], grid: Grid) -> list[list[tuple[int, Query]]]:
    """What can be asked for together: the same scope, and as many as one answer may hold."""
    groups: dict[tuple[Any, ...], list[tuple[int, Query]]] = defaultdict(list)
    for index, query in queries:
        assert query.counter is not None  # noqa: S101  (the caller's choice)
        groups[query.selector, query.counter.sampled].append((index, query))
    found = []
    for members in groups.values():
        each = max(1, int(SAMPLES // (grid.count * max(query.rows for _, query in members))))
        found += [members[at : at + each] for at in range(0, len(members), each)]
    return found


def is_sampled(group: Sequence[tuple[int, Query]]) -> bool:
    """Whether a step holds several samples, so that one a step is read."""
    return any(query.counter.sampled for _, query in group[:1] if query.counter)


def named(queries: Sequence[Query]) -> str:
    """The selector of everything that these queries are made of. One scope for all; their other matchers are applied here."""
    metrics = dict.fromkeys(m for q in queries if q.counter for m in (q.counter.metric, q.counter.zero_where) if m)
    return by_names(tuple(metrics), selector(queries[0].selector))


def raw(queries: Sequence[Query], grid: Grid) -> str:
    """The instant query at the grid's end that gives every sample that the rates over the grid are made of."""
    longest = max(q.counter.seconds for q in queries if q.counter)
    return f"{named(queries)}[{duration(grid.end - grid.start + longest + EDGE)}]"


def before(queries: Sequence[Query], grid: Grid) -> Grid:
    """For sampled counters: the grid with the steps before it that the first rate looks back over."""
    steps = max(grid.steps(q.counter.seconds) for q in queries if q.counter)
    return Grid(grid.start - steps * grid.step, grid.step, grid.count + steps)


def read(rows: Iterable[Mapping[str, Any]]) -> Series:
    """The series of an answer. Raises ValueError, TypeError or LookupError where they are none."""
    found = []
    for row in rows:
        samples = row["values"]
        stamps = np.array([sample[0] for sample in samples], dtype=np.float64)
        values = np.array([sample[1] for sample in samples], dtype=object).astype(np.float64)
        known = np.isfinite(values)
        found.append(({str(k): str(v) for k, v in row["metric"].items()}, stamps[known], values[known]))
    return found


def answers(queries: Sequence[Query], series: Series, grid: Grid, *, closed: bool = True) -> list[Answer]:
    """The answers that Prometheus would have given to `promql`, one for each query, in their order.

    `closed`: a sample exactly at the beginning of a range counts, as it did before Prometheus 3.
    """
    by_name: dict[str, list[tuple[Mapping[str, str], Array, Array]]] = defaultdict(list)
    for one in series:
        by_name[one[0].get("__name__", "")].append(one)
    return [_answer(query, query.counter, by_name, grid, closed) for query in queries if query.counter]


def _answer(query: Query, counter: Counter, by_name: Mapping[str, Series], grid: Grid, closed: bool) -> Answer:
    found = _rows(query, counter, counter.metric, counter.match, by_name, grid, closed)
    if counter.zero_where:  # nothing of this was counted yet, where the counter beside it counts
        for labels, values in _rows(query, counter, counter.zero_where, counter.zero_match, by_name, grid, closed).items():
            own = found.setdefault(labels, np.full(grid.count, np.nan))
            found[labels] = np.where(np.isnan(own), 0.0 * values, own)
    values = np.array(list(found.values())) if found else np.empty((0, grid.count))
    return Answer(tuple(dict(labels) for labels in found), values)


def _rows(
    query: Query, counter: Counter, metric: str, match: str, by_name: Mapping[str, Series], grid: Grid, closed: bool
) -> dict[tuple[tuple[str, str], ...], Array]:
    """The rates of one metric by the labels of the query's rows, combined."""
    wanted = matchers(match) or ()
    both = {"sum": np.add, "max": np.fmax, "min": np.fmin}[counter.combine]
    found: dict[tuple[tuple[str, str], ...], Array] = {}
    for labels, stamps, values in by_name.get(metric, ()):
        if fits(labels, wanted):
            key = tuple((label, labels[label]) for label in query.by if labels.get(label))
            given = stamps, values, grid, counter.seconds
            own = _sampled(*given) if counter.sampled else _rate(*given, closed)
            old = found.get(key)
            found[key] = own if old is None else np.where(np.isnan(old), own, np.where(np.isnan(own), old, both(old, own)))
    return {key: values for key, values in found.items() if np.isfinite(values).any()}


def _rate(stamps: Array, values: Array, grid: Grid, seconds: float, closed: bool) -> Array:
    """PromQL's `rate` at each step: resets counted, extrapolated to the edges of the range, none of less than two samples. Per second."""
    out: Array = np.full(grid.count, np.nan)
    if stamps.size < 2:
        return out
    times = np.arange(grid.count) * grid.step
    stamps = np.rint((stamps - grid.start) * 1000) / 1000  # counted from the grid's start, milliseconds are exact
    steps = np.diff(values)
    risen = np.concatenate(([0.0], np.cumsum(np.where(steps < 0, values[1:], steps))))
    first = np.searchsorted(stamps, times - seconds + (-EDGE if closed else EDGE) / 2, "left")
    last = np.searchsorted(stamps, times + EDGE / 2, "right") - 1
    two = np.flatnonzero(last > first)
    if not two.size:
        return out
    a, b = first[two], last[two]
    span, grown = stamps[b] - stamps[a], risen[b] - risen[a]
    each = span / (b - a)
    head, tail = stamps[a] - (times[two] - seconds), times[two] - stamps[b]
    with np.errstate(divide="ignore", invalid="ignore"):
        zero = np.where((grown > 0) & (values[a] >= 0), span * values[a] / grown, np.inf)  # a counter was not below zero before
    head = np.minimum(head, zero)
    whole = span + np.where(head < 1.1 * each, head, each / 2) + np.where(tail < 1.1 * each, tail, each / 2)
    out[two] = grown * whole / span / seconds
    return out


def _sampled(stamps: Array, values: Array, grid: Grid, seconds: float) -> Array:
    """Growth from step to step, where a step holds several samples: all that was counted, with no guess at the edges. Per second."""
    back = grid.steps(seconds)
    level: Array = np.full(grid.count + back, np.nan)
    at = np.rint((stamps - (grid.start - back * grid.step)) / grid.step).astype(np.int64)
    inside = (at >= 0) & (at < level.size)
    level[at[inside]] = values[inside]
    grown = np.diff(level)
    grown = np.where(grown < 0, level[1:], grown)
    known = np.concatenate(([0.0], np.cumsum(np.isfinite(grown))))
    total = np.concatenate(([0.0], np.cumsum(np.nan_to_num(grown))))
    steps, count = (total[back:] - total[:-back])[: grid.count], (known[back:] - known[:-back])[: grid.count]
    with np.errstate(divide="ignore", invalid="ignore"):
        rates: Array = np.where(count > 0, steps / (count * grid.step), np.nan)
    return rates
