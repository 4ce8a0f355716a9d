"""The four rows of the symptom table as cards: state, first evidence, change to test. In the table's order, whatever applies."""

from __future__ import annotations

import re

from obs.course import Courses
from obs.text import Message, Names, say_n
from obs.titles import ROWS, STAGES, STANCES, STATES
from obs.ui.icons import icon, kind
from obs.ui.markup import Html, tag
from obs.ui.reader import Reader
from obs.ui.spark import sparkline
from obs.ui.stages import stage_bar
from obs.verdict import Change, Diagnosis, Evidence, Stance, State, Verdict

_SHOWN = {State.APPLIES: 6, State.SUSPECTED: 5, State.CLEAR: 3, State.UNKNOWN: 3}  # pieces of evidence on a closed card
_FILLED = ("kv_use", "gpu_memory")  # drawn against the whole of what is filled, not against their own peak
_SENTENCE = re.compile(r"(?<=[.!?]) (?=[^\W\d_a-z])")  # a full stop, and a capital letter after it
_FIRST = {  # what the article says to inspect first, by the ids of the conditions
    "gpu_oom": ("gpu_oom_events", "gpu_memory"),
    "latency_without_errors": ("kv_use", "preemptions", "waiting", "e2e_latency", "error_ratio"),
    "slow_first_token": ("ttft", "queue_time", "ttft_remainder", "prefill_time", "network_time"),
    "load_after_timeouts": ("retry_ratio", "timeouts", "work_left", "waste"),
}


def card(verdict: Verdict, diagnosis: Diagnosis, courses: Courses, _: Reader) -> Html:
    """One row, closed."""
    look = kind(verdict)
    primary = " primary" if diagnosis.primary == verdict.row else ""
    return tag(
        "section",
        _state(verdict, diagnosis, look, _),
        _evidence(verdict, diagnosis, courses, _),
        _change(verdict, look, _),
        cls=f"row {look}{primary}",
        aria_label=f"{_.tell(ROWS[verdict.row])}: {_.tell(STATES[verdict.state])}",
    )


def _state(verdict: Verdict, diagnosis: Diagnosis, look: str, _: Reader) -> Html:
    words = _.tell(STATES[verdict.state])
    follows = _("follows from {row}", row=_.tell(ROWS[verdict.follows_from])) if verdict.follows_from else None
    return tag(
        "div",
        tag("div", _.tell(ROWS[verdict.row]), cls="name", role="heading", aria_level=2),
        tag("div", icon(look), tag("span", words), cls="state"),
        tag("div", follows, cls="follows") if follows else None,
        _since(verdict, diagnosis, _),
        tag("p", _.tell(verdict.reason), cls="reason") if verdict.reason and verdict.reason not in verdict.missing else None,
        cls="what",
    )


def _since(verdict: Verdict, diagnosis: Diagnosis, _: Reader) -> Html | None:
    """When, for how long, where, how sure; only what is known."""
    facts: list[Html | None] = []
    for episode in verdict.episodes[-2:]:
        end = episode.end if episode.end is not None else diagnosis.end
        facts.append(tag("div", tag("b", _.span(episode.start, episode.end)), " · ", _.length(end - episode.start), cls="when"))
    if len(verdict.episodes) > 2:
        facts.append(tag("div", _.tell(say_n("and once before", "and {n} times before", len(verdict.episodes) - 2))))
    named = tuple(dict.fromkeys(name for episode in verdict.episodes for name in episode.replicas))
    if named:
        facts.append(tag("div", _where(named, diagnosis, _)))
    if verdict.stage:
        facts.append(tag("div", _("stage: {stage}", stage=STAGES[verdict.stage])))
    if verdict.confidence is not None and verdict.state is not State.CLEAR:
        facts.append(tag("div", _("confidence {confidence}", confidence=_.figure(verdict.confidence, "ratio"))))
    if verdict.state_now is not verdict.state and verdict.state in (State.APPLIES, State.SUSPECTED):
        facts.append(tag("div", _("at the end of the window: {state}", state=_.tell(STATES[verdict.state_now]))))
    return tag("div", facts, cls="since") if facts else None


def _where(named: tuple[str, ...], diagnosis: Diagnosis, _: Reader) -> Html:
    if len(diagnosis.replicas) > 1 and set(named) >= set(diagnosis.replicas):
        return tag("span", _("on all {n} replicas", n=len(diagnosis.replicas)))
    return tag("span", _("on {replicas}", replicas=Names(named)))


def _evidence(verdict: Verdict, diagnosis: Diagnosis, courses: Courses, _: Reader) -> Html:
    shown = first_evidence(verdict)
    lacking = [piece.says for piece in shown if piece.stance is Stance.MISSING]
    lines = [evidence_line(piece, verdict, diagnosis, courses, _) for piece in shown if piece.stance is not Stance.MISSING]
    told = {why_missing(says, _) for says in lacking}
    if verdict.state is not State.CLEAR:
        lacking += [says for says in verdict.missing if why_missing(says, _) not in told]
    return tag(
        "div",
        tag("div", _("First evidence"), cls="label"),
        stage_bar(verdict, _),
        tag("div", lines, [_missing_line(says, number, verdict, _) for number, says in enumerate(lacking)], cls="lines"),
        cls="evidence",
    )


def _missing_line(says: Message, number: int, verdict: Verdict, _: Reader) -> Html:
    """What is not there, and why: a line without a figure. Of an unknown row only the first says why; opened, it says all of it."""
    title = says.values.get("title")
    brief = verdict.state is State.UNKNOWN and number > 0 and isinstance(title, Message)
    why = _("not measured") if brief else first_sentence(why_missing(says, _))
    words = tag("span", _.tell(title), cls="title") if isinstance(title, Message) else None
    return tag("div", words, tag("span", "– ", why, cls="against wide" if words else "against whole"), cls="line missing")


def first_evidence(verdict: Verdict) -> list[Evidence]:
    """What a closed card shows: the article's first evidence in its order, then whatever else supports the row."""
    wanted = {signal: place for place, signal in enumerate(_FIRST[verdict.row])}
    chosen = [piece for piece in verdict.evidence if piece.signal in wanted or piece.stance is Stance.SUPPORTS]
    return sorted(chosen, key=lambda piece: wanted.get(piece.signal, len(wanted)))[: _SHOWN[verdict.state]]


def evidence_line(piece: Evidence, verdict: Verdict, diagnosis: Diagnosis, courses: Courses, _: Reader) -> Html:
    """One condition: its sign, name, figure, what it was held against, and its course over the window."""
    title = tag("span", tag("i", _.tell(STANCES[piece.stance]), cls="aloud"), _.tell(piece.title), cls="title")
    figure = tag("span", _.figure(piece.value, piece.unit), cls="figure")
    course, line = courses.course(piece), None
    if course is not None:
        line = sparkline(
            courses.readings.grid.times,
            course.of(piece.replicas).top,
            (diagnosis.start, diagnosis.end),
            _.tell(piece.says),
            threshold=piece.threshold,
            top=1.0 if piece.signal in _FILLED else None,
            episodes=verdict.episodes,
            hot=piece.stance is Stance.SUPPORTS,
        )
    return tag(
        "div",
        title,
        figure,
        _held_against(piece, _),
        line or tag("span", cls="spark none"),
        cls=f"line {piece.stance.value}",
    )


def first_sentence(words: str) -> str:
    """What a closed card has room for."""
    return _SENTENCE.split(words, maxsplit=1)[0]


def why_missing(says: Message, _: Reader) -> str:
    """Why there is no figure, without the name that stands beside it anyway."""
    why = says.values.get("why")
    return _.tell(why if isinstance(why, Message) else says)


def _held_against(piece: Evidence, _: Reader) -> Html:
    """What the figure is, and below it what it is held against."""
    parts = []
    if piece.threshold is not None:
        parts.append(_("threshold {figure}", figure=_.figure(piece.threshold, piece.unit)).replace(" ", "\u00a0"))
    if piece.baseline is not None:
        parts.append(_("before {figure}", figure=_.figure(piece.baseline, piece.unit)).replace(" ", "\u00a0"))
    what = tag("span", _.tell(piece.of), cls="of") if piece.of is not None else None
    return tag("span", what, tag("span", " · ".join(parts)) if parts else None, cls="against")


def _change(verdict: Verdict, look: str, _: Reader) -> Html:
    """The change; its figures and caveats where somebody may be about to make it."""
    if look in ("clear", "unknown"):
        changes = [tag("div", _.tell(change.title), cls="todo") for change in verdict.changes[:1]]
    else:
        changes = [one_change(change, _) for change in verdict.changes]
    return tag("div", tag("div", _("Change to test"), cls="label"), changes, cls="change")


def one_change(change: Change, _: Reader) -> Html:
    """A change with its figures and the article's caveats."""
    return tag(
        "div",
        tag("div", _.tell(change.title), cls="todo"),
        tag("div", _.tell(change.detail), cls="detail") if change.detail else None,
        tag("ul", [tag("li", _.tell(caveat)) for caveat in change.caveats], cls="caveats") if change.caveats else None,
    )
