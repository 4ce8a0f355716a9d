"""Which stage is slow? The answer of the first token page: the diagnosis' own verdict, with the stages of the replicas it names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from obs import first_token_figures, histogram, inside
from obs.coverage import beside_names
from obs.facts import Facts
from obs.first_token_interference import Interference
from obs.first_token_stages import TITLES, Breakdown, breakdown
from obs.question import Said
from obs.row import main_episode
from obs.series import Mask, anywhere
from obs.text import Message, Quantity, Value, say
from obs.titles import ROWS
from obs.verdict import Episode, State, Verdict
from obs.wording import when_words, where_words

_HEADS = {
    "queue": say("The queue"),
    "tokenization": say("Tokenization and the front end"),
    "prefill": say("Prefill"),
    "network": say("The network"),
}
CUT_RATIO = 0.05  # of the window: where stages told more than the first token for less of it, it is not worth a word


def named(facts: Facts, verdict: Verdict) -> Mask:
    """The replicas that the verdict names, [replicas]; all of them where it names none."""
    names = {name for episode in verdict.episodes for name in episode.replicas}
    rows = np.array([replica.name in names for replica in facts.readings.replicas], dtype=np.bool_)
    return rows if rows.any() else np.ones(facts.rows, dtype=np.bool_)


def during(facts: Facts, episodes: tuple[Episode, ...]) -> Mask:
    """The steps of the window in which the row applied; the whole window where it never did. [steps]"""
    window, times = inside.inside(facts), facts.grid.times
    held = [window & episode.shown_at(times) for episode in episodes]
    mask = anywhere(np.stack(held)) if held else window
    return mask if mask.any() else window


def answer(facts: Facts, verdict: Verdict, interference: Interference | None) -> Said:
    """The sentence, the figures and the advice for the window. `verdict`: of the row slow_first_token."""
    if not facts.has("ttft") and not facts.has("gateway_ttft"):
        why = beside_names(facts.reading("ttft").why) or say("No figure in this window.")
        return Said(State.UNKNOWN, say("Nobody can tell which stage is slow: the time to first token is not measured. {why}", why=why))
    rows, steps = named(facts, verdict), during(facts, main_episode(verdict.episodes))
    stages = breakdown(facts, rows)
    figures = first_token_figures.figures(facts, verdict, stages, steps)
    advice = (*_warnings(facts, verdict, stages), *_change(verdict), *_interferes(interference))
    return replace(_says(facts, verdict, stages, steps), figures=figures, advice=advice)


def _says(facts: Facts, verdict: Verdict, stages: Breakdown, steps: Mask) -> Said:
    if verdict.state is State.APPLIES:
        return Said(State.APPLIES, _slow(facts, verdict, stages, steps))
    reason = verdict.reason or say("no figure in this window.")
    if verdict.state is State.SUSPECTED:
        return Said(State.SUSPECTED, say("Perhaps one is: {why}", why=reason))
    if verdict.state is State.UNKNOWN:
        return Said(State.UNKNOWN, say("Nobody can tell whether a stage is slow: {why}", why=reason))
    return Said(State.CLEAR, _fine(facts, verdict, stages, steps))


def _slow(facts: Facts, verdict: Verdict, stages: Breakdown, steps: Mask) -> Message:
    """The slow stage's part of the first token, where and when: of the episode that the diagnosis tells of, with its figures."""
    main = main_episode(verdict.episodes)
    where = where_words(facts, {name for episode in main for name in episode.replicas})
    when = when_words(facts, main)
    means, stage = first_token_figures.means(verdict, stages, steps), verdict.stage
    mean = first_token_figures.whole(verdict, stages, steps)
    if stage is None or stage not in means or mean is None:
        return say("The first token is slow on {where}, {when}; which stage it is, is not measured.", where=where, when=when)
    part, ttft = Quantity(means[stage], "seconds"), Quantity(mean, "seconds")
    if stage == "network":
        return say(
            "The network: {part} on top of the {ttft} in which the engines give the first token, {when}.", part=part, ttft=ttft, when=when
        )
    if part.value > ttft.value:  # measured at the finish, of requests that began earlier
        return say(
            "{stage}: all of the {ttft} to the first token on {where}, {when}.", stage=_HEADS[stage], ttft=ttft, where=where, when=when
        )
    return say(
        "{stage}: {part} of the {ttft} to the first token on {where}, {when}.",
        stage=_HEADS[stage], part=part, ttft=ttft, where=where, when=when,
    )  # fmt: skip


def _fine(facts: Facts, verdict: Verdict, stages: Breakdown, steps: Mask) -> Message:
    whole = stages.ttft[steps]
    if not np.isfinite(whole).any():
        return say("None: the first token is as usual.")
    mean, usual = float(np.nanmean(whole)), first_token_figures.usual_of(verdict, "ttft")
    ttft = Quantity(mean, "seconds")
    means = {name: seconds for name, seconds in stages.over(steps).items() if name != "network"}
    most = max(means, key=lambda name: means[name])
    part = say("most of it is {stage} ({part})", stage=TITLES[most], part=Quantity(means[most], "seconds"))
    if usual is not None and mean > max(usual * facts.limit("ttft_ratio"), usual + facts.limit("ttft_rise")):
        return say("None, or not for long: the first token takes {ttft} in the mean; {part}.", ttft=ttft, part=part)
    return say("None: the first token takes {ttft} in the mean, as is usual here; {part}.", ttft=ttft, part=part)


def _warnings(facts: Facts, verdict: Verdict, stages: Breakdown) -> tuple[Message, ...]:
    """What these figures cannot tell: stages that lag, buckets that are too coarse for the objective."""
    window = inside.inside(facts)
    found = [piece.says for piece in verdict.evidence if piece.signal == "requests_finished"]
    cut = float(stages.cut[window].mean()) if window.any() else 0.0
    if cut >= CUT_RATIO:
        found.append(
            say(
                "For {part} of the window queue and prefill tell of more time than the first token took: they are of requests that began "
                "earlier, and drawn in proportion.",
                part=Quantity(cut, "ratio"),
            )
        )
    for signal, limit in (("ttft", "ttft_objective"), (first_token_figures.pace(facts), "itl_objective")):
        buckets = facts.readings.buckets.get(signal)
        share = histogram.share(buckets, window, facts.limit(limit)) if buckets is not None else None
        if share is not None and share.low < facts.limit("objective_share") <= share.high:
            found.append(_too_coarse(facts, signal, limit, share))
    return tuple(found)


def _too_coarse(facts: Facts, signal: str, limit: str, share: histogram.Share) -> Message:
    values: dict[str, Value] = {
        "wanted": Quantity(facts.limit("objective_share"), "ratio"),
        "title": facts.reading(signal).signal.title,
        "limit": Quantity(facts.limit(limit), "seconds"),
        "lower": Quantity(share.lower, "seconds"),
    }
    if np.isinf(share.upper):
        return say(
            "{title}: whether {wanted} are within {limit} cannot be told, the last bucket begins at {lower}. An objective on an edge can.",
            **values,
        )
    return say(
        "{title}: whether {wanted} are within {limit} cannot be told, the buckets have edges at {lower} and {upper} only. "
        "An objective on an edge can.",
        **values, upper=Quantity(share.upper, "seconds"),
    )  # fmt: skip


def _change(verdict: Verdict) -> tuple[Message, ...]:
    """The change to test, and which row it follows from."""
    if verdict.state is not State.APPLIES:
        return ()
    if verdict.follows_from:
        return (say("It follows from another row of the table, {row}: look there first.", row=ROWS[verdict.follows_from]),)
    return tuple(say("{change}.", change=change.title) for change in verdict.changes)


def _interferes(found: Interference | None) -> tuple[Message, ...]:
    return (found.advice,) if found is not None and found.advice is not None else ()
