"""A diagnosis of any window: up to six hours at its own step; beyond, a coarse scan first, refined where something shows.

Holds of minutes and onsets to the minute need the scrape interval, which a month does not have the points for. So a long window
is read coarsely (levels at their peak), and every stretch in which a row applies or a finding stands is read again as a window
of its own would be: a live page and a retrospective agree. What the time does not suffice for stays coarse, and a note says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from obs import errand
from obs.collect import FINE_SECONDS, HOUR, Survey, collected
from obs.conditions import way
from obs.config import Settings
from obs.coverage import untold
from obs.diagnosis import look, look_at, put_together
from obs.facts import Facts
from obs.order import DAY_SECONDS, Applying, highest
from obs.plan import SAMPLED_SECONDS
from obs.row import Row
from obs.series import Grid, runs
from obs.signals import Readings
from obs.source import About, Answer, Query, Source
from obs.symptoms import FIRST_TOKEN, LATENCY, RETRIES
from obs.text import Message, Moment, Quantity, Sentences, Value, say
from obs.thresholds import in_force
from obs.verdict import Diagnosis, Episode, Finding
from obs.window import Window

AROUND_SECONDS = 900.0  # read this much before and after what the coarse scan shows
LEAST_STEP_SECONDS = 60.0  # the diagnosis' own step is the scrape interval, and at most this
MOST_STRETCHES = 12  # at once: those with a row first, then the longest ones; what is left stays as coarse as it was seen
AT_LEISURE = 48  # where somebody looks on while it is read
BUDGET_SECONDS, LEAST_SECONDS = 10.0, 4.0  # no stretch is begun later than this after the start, and after the coarse scan
THREADS = 3  # stretches that are read at once: more gain nothing on 2 cores (measured)
BUCKETS_SECONDS = 2 * 86400.0  # distributions over more are half of the work, and no rule reads them
SPIKE, SPIKE_STEPS, SPIKES = 0.5, 3, 12  # a mean half-way to its limit in so few long steps is worth a look; so many of them, the highest
AT_ONCE = LEAST_STEP_SECONDS  # an episode that ends at a cut and one that begins there are the same
_ALIVE = ("kv_use", "requests_running", "requests_waiting", "up")  # a replica without any of these is no longer there


@dataclass(frozen=True)
class _Part:
    """A stretch that was read again."""

    window: Window
    rows: tuple[Row, ...]
    found: tuple[Finding, ...]


@dataclass(frozen=True)
class Scan:
    """A window as far as it has been read: all of it once, and again exactly where `parts` are."""

    readings: Readings
    rows: tuple[Row, ...]
    found: tuple[Finding, ...]
    wide: bool = False  # too long for distributions
    stretches: tuple[Window, ...] = ()  # still to be read exactly, the most telling first
    beyond: int = 0  # more than are ever read exactly: they stay coarse
    most: int = MOST_STRETCHES  # where the answer is waited for
    parts: tuple[_Part, ...] = ()
    surveyed: Survey | None = None  # of the whole window, for its stretches


def scan(
    source: Source, window: Window, scope: Mapping[str, tuple[str, ...]], settings: Settings, now: float | None = None
) -> tuple[Readings, Diagnosis]:
    """Readings over the window (coarse where it is long), and its diagnosis. Raises CallError and SourceError as `collect` does."""
    read = within_budget(lambda: begin(source, window, scope, settings, now), lambda part: further(source, part, scope, settings))
    return told(read, settings)


@dataclass(frozen=True)
class _Apart:
    """A source whose questions are asked each by itself: over days, joined ones cost a Prometheus three times the work (measured)."""

    source: Source

    def about(self) -> About:
        """The source's."""
        return self.source.about()

    def metric_names(self, start: float, end: float) -> frozenset[str]:
        """The source's."""
        return self.source.metric_names(start, end)

    def scrape_intervals(self, metrics: Sequence[str], matchers: str, start: float, end: float) -> list[float | None]:
        """The source's."""
        return self.source.scrape_intervals(metrics, matchers, start, end)

    def answer(self, queries: Sequence[Query], grid: Grid) -> list[Answer]:
        """The source's, to queries so heavy that it joins none."""
        return self.source.answer([query.alone() for query in queries], grid)


def within_budget(first: Callable[[], Scan], more: Callable[[Scan], Scan]) -> Scan:
    """A scan that is carried on until nothing is left or the time is up."""
    until = time.monotonic() + BUDGET_SECONDS
    read = first()
    until = max(until, time.monotonic() + LEAST_SECONDS)
    while read.stretches and len(read.parts) < read.most and time.monotonic() <= until:
        read = more(read)
    return read


def begin(
    source: Source, window: Window, scope: Mapping[str, tuple[str, ...]], settings: Settings, now: float | None = None
) -> Scan:  # fmt: skip
    """The window at its own step, or, where it is long, coarsely, with the stretches that want a closer look."""
    wide = window.seconds > BUCKETS_SECONDS
    readings, surveyed = collected(_Apart(source) if wide else source, window, scope, settings, now=now, buckets=not wide)
    facts = Facts(readings, in_force(settings.thresholds))
    rows, found = look_at(facts)
    spikes = _spikes(facts) if readings.grid.step > SAMPLED_SECONDS else ()
    stretches = _stretches(readings, rows, found, spikes) if _is_coarse(readings) else []
    kept = stretches[:AT_LEISURE]
    most = MOST_STRETCHES if window.seconds > DAY_SECONDS else MOST_STRETCHES // 2
    return Scan(readings, rows, found, wide, tuple(kept), len(stretches) - len(kept), most, surveyed=surveyed)


def further(source: Source, read: Scan, scope: Mapping[str, tuple[str, ...]], settings: Settings) -> Scan:
    """The scan with its next few stretches read exactly."""
    parts = (*read.parts, *_read(source, read, scope, settings))
    return replace(read, stretches=read.stretches[THREADS:], parts=tuple(sorted(parts, key=lambda part: part.window.start)))


def told(read: Scan, settings: Settings) -> tuple[Readings, Diagnosis]:
    """What a scan has found: exact where it was read exactly, as coarse as it was seen elsewhere."""
    parts, found, readings = read.parts, read.found, read.readings
    rows = read.rows
    if _is_coarse(readings):
        rows = tuple(replace(row, applying=tuple(_of_a_step(part, readings.grid.step) for part in row.applying)) for row in rows)
    rows = tuple(_merged(row, parts, [part.rows[number] for part in parts], readings.end) for number, row in enumerate(rows))
    if parts:
        found = _found(found, parts)
    dark = untold(Facts(readings, in_force(settings.thresholds)))
    readings = replace(readings, notes=(*dark, *readings.notes, *_notes(len(read.stretches) + read.beyond, read.wide)))
    if readings.end - readings.start > DAY_SECONDS:
        found = tuple(replace(finding, says=dated(finding.says)) for finding in found)
        rows = tuple(replace(row, evidence=tuple(replace(e, says=dated(e.says)) for e in row.evidence)) for row in rows)
    return readings, put_together(readings, settings.thresholds, rows, found)


def _is_coarse(readings: Readings) -> bool:
    return readings.end - readings.start > FINE_SECONDS and readings.grid.step > min(readings.scrape_seconds, LEAST_STEP_SECONDS)


def _of_a_step(part: Applying, step: float) -> Applying:
    """An episode that was seen at one step only: it lay somewhere between the step before and this one."""
    at_once = part.episode.end is not None and part.episode.end <= part.start
    return replace(part, episode=replace(part.episode, start=part.start - step)) if at_once else part


def dated(message: Message) -> Message:
    """A sentence of a stretch of hours in a window of days: its moments need their day."""
    return replace(message, values={name: _with_day(value) for name, value in message.values.items()})


def _with_day(value: Value) -> Value:
    if isinstance(value, Moment):
        return replace(value, dated=True)
    if isinstance(value, Sentences):
        return Sentences(tuple(dated(item) for item in value.items))
    return dated(value) if isinstance(value, Message) else value


def _notes(left: int, wide: bool) -> Iterable[Message]:
    if left:
        yield say("{count} more stretches of this window were read coarsely: choose a shorter window to see them exactly.", count=left)
    if wide:
        yield say(
            "Distributions, hence percentiles and the longest prompt, are not read over more than {longest}.",
            longest=Quantity(BUCKETS_SECONDS, "seconds"),
        )


def _spikes(facts: Facts) -> list[tuple[float, float]]:
    """Where a mean or a ratio rose in a few long steps only: minutes of trouble that such a step thins out, and no row holds for."""
    grid, risen = facts.grid, way(facts, (*LATENCY, *FIRST_TOKEN, *RETRIES))
    begun = grid.times > facts.readings.start
    found = [(first, last) for first, last in runs(begun & (risen >= SPIKE)) if last - first < SPIKE_STEPS]
    found.sort(key=lambda run: -float(risen[run[0] : run[1] + 1].max()))
    return [(float(grid.times[first]), float(grid.times[last])) for first, last in found[:SPIKES]]


def _stretches(
    readings: Readings, rows: Sequence[Row], found: Sequence[Finding], spikes: Sequence[tuple[float, float]] = ()
) -> list[Window]:
    """Where the coarse scan shows something, none longer than six hours; those with a row first, then the longest, at last the spikes."""
    applying = [(part.start, part.episode.end) for row in rows for part in row.applying]
    sure = applying + [(f.start, f.end) for f in found]
    before = AROUND_SECONDS + readings.grid.step  # a step tells of what was since the one before
    merged: list[tuple[float, float]] = []
    for start, end in sorted(
        (max(readings.start, a - before), min(readings.end, (readings.end if b is None else b) + AROUND_SECONDS))
        for a, b in [*sure, *spikes]
    ):
        if merged and start <= merged[-1][1] + HOUR:  # the hour before a stretch is read anyway
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    cut = [Window(a, min(a + FINE_SECONDS, end)) for start, end in merged for a in _cuts(start, end)]
    return sorted(cut, key=lambda w: (not any(_overlap(w, *s) for s in applying), not any(_overlap(w, *s) for s in sure), -w.seconds))


def _cuts(start: float, end: float) -> list[float]:
    return [start + number * FINE_SECONDS for number in range(int((end - start - 1) // FINE_SECONDS) + 1)]


def _overlap(window: Window, start: float, end: float | None) -> bool:
    return start <= window.end and (end is None or end >= window.start)


def _read(source: Source, read: Scan, scope: Mapping[str, tuple[str, ...]], settings: Settings) -> list[_Part]:
    """The next few stretches at once."""
    stretches, last = read.stretches[:THREADS], read.readings.end

    def one(window: Window) -> _Part:
        readings, _ = collected(source, window, scope, settings, buckets=False, surveyed=read.surveyed)
        rows, found = look(readings, settings.thresholds)
        if window.end < last:
            rows = tuple(replace(row, applying=tuple(_ended(part, readings) for part in row.applying)) for row in rows)
            found = tuple(
                finding if finding.id == "series_vanished" else replace(finding, end=finding.end or window.end) for finding in found
            )
        return _Part(window, rows, found)

    return errand.together([partial(one, window) for window in stretches], THREADS)


def _ended(part: Applying, readings: Readings) -> Applying:
    """An episode that lasts at the end of a stretch which is not the window's end: it is known until its replicas were last seen."""
    if part.episode.end is not None:
        return part
    seen = np.zeros(readings.grid.count, dtype=bool)
    for signal in _ALIVE:
        values = readings.signals[signal].values
        of = [i for i, replica in enumerate(readings.replicas) if not part.episode.replicas or replica.name in part.episode.replicas]
        if len(values) == len(readings.replicas):
            seen |= np.isfinite(values[of]).any(axis=0)
    steps = np.flatnonzero(seen)
    end = min(readings.end, float(readings.grid.times[steps[-1]]) + readings.grid.step) if steps.size else readings.end
    return replace(part, episode=replace(part.episode, end=max(part.start, end)))


def _merged(coarse: Row, parts: Sequence[_Part], fine: Sequence[Row], until: float) -> Row:
    """A row's exact episodes where it was read exactly, its coarse ones elsewhere, and the evidence of its longest episode."""
    applying = [left for part in coarse.applying for left in _outside(part, parts, until)]
    for part, row in zip(parts, fine, strict=True):
        for one in row.applying:
            before = next((i for i, old in enumerate(applying) if _continues(old.episode, one.episode, part.window)), None)
            if before is None:
                applying.append(one)
            else:
                old = applying[before]
                applying[before] = replace(old, episode=replace(old.episode, end=one.episode.end), peaks=highest((*old.peaks, *one.peaks)))
    best = max([row for row in fine if row.applying], key=_longest, default=None)
    shown = best or coarse
    return replace(
        coarse, applying=tuple(sorted(applying, key=lambda p: p.start)), evidence=shown.evidence, changes=shown.changes, stage=shown.stage
    )


def _continues(old: Episode, new: Episode, window: Window) -> bool:
    """Whether an episode that a stretch begins with is the one that the stretch before it, adjacent, ended with."""
    at_the_cut = old.end is not None and abs(old.end - window.start) <= AT_ONCE and new.start - window.start <= AT_ONCE
    return at_the_cut and set(old.replicas) == set(new.replicas)


def _outside(part: Applying, parts: Sequence[_Part], until: float = np.inf) -> list[Applying]:
    """What is left of a coarse episode, until the window's end, outside of what was read exactly: that may say otherwise, and is right."""
    left: list[tuple[float, float | None]] = [(part.start, part.episode.end)]
    for read in (fine.window for fine in parts):
        left = [
            piece
            for start, end in left
            for piece in (
                [(start, end)]
                if not _overlap(read, start, end)
                else [(a, b) for a, b in ((start, read.start), (read.end, end)) if (until if b is None else b) > a]
            )
        ]
    return [replace(part, episode=replace(part.episode, start=start, end=end)) for start, end in left]


def _longest(row: Row) -> float:
    return max(float("inf") if p.episode.end is None else p.episode.end - p.start for p in row.applying)


def _found(coarse: Sequence[Finding], parts: Sequence[_Part]) -> tuple[Finding, ...]:
    kept = [finding for finding in coarse if not any(part.window.start <= finding.start <= part.window.end for part in parts)]
    return tuple(sorted([*kept, *(finding for part in parts for finding in part.found)], key=lambda f: (f.start, f.id)))
