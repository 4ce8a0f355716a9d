"""Two arrays of one signal as one: by name, by spelling, by part. Shapes [rows, steps]; NaN where there is no figure."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from obs.series import Array, runs


def both(old: Array, new: Array, how: str) -> Array:
    """Two arrays as one: where only one has a figure it counts; where both have, `how` decides."""
    together = {"sum": np.add, "max": np.maximum, "min": np.minimum}.get(how, lambda a, _: a)(old, new)
    return np.where(np.isnan(old), new, np.where(np.isnan(new), old, together))


def other(spelled: dict[str, Array], name: str, values: Array) -> Array:
    """Of a quantity that is to be added up, what no other spelling of its name has given: in two spellings it is still one."""
    known = spelled.get(name)
    spelled[name] = values if known is None else both(known, values, "first")
    return values if known is None else np.where(np.isnan(known), values, np.nan)


def taken_over(new: Array, old: Array, steps: int) -> Array:
    """Two names of one counter as one rate: the new name's, and the old one's where there is no other.

    Where the new name comes while the old one is there, its rate knows only a part of its first window of `steps` steps. If the old one
    goes on, it stands for so long. If it ends, its rate fades as the other grows, and what was counted between its last scrape and the
    other's first one nobody saw: the two add up, and the stretch is no lower than what stands before and after it."""
    out = np.where(np.isfinite(new), new, old)
    shared = np.isfinite(new) & np.isfinite(old)
    for row in np.flatnonzero(shared.any(axis=1)):
        for first, last in runs(np.isfinite(new[row])):
            if first < 2 or not shared[row, first] or not np.isfinite(old[row, first - 2 : first]).all():
                continue  # both begin together, or a process ended and another one began
            stop = min(first + steps, last + 1)
            kept = np.nan_to_num(old[row, first:stop])
            if stop < old.shape[1] and np.isfinite(old[row, stop]):
                out[row, first:stop] = np.where(kept > 0, kept, new[row, first:stop])
                continue
            out[row, first:stop] = new[row, first:stop] + kept
            level = min(old[row, first - 2], new[row, stop]) if stop <= last else 0.0
            out[row, first - 1 : stop] = np.maximum(out[row, first - 1 : stop], level)
    return out


def added(parts: Iterable[Array]) -> Array:
    """The sum of arrays of one shape, where a missing figure counts only if all are missing."""
    total: Array | None = None
    for part in parts:
        total = part if total is None else both(total, part, "sum")
    return total if total is not None else np.empty((0, 0))
