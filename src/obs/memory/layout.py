"""Which layer keeps what: the many ways in which a config.json says that layers differ."""

from __future__ import annotations

from obs.errors import CallError
from obs.memory.fields import Fields
from obs.memory.shape import Attention, Block, Experts, Latent, Layer
from obs.text import Names, say

_KINDS = {
    "full_attention": Attention.FULL,
    "attention": Attention.FULL,
    "global_attention": Attention.FULL,
    "sliding_attention": Attention.SLIDING,
    "chunked_attention": Attention.SLIDING,
    "local_attention": Attention.SLIDING,
    "linear_attention": Attention.STATE,
    "mamba": Attention.STATE,
    "mamba2": Attention.STATE,
    "recurrent": Attention.STATE,
}
_PATTERN = {"M": Attention.STATE, "*": Attention.FULL, "-": Attention.NONE, "E": Attention.NONE}  # Nemotron-H


def layers_of(
    fields: Fields, count: int, latent: Latent | None, experts: Experts | None, kv_heads: int, head_size: int
) -> tuple[Layer, ...]:
    """Every layer in its order."""
    pattern = fields.text("hybrid_override_pattern")
    if pattern:
        return _by_pattern(pattern, count, kv_heads, head_size)
    window, kinds = _window(fields), _kinds(fields, count)
    blocks = _blocks(fields, count, experts)
    global_size = fields.whole("global_head_dim", default=head_size)
    global_heads = fields.whole("num_global_key_value_heads", default=kv_heads)
    shared = fields.flag("attention_k_eq_v")
    layers = []
    for kind, block in zip(kinds, blocks, strict=True):
        if kind is Attention.FULL and latent is not None:
            layers.append(Layer(Attention.LATENT, block))
        elif kind is Attention.FULL:
            layers.append(Layer(kind, block, global_heads, global_size, keys_are_values=shared))
        elif kind is Attention.SLIDING:
            if not window:
                raise CallError(
                    say(
                        "This config.json says that layers have a bounded window, and not how long it is: {field} is missing. Add it.",
                        field=Names(("sliding_window",)),
                    )
                )
            layers.append(Layer(kind, block, kv_heads, head_size, window))
        else:
            layers.append(Layer(kind, block))
    return tuple(layers)


def _window(fields: Fields) -> int:
    """Tokens that a bounded layer keeps. A file may give a window and turn it off (Qwen)."""
    family = fields.text("model_type")
    if not fields.flag("use_sliding_window", default=not family.startswith("qwen")):
        return 0
    default = 4096 if family in ("gemma2", "gemma3_text", "gemma3") else 0  # the class's default in transformers
    return fields.whole("sliding_window", "sliding_window_size", "attention_chunk_size", default=default, least=0)


def _kinds(fields: Fields, count: int) -> list[Attention]:
    """What each layer keeps."""
    for name in ("layer_types", "layers_block_type"):
        if words := fields.words(name):
            return [_kind(name, word) for word in _as_many(name, words, count)]
    every = fields.whole("full_attention_interval", default=0, least=0)
    if every:  # Qwen3-Next: linear but for every nth
        return [Attention.FULL if (i + 1) % every == 0 else Attention.STATE for i in range(count)]
    period = fields.whole("attn_layer_period", default=0, least=0)
    if period:  # Jamba
        offset = fields.whole("attn_layer_offset", default=0, least=0)
        return [Attention.FULL if i % period == offset else Attention.STATE for i in range(count)]
    window, family = _window(fields), fields.text("model_type")
    if not window:
        return [Attention.FULL] * count
    if fields.has("attention_chunk_size"):  # Llama 4: three local, then one that sees everything
        return [Attention.FULL if (i + 1) % 4 == 0 else Attention.SLIDING for i in range(count)]
    every = fields.whole("sliding_window_pattern", default={"gemma2": 2, "gemma3_text": 6, "gemma3": 6}.get(family, 1))
    if every > 1:
        return [Attention.FULL if (i + 1) % every == 0 else Attention.SLIDING for i in range(count)]
    first = fields.whole("max_window_layers", default=0, least=0) if fields.flag("use_sliding_window") else 0
    return [Attention.SLIDING if i >= first else Attention.FULL for i in range(count)]


def _kind(name: str, word: str) -> Attention:
    if word not in _KINDS:
        raise CallError(
            say(
                "{field} in this config.json has a kind of layer that obs does not know: {word}. "
                "Its memory cannot be computed; choose a model from the list.",
                field=Names((name,)),
                word=Names((word,)),
            )
        )
    return _KINDS[word]


def _as_many(name: str, words: tuple[str, ...], count: int) -> tuple[str, ...]:
    if len(words) != count:
        raise CallError(
            say(
                "{field} in this config.json describes {found} layers, and the model has {count}. Correct one of them.",
                field=Names((name,)),
                found=len(words),
                count=count,
            )
        )
    return words


def _blocks(fields: Fields, count: int, experts: Experts | None) -> list[Block]:
    """Which layers have experts; the first few, or every other one, may be dense."""
    if experts is None:
        return [Block.DENSE] * count
    if fields.flag("enable_moe_block"):  # Gemma 4: a dense block beside the experts
        return [Block.BOTH] * count
    dense = set(fields.numbers("mlp_only_layers"))
    first = fields.whole("first_k_dense_replace", default=0, least=0)
    step = fields.whole("decoder_sparse_step", "interleave_moe_layer_step", "expert_layer_period", default=1)
    offset = fields.whole("expert_layer_offset", default=step - 1, least=0)  # Jamba; elsewhere the last of each step
    return [Block.EXPERTS if i >= first and i not in dense and i % step == offset else Block.DENSE for i in range(count)]


def _by_pattern(pattern: str, count: int, kv_heads: int, head_size: int) -> tuple[Layer, ...]:
    """Nemotron-H: a letter a layer, each either a mixer or a block."""
    unknown = sorted(set(pattern) - set(_PATTERN))
    if unknown:
        _kind("hybrid_override_pattern", unknown[0])
    _as_many("hybrid_override_pattern", tuple(pattern), count)
    blocks = {"-": Block.DENSE, "E": Block.EXPERTS}
    keeps = {"*": (kv_heads, head_size)}
    return tuple(Layer(_PATTERN[letter], blocks.get(letter, Block.NONE), *keeps.get(letter, (0, 0))) for letter in pattern)
