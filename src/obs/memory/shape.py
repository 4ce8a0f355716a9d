"""What of a model decides its memory: its layers, each with the cache that it keeps and the block that follows it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from obs.text import Message


class Attention(StrEnum):
    """What a layer keeps for each sequence."""

    FULL = "full"  # keys and values of every token
    SLIDING = "sliding"  # of the last `window` tokens only
    LATENT = "latent"  # one compressed vector a token, shared by all heads (MLA)
    STATE = "state"  # a state of fixed size (linear attention, Mamba)
    NONE = "none"  # nothing: a block without attention


class Block(StrEnum):
    """What follows the attention."""

    DENSE = "dense"
    EXPERTS = "experts"
    BOTH = "both"
    NONE = "none"


@dataclass(frozen=True)
class Layer:
    """One layer. `kv_heads` and `head_size` count where it keeps keys and values, `window` (tokens) where that is bounded."""

    attention: Attention
    block: Block = Block.DENSE
    kv_heads: int = 0
    head_size: int = 0
    window: int = 0
    keys_are_values: bool = False  # one projection makes both (Gemma 4's global layers); the cache holds both all the same


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention: what a token leaves in the cache is `rank + rope_size` values a layer."""

    rank: int  # kv_lora_rank
    rope_size: int  # qk_rope_head_dim
    nope_size: int  # qk_nope_head_dim
    value_size: int  # v_head_dim
    query_rank: int  # q_lora_rank, 0 where the queries are not compressed


@dataclass(frozen=True)
class Experts:
    """A mixture of experts: `shared_size` is the width of what every token passes through beside the experts."""

    count: int
    per_token: int
    size: int
    shared_size: int = 0


@dataclass(frozen=True)
class State:
    """A layer's fixed state a sequence: values of the recurrence (`recurrent_bytes` each) and of the convolution, and its weights."""

    recurrent: int
    convolution: int
    parameters: int
    recurrent_bytes: int = 2


@dataclass(frozen=True)
class ModelShape:
    """A model as far as memory goes. `parameters` is its publisher's total, or the count from the shape (`published` tells)."""

    name: str
    layers: tuple[Layer, ...]
    hidden_size: int
    attention_heads: int
    kv_heads: int
    head_size: int
    intermediate_size: int
    vocabulary: int
    tied_embeddings: bool
    gated: bool  # the block multiplies two projections (SwiGLU, GeGLU): three matrices instead of two
    gated_attention: bool  # a gate beside the queries (Qwen3-Next, Qwen3.5)
    context: int  # max_position_embeddings, 0 where the file does not say
    weight_dtype: str  # id of `dtype.WEIGHTS`: what the published checkpoint holds
    latent: Latent | None = None
    experts: Experts | None = None
    state: State | None = None
    parameters: float = 0.0
    published: bool = False
    nominal: float | None = None  # the figure in the name, for the rule of thumb
    source: str = ""
    notes: tuple[Message, ...] = ()  # what of the file was not counted

    @property
    def bounded_layers(self) -> int:
        """How many layers keep no more than their window."""
        return sum(layer.attention is Attention.SLIDING for layer in self.layers)

    @property
    def state_layers(self) -> int:
        """How many layers keep a state of fixed size instead of keys and values."""
        return sum(layer.attention is Attention.STATE for layer in self.layers)

    @property
    def window(self) -> int:
        """The largest window of the bounded layers, 0 where there are none."""
        return max((layer.window for layer in self.layers), default=0)
