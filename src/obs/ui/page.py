"""What every page but the first is made of: its question, the verdicts in one thin line, the answer, and the figures."""

from __future__ import annotations

from collections.abc import Sequence

from obs.question import Figure, Said
from obs.ui import stale
from obs.ui.answer import Answer
from obs.ui.failure import failed, noted
from obs.ui.icons import icon
from obs.ui.markup import Html, show, tag
from obs.ui.reader import Reader
from obs.ui.screen import Screen
from obs.ui.strip import thin
from obs.verdict import State

_LONG = 60  # characters of a reason
_SAME = 0.05  # a change of less than a twentieth is none


def begin(screen: Screen, question: str) -> Answer | None:
    """The verdict strip and the page's question. Without an answer, the sentence that stands in its place, and None."""
    _ = screen.reader
    if screen.answer is None:
        show(tag("div", question, cls="question", role="heading", aria_level=1))
        if screen.failed is not None:
            failed(screen.failed, _)
        return None
    if screen.failed is not None:
        stale.dated(screen)
        stale.why(screen)
    asked = tag("div", question, cls="question", role="heading", aria_level=1)
    show(tag("div", thin(screen.answer.diagnosis, screen.view, _), asked, cls="before" if screen.failed is not None else None))
    return screen.answer


def says(said: Said, screen: Screen) -> None:
    """The answer in one sentence, the figures, and the advice."""
    _ = screen.reader
    sentence = tag("div", icon(said.state.value), tag("span", _.tell(said.says)), cls="headline", role="status")
    advice = tag("ul", [tag("li", _.tell(each)) for each in said.advice], cls="advice") if said.advice else None
    show(tag("div", sentence, advice, cls=f"answer said {said.state.value}"))
    if said.figures:
        stats(said.figures, screen)
    if screen.answer is not None:
        noted(screen.answer.readings.notes, _)


def stats(figures: Sequence[Figure], screen: Screen) -> None:
    """The large figures, side by side."""
    show(tag("div", [stat(figure, screen.reader) for figure in figures], cls="stats"))


def stat(figure: Figure, _: Reader) -> Html:
    """One large figure with its unit, its trend, and the words that say what its colour says."""
    look = figure.state.value if figure.state else "plain"
    number, _space, unit = _.figure(figure.value, figure.unit).partition("\u00a0")
    return tag(
        "div",
        tag("div", _.tell(figure.title), cls="label"),
        tag(
            "div",
            icon(look) if figure.state not in (None, State.CLEAR) else None,
            tag("b", number),
            tag("span", unit) if unit else None,
            cls="big",
        ),
        trend(figure, _),
        _words(figure, _),
        cls=f"stat {look}",
    )


def _words(figure: Figure, _: Reader) -> Html | None:
    """What stands below a figure; where there is none, a long reason is folded away, so that it does not stretch the figures beside it."""
    if figure.says is None:
        return None
    words = _.tell(figure.says)
    if figure.value is None and len(words) > _LONG:
        return tag("details", tag("summary", _("No figure. Why?")), words, cls="words")
    return tag("div", words, cls="words")


def trend(figure: Figure, _: Reader) -> Html | None:
    """What the figure was before, and which way it went."""
    if figure.before is None or figure.value is None:
        return None
    before = _.figure(figure.before, figure.unit)
    if abs(figure.value - figure.before) <= _SAME * max(abs(figure.value), abs(figure.before)):
        return tag("div", _("→ as before: {figure}", figure=before), cls="trend")
    rose = figure.value > figure.before
    return tag("div", _("↑ before: {figure}", figure=before) if rose else _("↓ before: {figure}", figure=before), cls="trend")
