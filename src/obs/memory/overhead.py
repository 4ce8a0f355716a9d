"""What lies on a GPU beside weights and KV cache. No formula gives it exactly, so each part is a band.

An engine measures it at start with a batch as large as it will ever run. The bands are held against such measurements, as people
posted them from vLLM's start-up log (`tests/test_memory_measured.py` has them, five of the seven with their addresses).
"""

from __future__ import annotations

from obs.memory.figure import GIB, Band, Origin
from obs.memory.shape import Attention, Block, Layer, ModelShape
from obs.text import Quantity, say

_COMPUTE = 2.0  # bytes a value of the activations: BF16 or FP16
_STREAMS = 3  # hidden states alive at once: residual, input and output of a block
_SAMPLER = 40.0  # bytes a logit at the sampler's worst: FP32 logits, probabilities, sorted values, 64-bit indices, sums, masks
_LOGITS = 6.0  # and at its least: 16-bit logits and their FP32 copy
_LEAST, _MOST = 0.8, 1.3  # compiled kernels reuse buffers; allocators round up and leave gaps


def activations(shape: ModelShape, tensor: int, batched_tokens: int, sequences: int) -> Band:
    """The largest batch's intermediate values on one GPU: the widest layer for every batched token, or the logits of every sequence."""
    widest = max((_width(shape, layer, tensor) for layer in set(shape.layers)), default=0.0)
    layers = batched_tokens * _COMPUTE * (widest + _STREAMS * shape.hidden_size)
    logits = float(min(sequences, batched_tokens) * shape.vocabulary)
    how = say(
        "{tokens} batched tokens through the widest layer, or the logits of {sequences} sequences, whichever is more; the sampler takes "
        "between {least} and {most} bytes a logit",
        tokens=batched_tokens,
        sequences=sequences,
        least=Quantity(_LOGITS, "count"),
        most=Quantity(_SAMPLER, "count"),
    )
    return Band(_LEAST * max(layers, logits * _LOGITS), _MOST * max(layers, logits * _SAMPLER), Origin.ASSUMED, how)


def _width(shape: ModelShape, layer: Layer, tensor: int) -> float:
    """Values a token that a layer holds at once, on one tensor rank."""
    heads = shape.attention_heads / tensor
    attention = heads * 2 * shape.head_size + 2 * max(1.0, layer.kv_heads / tensor) * layer.head_size
    if layer.attention is Attention.LATENT and shape.latent is not None:
        latent = shape.latent
        attention = heads * (latent.nope_size + latent.rope_size + 2 * latent.value_size) + latent.rank + latent.rope_size
    matrices = 3 if shape.gated else 2
    block = matrices * shape.intermediate_size / tensor if layer.block in (Block.DENSE, Block.BOTH) else 0.0
    if layer.block in (Block.EXPERTS, Block.BOTH) and shape.experts is not None:
        experts = shape.experts
        block = max(
            block, experts.per_token * (matrices * experts.size / tensor + shape.hidden_size) + matrices * experts.shared_size / tensor
        )
    return max(attention, block)


def outside_the_allocator(gpus: int) -> Band:
    """CUDA's context, the libraries' workspaces, and with several GPUs the buffers of their communication."""
    if gpus == 1:
        how = say("CUDA context and workspaces; start-up logs show 0.01 to 1.8 GiB on one GPU")
        return Band(0.0, 2 * GIB, Origin.ASSUMED, how)
    how = say("CUDA context, workspaces and communication buffers; start-up logs show 0.2 to 3.6 GiB where GPUs work together")
    return Band(0.1 * GIB, 4 * GIB, Origin.ASSUMED, how)


def cuda_graphs(captured: bool) -> Band:
    """CUDA graphs. Older engines capture them beside the budget, newer ones count them in it: the band begins at nothing."""
    if not captured:
        return Band(0.0, 0.0, Origin.COMPUTED, say("no CUDA graphs: eager mode"))
    how = say("CUDA graphs; start-up logs show 0.1 to 2 GiB, and whether the budget includes them depends on the engine's version")
    return Band(0.0, 2 * GIB, Origin.ASSUMED, how)
