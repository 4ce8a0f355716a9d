"""Several questions as one: which go together, and how they are told apart in the answer."""

from __future__ import annotations

from collections.abc import Sequence

from obs.matrix import TAG
from obs.source import Query

WEIGHT = 2000  # series of one joined request (docs/performance.md)
LEAST, HEAVY = 6, 30  # what a query and a histogram's buckets weigh at least
_BUCKETS = "|buckets"  # how the key of a distribution's query ends


def batches(numbered: list[tuple[int, Query]]) -> list[list[tuple[int, Query]]]:
    """Few requests, also where series are many. Distributions go by themselves, and first: they take longest."""
    batches: list[list[tuple[int, Query]]] = []
    for heavy in (True, False):
        weight = WEIGHT
        for index, query in numbered:
            if query.key.endswith(_BUCKETS) != heavy:
                continue
            more = max(query.rows, HEAVY if heavy else LEAST)
            if weight + more > WEIGHT:
                batches.append([])
                weight = 0
            batches[-1].append((index, query))
            weight += more
    return batches


def joined(batch: list[tuple[int, Query]]) -> str:
    """One query for several: each gets a label of its own, so that `or` keeps every series."""
    if len(batch) == 1:
        return batch[0][1].promql
    return _tree([f'label_replace(({query.promql}), "{TAG}", "{index}", "", "")' for index, query in batch])


def _tree(parts: Sequence[str]) -> str:
    """Joined by halves: a chain would carry the series of the first through every `or` that follows (measured: 1.3 times the work)."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return f"({_tree(parts[:half])} or {_tree(parts[half:])})"


def is_plain(batch: Sequence[tuple[int, Query]]) -> bool:
    """Whether several questions are joined here, none of them a distribution: what is alone was meant to stay so."""
    return len(batch) > 1 and not batch[0][1].key.endswith(_BUCKETS)
