"""The planner: a model, a GPU and an engine's settings in; weights, KV cache and what fits out, held against what the engine shows."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from obs import gpu_live
from obs.errors import CallError
from obs.facts import Facts
from obs.gpu_use import Use
from obs.memory.config_json import from_config
from obs.memory.dtype import KV_BYTES, WEIGHT_DTYPES
from obs.memory.fields import MOST_CHARACTERS
from obs.memory.figure import GIB
from obs.memory.figure import Figure as Size
from obs.memory.kv import KvCache
from obs.memory.listed import Gpu, gpus, model, models
from obs.memory.plan import Plan, plan
from obs.memory.setup import Setup, default_limits, given_gpu, listed_gpu, measured_gpu
from obs.memory.shape import ModelShape
from obs.memory.split import Parallel
from obs.text import Message, say
from obs.ui.reader import Reader

FILE, MEASURED, GIVEN = "config.json", "measured", "given"
_TENSOR, _PIPELINE = (1, 2, 4, 8, 16, 32), (1, 2, 3, 4, 6, 8)
_DEFAULT_MODEL, _DEFAULT_GPU = "llama-3.1-70b", "h100-80gb"


@dataclass(frozen=True)
class Wanted:
    """The plan that the widgets name, or the sentence that says what is wrong with them. `told`: its model is what runs, by the engine's
    name for it or because somebody chose it; else it is an example."""

    plan: Plan | None
    wrong: Message | None = None
    told: bool = False


def wanted(facts: Facts, use: Use | None, _: Reader) -> Wanted:
    """Draws the widgets and makes the plan."""
    try:
        made = plan(_setup(facts, use, _))
    except CallError as error:
        return Wanted(None, error.says)
    return Wanted(made, told=gpu_live.guessed(facts) is not None or st.session_state.get("plan_model", _DEFAULT_MODEL) != _DEFAULT_MODEL)


def _setup(facts: Facts, use: Use | None, _: Reader) -> Setup:
    first, second, third = st.columns([2, 1, 1], gap="small"), st.columns(4, gap="small"), st.columns(4, gap="small")
    with first[0]:
        shape = _shape(facts, _)
    with first[1]:
        weights = _weights(_)
    with first[2]:
        kv = st.selectbox(_("KV cache dtype"), list(KV_BYTES), index=1, key="plan_kv", format_func=str.upper)
    with second[0]:
        card, gpu = _gpu(use, _)
    share = gpu_live.level(facts, "gpu_memory_share")
    with second[1]:
        given = 0.9 if share is None else round(share, 3)
        utilization = st.number_input("gpu_memory_utilization", 0.01, 1.0, min(1.0, max(0.01, given)), 0.01, key="plan_share")
    with second[2]:
        tensor = st.selectbox(_("Tensor parallelism"), _TENSOR, key="plan_tensor", index=2 if shape.parameters > 5e10 else 0)
    with second[3]:
        pipeline = st.selectbox(_("Pipeline parallelism"), _PIPELINE, key="plan_pipeline")
    batched, slots = default_limits(card) if card is not None else (8192, 256)
    with third[0]:
        tokens = st.number_input("max_num_batched_tokens", 1, 10_000_000, batched, 1024, key="plan_tokens")
    with third[1]:
        seqs = st.number_input("max_num_seqs", 1, 100_000, slots, 16, key="plan_seqs")
    with third[2]:
        longest = st.number_input("max_model_len", 1, 100_000_000, shape.context or 4096, 1024, key=f"plan_len_{shape.context}")
    with third[3]:
        at_once = st.number_input(_("Sequences at once"), 1, 100_000, gpu_live.running(facts), 1, key="plan_at_once")
    return Setup(
        shape, gpu, weights=weights, kv=KvCache(kv), parallel=Parallel(tensor, pipeline), gpu_memory_utilization=float(utilization),
        max_num_batched_tokens=int(tokens), max_num_seqs=int(seqs), max_model_len=int(longest), lengths=gpu_live.lengths(facts),
        sequences=int(at_once),
    )  # fmt: skip


def _shape(facts: Facts, _: Reader) -> ModelShape:
    """A model of the list, the one that the engines' name means first; or a config.json."""
    known = models()
    options = [*known, FILE]
    guess = gpu_live.guessed(facts)
    titles = {id_: shape.name for id_, shape in known.items()} | {FILE: _("another: its config.json")}
    chosen = st.selectbox(
        _("Model"), options, index=options.index(guess or _DEFAULT_MODEL), key="plan_model", format_func=titles.__getitem__
    )
    if chosen != FILE:
        return model(chosen)
    text = st.text_area(_("Paste the model's config.json"), key="plan_json", height=120)
    file = st.file_uploader(_("or upload it"), type="json", key="plan_file", max_upload_size=1)
    return from_config(_read(file.getvalue()) if file is not None else text)


def _read(data: bytes) -> str:
    """The text of an uploaded file. Raises `CallError` where it is none."""
    if len(data) > 4 * MOST_CHARACTERS:
        raise CallError(say("This file is far larger than a config.json. Upload the config.json of the model, nothing else."))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CallError(say("This file is no text. Upload the config.json of the model, nothing else.")) from error


def _weights(_: Reader) -> str:
    titles = {"": _("as published"), **{dtype.id: dtype.title for dtype in WEIGHT_DTYPES}}
    return str(st.selectbox(_("Weight dtype"), list(titles), key="plan_weights", format_func=titles.__getitem__))


def _gpu(use: Use | None, _: Reader) -> tuple[Gpu | None, Size]:
    """(the card of the list, its memory): what the exporter shows first, where there is one."""
    known = gpus()
    measured = use.total if use is not None else None
    titles = {id_: card.name for id_, card in known.items()}
    options = list(known)
    if measured is not None:
        titles[MEASURED] = _("as measured: {size}", size=_.figure(measured, "binary_bytes"))
        options.insert(0, MEASURED)
    titles[GIVEN] = _("another: its GiB")
    options.append(GIVEN)
    index = 0 if measured is not None else options.index(_DEFAULT_GPU)
    chosen = st.selectbox(_("GPU"), options, index=index, key=f"plan_gpu_{measured is not None}", format_func=titles.__getitem__)
    if chosen == MEASURED and measured is not None:
        return min(known.values(), key=lambda card: abs(card.gib * GIB - measured)), measured_gpu(measured)
    if chosen == GIVEN:
        return None, given_gpu(float(st.number_input(_("GPU memory, GiB"), 1.0, 10_000.0, 80.0, 1.0, key="plan_gib")))
    return known[chosen], listed_gpu(known[chosen])
