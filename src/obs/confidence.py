"""How sure a verdict is, 0-1: how much of what bears on the row was measured, how clearly the figures cross, and for how long.

    applies     0.5 + 0.2 * explanations that hold, of those measured + 0.15 * margin + 0.15 * duration
    suspected   0.25 + 0.15 * measured
    clear       0.5 + 0.1 * measured + 0.4 * distance to the nearest threshold
    unknown     none

`margin` is how far the clearest condition stands over its threshold (1 at twice of it), `duration` the longest episode over ten
minutes, both at most 1. Each piece of evidence that contradicts takes 0.1, and what is missing counts as not measured.
"""

from __future__ import annotations

from collections.abc import Sequence

from obs.verdict import Episode, Evidence, Stance, State

LONG_SECONDS = 600.0
AS_USUAL = ("work_left", "amplification")  # stand near their thresholds when nothing is wrong


def confidence(state: State, evidence: Sequence[Evidence], episodes: Sequence[Episode], end: float) -> float | None:
    """The confidence of a verdict, rounded to 0.01."""
    if state is State.UNKNOWN or not evidence:
        return None
    measured = sum(e.stance is not Stance.MISSING for e in evidence) / len(evidence)
    if state is State.SUSPECTED:
        return round(0.25 + 0.15 * measured, 2)
    if state is State.CLEAR:
        quiet = [e.value / e.threshold for e in evidence if e.signal not in AS_USUAL and e.value is not None and e.threshold]
        nearest = max((min(1.0, ratio) for ratio in quiet), default=1.0)
        return round(0.5 + 0.1 * measured + 0.4 * (1.0 - nearest), 2)
    holding = [e for e in evidence if e.stance is Stance.SUPPORTS]
    margin = min(1.0, max((e.value / e.threshold - 1.0 for e in holding if e.value is not None and e.threshold), default=0.0))
    longest = max(((end if e.end is None else e.end) - e.start for e in episodes), default=0.0)
    against = sum(e.stance is Stance.CONTRADICTS for e in evidence)
    share = len(holding) / len(evidence)
    score = 0.5 + 0.2 * share + 0.15 * max(0.0, margin) + 0.15 * min(1.0, longest / LONG_SECONDS) - 0.1 * against
    return round(min(0.99, max(0.05, score)), 2)
