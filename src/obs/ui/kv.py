"""The KV cache page: is KV space short, and for whom?"""

from __future__ import annotations

import numpy as np
import streamlit as st

from obs import kv, kv_relations, kv_room
from obs.course import Course
from obs.facts import Facts
from obs.histogram import Side
from obs.series import total_of
from obs.text import Message, Quantity, say
from obs.ui import page
from obs.ui.markup import Html, show, tag
from obs.ui.panel import panel, threshold
from obs.ui.reader import Reader
from obs.ui.scatter import Axis, scatter
from obs.ui.screen import Screen

ROW = "latency_without_errors"


def draw(screen: Screen) -> None:
    """The page, or the sentence that stands in its place."""
    _ = screen.reader
    answer = page.begin(screen, _("Is KV space short, and for whom?"))
    if answer is None:
        return
    facts = answer.courses.facts
    page.says(kv.answer(facts), screen)
    first, second = st.columns(2, gap="small"), st.columns(2, gap="small")
    with first[0]:
        _replicas(screen, facts, "kv_use", _("KV cache use, by replica"), "ratio", limit="kv_use")
    with first[1]:
        _replicas(screen, facts, "preemptions", _("Preemptions per second, by replica"), "per_second", limit="preemptions")
    with second[0]:
        _waiting(screen, facts)
    with second[1]:
        _replicas(screen, facts, "requests_running", _("Running requests, by replica"), "count")
    panel(
        screen, "kv-per-request", _("Preemptions per completed request, by replica"), Course(_names(facts), kv.per_request(facts)), "count",
        signals=("preemptions", "requests_finished"), row=ROW,
        note=_("Over five minutes. At 1, each request is preempted once before it is done, and what was computed is computed again."),
    )  # fmt: skip
    if (room := kv_room.room(facts)) is not None:
        show(_room(room, _))
    _relations(screen, facts)


def _names(facts: Facts) -> tuple[str, ...]:
    return tuple(replica.name for replica in facts.readings.replicas)


def _replicas(screen: Screen, facts: Facts, signal: str, title: str, unit: str, limit: str | None = None) -> None:
    rules = (threshold(screen, limit),) if limit else ()
    lines = Course(_names(facts), facts.values(signal))
    panel(screen, signal.replace("_", "-"), title, lines, unit, signals=(signal,), row=ROW, rules=rules)


def _waiting(screen: Screen, facts: Facts) -> None:
    """What the queue waits for where the engine tells; else how long it is."""
    _ = screen.reader
    parts = ("requests_waiting_capacity", "requests_waiting_deferred")
    if not facts.has(parts[0]):
        _replicas(screen, facts, "requests_waiting", _("Waiting requests, by replica"), "count", limit="waiting")
        return
    lines = Course((_("for capacity"), _("deferred")), np.stack([total_of(facts.values(part)) for part in parts]))
    panel(
        screen, "waiting", _("Waiting requests, by reason"), lines, "count", signals=("requests_waiting", *parts), replicas=False,
        form="stack", row=ROW,
    )  # fmt: skip


def _room(room: kv_room.Room, _: Reader) -> Html:
    """What the capacity allows, as a table."""
    answer = Quantity(room.answer if room.answer is not None else float("nan"), "tokens")
    heads = (
        _("At the length of"), _("Prompt length"), _("Fit at once, prompts alone"), _("with the mean answer of {answer}", answer=answer),
    )  # fmt: skip
    rows = [
        tag(
            "tr",
            tag("td", _.tell(fit.title)),
            tag("td", _.tell(fit.length.says("tokens")), cls="number"),
            *(tag("td", _.tell(_count(fit.length.side, count)), cls="number") for count in (fit.by_prompt, fit.with_answer)),
        )
        for fit in room.fits
    ]
    title = _("What {capacity} of KV space allow on one replica", capacity=Quantity(room.capacity, "tokens"))
    note = _("A request holds its prompt from the start and one token more with each step: the truth wanders from the first to the second.")
    return tag(
        "section",
        tag("div", title, cls="title", role="heading", aria_level=2),
        tag("div", note, cls="note"),
        tag("table", tag("thead", tag("tr", [tag("th", head) for head in heads])), tag("tbody", rows), cls="table fits"),
        cls="panel sheet",
    )


def _count(side: Side, count: float | None) -> Message:
    """How many fit: fewer of what is longer than a bound, more of what is shorter."""
    figure = Quantity(count if count is not None else float("nan"), "count")
    if count is None or side is Side.WITHIN:
        return Message("{figure}", {"figure": figure})
    return say("at most {figure}", figure=figure) if side is Side.MORE_THAN else say("at least {figure}", figure=figure)


def _relations(screen: Screen, facts: Facts) -> None:
    _ = screen.reader
    found = kv_relations.relations(facts)
    if found is None:
        return
    words = _(
        "One dot for each {length} on {replica}, the replica with most preemptions. A relation is no cause: all of them rise with load. "
        "vLLM counts a prompt's length when its request is finished, so it may come late.",
        length=Quantity(found.seconds, "seconds"), replica=found.replica,
    )  # fmt: skip
    titles = {
        "prompt_length": _("Preemptions against prompt length"),
        "requests_running": _("Preemptions against active sequences"),
        "kv_use": _("Preemptions against KV cache use"),
    }
    head = tag("div", _("What goes with the preemptions"), cls="title", role="heading", aria_level=2)
    show(tag("div", head, tag("div", words, cls="note"), cls="panel sheet-head"))
    for column, item in zip(st.columns(3, gap="small"), found.items, strict=True):
        title = titles[item.signal]
        with column:
            rate = Axis(_("Preemptions"), "per_second", item.y)
            signals = ("preemptions", item.signal)
            name = f"relation-{item.signal.replace('_', '-')}"
            scatter(screen, name, title, Axis(_.tell(item.title), item.unit, item.x), rate, item.times, _.tell(item.says), signals)
