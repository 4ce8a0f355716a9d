"""The GPU memory page: what fills the GPU, and what would still fit?"""

from __future__ import annotations

import streamlit as st

from obs import gpu, gpu_events, gpu_live, gpu_use
from obs.course import Course
from obs.facts import Facts
from obs.gpu_use import Use
from obs.memory.figure import size_of
from obs.memory.plan import Plan
from obs.text import Names
from obs.ui import memory_bar, memory_events, memory_plan, memory_planner, page
from obs.ui.icons import icon
from obs.ui.markup import show, tag
from obs.ui.panel import panel, threshold
from obs.ui.screen import Screen

ROW = "gpu_oom"


def draw(screen: Screen) -> None:
    """The page, or the sentence that stands in its place."""
    _ = screen.reader
    answer = page.begin(screen, _("What fills the GPU, and what would still fit?"))
    if answer is None:
        return
    facts = answer.courses.facts
    page.says(gpu.answer(facts), screen)
    use = gpu_use.fullest(facts)
    now = st.container(key="panel-split")
    memory_events.draw(screen, gpu_events.lanes(facts))
    _charts(screen, facts)
    found = None if screen.view.kiosk else _planner(screen, facts, use)  # a wall screen has nothing to choose
    with now:
        _split(screen, use, found)


def _charts(screen: Screen, facts: Facts) -> None:
    """Use and what is free, by replica."""
    _ = screen.reader
    names = tuple(replica.name for replica in facts.readings.replicas)
    if not names:
        return
    left, right = st.columns(2, gap="small")
    with left:
        panel(
            screen, "gpu-memory", _("GPU memory used, the fullest GPU of each replica"), Course(names, facts.values("gpu_memory")), "ratio",
            signals=("gpu_memory",), row=ROW, rules=(threshold(screen, "gpu_memory"),),
        )  # fmt: skip
    with right:
        panel(
            screen, "gpu-free", _("GPU memory free, the least of each replica"), Course(names, facts.values("gpu_memory_free")), "bytes",
            signals=("gpu_memory_free",), row=ROW, low=True,
        )  # fmt: skip


def _planner(screen: Screen, facts: Facts, use: Use | None) -> Plan | None:
    """The planner; gives its plan where it is of the model that runs."""
    _ = screen.reader
    with st.container(key="panel-planner"):
        title = tag("div", _("Planner: what would fit"), cls="title", role="heading", aria_level=2)
        show(tag("div", title, tag("div", _note(facts, screen), cls="note"), cls="panel"))
        found = memory_planner.wanted(facts, use, screen)
        if found.plan is not None:
            show(memory_plan.drawn(found.plan, _))
            memory_plan.against(found.plan, found.choice, facts, use, screen)
        elif found.wrong is not None:
            show(tag("div", icon("unknown"), tag("span", _.tell(found.wrong)), cls="fits-line wrong", role="alert"))
    return found.plan if memory_planner.runs(found.choice, facts) else None


def _note(facts: Facts, screen: Screen) -> str:
    """What the planner starts with."""
    _, names = screen.reader, gpu_live.names(facts)
    if gpu_live.guessed(facts) is not None:
        return _("Nothing is changed by it. It starts with what runs now, and what you choose is part of the link.")
    if screen.view.plan or not names:
        return _("Nothing is changed by it. What you choose is part of the link.")
    return _(
        "Nothing is changed by it. {name} is none of the listed models: until you choose, this is an example. What you choose is part of "
        "the link.",
        name=Names(names),
    )


def _split(screen: Screen, use: Use | None, plan: Plan | None) -> None:
    """The GPU as it is; what the engine does not tell, as the planner's model has it."""
    _ = screen.reader
    title = tag("div", _("What fills the GPU now"), cls="title", role="heading", aria_level=2)
    parts = gpu_use.parts(use, plan) if use is not None else ()
    if use is None or not parts:
        why = _(
            "No exporter shows the GPU's memory, and the engine does not tell its split. The DCGM exporter would give the first, SGLang "
            "gives the second."
        )
        show(tag("div", title, tag("div", why, cls="nothing"), cls="panel"))
        return
    where = _("On {replica}, one GPU, at the end of the window.", replica=Names((use.replica,)))
    if use.total is not None:
        where = _("On {replica}, one GPU of {total}, at the end of the window.", replica=Names((use.replica,)), total=size_of(use.total))
    if not use.split and plan is not None:
        where += " " + _(
            "This engine does not tell its split: weights and a token's KV cache are those of {model}, as chosen below.",
            model=plan.setup.shape.name,
        )
    elif not use.split and not screen.view.kiosk:
        where += " " + _("This engine does not tell its split: choose the model that runs in the planner below, and it is computed.")
    fits = None
    if gpu_use.overfull(use, plan):
        words = _(
            "The chosen model's weights and KV cache are more than what is used: the engine runs another model, dtype or layout. Choose it "
            "below."
        )
        fits = tag("div", icon("suspected"), tag("span", words), cls="fits-line small suspected")
    show(tag("div", title, tag("div", where, cls="note"), memory_bar.bar(parts, _), memory_bar.table(parts, _), fits, cls="panel"))
