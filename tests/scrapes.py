"""What a Prometheus makes of a simulated fleet: samples at scrape times, and from them `Readings` or OpenMetrics text.

Rates are Prometheus' own arithmetic (extrapolation, resets). A scrape may fail (a staleness marker: no level from there on, `up` 0)
or be lost (no sample: the last one stands for as long as the look-back).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from tests.traffic import REPLICA_COUNTERS, Truth

from obs.series import Grid, nothing
from obs.signals import SIGNALS, Kind, Level, Reading, Readings, Replica, Status
from obs.text import say

Array = NDArray[np.float64]
T0 = 1_800_000_000  # 2027-01-15T08:00:00Z: the simulated fleet's second 0
LOOK_BACK_SECONDS = 300.0
RESETS_SECONDS = 300.0
EDGE = {"namespace": "prod", "model": ""}  # the labels of the gateway's row
OUTSIDE = ("up", "container_restarts", "container_oom_killed", "gpu_memory", "gpu_oom_events", "host_memory")  # other exporters show these


@dataclass(frozen=True)
class Scraping:
    """How the fleet is looked at. `start` and `end` are seconds of the fleet; the baseline stretch begins at `since`."""

    every: float = 15.0
    since: float = 0.0
    start: float = 1800.0
    end: float = 5400.0
    shift: float = 0.0  # of everything, in time
    lost: float = 0.0  # the part of the scrapes without a sample
    failed: float = 0.0  # the part of the scrapes that fail
    seed: int = 1
    without: frozenset[str] = frozenset()  # signals that this site does not have
    gone: Mapping[str, float] = field(default_factory=dict)  # signal -> the second from which it is no more
    down: Mapping[int, tuple[float, float]] = field(default_factory=dict)  # replica -> its scrapes fail from, to
    born: Mapping[int, float] = field(default_factory=dict)  # replica -> its counters begin again at this second
    step: float | None = None


@dataclass(frozen=True)
class Samples:
    """One exporter's scrapes: when (seconds of the fleet), which failed, and the series."""

    times: Array
    failed: NDArray[np.bool_]
    series: dict[str, Array]


def scraped(truth: Truth, how: Scraping) -> tuple[list[Samples], Samples]:
    """The samples of each replica, and of the gateway."""
    rng = np.random.default_rng(how.seed)
    replicas = []
    for row in range(truth.site.replicas):
        at, failed = _moments(rng, how, row)
        index = at.astype(int)
        dead = ~(truth.replica["up"][row, index] > 0)
        failed = failed | dead
        if row in how.down:
            failed = failed | ((at >= how.down[row][0]) & (at < how.down[row][1]))
        series = {}
        for name, values in truth.replica.items():
            seen = values[row, index]
            if row in how.born and name in REPLICA_COUNTERS:
                born, dies = how.born[row], [d.at for d in truth.site.deaths if d.replica == row and d.at > how.born[row]]
                seen = np.where((at >= born) & (at < min(dies, default=np.inf)), seen - values[row, int(born)], seen)
            if name == "up":
                seen = np.where(failed, 0.0, 1.0)
            elif name not in OUTSIDE:
                seen = np.where(failed | (at >= how.gone.get(name.split(".")[0], np.inf)), np.nan, seen)
            series[name] = seen
        replicas.append(Samples(at, failed, series))
    at, failed = _moments(rng, how, truth.site.replicas)
    series = {name: np.where(failed, np.nan, values[at.astype(int)]) for name, values in truth.gateway.items()}
    return replicas, Samples(at, failed, series)


def _moments(rng: np.random.Generator, how: Scraping, target: int) -> tuple[Array, NDArray[np.bool_]]:
    """When a target is scraped (each has an offset of its own), without the scrapes that are lost; and which of them fail."""
    offset = (target * 7 + 3) % how.every
    at = np.arange(how.since + offset, how.end + 1, how.every)
    at = at[rng.random(at.size) >= how.lost]
    return at, rng.random(at.size) < how.failed


def rate(times: Array, values: Array, grid: Array, window: float) -> Array:
    """Prometheus' rate() at each moment of the grid: resets counted, extrapolated to the edges, NaN under two samples."""
    known = np.isfinite(values)
    times, values = times[known], values[known]
    out = np.full(grid.size, np.nan)
    if times.size < 2:
        return out
    steps = np.diff(values)
    risen = np.concatenate(([0.0], np.cumsum(np.where(steps < 0, values[1:], steps))))
    first = np.searchsorted(times, grid - window, "left")
    last = np.searchsorted(times, grid, "right") - 1
    two = last > first
    a, b = np.where(two, first, 0), np.where(two, last, 1)
    seen = times[b] - times[a]
    each = seen / np.maximum(b - a, 1)
    grown = risen[b] - risen[a]
    before, after = times[a] - (grid - window), grid - times[b]
    with np.errstate(divide="ignore", invalid="ignore"):
        zero = np.where(grown > 0, seen * values[a] / grown, np.inf)
    before = np.minimum(before, zero)
    span = seen + np.where(before < 1.1 * each, before, each / 2) + np.where(after < 1.1 * each, after, each / 2)
    return np.where(two, grown * span / np.maximum(seen, 1e-9) / window, np.nan)


def level(times: Array, values: Array, grid: Array) -> Array:
    """The last sample at each moment, none after a staleness marker or beyond the look-back."""
    last = np.searchsorted(times, grid, "right") - 1
    fresh = (last >= 0) & (grid - times[np.maximum(last, 0)] <= LOOK_BACK_SECONDS)
    return np.where(fresh, values[np.maximum(last, 0)], np.nan)


def peak(times: Array, values: Array, grid: Array, step: float, *, low: bool) -> Array:
    """The largest sample (the smallest, where low is bad) within each step: what a coarse grid asks for."""
    first, last = np.searchsorted(times, grid - step, "right"), np.searchsorted(times, grid, "right")
    known = np.append(np.where(np.isnan(values), np.inf if low else -np.inf, values), np.inf if low else -np.inf)
    edges = np.stack([first, last], axis=1).ravel()
    found = (np.minimum if low else np.maximum).reduceat(known, edges)[::2]
    return np.where((last > first) & np.isfinite(found), found, np.nan)


def resets(times: Array, values: Array, grid: Array, window: float) -> Array:
    """Prometheus' resets(): how often the counter fell within the window."""
    known = np.isfinite(values)
    times, values = times[known], values[known]
    fell = np.concatenate(([0.0], np.cumsum(np.diff(values) < 0))) if times.size else np.zeros(1)
    first = np.searchsorted(times, grid - window, "left")
    last = np.searchsorted(times, grid, "right") - 1
    some = last >= first
    return np.where(some, fell[np.maximum(last, 0)] - fell[np.minimum(first, fell.size - 1)], np.nan)


def read(truth: Truth, how: Scraping | None = None, names: Iterable[str] = ()) -> Readings:
    """The readings that `collect` would make of these samples."""
    how = how or Scraping()
    replicas, gateway = scraped(truth, how)
    names = tuple(names) or tuple(f"vllm-{row}" for row in range(truth.site.replicas))
    step = how.step or min(how.every, 60.0)
    zero = T0 + how.shift
    grid = Grid.covering(zero + how.since, zero + how.end, step)
    times = grid.times - zero
    window = max(60.0, 4 * how.every, step if step > 1.5 * how.every else 0.0)
    signals = {}
    for signal in SIGNALS.values():
        at_gateway = signal.level is Level.GATEWAY
        targets = [gateway] if at_gateway else replicas
        rows = ("llm",) if at_gateway else names
        total = counted = None
        values = np.full((len(rows), grid.count), np.nan)
        for row, target in enumerate(targets):
            if signal.id == "counter_resets":
                values[row] = resets(target.times, target.series["generation_tokens"], times, max(RESETS_SECONDS, step))
            elif signal.kind is Kind.MEAN and f"{signal.id}.sum" in target.series:
                total = np.full_like(values, np.nan) if total is None else total
                counted = np.full_like(values, np.nan) if counted is None else counted
                total[row] = rate(target.times, target.series[f"{signal.id}.sum"], times, window)
                counted[row] = rate(target.times, target.series[f"{signal.id}.count"], times, window)
                with np.errstate(divide="ignore", invalid="ignore"):
                    values[row] = np.where(counted[row] > 0, total[row] / counted[row], np.nan)
            elif signal.id in target.series:
                samples = target.series[signal.id]
                if signal.kind is Kind.RATE:
                    values[row] = rate(target.times, samples, times, window)
                elif signal.kind is Kind.GAUGE and step > 1.5 * how.every:
                    values[row] = peak(target.times, samples, times, step, low=signal.id == "up")
                else:
                    values[row] = level(target.times, samples, times)
        found = Reading(
            signal,
            Status.MEASURED,
            rows,
            values,
            total,
            counted,
            signal.id,
            f"{signal.id}{{}}",
            row_labels=({"namespace": "prod", "model": ""},) * at_gateway,
        )
        signals[signal.id] = (
            absent(found) if signal.id in how.without else _with_status(found, grid, zero + how.start, max(how.every, step))
        )
    people = tuple(Replica(name, "prod", "llama", "vllm") for name in names)
    return Readings(grid, zero + how.start, zero + how.end, how.every, window, people, signals, resets_seconds=max(RESETS_SECONDS, step))


def absent(reading: Reading) -> Reading:
    """The same signal where no exporter gives it."""
    empty = nothing(reading.values.shape)
    made = reading.total is not None
    why = say("looked for {metric}, found no series", metric=reading.signal.id)
    return replace(
        reading, status=Status.ABSENT, values=empty, total=empty if made else None, count=empty if made else None, metric=None,
        promql=None, why=why,
    )  # fmt: skip


def _with_status(reading: Reading, grid: Grid, start: float, fresh: float) -> Reading:
    seen = np.isfinite(reading.values if reading.count is None else np.fmax(reading.values, reading.count))
    if not seen.any():
        return absent(reading)
    if not seen[:, grid.index(grid.end - fresh) :].any():
        return replace(reading, status=Status.STALE, why=say("the series ended"))
    if reading.signal.kind is Kind.MEAN and not np.isfinite(reading.values[:, grid.index(start) :]).any():
        return replace(reading, status=Status.NO_TRAFFIC, why=say("nothing was observed"))
    return reading
