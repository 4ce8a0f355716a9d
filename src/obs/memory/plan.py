"""The plan: what fills each GPU, what is left for the KV cache, and how many sequences fit in that.

One number is only what follows from shape and settings (weights, bytes a token). Everything that rests on the overhead is a band,
and a sum is labelled as its least sure part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from obs.memory.figure import Band, Figure, Origin, weakest
from obs.memory.kv import growing_token_bytes, sequence_by_stage, sequence_bytes, token_by_stage, token_bytes
from obs.memory.overhead import activations, cuda_graphs, outside_the_allocator
from obs.memory.setup import Length, Setup
from obs.memory.weights import model_weights, nominal_weights, weights_by_stage
from obs.text import Message, Quantity, say

_LONGEST = 100_000_000  # tokens, where no layer grows


class Fits(StrEnum):
    """Whether the engine would start."""

    YES = "yes"
    PERHAPS = "perhaps"  # depends on where in the bands it lies
    TOO_LONG = "too_long"  # the weights fit, one sequence of `max_model_len` does not
    NO = "no"


@dataclass(frozen=True)
class LengthFit:
    """What sequences of one length take, and how many of them the pool holds (a band of whole sequences)."""

    length: Length
    each: Figure  # in the whole model
    each_on_gpu: Figure  # on the tightest GPU
    sequences: Band
    running: Band  # the same, but no more than `max_num_seqs`


@dataclass(frozen=True)
class Plan:
    """The answer. `stage` is the pipeline stage that is tightest; figures "on the GPU" are those of its GPUs."""

    setup: Setup
    stage: int
    budget: Figure  # on the GPU: what the engine may use
    outside: Figure  # on the GPU: what it leaves to others
    weights: Figure  # of the whole model
    weights_nominal: Figure | None  # the rule of thumb
    weights_on_gpu: Figure
    activations: Band  # on the GPU
    other: Band  # on the GPU: context, workspaces, communication
    graphs: Band  # on the GPU
    left: Band  # on the GPU: budget less all of these; negative where it does not fit
    pool: Band  # on the GPU: the same, never below nothing
    token: Figure  # KV bytes a token in the whole model, while no window is full
    token_on_gpu: Figure
    growing: Figure  # KV bytes of a further token once every window is full, in the whole model
    capacity: Band  # tokens that the pool holds, as an engine counts them: sequences of `max_model_len` x their length
    longest: Band  # tokens of the longest single sequence
    lengths: tuple[LengthFit, ...]
    headroom: Band  # on the GPU: the pool less what the wanted sequences take
    fits: Fits

    @property
    def overhead(self) -> Band:
        """On the GPU: what is neither weights nor KV cache."""
        return _sum(say("activations, workspaces and CUDA graphs"), self.activations, self.other, self.graphs)

    @property
    def says(self) -> Message:
        """Whether it fits, why, and what to do where it does not."""
        tokens = Quantity(self.setup.longest, "tokens")
        if self.fits is Fits.NO:
            return say(
                "Does not fit: the weights take {weights} on each GPU, and the engine may use {budget}. "
                "Use more GPUs, a smaller weight format, or larger GPUs.",
                weights=self.weights_on_gpu.says,
                budget=self.budget.says,
            )
        if self.fits is Fits.TOO_LONG:
            return say(
                "The weights fit, but not one sequence of {tokens}: the KV pool has {pool} on each GPU, and an engine refuses to start so. "
                "Lower max_model_len, keep the KV cache in 8 bits, or use more GPUs.",
                tokens=tokens,
                pool=self.pool.says,
            )
        if self.fits is Fits.PERHAPS:
            return say(
                "May fit: the KV pool has {pool} on each GPU, depending on what else the engine allocates. Only a start tells.",
                pool=self.pool.says,
            )
        return say(
            "Fits: {weights} of weights on each GPU leave a KV pool of {pool}, or {capacity}.",
            weights=self.weights_on_gpu.says,
            pool=self.pool.says,
            capacity=self.capacity.says,
        )


def plan(setup: Setup) -> Plan:
    """The plan for a deployment. Raises `CallError` where it cannot be laid out."""
    shape, kv, parallel = setup.shape, setup.kv, setup.parallel
    how = say("gpu_memory_utilization {share} of {gpu}", share=Quantity(setup.gpu_memory_utilization, "ratio"), gpu=setup.gpu.says)
    budget = Figure(setup.gpu.value * setup.gpu_memory_utilization, setup.gpu.origin, how)
    active = activations(shape, parallel.tensor, setup.max_num_batched_tokens, setup.max_num_seqs)
    other, graphs = outside_the_allocator(parallel.gpus), cuda_graphs(setup.cuda_graphs)
    origin = weakest(budget.origin, active.origin, other.origin, graphs.origin)
    weights = weights_by_stage(shape, setup.weight_dtype, parallel)
    free = [_left(budget, held, origin, active, other, graphs) for held in weights]
    pools = [(max(0.0, band.low), max(0.0, band.high)) for band in free]
    one = sequence_by_stage(shape, kv, setup.longest, parallel)
    stage = _tightest(pools, one, weights)
    pool = Band(*pools[stage], origin=origin, how=free[stage].how)
    fits = tuple(_fit(setup, length, pools, stage, origin) for length in setup.asked_lengths)
    tokens = Quantity(setup.longest, "tokens")
    least, most = _shares(pools, one)
    return Plan(
        setup=setup,
        stage=stage,
        budget=budget,
        outside=Figure(setup.gpu.value - budget.value, setup.gpu.origin, say("what gpu_memory_utilization leaves to others")),
        weights=model_weights(shape, setup.weight_dtype),
        weights_nominal=nominal_weights(shape, setup.weight_dtype),
        weights_on_gpu=Figure(weights[stage], Origin.COMPUTED, _split_how(parallel.gpus)),
        activations=active,
        other=other,
        graphs=graphs,
        left=free[stage],
        pool=pool,
        token=Figure(token_bytes(shape, kv), Origin.COMPUTED, say("in every layer, {each} B a value", each=Quantity(kv.each, "count"))),
        token_on_gpu=Figure(
            token_by_stage(shape, kv, parallel)[stage],
            Origin.COMPUTED,
            say("its part on the tightest GPU; where GPUs outnumber KV heads, heads are copied"),
        ),
        growing=Figure(growing_token_bytes(shape, kv), Origin.COMPUTED, say("without the layers whose window is full")),
        capacity=Band(
            least * setup.longest,
            most * setup.longest,
            origin,
            say("sequences of {tokens} that fit, times their length", tokens=tokens),
            "tokens",
        ),
        longest=Band(
            _longest(setup, [low for low, _ in pools]),
            _longest(setup, [high for _, high in pools]),
            origin,
            say("the longest sequence that fits alone"),
            "tokens",
        ),
        lengths=fits,
        headroom=_headroom(setup, pool, fits),
        fits=_verdict(free, one, least, most),
    )


def _split_how(gpus: int) -> Message:
    return say("all on one GPU") if gpus == 1 else say("split over {gpus} GPUs; what cannot be split lies on each", gpus=gpus)


def _left(budget: Figure, held: float, origin: Origin, *parts: Band) -> Band:
    how = say("budget less weights and overhead, on the tightest GPU")
    return Band(budget.value - held - sum(part.high for part in parts), budget.value - held - sum(part.low for part in parts), origin, how)


def _sum(how: Message, *parts: Band) -> Band:
    return Band(sum(part.low for part in parts), sum(part.high for part in parts), weakest(*(part.origin for part in parts)), how)


def _shares(pools: list[tuple[float, float]], each: tuple[float, ...]) -> tuple[float, float]:
    """How many times `each` (bytes on the GPUs of each stage) fits the pools, at both ends; the tightest stage decides."""
    counted = [(pool, size) for pool, size in zip(pools, each, strict=True) if size > 0]
    return min((pool[0] / size for pool, size in counted), default=0.0), min((pool[1] / size for pool, size in counted), default=0.0)


def _tightest(pools: list[tuple[float, float]], each: tuple[float, ...], weights: tuple[float, ...]) -> int:
    """The stage whose pool holds the fewest sequences; among those that hold the same, the one with the most weights."""
    return min(range(len(pools)), key=lambda i: (pools[i][1] / each[i] if each[i] else math.inf, -weights[i]))


def _fit(setup: Setup, length: Length, pools: list[tuple[float, float]], stage: int, origin: Origin) -> LengthFit:
    tokens = int(length.tokens)
    each = sequence_by_stage(setup.shape, setup.kv, tokens, setup.parallel)
    low, high = (float(math.floor(share)) for share in _shares(pools, each))
    how = say("whole sequences of {tokens} that the pool holds", tokens=Quantity(tokens, "tokens"))
    blocks = say("blocks of {size} tokens, rounded up", size=setup.kv.block_size)
    slots = float(setup.max_num_seqs)
    return LengthFit(
        length,
        Figure(sequence_bytes(setup.shape, setup.kv, tokens), Origin.COMPUTED, blocks),
        Figure(each[stage], Origin.COMPUTED, blocks),
        Band(low, high, origin, how, "count"),
        Band(min(low, slots), min(high, slots), origin, say("the same, at most max_num_seqs ({n})", n=setup.max_num_seqs), "count"),
    )


def _longest(setup: Setup, pools: list[float]) -> float:
    """Tokens of the longest sequence that fits alone in pools of these bytes: sizes only grow with length, so halving finds it."""
    low, high = 0, _LONGEST
    while low < high:
        middle = (low + high + 1) // 2
        each = sequence_by_stage(setup.shape, setup.kv, middle, setup.parallel)
        if all(size <= pool for size, pool in zip(each, pools, strict=True)):
            low = middle
        else:
            high = middle - 1
    return float(low)


def _headroom(setup: Setup, pool: Band, fits: tuple[LengthFit, ...]) -> Band:
    """The pool less what the wanted sequences take: at worst all of them at the longest length, at best at the shortest."""
    sizes = [fit.each_on_gpu.value * setup.sequences for fit in fits]
    how = say(
        "the KV pool less the sequences wanted at once ({n}), of {least} to {most} each",
        n=setup.sequences,
        least=Quantity(min(fit.length.tokens for fit in fits), "tokens"),
        most=Quantity(max(fit.length.tokens for fit in fits), "tokens"),
    )
    return Band(pool.low - max(sizes), pool.high - min(sizes), pool.origin, how)


def _verdict(free: list[Band], one: tuple[float, ...], least: float, most: float) -> Fits:
    """`least` to `most` is how many of the longest sequences fit; a model that keeps nothing (`one` all 0) needs none to."""
    if min(band.high for band in free) <= 0:
        return Fits.NO
    if any(one) and most < 1:
        return Fits.TOO_LONG
    return Fits.YES if min(band.low for band in free) > 0 and (least >= 1 or not any(one)) else Fits.PERHAPS
