"""How many parameters a shape has, and how they fall on GPUs: what is split, what every GPU holds whole."""

from __future__ import annotations

from dataclasses import dataclass

from obs.memory.shape import Attention, Block, Layer, ModelShape


@dataclass(frozen=True)
class LayerCount:
    """Parameters of one layer: `split` by tensor parallelism, `whole` on every GPU, `keys` split only as far as there are KV heads."""

    split: int
    keys: int
    whole: int
    experts: int  # of `split`, the experts' matrices

    @property
    def total(self) -> int:
        """All of them, each once."""
        return self.split + self.keys + self.whole


@dataclass(frozen=True)
class ParameterCount:
    """A model's parameters by where they lie. `head` is 0 where the embedding serves as output head."""

    embedding: int
    head: int
    layers: tuple[LayerCount, ...]

    @property
    def total(self) -> int:
        """All of them, each once."""
        return self.embedding + self.head + sum(layer.total for layer in self.layers)


def count(shape: ModelShape) -> ParameterCount:
    """The parameters from the shape. Biases and the scales of the query and key norms are left out: under 0.1 %."""
    embedding = shape.vocabulary * shape.hidden_size
    known: dict[Layer, LayerCount] = {}
    layers = tuple(known.get(layer) or known.setdefault(layer, _layer(shape, layer)) for layer in shape.layers)
    return ParameterCount(embedding, 0 if shape.tied_embeddings else embedding, layers)


def _layer(shape: ModelShape, layer: Layer) -> LayerCount:
    split, keys, whole = _mixer(shape, layer)
    matrices = 3 if shape.gated else 2
    dense = matrices * shape.hidden_size * shape.intermediate_size if layer.block in (Block.DENSE, Block.BOTH) else 0
    experts = router = shared = 0
    if layer.block in (Block.EXPERTS, Block.BOTH) and shape.experts is not None:
        each = matrices * shape.hidden_size * shape.experts.size
        experts, router = shape.experts.count * each, shape.hidden_size * shape.experts.count
        shared = matrices * shape.hidden_size * shape.experts.shared_size
    norms = 2 * shape.hidden_size
    return LayerCount(split + dense + experts + shared, keys, whole + router + norms, experts)


def _mixer(shape: ModelShape, layer: Layer) -> tuple[int, int, int]:
    """(split, keys, whole) of the attention, or of what stands in its place."""
    hidden, heads = shape.hidden_size, shape.attention_heads
    if layer.attention is Attention.NONE:
        return 0, 0, 0
    if layer.attention is Attention.STATE:
        return (shape.state.parameters if shape.state else 0), 0, 0
    if layer.attention is Attention.LATENT and shape.latent is not None:
        latent = shape.latent
        query_size, out = heads * (latent.nope_size + latent.rope_size), heads * latent.value_size * hidden
        query = latent.query_rank * query_size if latent.query_rank else hidden * query_size
        up = latent.rank * heads * (latent.nope_size + latent.value_size)
        return query + up + out, 0, hidden * (latent.query_rank + latent.rank + latent.rope_size)
    width = heads * layer.head_size * hidden
    keys = hidden * layer.kv_heads * layer.head_size
    return width * (3 if shape.gated_attention else 2), keys if layer.keys_are_values else 2 * keys, 0
