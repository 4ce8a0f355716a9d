"""The colours of lines: told apart by the colour-blind, legible on light and dark, and the same for a replica on every page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from zlib import crc32

COLORS = ("#3b8fd4", "#d9661f", "#2f9e77", "#c669a6", "#b98a00", "#7a78d8", "#8a6d4b", "#5b9aa8")
HOT, MUTE = "#d0453a", "#8a929c"
DASHES = ((1, 0), (6, 3), (2, 2))  # whole, dashed, dotted: for lines of one colour


def replica_colors(names: Sequence[str]) -> Mapping[str, str]:
    """A colour for each replica in view. It goes by the name, so that a replica keeps it when others come and go; where two of a few
    replicas would share one, the later name takes the next that is free. Beyond eight, colours repeat, and `dashes` tells them apart."""
    taken: dict[str, str] = {}
    for name in sorted(names):
        place = crc32(name.encode()) % len(COLORS)
        if len(names) <= len(COLORS):
            place = next(p % len(COLORS) for p in range(place, place + len(COLORS)) if COLORS[p % len(COLORS)] not in taken.values())
        taken[name] = COLORS[place]
    return taken


def dashes(colors: Sequence[str]) -> list[tuple[int, int]]:
    """A dash for each line of one chart: the first of a colour is whole, the next dashed, the next dotted."""
    return [DASHES[min(list(colors[:number]).count(color), len(DASHES) - 1)] for number, color in enumerate(colors)]
