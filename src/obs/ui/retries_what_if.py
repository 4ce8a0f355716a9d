"""A small calculator: what reaches the engines if each layer retries so many times. Its figures stay on the page, not in the link."""

from __future__ import annotations

import streamlit as st

from obs import inside, retries_flow
from obs.amplification import MOST_LAYERS, MOST_RETRIES, amplification
from obs.facts import Facts
from obs.question import Figure
from obs.retries_flow import Layer
from obs.series import worst
from obs.text import Quantity, say
from obs.ui import page
from obs.ui.markup import show, tag
from obs.ui.screen import Screen

RETRIES = 2  # of a layer that nobody set: as the OpenAI library makes them
FAILING = 0.5  # where no gateway tells


def draw(screen: Screen, facts: Facts, found: tuple[Layer, ...]) -> None:
    """Three numbers to change, and what follows from them; not on a wall screen, where nobody can."""
    _ = screen.reader
    if screen.view.kiosk:
        return
    window = inside.inside(facts)
    measured = retries_flow.failing(facts, window)
    with st.container(key="panel-what-if"):
        told = (
            _("Measured in this window: {part} of the attempts fail.", part=Quantity(measured, "ratio"))
            if measured is not None
            else _("How many attempts fail is not measured: choose a rate.")
        )
        note = _(
            "Layers stand one behind the other, and each retries what fails. In an overload attempts fail together: then it is the worst."
        )
        head = tag("div", _("What if each layer retried so many times?"), cls="title", role="heading", aria_level=2)
        show(tag("div", head, tag("div", note, " ", told, cls="note"), cls="panel"))
        columns = st.columns(3, gap="small")
        layers = columns[0].number_input(
            _("Layers that retry"), 1, MOST_LAYERS, min(MOST_LAYERS, max(1, len(found)) + 1), key="what-if-layers"
        )
        retries = columns[1].number_input(_("Retries of each"), 0, MOST_RETRIES, RETRIES, key="what-if-retries")
        percent = columns[2].number_input(
            _("Attempts that fail, in %"), 0.0, 100.0, round(100 * (FAILING if measured is None else measured), 1), 5.0, "%.1f",
            key=f"what-if-failing-{screen.view.start}-{screen.view.end}",  # another window, another rate
        )  # fmt: skip
        page.stats(_figures(facts, found, int(layers), int(retries), float(percent) / 100), screen)


def _figures(facts: Facts, found: tuple[Layer, ...], layers: int, retries: int, failing: float) -> tuple[Figure, ...]:
    made = amplification(layers, retries, failing)
    budget = 1 + facts.limit("retry_ratio")
    rate = Quantity(failing, "ratio")
    figures = [
        Figure(say("At the worst, every attempt fails"), made.worst, "times", say("attempts for each request")),
        Figure(say("If {rate} of the attempts fail", rate=rate), made.expected, "times", say("attempts for each request")),
        Figure(say("Requests that fail all the same"), made.failed, "ratio", say("at that rate, if attempts fail independently")),
        Figure(
            say("With a retry budget instead"), budget, "times", say("at most, whatever fails: one layer that retries, within its budget")
        ),
    ]
    originals = worst(found[0].originals[inside.inside(facts)][None, :], axis=1)[0] if found else float("nan")
    if originals == originals:
        words = say("from {originals} requests, the most in this window", originals=Quantity(float(originals), "per_second"))
        figures.append(Figure(say("Attempts per second, at the worst"), float(originals) * made.worst, "per_second", words))
    return tuple(figures)
