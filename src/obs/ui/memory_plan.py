"""What a plan says on the page: whether it fits, what fills the GPU, what each sequence takes, and how it stands against the engine."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from obs import gpu_live
from obs.errors import SourceError
from obs.facts import Facts
from obs.gpu_use import Use, planned
from obs.memory.choice import Choice, written
from obs.memory.compare import Stands, compare
from obs.memory.figure import Band, Figure
from obs.memory.listed import models
from obs.memory.plan import Fits, Plan
from obs.text import Names, Quantity
from obs.ui import address, drafts, memory_planner
from obs.ui.bar import escaped
from obs.ui.icons import icon
from obs.ui.markup import Html, show, tag
from obs.ui.memory_bar import bar, origin, table
from obs.ui.reader import Reader
from obs.ui.screen import Screen

_LOOKS = {Fits.YES: "clear", Fits.PERHAPS: "suspected", Fits.TOO_LONG: "applies", Fits.NO: "applies"}
_STANDS = {Stands.WITHIN: "clear", Stands.ABOVE: "suspected", Stands.BELOW: "suspected", Stands.UNKNOWN: "unknown"}


def drawn(plan: Plan, _: Reader) -> Html:
    """The plan."""
    look = _LOOKS[plan.fits]
    return tag(
        "div",
        tag("div", icon(look), tag("span", _.tell(plan.says)), cls=f"fits-line {look}", role="status"),
        tag(
            "div",
            _("One of {n} GPUs, the tightest", n=plan.setup.parallel.gpus) if plan.setup.parallel.gpus > 1 else _("The GPU"),
            cls="label",
        ),
        bar(planned(plan), _),
        table(planned(plan), _),
        _model(plan, _),
        _sequences(plan, _),
        tag("ul", [tag("li", _.tell(note)) for note in plan.setup.shape.notes], cls="advice") if plan.setup.shape.notes else None,
        cls="plan panel",
    )


def _model(plan: Plan, _: Reader) -> Html:
    """The whole model's figures, which no GPU changes."""
    shown: list[tuple[str, Figure | Band]] = [(_("Weights, whole model"), plan.weights)]
    if plan.weights_nominal is not None:
        shown.append((_("Weights, by the rule of thumb"), plan.weights_nominal))
    shown += [
        (_("KV cache of a token"), plan.token),
        (_("KV cache, capacity"), plan.capacity),
        (_("Longest single sequence"), plan.longest),
        (_("Head-room with {n} sequences", n=plan.setup.sequences), plan.headroom),
    ]
    cells = [
        tag(
            "div",
            tag("div", name, cls="label"),
            tag("div", _.tell(size.says), cls="amount"),
            origin(size, _),
            tag("div", _.tell(size.how), cls="how"),
            cls="item",
        )
        for name, size in shown
    ]
    return tag("div", cells, cls="items")


def _sequences(plan: Plan, _: Reader) -> Html:
    heads = [_("Length"), _("Tokens"), _("KV cache of one"), _("On the tightest GPU"), _("Fit at once"), _("and run, by max_num_seqs")]
    rows = [
        tag(
            "tr",
            tag("th", fit.length.label, scope="row"),
            tag("td", _.figure(fit.length.tokens, "count"), cls="number", data_head=heads[1]),
            tag("td", _.tell(fit.each.says), cls="number", data_head=heads[2]),
            tag("td", _.tell(fit.each_on_gpu.says), cls="number", data_head=heads[3]),
            tag("td", _.tell(fit.sequences.says), cls="number", data_head=heads[4]),
            tag("td", _.tell(fit.running.says), cls="number", data_head=heads[5]),
        )
        for fit in plan.lengths
    ]
    seen = _("Lengths seen in this window: a prompt and the mean answer. ≤ and > are bounds: the histogram tells no more.")
    note = seen if plan.setup.lengths else _("No lengths were seen in this window: the longest that the engine accepts is planned for.")
    title = tag("div", _("Sequences that fit"), cls="label")
    head = tag("thead", tag("tr", [tag("th", words, scope="col") for words in heads]))
    return tag("div", title, tag("div", note, cls="note"), tag("table", head, tag("tbody", rows), cls="table fits lengths"))


def against(plan: Plan, chosen: Choice, facts: Facts, use: Use | None, screen: Screen) -> None:
    """The plan against what the engine shows, where its model is the one that runs; else which one runs, and how to plan that."""
    _ = screen.reader
    title = tag("div", _("Against the engine"), cls="label")
    if memory_planner.runs(chosen, facts):
        show(tag("div", title, _compared(plan, facts, screen), cls="plan panel"))
    else:
        show(tag("div", title, tag("div", _foreign(plan, facts, _), cls="note foreign"), cls="plan panel"))
    _ways(chosen, facts, use, screen)


def _foreign(plan: Plan, facts: Facts, _: Reader) -> str:
    """Why nothing is compared."""
    names, model = gpu_live.names(facts), plan.setup.shape.name
    if not names:
        return _("Not compared: no engine in view tells which model it runs.")
    if len(names) > 1:
        return _("Not compared: several models run in view, {names}. Choose one of them under Scope.", names=Names(names))
    return _("Not compared: {name} runs here, and this plan is for {model}.", name=Names(names), model=model)


def _ways(chosen: Choice, facts: Facts, use: Use | None, screen: Screen) -> None:
    """To the plan of what runs; or to say that this is what runs, where no name tells."""
    _, view, guess = screen.reader, screen.view, gpu_live.guessed(facts)
    if guess is not None:
        if guess != chosen.model:
            target = replace(view, plan=written(gpu_live.preset(facts, use)))
            words = _("Plan {model}, which runs here", model=models()[guess].name)
            st.button(escaped(words), key="plan_running", on_click=address.go, args=(target,))
        return
    if len(gpu_live.names(facts)) > 1:
        return
    st.session_state["plan_runs"] = chosen.runs

    def said() -> None:
        address.go(replace(view, plan=written(replace(chosen, runs=bool(st.session_state["plan_runs"])))))

    st.checkbox(_("This plan is for the model that runs here, under another name"), chosen.runs, key="plan_runs", on_change=said)


def _compared(plan: Plan, facts: Facts, screen: Screen) -> list[Html | None]:
    """The capacity, of several replicas that of the one that holds the least, and what explains a difference."""
    _, window, unread = screen.reader, screen.window, None
    try:
        infos = drafts.seen(screen.view, window, screen.now, facts.readings).infos if window is not None else ()
    except SourceError as error:
        infos, unread = (), _("What the engine's labels say could not be read: {reason}", reason=error.says)
    found = compare(plan, gpu_live.level(facts, "kv_capacity_tokens"), gpu_live.engine(infos, facts))
    look = _STANDS[found.stands]
    difference = None
    if found.difference is not None and found.difference.value:
        size = Quantity(abs(found.difference.value) * plan.token_on_gpu.value, "binary_bytes")
        difference = tag("div", _("The difference is {size} on each GPU.", size=size), cls="note")
    return [
        tag("div", icon(look), tag("span", _.tell(found.says)), cls=f"fits-line small {look}"),
        difference,
        tag("div", unread, cls="note") if unread else None,
        tag("ul", [tag("li", _.tell(reason)) for reason in found.reasons], cls="advice") if found.reasons else None,
    ]
