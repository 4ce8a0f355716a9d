"""What is usual here: a baseline that follows the quiet and stands still while there is trouble.

The grid is cut into blocks of at least a minute. Block by block, the baseline is the median of the blocks of the last two
hours that were not themselves out of line; a block that is out of line is left out, so a long trouble does not become the
usual, and a daily curve does not become a trouble. Until two blocks were quiet there is no baseline (NaN), and absolute
limits decide.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from obs.series import Array, Grid, median

BLOCK_SECONDS = 60.0
MEMORY_SECONDS = 7200.0
LEAST_BLOCKS = 2
MOST_BLOCKS = 128  # a long grid takes longer blocks, so that the cost stays linear in its length


def follow(values: Array, grid: Grid, limit: Callable[[Array], Array]) -> Array:
    """The baseline of each row at each step, shape [rows, steps]; NaN where there is none.

    `limit` gives, for baselines of shape [rows] (NaN where unknown), the value above which a row is out of line.
    """
    if not np.isfinite(values).any():  # a figure that nobody measures, as most are where an engine or gateway tells little
        return np.full_like(values, np.nan)
    size = max(grid.steps(BLOCK_SECONDS), -(-grid.count // MOST_BLOCKS))
    count = -(-grid.count // size)
    padded = np.full((values.shape[0], count * size), np.nan)
    padded[:, : grid.count] = values
    levels = median(padded.reshape(values.shape[0], count, size))
    memory = max(LEAST_BLOCKS, int(MEMORY_SECONDS // (size * grid.step)))
    quiet = np.full_like(levels, np.nan)
    usual = np.full_like(levels, np.nan)
    for block in range(count):
        seen = quiet[:, max(0, block - memory) : block]
        if seen.shape[1] >= LEAST_BLOCKS:
            enough = np.isfinite(seen).sum(axis=1) >= LEAST_BLOCKS
            if enough.any():
                usual[:, block] = np.where(enough, median(seen), np.nan)
        carry = usual[:, block - 1] if block else usual[:, 0]
        usual[:, block] = np.where(np.isfinite(usual[:, block]), usual[:, block], carry)
        fine = levels[:, block] < limit(usual[:, block])
        quiet[fine, block] = levels[fine, block]
    return np.repeat(usual, size, axis=1)[:, : grid.count]
