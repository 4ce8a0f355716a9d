"""When each row applied: one lane a row over the whole window, on the time axis that all small lines share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from obs import links
from obs.links import View
from obs.text import Message
from obs.titles import PRIMARIES, ROWS, STATES
from obs.ui.icons import icon, kind
from obs.ui.markup import Html, tag
from obs.ui.reader import Reader
from obs.verdict import Diagnosis, Episode, State, Verdict

_TICK_STEPS = (1, 5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000)
_TICKS = 7  # at most, so that labels do not touch on a phone


def strip(diagnosis: Diagnosis, _: Reader) -> Html:
    """The four lanes, and the times under them."""
    lanes = [_lane(verdict, diagnosis, _) for verdict in diagnosis.verdicts]
    return tag("div", lanes, _axis(diagnosis, _), cls="strip", role="img", aria_label=_spoken(diagnosis, _))


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
    left = _across(episode.start, diagnosis)
    right = _across(episode.end if episode.end is not None else diagnosis.end, diagnosis)
    label = _.length((episode.end if episode.end is not None else diagnosis.end) - episode.start)
    return tag(
        "span",
        tag("span", label) if right - left > 6 and row is None else None,
        cls=f"block {look}",
        style=f"left:{left:.2f}%;width:{max(right - left, 0.35):.2f}%",
        title=(f"{_.tell(row)}: " if row else "") + _.span(episode.start, episode.end),
    )


def _across(at: float, diagnosis: Diagnosis) -> float:
    span = max(diagnosis.end - diagnosis.start, 1.0)
    return float(np.clip((at - diagnosis.start) / span, 0, 1)) * 100


def ticks(start: float, end: float, _: Reader) -> list[float]:
    """Round times of the reader's zone within the window."""
    step = next((s for s in _TICK_STEPS if (end - start) / s <= _TICKS), _TICK_STEPS[-1])
    offset = _.moment(start).utcoffset()
    shift = offset.total_seconds() if offset else 0.0
    first = np.ceil((start + shift) / step) * step - shift
    return [float(at) for at in np.arange(first, end + 1, step)]


def _axis(diagnosis: Diagnosis, _: Reader) -> Html:
    marks = ticks(diagnosis.start, diagnosis.end, _)
    seconds = len(marks) > 1 and marks[1] - marks[0] < 60
    long = diagnosis.end - diagnosis.start > 2 * 86400
    labels = [
        tag("span", _.day(at) if long else _.clock(at, seconds), style=f"left:{_across(at, diagnosis):.2f}%")
        for at in marks
        if _across(at, diagnosis) < 97
    ]
    return tag("div", tag("span", _.zone, cls="lane-name zone"), tag("span", labels, cls="ticks"), cls="lane-row axis", aria_hidden="true")


def _spoken(diagnosis: Diagnosis, _: Reader) -> str:
    """The strip in words, for a screen reader."""
    told = [
        f"{_.tell(ROWS[verdict.row])}: {', '.join(_.span(e.start, e.end) for e in verdict.episodes)}"
        for verdict in diagnosis.verdicts
        if verdict.episodes
    ]
    return "; ".join(told) or _("No row applied in this window.")
