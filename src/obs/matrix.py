"""Matrix answers of the HTTP API as rows of a grid, and back."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np
import orjson

from obs.series import Array, Grid
from obs.source import Answer

TAG = "obs_q"  # the label that tells joined queries apart


_held = [0]
_lock = Lock()


def parsed(content: bytes) -> Any:
    """The JSON of an answer; raises `orjson.JSONDecodeError`. An answer is a list for each sample, millions of them and no cycle among
    them: a collector that looks through them as they come takes twice as long as reading them (measured)."""
    with _uncollected():
        return orjson.loads(content)


@contextmanager
def _uncollected() -> Iterator[None]:
    """No collection of garbage, until the last of the threads that want none is through."""
    with _lock:
        _held[0] += 1
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            _held[0] -= 1
            if not _held[0]:
                gc.enable()


def dense(rows: list[Mapping[str, Any]], grid: Grid) -> Answer:
    """A matrix answer as rows of the grid; samples off the grid (a source that ignores `step`) go to the nearest step."""
    values: Array = np.full((len(rows), grid.count), np.nan)
    labels = []
    for i, row in enumerate(rows):
        labels.append({str(k): str(v) for k, v in row["metric"].items() if k not in (TAG, "__name__")})
        samples = row["values"]
        if samples:
            at = np.rint((np.array([sample[0] for sample in samples], dtype=np.float64) - grid.start) / grid.step).astype(np.int64)
            read = np.array([float(sample[1]) for sample in samples], dtype=np.float64)
            inside = (at >= 0) & (at < grid.count)
            values[i, at[inside]] = read[inside]
    values[~np.isfinite(values)] = np.nan
    return Answer(tuple(labels), values)


def whole(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows of several stretches of time as one row for each series."""
    found: dict[tuple[tuple[str, str], ...], list[Any]] = {}
    for row in rows:
        found.setdefault(tuple(sorted(row["metric"].items())), []).extend(row["values"])
    return [{"metric": dict(labels), "values": samples} for labels, samples in found.items()]


def sparse(labels: Mapping[str, str], values: Array, grid: Grid) -> Mapping[str, Any]:
    """A row of an answer in the form in which Prometheus gives it."""
    return {
        "metric": labels,
        "values": [[at, value] for at, value in zip(grid.times.tolist(), values.tolist(), strict=True) if value == value],
    }
