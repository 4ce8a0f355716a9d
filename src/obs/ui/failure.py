"""What stands in the place of an answer that could not be had: a sentence that says what happened and what to do. Never a traceback."""

from __future__ import annotations

import logging

from obs.text import Message, Sentences
from obs.ui.icons import icon
from obs.ui.markup import show, tag
from obs.ui.reader import Reader

log = logging.getLogger(__name__)


def failed(says: Message | Sentences, _: Reader) -> None:
    """The sentence, in place of the part concerned. It says that nothing is known, so that nobody reads it as all clear."""
    _alert(_("No answer: nothing is known about this window."), _.tell(says))


def unexpected(error: Exception, _: Reader) -> None:
    """A fault of our own: logged with its traceback, said without."""
    log.error("the page failed", exc_info=error)
    _alert(
        _("This page failed: nothing is known about this window."),
        _("That is a fault in obs. The log of the process that serves this page has the details; please report them."),
    )


def _alert(title: str, words: str) -> None:
    heading = tag("div", icon("unknown"), tag("span", title), cls="name", role="heading", aria_level=1)
    show(tag("div", heading, tag("p", words), cls="failed", role="alert"))


def noted(notes: tuple[Message, ...], _: Reader) -> None:
    """What the reader should know beside the answer."""
    if notes:
        show(tag("ul", [tag("li", _.tell(note)) for note in notes], cls="notes", role="status"))
