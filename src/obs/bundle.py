"""Evidence bundles: the readings of a window in one file, which answers like a source after Prometheus has forgotten it.

Which bundles are known, and where they lie, is the business of `obs.shelf`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from obs import __version__, bundle_file
from obs.bundle_file import AskedQuery, Beside, Manifest, Origin, Series, ShownSeries
from obs.seen import History, Shown, Span
from obs.series import Array, Grid
from obs.source import COUNTING, About, Answer, Query, Source
from obs.text import say
from obs.window import Window

if TYPE_CHECKING:
    from obs.config import Settings

SUFFIX = ".obs.zip"
NO_INFOS = say("Where this recording was made, no info metric of these replicas was found: versions and configuration are not known.")
NO_ALERTS = say(
    "Where this recording was made, no series ALERTS could be read: nothing fired there, or the alerting rules are evaluated elsewhere."
)
OPENING = (1796036400.0, 1796037000.0)  # of the sample: 11:00 to 11:10, two minutes of quiet, the KV pressure, and its end


class Bundle:
    """Implements `obs.source.Source` from a file. Raises CallError where it is not a whole bundle."""

    def __init__(self, origin: Path | bytes, name: str = "", opening: tuple[float, float] | None = None) -> None:
        data = origin if isinstance(origin, bytes) else bundle_file.read(origin)
        self.name = name or (origin.name if isinstance(origin, Path) else "bundle")
        self.id = content_id(data)
        self._opening = opening
        self.manifest, rows = bundle_file.load(data, self.name)
        self._rows: dict[str, tuple[AskedQuery, Series]] = {q.key: (q, found) for q, found in zip(self.manifest.queries, rows, strict=True)}

    @property
    def window(self) -> Window:
        """The window that it was made for."""
        return Window(self.manifest.start, self.manifest.end)

    def about(self) -> About:
        """What it was made from; `start` and `end` are its own window."""
        made = self.manifest
        version = f"{made.source.flavor} {made.source.version}".strip()
        return About(self.name, "bundle", version, made.start, made.end, self._opening, made.grid_step)

    def metric_names(self, start: float, end: float) -> frozenset[str]:
        """The names that were there when it was made."""
        return frozenset(self.manifest.names)

    def scrape_intervals(self, metrics: Sequence[str], matchers: str, start: float, end: float) -> list[float | None]:
        """As they were found when the bundle was made."""
        return [self.manifest.scrape_intervals.get(metric) for metric in metrics]

    def kept(self) -> History | None:
        """Info metrics and firing alerts, as they were found when it was made; None where it is of schema 1, which holds none."""
        beside = self.manifest.beside
        if beside is None:
            return None
        infos, alerts = (
            tuple(Shown(one.metric, one.labels, tuple(Span(*span) for span in one.spans)) for one in of)
            for of in (beside.infos, beside.alerts)
        )
        return History(infos, alerts, None if beside.infos_known else NO_INFOS, None if beside.alerts_known else NO_ALERTS)

    def answer(self, queries: Sequence[Query], grid: Grid) -> list[Answer]:
        """By key. A finer grid than its own repeats samples for one step at most; a coarser one keeps what `thin` must not lose."""
        return [self._one(query, grid) for query in queries]

    def _one(self, query: Query, grid: Grid) -> Answer:
        if query.key not in self._rows:
            return Answer((), np.empty((0, grid.count)))
        asked, (labels, values) = self._rows[query.key]
        notes = tuple(
            say("This recording does not tell by “{label}”: its figures are for the rest of the scope.", label=label)
            for label, _ in query.selector
            if label not in asked.by
        )
        kept = [
            i for i, row in enumerate(labels) if all(row.get(label, "") in wanted for label, wanted in query.selector if label in asked.by)
        ]
        return Answer(tuple(labels[i] for i in kept), resampled(values[kept], self.manifest.grid, grid, asked.thin), None, notes)


def resampled(values: Array, own: Grid, grid: Grid, thin: str) -> Array:
    """The values on another grid: at each moment the latest one if it is less than a step old, or the most or least of the step behind."""
    last = np.floor((grid.times - own.start) / own.step + 1e-6).astype(np.int64)
    back = max(1, int(np.ceil(grid.step / own.step - 1e-6))) if thin in ("max", "min") else 1
    pick = np.fmin if thin == "min" else np.fmax
    out: Array = np.full((len(values), grid.count), np.nan)
    for age in range(back):
        at = last - age
        inside = (at >= 0) & (at < own.count)
        out[:, inside] = pick(out[:, inside], values[:, at[inside]])
    return out


class Recorder:
    """A source that hands on what another one answers, and keeps it."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.answers: dict[str, tuple[Query, Answer, Grid]] = {}
        self.names: frozenset[str] = frozenset()
        self.intervals: dict[str, float] = {}

    def about(self) -> About:
        """The other source's."""
        return self._source.about()

    def metric_names(self, start: float, end: float) -> frozenset[str]:
        """Kept."""
        self.names = self._source.metric_names(start, end)
        return self.names

    def scrape_intervals(self, metrics: Sequence[str], matchers: str, start: float, end: float) -> list[float | None]:
        """Kept by metric name."""
        found = self._source.scrape_intervals(metrics, matchers, start, end)
        self.intervals |= {metric: seconds for metric, seconds in zip(metrics, found, strict=True) if seconds is not None}
        return found

    def answer(self, queries: Sequence[Query], grid: Grid) -> list[Answer]:
        """Kept on the finest grid that a query was asked for: the quick look before is not worth keeping. Each is asked by itself, since
        joined they are one long answer for one processor of the source. Scrape intervals are kept as such: see above."""
        counting = [query.key.endswith(COUNTING) for query in queries]
        wanted = [q if q.counter else q.alone() for q, count in zip(queries, counting, strict=True) if not count]
        got = iter(self._source.answer(wanted, grid))
        found = [Answer((), np.empty((0, grid.count))) if count else next(got) for count in counting]
        for query, answer in zip(queries, found, strict=True):
            if query.key not in self.answers or grid.step <= self.answers[query.key][2].step:
                self.answers[query.key] = (query, answer, grid)
        return found


def pack(
    source: Source,
    window: Window,
    scope: Mapping[str, Sequence[str]],
    settings: Settings | None = None,
    *,
    now: float | None = None,
    thresholds: Mapping[str, float] | None = None,
) -> bytes:
    """The bundle of a window: all that `collect` reads for it, the stretch before it included. Raises what `collect` raises."""
    from obs.collect import collect
    from obs.history import history
    from obs.spelling import present
    from obs.vocabulary import vocabularies

    recorder = Recorder(source)
    readings = collect(recorder, window, {word: tuple(values) for word, values in scope.items()}, settings, now=now)
    found = history(source, readings, {word: tuple(values) for word, values in scope.items()})
    about = source.about()
    kept = [(query, answer) for query, answer, grid in recorder.answers.values() if grid == readings.grid and answer.labels]
    used = {name for v in vocabularies() for name in present(v, recorder.names)}
    manifest = Manifest(
        schema=bundle_file.SCHEMA,
        made_by=f"obs {__version__}",
        start=readings.start,
        end=readings.end,
        scope={word: tuple(values) for word, values in scope.items()},
        grid_start=readings.grid.start,
        grid_step=readings.grid.step,
        grid_count=readings.grid.count,
        source=Origin(name=about.name, flavor=about.flavor, version=about.version),
        scrape_intervals=recorder.intervals,
        names=tuple(sorted(used)),
        queries=tuple(bundle_file.asked(query) for query, _ in kept),
        thresholds=dict(thresholds or {}),
        beside=None if isinstance(source, Bundle) and source.manifest.beside is None else _beside(found),
    )
    return bundle_file.dump(manifest, [(answer.labels, answer.values) for _, answer in kept])


def _beside(found: History) -> Beside:
    infos, alerts = (
        tuple(
            ShownSeries(metric=one.metric, labels=dict(one.labels), spans=tuple((s.start, s.end, s.doubt) for s in one.spans)) for one in of
        )
        for of in (found.infos, found.alerts)
    )
    return Beside(infos=infos, alerts=alerts, infos_known=found.no_infos is None, alerts_known=found.no_alerts is None)


def write(
    path: Path,
    source: Source,
    window: Window,
    scope: Mapping[str, Sequence[str]],
    settings: Settings | None = None,
    *,
    now: float | None = None,
    thresholds: Mapping[str, float] | None = None,
) -> str:
    """Writes the bundle of a window and returns its content id. Raises OSError where the file cannot be written."""
    data = pack(source, window, scope, settings, now=now, thresholds=thresholds)
    path.write_bytes(data)
    return content_id(data)


def content_id(data: bytes) -> str:
    """A bundle's name in links."""
    return hashlib.sha256(data).hexdigest()[:16]


@dataclass(frozen=True)
class Incident:
    """One stretch of the sample recording: what was done to the server, under its name there. Unix seconds."""

    name: str
    start: float
    end: float


@cache
def incidents() -> tuple[Incident, ...]:
    """What happened in the sample recording, in order; the quiet stretches between are called healthy_<n>."""
    found = json.loads(files("obs").joinpath("sample/incidents.json").read_text("utf-8"))
    return tuple(Incident(one["name"], float(one["from"]), float(one["to"])) for one in found)


@cache
def sample() -> Bundle:
    """The recording that ships with the package: 68 minutes of a real vLLM behind a real Envoy, opened on its KV pressure.

    `tests/make_sample.py` makes it from the lab recording, as `obs bundle` does for any window.
    """
    return Bundle(files("obs").joinpath(f"sample/lab{SUFFIX}").read_bytes(), "sample", OPENING)
