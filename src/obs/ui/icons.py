"""The signs of the four states: told apart by shape, not by colour."""

from __future__ import annotations

from obs.ui.markup import Html, tag
from obs.verdict import State, Verdict

_SHAPES = {
    "applies": ("M5 1H11L15 5V11L11 15H5L1 11V5Z", "M8 4V9M8 11.4V12"),  # octagon with an exclamation mark
    "suspected": ("M8 1.5L15 14H1Z", "M8 6V10M8 11.8V12.3"),  # triangle
    "follows": ("", "M3 2V9H12M9 5.5L12.5 9L9 12.5"),  # an arrow that turns off
    "clear": ("", "M2.5 8.5L6.5 12.5L13.5 4"),  # check mark
    "unknown": ("", "M5.2 5.6C5.2 2 10.8 2 10.8 5.6C10.8 7.8 8 7.8 8 10M8 12.6V13.2"),  # question mark
}


def kind(verdict: Verdict) -> str:
    """What the eye should tell apart: the state, and `follows` for a row that is only another one's consequence."""
    if verdict.follows_from and verdict.state in (State.APPLIES, State.SUSPECTED):
        return "follows"
    return verdict.state.value


def icon(name: str) -> Html:
    """The sign, one line of text high."""
    fill, stroke = _SHAPES[name]
    return tag(
        "svg",
        tag("path", d=fill, cls="fill") if fill else None,
        tag("path", d=stroke, cls="stroke"),
        viewBox="0 0 16 16",
        aria_hidden="true",
        cls=f"icon {name}",
    )
