"""What is usual here: a baseline that follows the quiet and stands still while there is trouble.

The grid is cut into blocks of at least a minute. Block by block, the baseline is the median of the blocks of the last two
hours that were not themselves out of line; a block that is out of line is left out, so a long trouble does not become the
usual, and a daily curve does not become a trouble. Until two blocks were quiet there is no baseline (NaN), and absolute
limits decide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from obs.series import Array, Grid, Mask, median, middle

BLOCK_SECONDS = 60.0
MEMORY_SECONDS = 7200.0
LEAST_BLOCKS = 2
MOST_BLOCKS = 128  # a long grid takes longer blocks, so that the cost stays linear in its length


@dataclass(frozen=True)
class Blocks:
    """A figure that stays for a block of steps: `values` [rows, blocks] for `count` steps, `size` to a block."""

    values: Array
    size: int
    count: int

    def at(self, row: int, step: int) -> float:
        """The figure at one step."""
        return float(self.values[row, step // self.size])

    def steps(self, rows: Mask | slice = slice(None)) -> Array:
        """Of all rows, or of these, shape [rows, steps]."""
        return np.repeat(self.values[rows], self.size, axis=1)[:, : self.count]


def follow(values: Array, grid: Grid, limit: Callable[[Array], Array]) -> Array:
    """The baseline of each row at each step, shape [rows, steps], as `usual` has it by blocks."""
    return usual(values, grid, limit).steps()


def usual(values: Array, grid: Grid, limit: Callable[[Array], Array]) -> Blocks:
    """The baseline of each row by blocks; NaN where there is none.

    `limit` gives, for baselines of shape [rows] (NaN where unknown), the value above which a row is out of line.
    """
    size = max(grid.steps(BLOCK_SECONDS), -(-grid.count // MOST_BLOCKS))
    count = -(-grid.count // size)
    if not np.isfinite(values).any():  # a figure that nobody measures, as most are where an engine or gateway tells little
        return Blocks(np.full((len(values), count), np.nan), size, grid.count)
    padded = np.full((values.shape[0], count * size), np.nan)
    padded[:, : grid.count] = values
    levels = median(padded.reshape(values.shape[0], count, size))
    memory = max(LEAST_BLOCKS, int(MEMORY_SECONDS // (size * grid.step)))
    quiet = np.full_like(levels, np.nan)
    base = np.full_like(levels, np.nan)
    known = np.zeros((len(levels), count + 1), dtype=np.intp)  # quiet blocks before each one
    for block in range(count):
        first = max(0, block - memory)
        if block - first >= LEAST_BLOCKS:
            n = known[:, block] - known[:, first]
            if (n >= LEAST_BLOCKS).any():
                base[:, block] = np.where(n >= LEAST_BLOCKS, middle(np.sort(quiet[:, first:block], axis=-1), n), np.nan)
        if block:
            base[:, block] = np.where(np.isfinite(base[:, block]), base[:, block], base[:, block - 1])
        fine = levels[:, block] < limit(base[:, block])
        quiet[fine, block] = levels[fine, block]
        known[:, block + 1] = known[:, block] + fine
    return Blocks(base, size, grid.count)
