"""When each row applied: one lane a row over the whole window, on the time axis that all small lines share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from obs import links, strokes
from obs.links import View
from obs.text import Message
from obs.titles import PRIMARIES, ROWS, STATES
from obs.ui.icons import icon, kind
from obs.ui.markup import Html, tag
from obs.ui.reader import Reader
from obs.verdict import Diagnosis, Episode, State, Verdict

_TICKS = 7  # at most, so that labels do not touch on a phone


def strip(diagnosis: Diagnosis, _: Reader) -> Html:
    """The four lanes, and the times under them."""
    lanes = [_lane(verdict, diagnosis, _) for verdict in diagnosis.verdicts]
    return tag("div", lanes, axis(diagnosis.start, diagnosis.end, _), cls="strip", role="img", aria_label=_spoken(diagnosis, _))


def thin(diagnosis: Diagnosis, view: View, _: Reader) -> Html:
    """The four lanes as one thin band, for the pages beside the diagnosis: the name of a row on hover, the answer as a link to it."""
    lanes = []
    for verdict in diagnosis.verdicts:
        look = kind(verdict) + (" primary" if diagnosis.primary == verdict.row else "")
        blocks = [_block(episode, look, diagnosis, _, ROWS[verdict.row]) for episode in verdict.episodes]
        words = f"{_.tell(ROWS[verdict.row])}: {_.tell(STATES[verdict.state])}"
        lanes.append(tag("span", blocks, cls="lane unjudged" if verdict.state is State.UNKNOWN else "lane", title=words))
    primary = next((verdict for verdict in diagnosis.verdicts if verdict.row == diagnosis.primary), None)
    look = kind(primary) if primary else "clear" if diagnosis.primary == "none" else "unknown"
    href = links.url("", replace(view, page="", row=primary.row if primary else None))
    link = tag("a", icon(look), tag("span", _.tell(PRIMARIES[diagnosis.primary])), href=href, target="_self", cls=f"where {look}")
    return tag("div", link, tag("div", lanes, cls="lanes", role="img", aria_label=_spoken(diagnosis, _)), cls="thin")


def _lane(verdict: Verdict, diagnosis: Diagnosis, _: Reader) -> Html:
    look = kind(verdict)
    primary = " primary" if diagnosis.primary == verdict.row else ""
    spans = [_block(episode, look + primary, diagnosis, _) for episode in verdict.episodes]
    ground = "unjudged" if verdict.state is State.UNKNOWN else ""
    return tag(
        "div",
        tag("span", icon(look), tag("span", _.tell(ROWS[verdict.row])), cls=f"lane-name {look}{primary}"),
        tag("span", spans, cls=f"lane {ground}"),
        cls="lane-row",
    )


def _block(episode: Episode, look: str, diagnosis: Diagnosis, _: Reader, row: Message | None = None) -> Html:
    left, right = (across(at, diagnosis.start, diagnosis.end) for at in (episode.start, episode.end))
    label = _.length((episode.end if episode.end is not None else diagnosis.end) - episode.start)
    return tag(
        "span",
        tag("span", label) if right - left > 6 and row is None else None,
        cls=f"block {look}",
        style=f"left:{left:.2f}%;width:{max(right - left, 0.35):.2f}%",
        title=(f"{_.tell(row)}: " if row else "") + _.span(episode.start, episode.end),
    )


def across(at: float | None, start: float, end: float) -> float:
    """Where a moment stands between `start` and `end`, percent; None is the end."""
    return float(np.clip(((end if at is None else at) - start) / max(end - start, 1.0), 0, 1)) * 100


def ticks(start: float, end: float, _: Reader) -> list[float]:
    """Round times of the reader's zone within the window."""
    return strokes.ticks(start, end, _.zone, _TICKS)[1]


def axis(start: float, end: float, _: Reader) -> Html:
    """The times under lanes, and the zone that they are of."""
    marks = ticks(start, end, _)
    step = marks[1] - marks[0] if len(marks) > 1 else end - start
    long = end - start > 2 * 86400

    def words(at: float) -> str:
        return _.day(at) if long and (step >= 86400 or _.clock(at) == "00:00:00") else _.clock(at, step < 60)

    labels = [tag("span", words(at), style=f"left:{across(at, start, end):.2f}%") for at in marks if across(at, start, end) < 97]
    return tag("div", tag("span", _.zone, cls="lane-name zone"), tag("span", labels, cls="ticks"), cls="lane-row axis", aria_hidden="true")


def _spoken(diagnosis: Diagnosis, _: Reader) -> str:
    """The strip in words, for a screen reader."""
    told = [
        f"{_.tell(ROWS[verdict.row])}: {', '.join(_.span(e.start, e.end) for e in verdict.episodes)}"
        for verdict in diagnosis.verdicts
        if verdict.episodes
    ]
    return "; ".join(told) or _("No row applied in this window.")
