"""The plan against the engine: does its KV capacity lie in the band, and if not, what explains the difference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from obs.memory.dtype import KV_BYTES, kv_dtype_of
from obs.memory.figure import Figure, Origin
from obs.memory.plan import Plan
from obs.text import Message, Names, Quantity, say


class Stands(StrEnum):
    """Where the engine's capacity lies."""

    WITHIN = "within"
    ABOVE = "above"
    BELOW = "below"
    UNKNOWN = "unknown"  # the engine shows no capacity


@dataclass(frozen=True)
class Live:
    """What an engine tells of its own cache (the labels of `vllm:cache_config_info`); None where it does not."""

    capacity_tokens: float | None = None
    block_size: int | None = None
    blocks: int | None = None
    utilization: float | None = None
    kv_dtype: str | None = None  # key of `KV_BYTES`
    fixed_bytes: float | None = None  # kv_cache_memory_bytes
    fixed_blocks: int | None = None  # num_gpu_blocks_override


def live_from_labels(labels: Mapping[str, str]) -> Live:
    """The labels as figures. vLLM writes `None` for what is not set; the capacity stands by itself from 0.24 on."""
    size, blocks = _number(labels, "block_size"), _number(labels, "num_gpu_blocks")
    capacity = _number(labels, "kv_cache_size_tokens")
    if capacity is None and size and blocks:
        capacity = size * blocks
    override = _number(labels, "num_gpu_blocks_override")
    return Live(
        capacity,
        int(size) if size else None,
        int(blocks) if blocks else None,
        _number(labels, "gpu_memory_utilization"),
        kv_dtype_of(labels.get("cache_dtype", "")),
        _number(labels, "kv_cache_memory_bytes"),
        int(override) if override else None,
    )


def _number(labels: Mapping[str, str], name: str) -> float | None:
    try:
        value = float(labels.get(name, ""))
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None


@dataclass(frozen=True)
class Comparison:
    """The result. `difference` is in tokens, from the nearest end of the band, negative where the engine holds fewer; 0 within it."""

    stands: Stands
    live: Figure | None
    difference: Figure | None
    says: Message
    reasons: tuple[Message, ...]


def compare(plan: Plan, live_capacity_tokens: float | None, live: Live | None = None) -> Comparison:
    """The plan's capacity against the engine's, both in tokens of one engine."""
    if live_capacity_tokens is None or not math.isfinite(live_capacity_tokens):
        nothing = say("The engine shows no KV capacity, so the plan cannot be checked.")
        return Comparison(Stands.UNKNOWN, None, None, nothing, ())
    found, band = live_capacity_tokens, plan.capacity
    shown = Figure(found, Origin.MEASURED, say("as the engine shows it"), "tokens")
    live = live or Live()
    settings = _settings(plan, live)
    if band.contains(found):
        agrees = say("The engine's {live} lie in the planned {band}.", live=shown.says, band=band.says)
        return Comparison(Stands.WITHIN, shown, _difference(plan, 0.0), agrees, settings)
    if found > band.high:
        gap, stands = found - band.high, Stands.ABOVE
        says = say("The engine holds {live}, {gap} more than planned at most ({band}).", live=shown.says, gap=_tokens(gap), band=band.says)
    else:
        gap, stands = found - band.low, Stands.BELOW
        says = say(
            "The engine holds {live}, {gap} fewer than planned at least ({band}).", live=shown.says, gap=_tokens(-gap), band=band.says
        )
    fixed = live.fixed_blocks or live.fixed_bytes  # then nothing else decides how large the pool is
    reasons = settings if fixed else (*settings, *_patterns(plan, found, live), *_usual(plan, stands))
    return Comparison(stands, shown, _difference(plan, gap), says, reasons)


def _tokens(value: float) -> Quantity:
    return Quantity(value, "tokens")


def _difference(plan: Plan, tokens: float) -> Figure:
    how = say("on each GPU {bytes}", bytes=Quantity(abs(tokens) * plan.token_on_gpu.value, "binary_bytes"))
    return Figure(tokens, plan.capacity.origin, how, "tokens")


def _settings(plan: Plan, live: Live) -> tuple[Message, ...]:
    """Settings that the engine shows and that differ from the plan's: the likeliest reasons, and the only certain ones."""
    setup, found = plan.setup, []
    if live.fixed_blocks:
        found.append(say("num_gpu_blocks_override fixes the pool at {n} blocks, however much memory is free.", n=live.fixed_blocks))
    if live.fixed_bytes:
        size = Quantity(live.fixed_bytes, "binary_bytes")
        found.append(say("kv_cache_memory_bytes fixes the pool at {size}; gpu_memory_utilization does not decide it.", size=size))
    if live.utilization and not math.isclose(live.utilization, setup.gpu_memory_utilization, abs_tol=0.001):
        there, here = Quantity(live.utilization, "ratio"), Quantity(setup.gpu_memory_utilization, "ratio")
        found.append(say("The engine runs with gpu_memory_utilization {there}, the plan with {here}.", there=there, here=here))
    if live.kv_dtype and KV_BYTES[live.kv_dtype] != setup.kv.each:
        names = {"there": Names((live.kv_dtype,)), "here": Names((setup.kv.dtype,))}
        found.append(say("The engine keeps the KV cache as {there}, the plan as {here}.", **names))
    return tuple(found)


def _patterns(plan: Plan, found: float, live: Live) -> tuple[Message, ...]:
    """Factors that say what they are."""
    low, high, likely = plan.capacity.low, plan.capacity.high, []
    if live.kv_dtype is None and plan.setup.kv.each == 2 and 2 * low <= found <= 2 * high:
        likely.append(say("It fits a KV cache of 8 bits instead of 16."))
    if live.kv_dtype is None and plan.setup.kv.each == 1 and low / 2 <= found <= high / 2:
        likely.append(say("It fits a KV cache of 16 bits instead of 8."))
    times = next((n for n in range(2, 65) if n * low <= found <= n * high), None)
    if times is not None:
        likely.append(say("It is about {n} times the plan: vLLM adds up its data-parallel engines in this figure.", n=times))
    return tuple(likely)


def _usual(plan: Plan, stands: Stands) -> tuple[Message, ...]:
    """What else it may be, where no setting tells."""
    usual = []
    if stands is Stands.BELOW:
        usual.append(
            say(
                "Something takes memory that the plan does not count: another process on the GPU, LoRA adapters, a draft model, "
                "a vision tower, or larger batches than planned."
            )
        )
    else:
        usual.append(
            say(
                "Something takes less than the plan counts: a smaller weight format, more GPUs, smaller batches, or an engine whose "
                "share covers weights and KV cache only (SGLang's mem_fraction_static)."
            )
        )
    if plan.setup.shape.bounded_layers or plan.setup.shape.state_layers:
        usual.append(say("This model's layers keep different amounts, and engines count such a pool in different ways."))
    return tuple(usual)
