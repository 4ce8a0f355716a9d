"""The planner's inputs: a model, a GPU and an engine's settings, preset by the window and kept in the link once somebody changes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from obs import gpu_live
from obs.errors import CallError
from obs.facts import Facts
from obs.gpu_use import Use
from obs.memory import choice
from obs.memory.choice import FILE, GIVEN, MEASURED, Choice
from obs.memory.dtype import KV_BYTES, WEIGHT_DTYPES
from obs.memory.fields import MOST_CHARACTERS
from obs.memory.listed import gpus, models
from obs.memory.plan import Plan, plan
from obs.text import Message
from obs.ui import address
from obs.ui.failure import noted
from obs.ui.markup import show, tag
from obs.ui.reader import Reader
from obs.ui.screen import Screen

_TENSOR, _PIPELINE = (1, 2, 4, 8, 16, 32), (1, 2, 3, 4, 6, 8)
_KEYS = {name: f"plan_{name}" for name in (
    "model", "weights", "kv", "gpu", "gib", "share", "tensor", "pipeline", "tokens", "seqs", "longest", "at_once", "config",
)}  # fmt: skip
_OF, _FILE = "plan_of", "plan_file"
Changed = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """The plan that the inputs name, or the sentence that says what is wrong with them."""

    choice: Choice
    plan: Plan | None
    wrong: Message | None = None


def wanted(facts: Facts, use: Use | None, screen: Screen) -> Wanted:
    """Draws the inputs and makes the plan. What a person changes becomes part of the link, whole."""
    _, view = screen.reader, screen.view
    preset = gpu_live.preset(facts, use)
    chosen, notes = choice.read(view.plan, preset) if view.plan else (preset, ())
    noted(notes, _)
    fresh = st.session_state.get(_OF) != (view.plan, None if view.plan else preset)
    st.session_state[_OF] = (view.plan, None if view.plan else preset)
    for name, key in _KEYS.items():  # a control shows the link, and a person's half-typed figure stays while that is the same
        if (fresh and (name != "config" or chosen.config)) or key not in st.session_state:
            st.session_state[key] = getattr(chosen, name)

    def changed(name: str) -> None:
        address.go(replace(view, plan=choice.written(_typed(chosen, name, use))))

    _model(chosen, _, changed)
    _sizes(chosen, use, _, changed)
    if chosen.model == FILE and not chosen.config:  # what is no config.json, or too long for a link, is here only
        chosen = replace(chosen, config=str(st.session_state[_KEYS["config"]]))
    try:
        made = plan(gpu_live.setup(chosen, facts, use))
    except CallError as error:
        return Wanted(chosen, None, error.says)
    if chosen.model == FILE and not choice.packed(chosen.config):
        show(tag("div", _("This config.json is too long for a link: whoever opens yours must paste it again."), cls="note"))
    return Wanted(chosen, made)


def _typed(before: Choice, name: str, use: Use | None) -> Choice:
    """The choice as it stands in the inputs after one of them was changed: another model or GPU brings its own presets."""
    state: dict[str, Any] = {each: st.session_state[key] for each, key in _KEYS.items() if each != "gib" or key in st.session_state}
    after = replace(before, **state)
    if name == "model":
        return gpu_live.of_model(replace(after, weights="", runs=False))
    if name == "config":
        return gpu_live.of_model(replace(after, runs=False))
    return gpu_live.of_card(after, use) if name == "gpu" else after


def _model(chosen: Choice, _: Reader, changed: Changed) -> None:
    """A model of the list, or a config.json; and its dtypes."""
    first, second, third = st.columns([2, 1, 1], gap="small")
    titles = {id_: shape.name for id_, shape in models().items()} | {FILE: _("another: its config.json")}
    weights = {"": _("as published"), **{dtype.id: dtype.title for dtype in WEIGHT_DTYPES}}
    _select(first, _("Model"), list(titles), "model", changed, titles.__getitem__)
    _select(second, _("Weight dtype"), list(weights), "weights", changed, weights.__getitem__)
    _select(third, _("KV cache dtype"), list(KV_BYTES), "kv", changed, str.upper)
    if chosen.model != FILE:
        return
    pasted = st.session_state[_KEYS["config"]]
    first.text_area(_("Paste the model's config.json"), pasted, key=_KEYS["config"], height=120, on_change=changed, args=("config",))

    def taken() -> None:
        if (file := st.session_state[_FILE]) is not None:
            st.session_state[_KEYS["config"]] = _read(file.getvalue())
            changed("config")

    first.file_uploader(_("or upload it"), type="json", key=_FILE, max_upload_size=1, on_change=taken)


def _read(data: bytes) -> str:
    """The text of an uploaded file; of what is none, a text that no config.json is."""
    if len(data) > 4 * MOST_CHARACTERS:
        return " " * (MOST_CHARACTERS + 1)
    return data.decode("utf-8-sig", "replace")


def _sizes(chosen: Choice, use: Use | None, _: Reader, changed: Changed) -> None:
    """The card, the split over cards, and the engine's settings."""
    second, third = st.columns(4, gap="small"), st.columns(4, gap="small")
    _gpu(second[0], chosen, use, _, changed)
    _number(second[1], "gpu_memory_utilization", 0.01, 1.0, 0.01, "share", changed)
    for column, name, title, options in (
        (second[2], "tensor", _("Tensor parallelism"), _TENSOR), (second[3], "pipeline", _("Pipeline parallelism"), _PIPELINE),
    ):  # fmt: skip
        _select(column, title, sorted({*options, getattr(chosen, name)}), name, changed)
    for column, name, title, most, step in (
        (third[0], "tokens", "max_num_batched_tokens", 10_000_000, 1024), (third[1], "seqs", "max_num_seqs", 100_000, 16),
        (third[2], "longest", "max_model_len", 100_000_000, 1024), (third[3], "at_once", _("Sequences at once"), 100_000, 1),
    ):  # fmt: skip
        _number(column, title, 1, most, step, name, changed)


def _gpu(here: DeltaGenerator, chosen: Choice, use: Use | None, _: Reader, changed: Changed) -> None:
    """What the exporter shows first, where there is one."""
    measured = use.total if use is not None else None
    titles = {id_: card.name for id_, card in gpus().items()}
    if measured is not None or chosen.gpu == MEASURED:
        size = _.figure(measured, "binary_bytes") if measured is not None else _("not measured")
        titles = {MEASURED: _("as measured: {size}", size=size), **titles}
    titles[GIVEN] = _("another: its GiB")
    _select(here, _("GPU"), list(titles), "gpu", changed, titles.__getitem__)
    if chosen.gpu == GIVEN:
        _number(here, _("GPU memory, GiB"), 1.0, 10_000.0, 1.0, "gib", changed)


# A field has its figure twice: what the state says may be lost on its way to a field that the browser, where it is slow, is still
# loading the code for; then the field shows what it begins with.


def _select(at: DeltaGenerator, title: str, options: list[Any], name: str, changed: Changed, words: Callable[[Any], str] = str) -> None:
    value = st.session_state[_KEYS[name]]
    first = options.index(value) if value in options else None
    at.selectbox(title, options, first, key=_KEYS[name], format_func=words, on_change=changed, args=(name,))


def _number(at: DeltaGenerator, title: str, least: float, most: float, step: float, name: str, changed: Changed) -> None:
    at.number_input(title, least, most, st.session_state[_KEYS[name]], step, key=_KEYS[name], on_change=changed, args=(name,))


def runs(chosen: Choice, facts: Facts) -> bool:
    """Whether the plan is of the model that runs: by the engines' name for it, or because somebody said so."""
    return chosen.runs or (chosen.model != FILE and gpu_live.guessed(facts) == chosen.model)
