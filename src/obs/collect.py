"""View + vocabulary + source -> Readings: the one way in which figures come into the product.

A quick look tells which engines and gateways there are; what ties to an engine's pods and targets (GPU, Kubernetes, `up`) is asked
for those only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from obs import intervals, measure, replicas, spelling
from obs.counters import harmless
from obs.narrow import groups, narrow
from obs.plan import Ask, Pairs, Ranges, Scope, asks, left_out
from obs.promql import label_name, selector
from obs.series import Grid
from obs.signals import SIGNALS, Buckets, Reading, Readings
from obs.source import Source
from obs.text import Message, say
from obs.versions import with_versions
from obs.vocabulary import Vocabulary, vocabularies
from obs.window import Window, check

if TYPE_CHECKING:
    from obs.config import Settings

__all__ = ["Survey", "collect", "collected", "groups", "narrow", "scope_values", "survey"]

Present = list[tuple[replicas.Row, float]]  # rows, and when each was last seen
HOUR = 3600.0
FINE_SECONDS = 6 * HOUR  # up to here the diagnosis has its own step; beyond, it scans coarsely
FINE_STEPS = 1800  # steps of a fine grid at most (baseline included)
COARSE_STEPS = 1500
WIDE_SECONDS, WIDE_STEPS = 5 * 86400.0, 750  # each step costs the source and us as much as the samples of a day (docs/performance.md)
SPREAD_SECONDS = 60.0  # over more than an hour, a distribution a minute is enough: they are half of what a source is asked (measured)
PROBE_STEPS = 30
COUNTED_SECONDS = (FINE_SECONDS, 2 * 86400.0)  # windows whose quick look counts samples: shorter ones hold few, in longer ones it is work
DEFAULT_SCRAPE = 15.0  # only where not one sample tells: nothing is measured then


@dataclass(frozen=True)
class Survey:
    """What must be known of a window before its figures can be asked for; what a part of it needs is in it too."""

    names: Collection[str]
    present: Present
    scrapes: Mapping[str, float]  # seconds between samples, by vocabulary


@dataclass(frozen=True)
class _Answers:
    rows: list[replicas.Row]
    refused: dict[str, Message]
    notes: tuple[Message, ...]
    asked: list[Ask]


def collect(
    source: Source,
    window: Window,
    scope: Scope,
    settings: Settings | None = None,
    *,
    now: float | None = None,
    step: float | None = None,
    buckets: bool = True,
) -> Readings:
    """Everything that a diagnosis of this window and scope reads. Raises CallError (window, scope) and SourceError.

    `now` (Unix seconds) cuts a window that reaches into the future; `step` overrides the diagnosis' own step. No rule reads
    `buckets`, and over days they are half of the work (measured): without them, the distributions are left out.
    """
    return collected(source, window, scope, settings, now=now, step=step, buckets=buckets)[0]


def collected(
    source: Source,
    window: Window,
    scope: Scope,
    settings: Settings | None = None,
    *,
    now: float | None = None,
    step: float | None = None,
    buckets: bool = True,
    surveyed: Survey | None = None,
) -> tuple[Readings, Survey]:
    """The same, and the survey that it began with: given to a part of the window as `surveyed`, it saves that three questions."""
    about = source.about()
    held = Window(about.start, about.end) if about.start is not None and about.end is not None else None
    window = check(window, np.inf if now is None else now, held)
    scope = {label_name(word): tuple(dict.fromkeys(values)) for word, values in scope.items() if values}
    baseline = HOUR if window.seconds <= FINE_SECONDS else 0.0
    wide = Window(window.start - baseline, window.end)
    found = surveyed or survey(source, wide, scope)
    names, present, scrapes = found.names, found.present, found.scrapes
    known = [v for v in vocabularies() if (v.id in scrapes if v.role in ("engine", "gateway") else spelling.present(v, names))]
    engines = [v for v in known if v.role == "engine"]
    scrape = min((scrapes[v.id] for v in engines), default=min(scrapes.values(), default=DEFAULT_SCRAPE))
    own_step = step or max(_step(wide.seconds, baseline > 0, scrape), about.step or 0.0)
    ranges = Ranges(
        step=own_step,
        scrape=scrape,
        rates={system: 4 * seconds for system, seconds in scrapes.items()},
        resets=max(300.0, 4 * scrape, own_step),
        rows=len({(r.namespace, r.node, r.rank) for r, _ in present}),
        spread=SPREAD_SECONDS if window.seconds > HOUR else 0.0,
        twice=replicas.scraped_twice([r for r, _ in present]),
        by_name=True,
    )
    grid = Grid.covering(window.start - baseline, window.end, own_step)
    overrides = settings.promql if settings else {}

    served = [a for v in known if v.role in ("engine", "gateway") for a in asks(v, names, scope, ranges, (), overrides)]
    there = replicas.seats(r for r, _ in present)
    tied = [a for v in known if v.role in ("hardware", "target") for a in _tied(v, names, scope, ranges, there)]
    told = _ask(source, [*(a for a in served if buckets or a.part != "buckets"), *tied], grid)
    seats = replicas.seats(r for r in told.rows if r.ask.part != "buckets")
    if "model" not in scope:
        seats += replicas.dead_targets([r for r in told.rows if r.ask.signal == "up"], replicas.Seating(seats))
    if not seats:
        seats = replicas.pods_that_died(told.rows)
    if "replica" in scope:
        seats = replicas.wanted(seats, scope["replica"])
    seats.sort(key=lambda s: (s.replica.namespace, s.replica.name))

    span = measure.Span(
        grid, window.start, window.end, max(2 * scrape, 60.0, own_step), max((ranges.rate(v.id) for v in known), default=60.0)
    )
    readings, histograms = _measure(
        told.rows,
        told.asked,
        told.refused,
        replicas.Seating(seats),
        known,
        span,
    )
    made = Readings(
        grid=grid,
        start=window.start,
        end=window.end,
        scrape_seconds=scrape,
        rate_seconds=max((ranges.rate(v.id) for v in engines), default=ranges.rate("")),
        replicas=with_versions(told.rows, replicas.Seating(seats)),
        signals=readings,
        buckets=histograms,
        resets_seconds=ranges.resets,
        engine_seen=bool(engines),
        notes=_distinct((*_notes(known, scope), *told.notes)),
    )
    return made, found


def survey(source: Source, window: Window, scope: Scope) -> Survey:
    """Which metrics, engines and gateways there are, and how often they are scraped. Raises SourceError."""
    names = source.metric_names(window.start, window.end)
    present, told = _present(source, names, scope, window)
    return Survey(names, present, _scrapes(source, present, window, told))


def _step(seconds: float, fine: bool, scrape: float) -> float:
    """The scrape interval, at most 60 s, unless that makes too many steps; then the next multiple of it."""
    own = min(scrape, 60.0)
    least = seconds / (FINE_STEPS if fine else COARSE_STEPS if seconds <= WIDE_SECONDS else WIDE_STEPS)
    return own if least <= own else float(np.ceil(least / own) * own)


def _present(source: Source, names: Collection[str], scope: Scope, window: Window) -> tuple[Present, dict[str, float]]:
    """A quick look with a few long steps: rows of each engine's and gateway's probes, with the time at which each was last seen; and
    the scrape intervals, of those that it tells."""
    step = max(60.0, float(np.ceil(window.seconds / PROBE_STEPS / 60) * 60))
    ranges = Ranges(step, step / 4, {}, step)
    grid = Grid.covering(window.start + step, window.end + step, step)  # each step looks back over itself
    every = [a for v in vocabularies() for a in asks(v, names, scope, ranges) if a.signal in v.probe and a.part in ("value", "count")]
    counting = intervals.counting(every, step) if COUNTED_SECONDS[0] <= window.seconds <= COUNTED_SECONDS[1] else []
    rows = [r for r in _ask(source, [*every, *counting], grid).rows if np.isfinite(r.values).any()]
    present = [(r, float(grid.times[np.flatnonzero(np.isfinite(r.values))[-1]])) for r in rows if r.ask.part != intervals.PART]
    return present, intervals.told((r for r in rows if r.ask.part == intervals.PART), step)


def _scrapes(source: Source, present: Present, window: Window, told: Mapping[str, float]) -> dict[str, float]:
    """The scrape interval of every engine and gateway that has a sample in the scope and window, found where it was last seen, unless it
    is `told` already."""
    last: dict[str, tuple[float, Ask]] = {}
    for r, at in present:
        if at > last.get(r.ask.vocabulary.id, (0.0, r.ask))[0]:
            last[r.ask.vocabulary.id] = (at, r.ask)
    together: dict[tuple[float, Pairs, str], list[tuple[str, Ask]]] = {}
    found = {system: told[system] for system in last if system in told}
    for system, (at, a) in last.items():
        if system in found:
            continue
        alone = not (harmless(a.vocabulary.match) and harmless(a.candidate.match))
        together.setdefault((at, a.query.selector, system if alone else ""), []).append((system, a))
    for (at, scope, _), members in together.items():
        metrics = [a.candidate.metrics(SIGNALS[a.signal].kind)[0] for _, a in members]
        braces = selector(scope, *dict.fromkeys(match for _, a in members for match in (a.vocabulary.match, a.candidate.match)))
        seconds = source.scrape_intervals(metrics, braces, max(window.start, at - HOUR), min(at, window.end))
        found |= {system: each or DEFAULT_SCRAPE for (system, _), each in zip(members, seconds, strict=True)}
    return found


def scope_values(source: Source, window: Window, scope: Scope | None = None) -> dict[str, list[str]]:
    """What the bar can offer: the namespaces, models and replicas that an engine showed in the window (within `scope`, if given)."""
    names = source.metric_names(window.start, window.end)
    seats = replicas.seats(r for r, _ in _present(source, names, scope or {}, window)[0])
    found = {
        "namespace": {s.replica.namespace for s in seats},
        "model": {s.replica.model for s in seats},
        "replica": {s.replica.name for s in seats},
    }
    return {word: sorted(value for value in values if value) for word, values in found.items()}


def _tied(vocabulary: Vocabulary, names: Collection[str], scope: Scope, ranges: Ranges, seats: list[replicas.Seat]) -> Iterable[Ask]:
    """What belongs to the engines' pods and jobs, and no more: a cluster has thousands of other pods."""
    only: Pairs = ()
    pods = tuple(sorted({s.pod for s in seats if s.pod}))
    if vocabulary.role == "target":
        jobs = tuple(sorted({job for s in seats for job, _ in s.targets if job}))
        only = (("job", jobs),) if jobs else ()
    elif pods:
        only = (("pod", pods),)
    elif seats and not vocabulary.labels.host:
        return ()  # no pod to ask for, and no host to tie it by
    elif not seats and not scope and vocabulary.id == "kubernetes":
        return ()
    return asks(vocabulary, names, scope, ranges, only)


def _ask(source: Source, asked: list[Ask], grid: Grid) -> _Answers:
    answers = source.answer([a.query for a in asked], grid) if asked else []
    rows: list[replicas.Row] = []
    refused: dict[str, Message] = {}
    for a, answer in zip(asked, answers, strict=True):
        rows += [replicas.row(a, labels, values) for labels, values in zip(answer.labels, answer.values, strict=True)]
        if answer.refused:
            refused[a.query.key] = answer.refused
    return _Answers(rows, refused, tuple(n for answer in answers[:1] for n in answer.notes), asked)


def _measure(
    rows: list[replicas.Row],
    asked: list[Ask],
    refused: Mapping[str, Message],
    seating: replicas.Seating,
    known: list[Vocabulary],
    span: measure.Span,
) -> tuple[dict[str, Reading], dict[str, Buckets]]:
    idle = measure.idle_clusters(rows)
    shared = measure.shared_names(rows)
    kept = [r for r in replicas.once(rows) if r.ask.vocabulary.role != "gateway" or measure.busy(r, idle)]
    readings: dict[str, Reading] = {}
    buckets: dict[str, Buckets] = {}
    for signal in SIGNALS.values():
        mine = [r for r in kept if r.ask.signal == signal.id]
        readings[signal.id] = measure.reading(
            signal,
            [r for r in mine if r.ask.part != "buckets"],
            [a for a in asked if a.signal == signal.id],
            refused,
            seating,
            known,
            span,
            shared,
        )
        found = measure.buckets(signal, [r for r in mine if r.ask.part == "buckets"])
        if found:
            buckets[signal.id] = found
    return readings, buckets


def _notes(known: Iterable[Vocabulary], scope: Scope) -> list[Message]:
    return [
        say("{system} has no label for “{word}”: its figures are for the rest of the scope.", system=v.title, word=word)
        for v in known
        for word in left_out(v, scope)
    ]


def _distinct(notes: Iterable[Message]) -> tuple[Message, ...]:
    """Each remark once (a Message holds a mapping, so it has no hash)."""
    found: list[Message] = []
    for note in notes:
        if note not in found:
            found.append(note)
    return tuple(found)
