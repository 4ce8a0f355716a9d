"""The large figures of the first token page, each over the window. Percentiles and shares are of the whole view, from its buckets."""

from __future__ import annotations

import numpy as np

from obs import histogram, inside
from obs.facts import Facts
from obs.first_token_stages import TITLES, Breakdown
from obs.histogram import Bounded, Side
from obs.question import Figure
from obs.series import Array, Mask, divide, total_of
from obs.text import Message, Quantity, say
from obs.verdict import State, Verdict

EVIDENCE = {"queue": "queue_time", "prefill": "prefill_time", "tokenization": "ttft_remainder", "network": "network_time"}
WIDE = 2.0  # times its lower edge: a bucket this wide leaves a percentile open


def figures(facts: Facts, verdict: Verdict, stages: Breakdown, steps: Mask) -> tuple[Figure, ...]:
    """`stages`: of the replicas that the verdict names; `steps`: while the row applied, else the window."""
    window = inside.inside(facts)
    made = (
        _mean(facts, verdict, stages, steps),
        _stage(verdict, stages, steps),
        _percentile(facts, window),
        _within(facts, window, "ttft", "ttft_objective"),
        _within(facts, window, pace(facts), "itl_objective"),
        _tokens(facts, window),
        _prompts(facts, window),
    )
    return tuple(figure for figure in made if figure is not None)


def pace(facts: Facts) -> str:
    """What the objective for the time per token is held against: the mean of each request, where an engine counts it, else each token's."""
    buckets = facts.readings.buckets.get("tpot")
    return "tpot" if buckets is not None and np.nansum(buckets.rates[-1, inside.inside(facts)]) > 0 else "itl"


def usual_of(verdict: Verdict, signal: str) -> float | None:
    """What the diagnosis holds for usual, so that both pages say the same."""
    return next((piece.baseline for piece in verdict.evidence if piece.signal == signal), None)


def means(verdict: Verdict, stages: Breakdown, steps: Mask) -> dict[str, float]:
    """The mean of each stage: the diagnosis' own figures while its row applies, so that both pages say the same; else over `steps`."""
    told = {name: _told(verdict, signal) for name, signal in EVIDENCE.items()} if verdict.state is State.APPLIES else {}
    found = {name: value for name, value in told.items() if value is not None}
    return found if verdict.stage in found else stages.over(steps)


def whole(verdict: Verdict, stages: Breakdown, steps: Mask) -> float | None:
    """The engines' mean time to first token: of the same stretch as `means`. None where it is not measured."""
    told = _told(verdict, "ttft") if verdict.state is State.APPLIES and verdict.stage != "network" else None
    if told is not None:
        return told
    known = stages.ttft[steps]
    return float(np.nanmean(known)) if np.isfinite(known).any() else None


def _told(verdict: Verdict, signal: str) -> float | None:
    return next((piece.value for piece in verdict.evidence if piece.signal == signal), None)


def _mean(facts: Facts, verdict: Verdict, stages: Breakdown, steps: Mask) -> Figure:
    title, mean = say("Time to first token, mean"), whole(verdict, stages, steps)
    if mean is None:
        return Figure(title, None, "seconds", facts.reading("ttft").why, None, State.UNKNOWN)
    inner = verdict.stage != "network"  # which stands in front of the engines
    state = verdict.state if verdict.state in (State.APPLIES, State.SUSPECTED) and inner else None
    if verdict.state is not State.APPLIES:
        words = say("mean of the window")
    elif not inner:
        words = say("in the engines, while the row applied")
    else:
        words = say("mean while the row applied") if len(verdict.episodes) < 2 else say("mean of the longest time that the row applied")
    return Figure(title, mean, "seconds", words, usual_of(verdict, "ttft"), state)


def _stage(verdict: Verdict, stages: Breakdown, steps: Mask) -> Figure | None:
    """The slow stage, else the largest of the engine's own."""
    found = means(verdict, stages, steps)
    inner = {name: value for name, value in found.items() if name != "network"}
    name = verdict.stage or (max(inner, key=lambda each: inner[each]) if len(inner) > 1 else None)
    if name is None or name not in found:
        return None
    usual = usual_of(verdict, EVIDENCE[name]) if name in EVIDENCE else None
    part = Quantity(found[name] / sum(found.values()), "ratio")
    if verdict.stage:
        words = say("{part} of the mean first token", part=part)
        return Figure(say("Slow stage: {stage}", stage=TITLES[name]), found[name], "seconds", words, usual, State.APPLIES)
    words = say("{part} of the mean first token", part=Quantity(found[name] / sum(inner.values()), "ratio"))
    return Figure(say("Largest stage: {stage}", stage=TITLES[name]), found[name], "seconds", words, usual)


def _percentile(facts: Facts, window: Mask) -> Figure:
    """p95, with p50 and p99 beside it; each says where it is a bound only."""
    title, buckets = say("Time to first token, p95"), facts.readings.buckets.get("ttft")
    found = [histogram.over(buckets, window, q) for q in (0.5, 0.95, 0.99)] if buckets is not None else []
    if buckets is None or not found or found[0] is None or found[1] is None or found[2] is None:
        return Figure(title, None, "seconds", _unread(facts, "ttft"), None, State.UNKNOWN)
    p50, p95, p99 = found[0], found[1], found[2]
    others = say("p50 {p50}, p99 {p99}", p50=p50.says("seconds"), p99=p99.says("seconds"))
    return Figure(title, p95.value, "seconds", _open(buckets.bounds, p95, others, histogram.around(buckets, p95)))


def _unread(facts: Facts, signal: str) -> Message:
    """Why there is no distribution."""
    return facts.reading(signal).why or say("no distribution was read of this window")


def _open(bounds: Array, figure: Bounded, others: Message, edges: tuple[float, float]) -> Message:
    """What the buckets leave open about a percentile."""
    lower, upper = (Quantity(edge, "seconds") for edge in edges)
    if figure.side is Side.AT_MOST:
        return say("or less: in the first bucket; {others}", others=others)
    if figure.side is Side.MORE_THAN:
        return say("or more: in the last bucket; {others}", others=others)
    if edges[1] >= WIDE * edges[0]:
        return say("{others}; the bucket reaches from {lower} to {upper}", others=others, lower=lower, upper=upper)
    return others


def _within(facts: Facts, window: Mask, signal: str, limit: str) -> Figure:
    """The part within an objective: a range where the objective lies between two edges."""
    objective, wanted = Quantity(facts.limit(limit), "seconds"), facts.limit("objective_share")
    titles = {
        "ttft": say("First tokens within {objective}", objective=objective),
        "tpot": say("Requests within {objective} a token", objective=objective),
        "itl": say("Tokens within {objective} of the one before", objective=objective),
    }
    buckets = facts.readings.buckets.get(signal)
    found = histogram.share(buckets, window, objective.value) if buckets is not None else None
    if found is None:
        return Figure(titles[signal], None, "ratio", _unread(facts, signal), None, State.UNKNOWN)
    state = State.CLEAR if found.low >= wanted else State.APPLIES if found.high < wanted else State.SUSPECTED
    if found.exact or found.high - found.low < _SAME:
        late, most = Quantity(1.0 - found.low, "ratio"), Quantity(1.0 - wanted, "ratio")
        words = say("{late} come later, {most} may", late=late, most=most)
        if signal == "tpot":
            words = say("{late} take longer, {most} may", late=late, most=most)
        if late.value > most.value and round(100 * late.value) == round(100 * most.value):
            words = say("a little more than the {most} that may", most=most)
    else:
        words = say("or more, up to {high}; wanted: {wanted}", high=Quantity(found.high, "ratio"), wanted=Quantity(wanted, "ratio"))
    if signal == "itl":
        words = say("{words}; of tokens, not of requests", words=words)
    if signal == "tpot" and (counted := _counted(facts, window)) is not None:
        words = say("{words}; {counted}", words=words, counted=counted)
    return Figure(titles[signal], found.low, "ratio", words, None, state)


def _counted(facts: Facts, window: Mask) -> Message | None:
    """How many replicas time their requests by token, where others give tokens too: engines of another version, say."""
    timed, giving = (_busy(facts.reading(signal).count, window, facts.rows) for signal in ("tpot", "ttft"))
    if not (giving & ~timed).any():
        return None
    return say("of {n} of {all} replicas, the others do not tell", n=int(timed.sum()), all=int((timed | giving).sum()))


def _busy(count: Array | None, window: Mask, rows: int) -> Mask:
    return np.zeros(rows, dtype=np.bool_) if count is None else np.asarray(np.nansum(count[:, window], axis=1) > 0)


_SAME = 0.0005  # of all: what no figure shows


def _tokens(facts: Facts, window: Mask) -> Figure | None:
    itl = facts.joint_mean("itl")
    if not np.isfinite(itl[window]).any():
        return None
    return Figure(
        say("Inter-token latency, mean"), inside.mean(facts, "itl"), "seconds",
        say("highest {peak}", peak=Quantity(float(np.nanmax(itl[window])), "seconds")), inside.usual(facts, itl, None),
    )  # fmt: skip


def _prompts(facts: Facts, window: Mask) -> Figure | None:
    """How long prompts are, and how much of them the prefix cache has already."""
    mean, buckets = inside.mean(facts, "prompt_length"), facts.readings.buckets.get("prompt_length")
    if mean is None:
        return None
    found = histogram.over(buckets, window, 0.95) if buckets is not None else None
    hits, queries = (inside.counted(facts.values(f"prefix_cache_{part}"), window, facts.grid.step) for part in ("hits", "queries"))
    cached = say("{part} in the prefix cache", part=Quantity(hits / queries, "ratio")) if hits is not None and queries else None
    known = [say("p95 {p95}", p95=found.says("tokens"))] if found is not None else []
    known += [cached] if cached is not None else []
    words = say("{one}; {other}", one=known[0], other=known[1]) if len(known) == 2 else known[0] if known else None
    usual = inside.usual(facts, facts.joint_mean("prompt_length"), None)
    return Figure(say("Prompt length, mean"), mean, "tokens", words, usual)


def hit_ratio(facts: Facts, rows: Mask) -> Array:
    """Prompt tokens found in the prefix cache, of those looked for, [steps]; NaN where none was looked for."""
    hits, queries = (total_of(facts.values(f"prefix_cache_{part}")[rows]) for part in ("hits", "queries"))
    return np.where(np.isfinite(hits), divide(np.nan_to_num(hits), queries), np.nan)
