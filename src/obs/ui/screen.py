"""What one rerun shows: the view, its reader, and the answer or the sentence that stands in its place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import streamlit as st

from obs.links import View
from obs.source import About
from obs.text import Message
from obs.titles import PRIMARIES
from obs.ui.answer import Answer
from obs.ui.reader import Reader
from obs.window import Window

_KEY = "screen"


@dataclass(frozen=True)
class Screen:
    """`answer` or `failed` is set, not both; `window` and `about` are None where it failed before they were known."""

    view: View
    reader: Reader
    notes: tuple[Message, ...]
    about: About | None = None
    window: Window | None = None
    answer: Answer | None = None
    failed: Message | None = None
    past: tuple[Answer, float] | None = None  # where it failed: the last good answer of this view, and when it was made
    failing: float | None = None  # where it failed: since when there has been no answer
    now: float = 0.0  # Unix seconds that the answer was asked for at

    @property
    def moving(self) -> bool:
        """Whether the window moves by itself, so that the page refreshes."""
        return self.window is not None and self.window.live


def title(screen: Screen) -> str:
    """The tab's title: the verdict and the scope first, so that a row of tabs can be read."""
    _ = screen.reader
    verdict = _.tell(PRIMARIES[screen.answer.diagnosis.primary]) if screen.answer else _("No answer") if screen.failed else ""
    scope = ", ".join(value for _label, values in sorted(screen.view.scope.items()) for value in values)
    return " · ".join(part for part in (verdict, scope[:60], "obs") if part)


def keep(screen: Screen) -> None:
    """Hands the screen to the page that runs next."""
    st.session_state[_KEY] = screen


def lasting(screen: Screen) -> Screen:
    """Where the source fails: with the last good answer of this view in its place, so that a page keeps its figures. `failed` stays."""
    return replace(screen, answer=screen.past[0]) if screen.answer is None and screen.past is not None else screen


def current() -> Screen:
    """The screen of this rerun."""
    return cast(Screen, st.session_state[_KEY])
