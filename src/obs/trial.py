"""A change was tested: did the evidence move as it should, did something get worse, and was the load the same?

What ought to move, and which way, is the article's last column read against its evidence. A good change may raise the time to first
token (fewer preemptions, a longer queue), so what counts against it is end-to-end latency, throughput and errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from obs.contrast import FEW_REQUESTS, LEAST_MINUTES, Contrast
from obs.text import Message, Quantity, say

SAME_LOAD = 0.2  # of the larger: a load that differs by more explains what else differs


@dataclass(frozen=True)
class Trial:
    """A change to test. `moves`: what it should move, 1 up, -1 down; the first is what it is made for."""

    title: Message
    moves: tuple[tuple[str, int], ...]


TRIALS: Mapping[str, Trial] = {
    "smaller_batch": Trial(
        say("Smaller active batch, shorter limits, or quantization"), (("gpu_memory", -1), ("requests_running", -1), ("kv_use", -1))
    ),
    "lower_admission": Trial(
        say("Lower admission concurrency"), (("preemptions", -1), ("kv_use", -1), ("itl", -1), ("requests_running", -1))
    ),
    "more_capacity": Trial(
        say("More measured capacity: replicas, or KV space"),
        (("requests_waiting", -1), ("preemptions", -1), ("kv_use", -1), ("ttft", -1), ("e2e_latency", -1)),
    ),
    "shorter_queue": Trial(say("The slow stage, queue"), (("queue_time", -1), ("requests_waiting", -1), ("ttft", -1))),
    "front_end": Trial(say("The slow stage, tokenization"), (("ttft_remainder", -1), ("ttft", -1))),
    "chunked_prefill": Trial(say("The slow stage, prefill: chunked prefill"), (("itl", -1), ("prefill_time", -1), ("ttft", -1))),
    "network": Trial(say("The slow stage, network"), (("network_time", -1), ("gateway_ttft", -1))),
    "bounded_retries": Trial(
        say("Bounded retries"), (("retry_ratio", -1), ("gateway_retries", -1), ("gateway_attempts", -1), ("requests_running", -1))
    ),
    "cancellation": Trial(say("Cancellation of abandoned work"), (("waste", -1), ("requests_running", -1), ("requests_waiting", -1))),
}
WORSE = {"requests_finished": -1, "e2e_latency": 1, "error_ratio": 1, "gateway_timeouts": 1}  # what is watched, and which way is worse
LOAD = ("arrivals", "prompt_length", "output_length")


class Outcome(StrEnum):
    """What a trial concludes."""

    HELPED = "helped"
    DID_NOT = "did_not"
    WORSE = "worse"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Expected:
    """One figure that ought to move. `did`: 1 as it should, -1 the other way, 0 not; None where it was not measured in both windows."""

    contrast: Contrast
    way: int
    did: int | None


@dataclass(frozen=True)
class Concluded:
    """The conclusion with its reason, and what it rests on."""

    outcome: Outcome
    reason: Message
    expected: tuple[Expected, ...]
    watched: tuple[Contrast, ...]  # what must not get worse
    worse: tuple[Contrast, ...]  # of these, what did
    load: tuple[Contrast, ...]  # arrivals and lengths, as far as they are known
    uneven: tuple[Contrast, ...]  # of these, what differs too much


def conclude(
    trial: Trial, found: Mapping[str, Contrast], requests: tuple[float | None, float | None], *, in_order: bool = True
) -> Concluded:
    """`found` are the contrasts by id, `requests` how many were finished in the window before and in the one after. `in_order`: the one
    ends before the other begins."""
    expected = tuple(_expected(found[id_], way) for id_, way in trial.moves if id_ in found)
    watched = tuple(found[id_] for id_ in WORSE if id_ in found and id_ not in {e.contrast.id for e in expected})
    load = tuple(c for id_ in LOAD if (c := found.get(id_)) is not None and c.change is not None)
    uneven = tuple(c for c in load if abs(c.change or 0.0) > SAME_LOAD)
    worse = tuple(c for c in watched if c.moved == WORSE[c.id] and not (c.id == "requests_finished" and _less_asked(load)))
    outcome, reason = _conclusion(trial, expected, worse, uneven, requests)
    if not in_order:
        outcome = Outcome.INCONCLUSIVE
        reason = say(
            "The other window must end before this one begins: it is the time before the change. Choose it so, or set both at a moment."
        )
    return Concluded(outcome, reason, expected, watched, worse, load, uneven)


def _expected(contrast: Contrast, way: int) -> Expected:
    told = contrast.effect is not None and contrast.change is not None
    return Expected(contrast, way, contrast.moved * way if told else None)


def _less_asked(load: tuple[Contrast, ...]) -> bool:
    """Fewer requests came: then fewer are finished, and nothing is wrong with that."""
    return any(c.id == "arrivals" and (c.change or 0.0) < -SAME_LOAD / 2 for c in load)


def _conclusion(
    trial: Trial, expected: tuple[Expected, ...], worse: tuple[Contrast, ...], uneven: tuple[Contrast, ...],
    requests: tuple[float | None, float | None],
) -> tuple[Outcome, Message]:  # fmt: skip
    told = [e for e in expected if e.did is not None]
    if not told or (expected[0].did is None and not any(e.did for e in told)):
        return Outcome.INCONCLUSIVE, _untold(trial, expected)
    few = min((n for n in requests if n is not None), default=None)
    if few is not None and few < FEW_REQUESTS:
        return Outcome.INCONCLUSIVE, say(
            "Only {few} requests were finished in one of the windows; at least {least} are needed. Take a longer window.",
            few=Quantity(few, "count"), least=FEW_REQUESTS,
        )  # fmt: skip
    better, wrong = [e for e in told if e.did == 1], [e for e in told if e.did == -1]
    if uneven and not _against_the_load(uneven, better, wrong, worse):
        return Outcome.INCONCLUSIVE, say(
            "The load was not the same ({what}), and that alone may explain the difference. Compare windows of equal load.",
            what=_list(uneven),
        )  # fmt: skip
    if (worse and not better) or (wrong and not better):
        return Outcome.WORSE, say("Worse: {what}.", what=_list([*(e.contrast for e in wrong), *worse]))
    if worse or wrong:
        return Outcome.INCONCLUSIVE, say(
            "It moved both ways. Better: {better}. Worse: {worse}. Weigh which of them your users feel.",
            better=_list([e.contrast for e in better]), worse=_list([*(e.contrast for e in wrong), *worse]),
        )  # fmt: skip
    if better:
        return Outcome.HELPED, say("As it should: {what}. Nothing that is watched got worse.", what=_list([e.contrast for e in better]))
    return Outcome.DID_NOT, say("What ought to move did not: {what}.", what=_list([e.contrast for e in told]))


def _against_the_load(uneven: tuple[Contrast, ...], better: list[Expected], wrong: list[Expected], worse: tuple[Contrast, ...]) -> bool:
    """More work and yet better, or less work and yet worse: then the load does not explain it, it speaks for the conclusion."""
    more, less = all((c.change or 0.0) > 0 for c in uneven), all((c.change or 0.0) < 0 for c in uneven)
    return (more and bool(better) and not wrong and not worse) or (less and bool(wrong or worse) and not better)


def _untold(trial: Trial, expected: tuple[Expected, ...]) -> Message:
    if not expected:
        return say("Nothing of what “{change}” should move was measured in both windows.", change=trial.title)
    return say(
        "{what} cannot be compared: it was not measured in both windows, or for less than {n} minutes.",
        what=expected[0].contrast.title, n=LEAST_MINUTES,
    )  # fmt: skip


def _words(contrast: Contrast) -> Message:
    before, after = (Quantity(float("nan") if value is None else value, contrast.unit) for value in (contrast.before, contrast.after))
    return say("{title} {before} → {after}", title=contrast.title, before=before, after=after)


def _list(found: Sequence[Contrast]) -> Message:
    """The figures one after the other."""
    words = [_words(c) for c in found]
    out = words.pop()
    for word in reversed(words):
        out = say("{first}; {rest}", first=word, rest=out)
    return out
