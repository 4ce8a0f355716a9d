"""How often a system is scraped, where the quick look of a window tells: as many samples as one of its long steps holds.

Asked beside it, that is no request of its own. Where a step holds too few samples, raw ones tell (`Source.scrape_intervals`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from obs.plan import Ask
from obs.promql import duration, selector, series
from obs.replicas import Row
from obs.signals import SIGNALS
from obs.source import COUNTING, Query

PART = "samples"
SENSIBLE = (1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 90, 120, 300)  # scrape intervals that people set
LEAST_SAMPLES = 40  # in a step: one more or less at its ends is 2.5 % then
LAST_STEPS = 3  # the one at the window's end may be cut short, and the one in which a process began


def sensible(seconds: float) -> float:
    """The interval that was meant: the nearest one that people set, where it is near; else the whole second."""
    nearest = min(SENSIBLE, key=lambda known: abs(known - seconds))
    return float(nearest) if abs(nearest - seconds) <= 0.1 * nearest else float(max(1, round(seconds)))


def counting(asked: Sequence[Ask], step: float) -> list[Ask]:
    """For each system the question how many samples a step holds of the first metric that its quick look asks for."""
    found: dict[str, Ask] = {}
    for a in asked:
        if a.candidate.metric and a.vocabulary.id not in found:
            metric = a.candidate.metrics(SIGNALS[a.signal].kind)[0]
            braces = selector(a.query.selector, a.vocabulary.match, a.candidate.match)
            text = f"max(count_over_time({series(metric, braces)}[{duration(step)}]))"
            query = Query(f"{a.vocabulary.id}|{metric}{COUNTING}", text, a.query.selector, thin="max")
            found[a.vocabulary.id] = Ask(a.signal, a.vocabulary, a.candidate, PART, query)
    return list(found.values())


def told(rows: Iterable[Row], step: float) -> dict[str, float]:
    """Seconds between two samples, by vocabulary, at the end of what was seen of it; none where too few samples tell."""
    found: dict[str, float] = {}
    for r in rows:
        seen = r.values[np.isfinite(r.values)][-LAST_STEPS:]
        if seen.size and seen.max() >= LEAST_SAMPLES:
            found[r.ask.vocabulary.id] = sensible(step / float(seen.max()))
    return found
