"""The lines that belong to a piece of evidence: the very figures that its condition was held against, by replica.

The rules derive figures (a mean that looks back, a retry ratio), so a line drawn from the raw signal could differ from the figure
beside it. Where a piece comes from no condition, its signal's own reading is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from obs.conditions import Condition
from obs.facts import Facts
from obs.oom import out_of_memory
from obs.series import Array, worst
from obs.signals import SIGNALS, Kind, Level, Readings
from obs.symptoms import ERRORS, FIRST_TOKEN, GPU_FULL, LATENCY, OUT_OF_MEMORY, PRESSURE, RETRIES, WORK_LEFT
from obs.verdict import Evidence, Threshold

_CONDITIONS: tuple[Condition, ...] = (*LATENCY, *PRESSURE, *FIRST_TOKEN, *RETRIES, *WORK_LEFT, ERRORS, OUT_OF_MEMORY, GPU_FULL)
_BY_ID: Mapping[str, Condition] = {condition.id: condition for condition in _CONDITIONS}

_DERIVED: Mapping[str, Callable[[Facts], Array]] = {
    "ttft_remainder": lambda facts: facts.remainder,
    "network_time": lambda facts: facts.network,
    "amplification": lambda facts: 1.0 + facts.retry_ratio,
    "layers": lambda facts: facts.layers_product,
    "abandoned_requests": lambda facts: facts.unattended,
    "engine_aborts": lambda facts: facts.aborts_per_timeout,
    "restarts": lambda facts: np.cumsum(out_of_memory(facts).deaths, axis=1).astype(np.float64),
}
_AT_GATEWAYS = ("retry_ratio", "timeouts", "amplification")  # judged at each gateway; other figures may come from one and be of replicas


def at_gateway(piece: Evidence) -> bool:
    """Whether the lines of a piece are gateways'."""
    signal = SIGNALS.get(piece.signal)
    raw = signal is not None and piece.signal not in _BY_ID and piece.signal not in _DERIVED
    return piece.signal in _AT_GATEWAYS or (raw and signal is not None and signal.level is Level.GATEWAY)


@dataclass(frozen=True)
class Course:
    """Lines over the grid: `values` of shape [lines, steps], one name each ("" where there is one for the whole view)."""

    names: tuple[str, ...]
    values: Array

    def of(self, replicas: tuple[str, ...]) -> Course:
        """Only these replicas' lines; all of them where none is among them."""
        chosen = [i for i, name in enumerate(self.names) if name in replicas]
        return Course(tuple(self.names[i] for i in chosen), self.values[chosen]) if chosen else self

    @property
    def top(self) -> Array:
        """The highest line at each step: what a threshold is held against."""
        return worst(self.values)


class Courses:
    """The lines of one answer. Each is made when it is first drawn, and kept."""

    def __init__(self, readings: Readings, thresholds: Mapping[str, Threshold]) -> None:
        self.readings = readings
        self.facts = Facts(readings, dict(thresholds))
        self._made: dict[str, Course | None] = {}

    def course(self, piece: Evidence) -> Course | None:
        """The lines of a piece of evidence; None where nothing was measured in the window."""
        if piece.signal not in self._made:
            self._made[piece.signal] = self._make(piece)
        return self._made[piece.signal]

    def _make(self, piece: Evidence) -> Course | None:
        values = self._values(piece)
        if values is None:
            return None
        told = np.flatnonzero(np.isfinite(values[:, self.facts.inside]).any(axis=1))
        names = self._names(piece, len(values))
        return Course(tuple(names[row] for row in told), values[told]) if told.size else None

    def _names(self, piece: Evidence, rows: int) -> tuple[str, ...]:
        """A name for each row: the gateway's or the replica's; none for a figure of the whole view."""
        if at_gateway(piece):
            names = tuple("/".join(part for part in key if part) for key in self.facts.gateways)
        else:
            names = tuple(replica.name for replica in self.readings.replicas)
        return names if len(names) == rows else ("",) * rows

    def _values(self, piece: Evidence) -> Array | None:
        if piece.value is None:  # no figure is no line: an event that nobody counts is not one that did not happen
            return None
        if condition := _BY_ID.get(piece.signal):
            return condition.figure(self.facts)
        if piece.signal in _DERIVED:
            return _DERIVED[piece.signal](self.facts)
        return self._reading(piece.signal)

    def _reading(self, signal: str) -> Array | None:
        reading = self.readings.signals.get(signal)
        if reading is None or not reading.present:
            return None
        if reading.signal.kind is Kind.COUNT:  # only the increments of a lifetime counter mean something
            return np.maximum(np.diff(reading.values, axis=1, prepend=np.nan), 0.0)
        return self.facts.mean(signal) if reading.signal.kind is Kind.MEAN else self.facts.values(signal)
