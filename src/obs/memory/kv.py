"""Bytes of the KV cache: of a token, of a sequence, on each GPU. Bounded layers stop growing; a state does not grow at all."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from obs.errors import CallError
from obs.memory.dtype import KV_BYTES
from obs.memory.shape import Attention, Layer, ModelShape
from obs.memory.split import Parallel, stages
from obs.text import Names, say

_MOST_BLOCK = 65_536


@dataclass(frozen=True)
class KvCache:
    """How the cache is kept: dtype (a key of `KV_BYTES`) and tokens a block (vLLM: 16 unless set; it rounds every sequence up)."""

    dtype: str = "bf16"
    block_size: int = 16

    def __post_init__(self) -> None:
        if self.dtype not in KV_BYTES:
            raise CallError(
                say(
                    "{dtype} is no KV cache dtype that obs knows. Choose one of {known}.",
                    dtype=Names((self.dtype,)),
                    known=Names(tuple(KV_BYTES)),
                )
            )
        if not 1 <= self.block_size <= _MOST_BLOCK:
            raise CallError(
                say(
                    "{name} is {value}, and must lie between 1 and {most}.",
                    name=Names(("block_size",)),
                    value=self.block_size,
                    most=_MOST_BLOCK,
                )
            )

    @property
    def each(self) -> float:
        """Bytes a value."""
        return KV_BYTES[self.dtype]

    def blocks(self, tokens: int) -> int:
        """Blocks of a sequence in a layer that keeps every token."""
        return math.ceil(tokens / self.block_size)


def token_bytes(shape: ModelShape, cache: KvCache) -> float:
    """What a token takes in the whole model while no window is full (the article's 70B: 320 KiB)."""
    return sum(_values(shape, layer, 1) for layer in shape.layers) * cache.each


def token_by_stage(shape: ModelShape, cache: KvCache, parallel: Parallel) -> tuple[float, ...]:
    """The same on each GPU of each pipeline stage."""
    return tuple(
        sum(_values(shape, shape.layers[i], parallel.tensor) for i in part) * cache.each for part in stages(shape, parallel.pipeline)
    )


def growing_token_bytes(shape: ModelShape, cache: KvCache) -> float:
    """What a further token takes in the whole model once every window is full."""
    return sum(_values(shape, layer, 1) for layer in shape.layers if layer.attention is not Attention.SLIDING) * cache.each


def sequence_bytes(shape: ModelShape, cache: KvCache, tokens: int) -> float:
    """What a sequence of so many tokens takes in the whole model, blocks rounded up."""
    return _sequence(shape, shape.layers, cache, tokens, 1)


def sequence_by_stage(shape: ModelShape, cache: KvCache, tokens: int, parallel: Parallel) -> tuple[float, ...]:
    """The same on each GPU of each pipeline stage."""
    return tuple(
        _sequence(shape, (shape.layers[i] for i in part), cache, tokens, parallel.tensor) for part in stages(shape, parallel.pipeline)
    )


def _sequence(shape: ModelShape, layers: Iterable[Layer], cache: KvCache, tokens: int, tensor: int) -> float:
    if tokens <= 0:
        return 0.0
    full = cache.blocks(tokens)
    total = 0.0
    for layer in layers:
        if layer.attention is Attention.STATE:
            total += _state(shape, tensor)
        elif layer.attention is not Attention.NONE:
            blocks = min(full, cache.blocks(layer.window - 1) + 1) if layer.attention is Attention.SLIDING else full
            total += blocks * cache.block_size * _values(shape, layer, tensor) * cache.each
    return total


def _values(shape: ModelShape, layer: Layer, tensor: int) -> int:
    """Values that a token leaves in a layer, on one tensor rank. One KV head at least lies on each; a latent vector is never split."""
    if layer.attention is Attention.LATENT and shape.latent is not None:
        return shape.latent.rank + shape.latent.rope_size
    if layer.attention in (Attention.FULL, Attention.SLIDING):
        return 2 * math.ceil(layer.kv_heads / tensor) * layer.head_size
    return 0


def _state(shape: ModelShape, tensor: int) -> float:
    """A layer's fixed state: recurrence in its own dtype, convolution in 16 bits; both split by tensor parallelism."""
    if shape.state is None:
        return 0.0
    return (shape.state.recurrent * shape.state.recurrent_bytes + shape.state.convolution * 2) / tensor
