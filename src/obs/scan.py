"""A diagnosis of any window: up to six hours at its own step; beyond, a coarse scan first, refined where something shows.

Holds of minutes and onsets to the minute need the scrape interval, which a month does not have the points for. So a long window
is read coarsely (levels at their peak), and every stretch in which a row applies or a finding stands is read again as a window
of its own would be: a live page and a retrospective agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from obs.collect import FINE_SECONDS, collect
from obs.config import Settings
from obs.diagnosis import look, put_together
from obs.row import Row
from obs.signals import Readings
from obs.source import Source
from obs.text import say
from obs.verdict import Diagnosis, Finding
from obs.window import Window

AROUND_SECONDS = 900.0  # read this much before and after what the coarse scan shows
LEAST_STEP_SECONDS = 60.0  # the diagnosis' own step is the scrape interval, and at most this
MOST_STRETCHES = 12  # the longest ones; what is left stays as coarse as it was seen


def scan(
    source: Source, window: Window, scope: Mapping[str, tuple[str, ...]], settings: Settings, now: float | None = None
) -> tuple[Readings, Diagnosis]:
    """Readings over the window (coarse where it is long), and its diagnosis. Raises CallError and SourceError as `collect` does."""
    readings = collect(source, window, scope, settings, now=now)
    rows, found = look(readings, settings.thresholds)
    if readings.end - readings.start > FINE_SECONDS and readings.grid.step > min(readings.scrape_seconds, LEAST_STEP_SECONDS):
        stretches, left = _stretches(readings, rows, found)
        parts = [collect(source, stretch, scope, settings) for stretch in stretches]
        looked = [look(part, settings.thresholds) for part in parts]
        rows = tuple(_merged(row, stretches, [judged[number] for judged, _ in looked]) for number, row in enumerate(rows))
        found = _found(found, stretches, [fine for _, fine in looked])
        if left:
            note = say("{count} more stretches of this window were read coarsely: choose a shorter window to see them exactly.", count=left)
            readings = replace(readings, notes=(*readings.notes, note))
    return readings, put_together(readings, settings.thresholds, rows, found)


def _stretches(readings: Readings, rows: Sequence[Row], found: Sequence[Finding]) -> tuple[list[Window], int]:
    """Where the coarse scan shows something, in order, none longer than six hours; and how many more there were."""
    spans = [(part.start, part.episode.end) for row in rows for part in row.applying] + [(f.start, f.end) for f in found]
    merged: list[tuple[float, float]] = []
    for start, end in sorted(
        (max(readings.start, a - AROUND_SECONDS), min(readings.end, (b or readings.end) + AROUND_SECONDS)) for a, b in spans
    ):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    cut = [Window(a, min(a + FINE_SECONDS, end)) for start, end in merged for a in _cuts(start, end)]
    chosen = sorted(sorted(cut, key=lambda w: -w.seconds)[:MOST_STRETCHES], key=lambda w: w.start)
    return chosen, len(cut) - len(chosen)


def _cuts(start: float, end: float) -> list[float]:
    return [start + number * FINE_SECONDS for number in range(int((end - start - 1) // FINE_SECONDS) + 1)]


def _inside(start: float, stretches: Sequence[Window]) -> bool:
    return any(window.start <= start <= window.end for window in stretches)


def _merged(coarse: Row, stretches: Sequence[Window], fine: Sequence[Row]) -> Row:
    """A row's exact episodes where it was read exactly, its coarse ones elsewhere, and the evidence of its longest episode."""
    applying = [part for part in coarse.applying if not _inside(part.start, stretches)]
    for window, row in zip(stretches, fine, strict=True):
        for part in row.applying:
            end = part.episode.end if part.episode.end is not None or window is stretches[-1] else window.end
            applying.append(replace(part, episode=replace(part.episode, end=end)))
    best = max([row for row in fine if row.applying], key=_longest, default=None)
    shown = best or coarse
    return replace(
        coarse, applying=tuple(sorted(applying, key=lambda p: p.start)), evidence=shown.evidence, changes=shown.changes, stage=shown.stage
    )


def _longest(row: Row) -> float:
    return max(float("inf") if p.episode.end is None else p.episode.end - p.start for p in row.applying)


def _found(coarse: Sequence[Finding], stretches: Sequence[Window], fine: Sequence[Sequence[Finding]]) -> tuple[Finding, ...]:
    kept = [finding for finding in coarse if not _inside(finding.start, stretches)]
    return tuple(sorted([*kept, *(finding for found in fine for finding in found)], key=lambda f: (f.start, f.id)))
