"""The Compare page: what changed between two windows, and did the change that was tested help?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from obs import contrast, links, trial
from obs.contrast import Contrast
from obs.question import Figure, Said
from obs.text import Quantity, say
from obs.titles import ROWS, STATES
from obs.trial import TRIALS, Concluded, Expected, Outcome
from obs.ui import lengths, page, versus
from obs.ui.answer import Answer
from obs.ui.failure import failed
from obs.ui.icons import icon, kind
from obs.ui.markup import Html, show, tag
from obs.ui.reader import Reader
from obs.ui.screen import Screen
from obs.verdict import State
from obs.window import Window

_FIGURES = 5
_MANY_TIMES = 3.0  # from here on a factor reads better than a percentage
_STATES = {Outcome.HELPED: State.CLEAR, Outcome.DID_NOT: State.SUSPECTED, Outcome.WORSE: State.APPLIES, Outcome.INCONCLUSIVE: State.UNKNOWN}


def draw(screen: Screen) -> None:
    """The page, or the sentence that stands in its place."""
    _ = screen.reader
    answer = page.begin(screen, _("What changed between two windows?"))
    if answer is None or screen.window is None:
        return
    st.html(Path(__file__).with_name("compare.css"))
    other = versus.asked(screen)
    versus.choose(screen, other.window)
    if other.answer is None or other.window is None:
        if other.failed is not None:
            failed(other.failed, _)
        return
    before, after = other.answer.courses.facts, answer.courses.facts
    found = contrast.contrasts(before, after)
    concluded = None
    if screen.view.change:
        counted = contrast.requests(before), contrast.requests(after)
        apart = other.window.end <= screen.window.start
        concluded = trial.conclude(TRIALS[screen.view.change], {c.id: c for c in found}, counted, in_order=apart)
    said = _said(found, concluded)
    if concluded is None and said.state is State.CLEAR:  # a difference is neither good nor bad
        show(tag("div", tag("div", tag("span", _.tell(said.says)), cls="headline", role="status"), cls="answer said"))
        page.stats(said.figures, screen)
    else:
        page.says(said, screen)
    if concluded is not None:
        _trial(concluded, _)
    _diagnoses(((other.answer, other.window), (answer, screen.window)), screen)
    _figures(found, _)
    lengths.draw(screen, other.answer, answer)


def _figures(found: Sequence[Contrast], _: Reader) -> None:
    """The table of all figures that either window has."""
    if not found:
        return
    moved = [c for c in found if c.moved]
    note = _(
        "A mean is over all requests of its window; every other figure is the median of its minutes, neither the highest nor the sum, of "
        "the worst replica where it is a share, else of all together."
    )
    title = tag("div", _("Every figure, what changed most first"), cls="title", role="heading", aria_level=2)
    show(tag("div", title, tag("div", note, cls="note"), cls="panel"))
    show(_table(moved or found[:_FIGURES], _))
    if moved and len(moved) < len(found):
        with st.expander(_("{n} figures did not change", n=len(found) - len(moved))):
            show(_table([c for c in found if not c.moved], _))


def _said(found: Sequence[Contrast], concluded: Concluded | None) -> Said:
    """The conclusion of a trial, else what changed most."""
    figures = tuple(_figure(c) for c in found[:_FIGURES] if c.moved)
    if concluded is not None:
        words = {
            Outcome.HELPED: say("The change helped."),
            Outcome.DID_NOT: say("The change did not help."),
            Outcome.WORSE: say("The change made it worse."),
            Outcome.INCONCLUSIVE: say("Inconclusive."),
        }
        expected = tuple(_figure(e.contrast) for e in concluded.expected)
        return Said(_STATES[concluded.outcome], words[concluded.outcome], expected, (concluded.reason,))
    moved = [c for c in found if c.moved]
    told = [c for c in found if c.effect is not None]
    if not told:
        few = min((min(c.minutes) for c in found if min(c.minutes)), default=0)
        return Said(
            State.UNKNOWN,
            say("These windows cannot be compared."),
            (),
            (
                say(
                    "A figure needs {least} minutes in each window; one of them has {few} with figures.",
                    least=contrast.LEAST_MINUTES,
                    few=few,
                ),
            ),
        )
    if not moved:
        return Said(State.CLEAR, say("Nothing changed by more than chance."))
    first = moved[0]
    rose = (first.change or 0.0) > 0
    says = say("What rose most: {what}.", what=first.title) if rose else say("What fell most: {what}.", what=first.title)
    return Said(State.CLEAR, says, figures)


def _figure(c: Contrast) -> Figure:
    other = Quantity(float("nan") if c.before is None else c.before, c.unit)
    return Figure(c.title, c.after, c.unit, say("{figure} in the other window", figure=other))


def _trial(concluded: Concluded, _: Reader) -> None:
    """What ought to move and whether it did, what must not get worse, and whether the load was the same."""
    parts = [
        (_("What ought to move"), [_expected(e, _) for e in concluded.expected]),
        (_("What must not get worse"), [_watched(c, c in concluded.worse, _) for c in concluded.watched]),
        (_("Was the load the same?"), [_load(c, c in concluded.uneven, _) for c in concluded.load]),
    ]
    columns = [
        tag(
            "div",
            tag("div", title, cls="title", role="heading", aria_level=2),
            tag("ul", lines) if lines else _("Not measured."),
            cls="part",
        )
        for title, lines in parts
    ]
    show(tag("div", columns, cls="trial"))


def _expected(e: Expected, _: Reader) -> Html:
    want = _("should fall") if e.way < 0 else _("should rise")
    words = {1: _("did"), 0: _("did not"), -1: _("went the other way"), None: _untold(e.contrast, _)}[e.did]
    look = {1: "clear", 0: "suspected", -1: "applies", None: "unknown"}[e.did]
    return tag("li", icon(look), " ", tag("b", _.tell(e.contrast.title)), f" {want}: {words}. ", _both(e.contrast, _))


def _watched(c: Contrast, worse: bool, _: Reader) -> Html:
    look = "applies" if worse else "clear" if c.effect is not None else "unknown"
    words = _("worse") if worse else _("not worse") if c.effect is not None else _untold(c, _)
    return tag("li", icon(look), " ", tag("b", _.tell(c.title)), f": {words}. ", _both(c, _))


def _untold(c: Contrast, _: Reader) -> str:
    return _("not measured in both") if c.change is None else _("too few minutes")


def _load(c: Contrast, uneven: bool, _: Reader) -> Html:
    words = _("different") if uneven else _("alike")
    return tag("li", icon("suspected" if uneven else "clear"), " ", tag("b", _.tell(c.title)), f": {words}. ", _both(c, _))


def _both(c: Contrast, _: Reader) -> Html:
    return tag("span", f"{_.figure(c.before, c.unit)} → {_.figure(c.after, c.unit)}", cls="both")


def _diagnoses(pair: tuple[tuple[Answer, Window], tuple[Answer, Window]], screen: Screen) -> None:
    """The two diagnoses side by side; each leads to its own page."""
    _ = screen.reader
    cards = []
    for title, (answer, window) in zip((_("The other window"), _("This window")), pair, strict=True):
        found = answer.diagnosis
        rows = [
            tag("li", icon(kind(v)), " ", tag("span", _.tell(ROWS[v.row])), ": ", tag("b", _.tell(STATES[v.state])), cls=kind(v))
            for v in found.verdicts
        ]
        href = links.url("", versus.other_view(screen.view, window))
        when = tag("a", _.window(window.start, window.end), href=href, target="_self")
        cards.append(
            tag("div", tag("div", title, cls="label"), when, tag("div", _.tell(found.headline), cls="name"), tag("ul", rows), cls="side")
        )
    show(tag("div", cards, cls="sides"))


def _table(found: Sequence[Contrast], _: Reader) -> Html:
    heads = (_("Figure"), _("Other window"), _("This window"), _("Change"), _("Effect"), _("Minutes"))
    head = tag("tr", [tag("th", words, cls="num" if place else None, scope="col") for place, words in enumerate(heads)])
    return tag("table", tag("thead", head), tag("tbody", [_line(c, _) for c in found]), cls="table contrasts")


def _line(c: Contrast, _: Reader) -> Html:
    return tag(
        "tr",
        tag("td", _.tell(c.title)),
        tag("td", _.figure(c.before, c.unit), cls="num"),
        tag("td", _.figure(c.after, c.unit), cls="num"),
        tag("td", _change(c, _), cls="num"),
        tag("td", _effect(c, _), cls="num"),
        tag("td", f"{c.minutes[0]} / {c.minutes[1]}", cls="num"),
        cls="moved" if c.moved else None,
    )


def _change(c: Contrast, _: Reader) -> str:
    """The difference as a part of what it was before."""
    if c.before is None or c.after is None:
        return "–"
    arrow = "↑" if c.after > c.before else "↓" if c.after < c.before else "="
    if not c.before or c.after == c.before:
        return arrow
    times = c.after / c.before
    return f"{arrow} {_.figure(times, 'times') if times >= _MANY_TIMES else _.figure(abs(times - 1.0), 'ratio')}"


def _effect(c: Contrast, _: Reader) -> str:
    """Cliff's delta in words and as a figure."""
    if c.effect is None:
        return _untold(c, _)
    size = abs(c.effect)
    words = _("none") if size < max(contrast.SOME, c.chance) else _("large") if size >= contrast.LARGE else _("medium")
    return f"{words} ({_.figure(c.effect, 'count')})"
