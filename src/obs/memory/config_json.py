"""A Hugging Face `config.json` as the shape of a model. The file comes from a person's clipboard: nothing in it is believed unread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from obs.errors import CallError
from obs.memory.dtype import QUANT_METHODS
from obs.memory.fields import Fields, language_model, parsed
from obs.memory.layout import layers_of
from obs.memory.parameters import count
from obs.memory.shape import Attention, Experts, Latent, ModelShape, State
from obs.text import Message, Names, say

_MOST_LAYERS = 2_000

# Where a file leaves the field out, its class in transformers has the embedding serve as output head; elsewhere it does not.
_TIED = {"gemma", "gemma2", "gemma3", "gemma3_text", "gemma4", "gemma4_text", "cohere", "cohere2", "gpt2", "bloom", "opt", "mpt"}
_PLAIN_BLOCKS = {"nemotron_h", "nemotron", "gpt2", "gpt_neox", "gpt_bigcode", "opt", "phi", "falcon", "bloom", "starcoder2", "mpt"}
_GEMMA3 = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262_208}  # the class's defaults
_DEFAULTS: dict[str, dict[str, int]] = {"gemma3_text": _GEMMA3, "gemma3": _GEMMA3, "gemma2": {"head_dim": 256}, "gemma": {"head_dim": 256}}

# Fields of parts that take memory and are not counted here, with what they are.
_UNCOUNTED: tuple[tuple[str, Message], ...] = (
    ("vision_config", say("the vision tower")),
    ("audio_config", say("the audio tower")),
    ("num_nextn_predict_layers", say("the layers for multi-token prediction, which an engine loads only for speculative decoding")),
    ("mtp_num_hidden_layers", say("the layers for multi-token prediction, which an engine loads only for speculative decoding")),
    ("index_head_dim", say("the index cache of sparse attention")),
    ("num_kv_shared_layers", say("that some layers share one cache")),
)

# Fields of layouts that these rules do not cover: a figure would look right and be wrong.
_BEYOND = (
    "is_encoder_decoder",
    "block_configs",
    "compress_ratios",
    "linear_attn_config",
    "moe_latent_size",
    "hybrid_layer_pattern",
    "sparse_attention_config",
    "swa_num_key_value_heads",
    "swa_head_dim",
)


def from_config(pasted: str | Mapping[str, Any], name: str = "") -> ModelShape:
    """The shape in a pasted config.json (its text, or the object). Raises `CallError` with the field and what to do."""
    outer = parsed(pasted) if isinstance(pasted, str) else pasted
    found = language_model(outer)
    _within_what_is_known(found)
    fields = Fields({**_DEFAULTS.get(str(found.get("model_type")), {}), **{k: v for k, v in found.items() if v is not None}})
    family = fields.text("model_type")
    layers = fields.whole("num_hidden_layers", "n_layer", "num_layers", "n_layers", most=_MOST_LAYERS)
    hidden = fields.whole("hidden_size", "n_embd", "d_model")
    heads = fields.whole("num_attention_heads", "n_head", "n_heads", "num_heads")
    kv_heads = _kv_heads(fields, heads)
    head_size = fields.whole("head_dim", "attention_head_dim", default=max(1, hidden // heads))
    latent, experts = _latent(fields), _experts(fields)
    shape = ModelShape(
        name=name or fields.text("_name_or_path") or family or "config.json",
        layers=layers_of(fields, layers, latent, experts, kv_heads, head_size),
        hidden_size=hidden,
        attention_heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        intermediate_size=_intermediate(fields, hidden, experts),
        vocabulary=fields.whole("vocab_size", "padded_vocab_size"),
        tied_embeddings=fields.flag("tie_word_embeddings", family in _TIED),
        gated=family not in _PLAIN_BLOCKS,
        gated_attention=fields.flag("attn_output_gate"),
        context=fields.whole("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", default=0, least=0),
        weight_dtype=_weight_dtype(fields),
        latent=latent,
        experts=experts,
        notes=tuple(
            say("Not counted: {part} ({field}).", part=part, field=Names((field,))) for field, part in _UNCOUNTED if fields.found.get(field)
        ),
    )
    if shape.state_layers:
        shape = _with_state(shape, fields)
    return replace(shape, parameters=float(count(shape).total))


def _within_what_is_known(found: Mapping[str, Any]) -> None:
    for name in _BEYOND:
        if found.get(name):
            raise CallError(
                say(
                    "This config.json has {field}: a layout whose memory obs cannot compute, and it does not guess. "
                    "Measure it instead: the engine's start-up log gives weights and KV cache.",
                    field=Names((name,)),
                )
            )


def _kv_heads(fields: Fields, heads: int) -> int:
    """Heads that keep keys and values: as many as query heads where the file does not say, one for multi-query attention."""
    kv_heads = fields.whole(
        "num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", default=1 if fields.flag("multi_query") else heads
    )
    if kv_heads > heads:
        raise CallError(
            say(
                "{field} in this config.json ({kv}) is more than {other} ({heads}), which cannot be. Correct one of them.",
                field=Names(("num_key_value_heads",)),
                kv=kv_heads,
                other=Names(("num_attention_heads",)),
                heads=heads,
            )
        )
    return kv_heads


def _latent(fields: Fields) -> Latent | None:
    if not fields.has("kv_lora_rank"):
        return None
    nope = fields.whole("qk_nope_head_dim", default=128)
    return Latent(
        rank=fields.whole("kv_lora_rank"),
        rope_size=fields.whole("qk_rope_head_dim"),
        nope_size=nope,
        value_size=fields.whole("v_head_dim", default=nope),
        query_rank=fields.whole("q_lora_rank", default=0, least=0),
    )


def _experts(fields: Fields) -> Experts | None:
    number = fields.whole("num_local_experts", "num_experts", "n_routed_experts", default=0, least=0, most=100_000)
    if number <= 1:
        return None
    size = fields.whole("moe_intermediate_size", "intermediate_size")
    shared = fields.whole("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", default=0, least=0)
    if not shared:
        shared = size * fields.whole(
            "n_shared_experts", "num_shared_experts", default=1 if fields.text("model_type") == "llama4_text" else 0, least=0
        )
    return Experts(
        number,
        fields.whole("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "experts_per_token", default=1, most=number),
        size,
        shared,
    )


def _intermediate(fields: Fields, hidden: int, experts: Experts | None) -> int:
    """The width of the dense block; four times the hidden size where the older files leave it out."""
    default = experts.size if experts else 4 * hidden
    return fields.whole("intermediate_size_mlp", "intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim", default=default)


def _weight_dtype(fields: Fields) -> str:
    """What the checkpoint holds: its quantization, else its 16 or 32 bits."""
    quantized = fields.inner("quantization_config")
    method = str(quantized.get("quant_method", "")).lower()
    if method in QUANT_METHODS:
        eight = quantized.get("bits") == 8 or quantized.get("load_in_8bit") is True
        return "int8" if eight and QUANT_METHODS[method] == "int4" else QUANT_METHODS[method]
    if (grouped := _grouped(quantized)) is not None:
        return grouped
    dtype = fields.text("torch_dtype") or fields.text("dtype")
    return {"float32": "fp32", "float16": "fp16"}.get(dtype.removeprefix("torch."), "bf16")


def _grouped(quantized: Mapping[str, Any]) -> str | None:
    """The weights' format as compressed-tensors and ModelOpt write it: bits and type of each group."""
    groups = quantized.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if isinstance(weights, Mapping) and weights.get("num_bits") in (4, 8):
            kind, four = weights.get("type"), weights["num_bits"] == 4
            if kind == "float":
                return ("mxfp4" if weights.get("group_size") == 32 else "nvfp4") if four else "fp8"
            return "int4" if four else "int8"
    return {"FP8": "fp8", "NVFP4": "nvfp4"}.get(str(quantized.get("quant_algo", "")).upper())


def _with_state(shape: ModelShape, fields: Fields) -> ModelShape:
    """The shape with the fixed state of its linear-attention or Mamba layers, or with a note that its size is not known."""
    state = _gated_delta(shape, fields) if fields.has("linear_num_value_heads") else _mamba(shape, fields)
    if state is not None:
        return replace(shape, state=state)
    kinds = sum(layer.attention is Attention.STATE for layer in shape.layers)
    note = say("Not counted: the state and the weights of {n} layers without attention, whose size this file does not give.", n=kinds)
    return replace(shape, notes=(*shape.notes, note))


def _recurrent_bytes(fields: Fields) -> int:
    return 4 if "float32" in (fields.text("mamba_ssm_dtype"), fields.text("mamba_ssm_cache_dtype")) else 2


def _gated_delta(shape: ModelShape, fields: Fields) -> State:
    """Gated DeltaNet (Qwen3-Next, Qwen3.5): a matrix of key size x value size for each value head, and the convolution's last inputs."""
    key, value = fields.whole("linear_key_head_dim"), fields.whole("linear_value_head_dim")
    keys, values = fields.whole("linear_num_key_heads") * key, fields.whole("linear_num_value_heads") * value
    mixed, hidden, heads = 2 * keys + values, shape.hidden_size, fields.whole("linear_num_value_heads")
    kernel = fields.whole("linear_conv_kernel_dim", default=4, most=10_000)
    weights = hidden * (mixed + values + 2 * heads) + values * hidden + kernel * mixed
    return State(values * key, (kernel - 1) * mixed, weights, _recurrent_bytes(fields))


def _mamba(shape: ModelShape, fields: Fields) -> State | None:
    """Mamba-2 (Nemotron-H, Bamba, Granite): a vector of the state's size for each channel, and the convolution's last inputs."""
    if not fields.has("ssm_state_size", "mamba_d_state") or not fields.has("mamba_num_heads", "mamba_n_heads"):
        return None
    heads, size = fields.whole("mamba_num_heads", "mamba_n_heads"), fields.whole("ssm_state_size", "mamba_d_state")
    inner = heads * fields.whole("mamba_head_dim", "mamba_d_head")
    grouped = fields.whole("n_groups", "mamba_n_groups", default=1) * size
    kernel, hidden = fields.whole("conv_kernel", "mamba_d_conv", default=4, most=10_000), shape.hidden_size
    weights = hidden * (2 * inner + 2 * grouped + heads) + inner * hidden + kernel * (inner + 2 * grouped)
    return State(inner * size, (kernel - 1) * (inner + 2 * grouped), weights, _recurrent_bytes(fields))
