"""One line for each namespace and model, worst first, where a view without a scope holds several: each a link to its own diagnosis."""

from __future__ import annotations

from dataclasses import replace

from obs import links
from obs.titles import PRIMARIES, ROWS
from obs.ui import answer as answers
from obs.ui.answer import Answer
from obs.ui.icons import icon
from obs.ui.markup import Html, show, tag
from obs.ui.reader import Reader
from obs.ui.screen import Screen
from obs.verdict import State

_SHOWN = 24  # lines; beyond, the scope of the bar is the way

# Worst first: requests that die, load that feeds itself, all requests slow, their beginning slow.
_WORST = ("gpu_oom", "load_after_timeouts", "latency_without_errors", "slow_first_token", "suspected", "unknown", "clear")


def draw(screen: Screen) -> None:
    """The lines; nothing where there is one group only, or where the link has a scope."""
    if screen.view.scope or screen.answer is None:
        return
    groups = answers.groups(screen.answer)
    if len(groups) < 2:
        return
    _ = screen.reader
    ranked = sorted(groups.items(), key=lambda item: (_badness(item[1]), item[0]))
    lines = [_line(namespace, model, each, screen) for (namespace, model), each in ranked[:_SHOWN]]
    more = len(ranked) - _SHOWN
    show(
        tag(
            "nav",
            tag("div", _("Namespaces and models, worst first"), cls="label"),
            tag("div", lines, cls="fleet"),
            tag("p", _("{n} more: choose one in the bar.", n=more), cls="since") if more > 0 else None,
            aria_label=_("Namespaces and models"),
        )
    )


def _badness(answer: Answer) -> tuple[int, bool, float]:
    """The place in `_WORST`; what lasts before what is over; the earliest first."""
    diagnosis = answer.diagnosis
    if diagnosis.primary in _WORST:
        episodes = diagnosis.verdict(diagnosis.primary).episodes
        over = all(episode.end is not None for episode in episodes)
        return (_WORST.index(diagnosis.primary), over, min((episode.start for episode in episodes), default=0.0))
    return (_WORST.index(_look(answer)), False, 0.0)


def _look(answer: Answer) -> str:
    """applies, suspected, unknown or clear."""
    if answer.diagnosis.primary in ROWS:
        return "applies"
    if any(verdict.state is State.SUSPECTED for verdict in answer.diagnosis.verdicts):
        return "suspected"
    return "unknown" if answer.diagnosis.primary == "insufficient" else "clear"


def _line(namespace: str, model: str, answer: Answer, screen: Screen) -> Html:
    _, diagnosis = screen.reader, answer.diagnosis
    look = _look(answer)
    scope = {label: (value,) for label, value in (("namespace", namespace), ("model", model)) if value}
    address = links.url("", replace(screen.view, scope=scope, row=None)).partition("?")[2]
    words = _("suspected: {row}", row=_suspect(answer, _)) if look == "suspected" else _.tell(PRIMARIES[diagnosis.primary])
    return tag(
        "a",
        tag("span", icon(look), tag("b", words), cls=f"verdict {look}"),
        tag("span", " · ".join(part for part in (namespace, model) if part), cls="group"),
        tag("span", _.tell(diagnosis.headline) if look == "applies" else "", cls="since"),
        href=f"?{address}",
        target="_self",
        cls=f"fleet-line {look}",
    )


def _suspect(answer: Answer, _: Reader) -> str:
    return next(_.tell(ROWS[verdict.row]) for verdict in answer.diagnosis.verdicts if verdict.state is State.SUSPECTED)
