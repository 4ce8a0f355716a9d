"""Readings as arrays, and means that hold enough observations: over the shortest look-back that does, never a mean of means."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from obs.order import DAY_SECONDS
from obs.series import Array, Grid, Mask, divide, nothing, total_of, trailing
from obs.signals import Level, Reading, Readings
from obs.text import Moment
from obs.verdict import Threshold

LEAST_OBSERVATIONS = 5  # a mean of fewer requests is chance: look back further
LOOK_BACK_SECONDS = (0.0, 180.0, 300.0)  # beside the rate window itself


class Means:
    """The readings of one view, and the thresholds in force. Arrays are [replicas, steps], or [1, steps] of a gateway."""

    def __init__(self, readings: Readings, thresholds: dict[str, Threshold]) -> None:
        self.readings = readings
        self.grid: Grid = readings.grid
        self.thresholds = thresholds
        self.rows = len(readings.replicas)
        self._made: dict[str, tuple[Array, Array]] = {}
        self._lent: dict[str, Mask] = {}

    @cached_property
    def inside(self) -> Mask:
        """The steps of the judged window, [steps]."""
        times = self.grid.times
        return np.asarray((times >= self.readings.start) & (times <= self.readings.end), dtype=np.bool_)

    def moment(self, at: float) -> Moment:
        """A time (Unix seconds) in a sentence on this window: with its day where the time of day would not say which."""
        return Moment(at, self.readings.end - self.readings.start > DAY_SECONDS)

    def limit(self, name: str) -> float:
        """The threshold in force."""
        return self.thresholds[name].value

    def reading(self, signal: str) -> Reading:
        """The reading of a signal, absent ones too."""
        return self.readings.signals[signal]

    def values(self, signal: str) -> Array:
        """A signal's values, [replicas, steps]; of a gateway signal [gateways, steps]."""
        reading = self.reading(signal)
        return self._aligned(reading, reading.values)

    @cached_property
    def gateways(self) -> tuple[tuple[str, str], ...]:
        """(namespace, row) of every gateway row that any signal has; one nameless row where there is none."""
        found = {key for r in self.readings.signals.values() if r.signal.level is Level.GATEWAY for key in keys(r)}
        return tuple(sorted(found)) or (("", ""),)

    def _aligned(self, reading: Reading, values: Array) -> Array:
        """Gateway rows in the order of `gateways`, NaN for a gateway that lacks the signal; replica rows as they are."""
        if reading.signal.level is not Level.GATEWAY:
            return values
        out = np.full((len(self.gateways), self.grid.count), np.nan)
        for key, row in zip(keys(reading), values, strict=True):
            out[self.gateways.index(key)] = row
        return out

    def has(self, *signals: str) -> bool:
        """Whether each of these has any figure."""
        return all(self.reading(signal).present for signal in signals)

    def mean(self, signal: str) -> Array:
        """The mean per observation over the shortest look-back that holds enough observations; NaN where none does."""
        return self._means(signal)[0]

    def look_back(self, signal: str) -> Array:
        """How far each mean looked back beside the rate window, seconds."""
        return self._means(signal)[1]

    def lent(self, signal: str) -> Mask:
        """Where a replica's mean is its pool's, as no replica of the pool has requests enough for one of its own."""
        if signal in self.readings.signals:
            self._means(signal)
        return self._lent.get(signal, np.zeros((1, self.grid.count), dtype=np.bool_))

    def _means(self, signal: str) -> tuple[Array, Array]:
        if signal not in self._made:
            self._made[signal] = self._mean(signal)
        return self._made[signal]

    def _mean(self, signal: str) -> tuple[Array, Array]:
        reading = self.reading(signal)
        if reading.total is None or reading.count is None:
            values = self.values(signal)
            return values, np.zeros_like(values)
        total, count = self._aligned(reading, reading.total), self._aligned(reading, reading.count)
        out, looked = self.shortest(total, count, (count,))
        if reading.signal.level is Level.REPLICA:
            lent = self._lent[signal] = np.zeros(out.shape, dtype=np.bool_)
            for pool in self.pools:
                lent[pool] = self._lend(pool, total[pool], count[pool], out, looked)
        out[~np.isfinite(count)] = np.nan
        return out, looked if looked.any() else np.broadcast_to(0.0, looked.shape)  # seldom more than the rate window

    @cached_property
    def pools(self) -> tuple[list[int], ...]:
        """The replicas that serve the same model in one namespace with one engine and one part (prefill, decode), by number."""
        found: dict[tuple[str, ...], list[int]] = {}
        for i, replica in enumerate(self.readings.replicas):
            found.setdefault((replica.namespace, replica.model, replica.system, replica.pool), []).append(i)
        return tuple(found.values())

    def _lend(self, pool: list[int], total: Array, count: Array, out: Array, looked: Array) -> Mask:
        """While no replica of a pool has requests enough for a mean of its own, those that serve any are judged by the pool's mean.

        `total` and `count` are the pool's rows; writes into `out` and `looked`, and gives where, [the pool's replicas, steps].
        """
        thin = np.isnan(out[pool]).all(axis=0)
        if len(pool) < 2 or not thin.any():
            return np.zeros(total.shape, dtype=np.bool_)
        made = total_of(count)[None, :]
        mean, far = self.shortest(total_of(total)[None, :], made, (made,))
        served = trailing(count, self.grid.steps(LOOK_BACK_SECONDS[-1])) > 0
        use = np.asarray(thin & served & np.isfinite(mean), dtype=np.bool_)
        out[pool], looked[pool] = np.where(use, mean, out[pool]), np.where(use, far, looked[pool])
        return use

    def shortest(self, above: Array, below: Array, counts: tuple[Array, ...]) -> tuple[Array, Array]:
        """`above` over `below`, and how far it looked back: no farther than needed for enough observations in each of `counts` (rates)."""
        out, looked = np.full(above.shape, np.nan), np.zeros(above.shape)
        for seconds in LOOK_BACK_SECONDS:
            steps = self.grid.steps(seconds) if seconds else 1
            span = max(self.readings.rate_seconds / steps, self.grid.step)
            use = np.isnan(out)
            thin = use.any(axis=1)  # in a busy fleet few rows need to look back
            use = use[thin]
            for count in counts:
                use = use & (trailing(count[thin], steps) * span >= LEAST_OBSERVATIONS)
            mean = divide(trailing(above[thin], steps), trailing(below[thin], steps))
            out[thin], looked[thin] = np.where(use, mean, out[thin]), np.where(use, seconds, looked[thin])
        return out, looked

    def pair(self, signal: str) -> tuple[Array, Array]:
        """Total and count per second, [gateways, steps] or [replicas, steps]; NaN where the signal has none."""
        reading = self.reading(signal)
        if reading.total is None or reading.count is None:
            return nothing(self.values(signal).shape), nothing(self.values(signal).shape)
        return self._aligned(reading, reading.total), self._aligned(reading, reading.count)

    def summed(self, signal: str, rows: Mask | slice = slice(None)) -> tuple[Array, Array]:
        """Total and count per second of all rows together, or of these ([rows]), each [1, steps]; NaN where the signal has none."""
        reading = self.reading(signal)
        if reading.total is None or reading.count is None:
            return nothing((1, self.grid.count)), nothing((1, self.grid.count))
        return total_of(reading.total[rows])[None, :], total_of(reading.count[rows])[None, :]

    def joint_mean(self, signal: str, rows: Mask | slice = slice(None)) -> Array:
        """The mean over the requests of all rows, or of these, [steps], in the signal's unit: no mean of means. NaN where too few were
        observed, or the series have ended."""
        total, count = self.summed(signal, rows)
        mean: Array = np.where(np.isfinite(count), self.shortest(total, count, (count,))[0], np.nan)[0]
        return mean

    def recent_rate(self, signal: str) -> Array:
        """A rate of rare events, over three minutes; 0 as soon as none was counted within the rate window."""
        steps, values = self.minutes(3), self.values(signal)
        return np.where(values > 0, trailing(values, steps) / steps, values)

    def minutes(self, minutes: float) -> int:
        return self.grid.steps(minutes * 60)


def keys(reading: Reading) -> list[tuple[str, str]]:
    """(namespace, name) of each row of a gateway reading."""
    labels = reading.row_labels or ({},) * len(reading.rows)
    spaces = [label.get("namespace", "") for label in labels]
    return [(space, row.removeprefix(f"{space}/")) for space, row in zip(spaces, reading.rows, strict=True)]  # as some signals name them
