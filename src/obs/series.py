"""Time grids and the arithmetic on values over them. Values are float64 arrays whose last axis is time; NaN = no value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Steps = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Grid:
    """`count` moments, `step` seconds apart, the first at `start` (Unix seconds UTC, a multiple of `step`)."""

    start: float
    step: float
    count: int

    @property
    def end(self) -> float:
        """The last moment (inclusive)."""
        return self.start + self.step * (self.count - 1)

    @property
    def times(self) -> Array:
        """Unix seconds, shape [count]."""
        return self.start + self.step * np.arange(self.count, dtype=np.float64)

    @classmethod
    def covering(cls, start: float, end: float, step: float) -> Grid:
        """The aligned grid that holds `start` to `end`: from the step at or before `start` to the one at or before `end`."""
        first = np.floor(start / step) * step
        return cls(float(first), step, max(1, int((end - first) // step) + 1))

    def index(self, at: float) -> int:
        """The last step at or before `at`, clipped into the grid."""
        return int(np.clip((at - self.start) // self.step, 0, self.count - 1))

    def steps(self, seconds: float) -> int:
        """How many steps span `seconds`, at least 1."""
        return max(1, int(np.ceil(seconds / self.step - 1e-9)))


def nothing(shape: tuple[int, ...]) -> Array:
    """No value anywhere. It takes no memory, and cannot be written to."""
    return np.broadcast_to(np.nan, shape)


def runs(mask: Mask) -> list[tuple[int, int]]:
    """The stretches where a one-dimensional mask is true, as (first, last) steps, both inclusive."""
    edges = np.diff(np.concatenate(([0], mask.astype(np.int8), [0])))
    return list(zip(np.flatnonzero(edges == 1).tolist(), (np.flatnonzero(edges == -1) - 1).tolist(), strict=True))


def trailing(values: Array, steps: int) -> Array:
    """The sum over the last `steps` steps, this one included, counting NaN as nothing. Shape as given."""
    total: Array = np.where(np.isnan(values), 0.0, values)
    if steps > 1:
        np.cumsum(total, axis=-1, out=total)
        total[..., steps:] -= total[..., :-steps].copy()
    return total


def backward_max(mask: Mask, steps: int) -> Mask:
    """True where the mask was true at any of the last `steps` steps, this one included."""
    return trailing(mask.astype(np.float64), steps) > 0.5 if mask.any() else mask.copy()


def anywhere(mask: Mask) -> Mask:
    """Where the mask is true on any row. Shape [steps]."""
    return np.asarray(mask.any(axis=0), dtype=np.bool_)


def near(mask: Mask, steps: int) -> Mask:
    """The mask, widened by `steps` steps on both sides."""
    later = backward_max(mask, steps + 1)
    earlier = backward_max(mask[..., ::-1], steps + 1)[..., ::-1]
    return later | earlier


def latch(on: Mask, off: Mask) -> Mask:
    """Hysteresis: true from a step where `on` until a step where `off`; between the two it keeps what it was."""
    clock = np.arange(on.shape[-1])
    last_on = np.maximum.accumulate(np.where(on, clock, -1), axis=-1)
    last_off = np.maximum.accumulate(np.where(off, clock, -1), axis=-1)
    return last_on > last_off


def spans(mask: Mask) -> tuple[Steps, Steps, Steps]:
    """The stretches of a mask of shape [rows, steps] where it is true: their rows, first and last steps (inclusive), row by row."""
    wide = np.zeros((mask.shape[0], mask.shape[1] + 1), dtype=np.bool_)  # a false column keeps the rows apart
    wide[:, :-1] = mask
    flat = wide.reshape(-1)
    before = np.empty_like(flat)
    before[:1], before[1:] = False, flat[:-1]
    first, end = np.flatnonzero(flat & ~before), np.flatnonzero(before & ~flat)
    row = first // wide.shape[1]
    return row, first - row * wide.shape[1], end - 1 - row * wide.shape[1]


def painted(shape: tuple[int, ...], row: Steps, first: Steps, last: Steps) -> Mask:
    """A mask of shape [rows, steps] that is true in these stretches, which do not touch."""
    edges = np.zeros((shape[0], shape[1] + 1), dtype=np.int8)
    edges[row, first], edges[row, last + 1] = 1, -1
    return np.cumsum(edges, axis=1, dtype=np.int8)[:, :-1] > 0


def settle(mask: Mask, hold: int, gap: int) -> Mask:
    """Close gaps of up to `gap` steps, then drop stretches shorter than `hold` steps. Shape [rows, steps]."""
    row, first, last = spans(mask)
    apart = np.ones(row.size, dtype=np.bool_)
    apart[1:] = (row[1:] != row[:-1]) | (first[1:] - last[:-1] - 1 > gap)
    row, first, last = row[apart], first[apart], last[np.roll(apart, -1)]  # the last of each group stands before the next one's first
    long = last - first + 1 >= hold
    return painted(mask.shape, row[long], first[long], last[long])


def divide(above: Array, below: Array) -> Array:
    """The quotient, NaN where there is nothing to divide by: 0/0 is no figure, not 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(below > 0, above / below, np.nan)


def median(values: Array) -> Array:
    """The median along the last axis, ignoring NaN; NaN where none is known. Faster than `nanmedian` and without a warning."""
    if values.shape[-1] == 1:
        return values[..., 0]
    if values.shape[-1] == 2:  # sorting many pairs takes ten times as long
        one, other = values[..., 0], values[..., 1]
        return np.where(np.isnan(one), other, np.where(np.isnan(other), one, (one + other) / 2))
    return middle(np.sort(values, axis=-1), (~np.isnan(values)).sum(axis=-1))


def middle(ordered: Array, n: Steps) -> Array:
    """The median of the first `n` along the last axis of what is sorted; NaN where there are none."""
    flat, first = ordered.reshape(-1), ordered.shape[-1] * np.arange(n.size).reshape(n.shape)  # half the time of take_along_axis
    low = flat[first + np.maximum(n - 1, 0) // 2]
    high = flat[first + np.maximum(n, 1) // 2]
    return np.where(n > 0, np.where(n % 2 == 1, low, (low + high) / 2), np.nan)


def median_of_others(values: Array) -> Array:
    """For each row and step, the median of the other rows, ignoring NaN; NaN where no other is known. Shape as given."""
    order = np.argsort(values, axis=0)  # NaN go last
    rank = np.argsort(order, axis=0)
    ordered = np.take_along_axis(values, order, axis=0)
    n = np.isfinite(values).sum(axis=0)[None, :] - np.isfinite(values)
    low, high = np.maximum(n - 1, 0) // 2, n // 2
    last = len(values) - 1
    below, above = (np.take_along_axis(ordered, np.minimum(at + (at >= rank), last), axis=0) for at in (low, high))
    return np.where(n > 0, (below + above) / 2, np.nan)


def worst(values: Array, axis: int = 0) -> Array:
    """The maximum along an axis, NaN where all are NaN, without a warning."""
    filled = np.where(np.isnan(values), -np.inf, values)
    top = filled.max(axis=axis, initial=-np.inf)
    return np.where(np.isinf(top), np.nan, top)


def total_of(values: Array) -> Array:
    """The sum over the rows, NaN where no row has a value. Shape [steps]."""
    known = np.isfinite(values)
    return np.where(known.any(axis=0), np.where(known, values, 0.0).sum(axis=0), np.nan)
