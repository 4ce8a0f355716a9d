"""A pasted config.json becomes a shape or a sentence, and the listed models count to what their publishers say."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obs.errors import CallError
from obs.language import render
from obs.memory.config_json import from_config
from obs.memory.listed import gpu, gpus, model, models
from obs.memory.parameters import count
from obs.memory.shape import Attention, Block

SMALL = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 2048,
}


def refused(pasted) -> str:
    with pytest.raises(CallError) as caught:
        from_config(pasted)
    for lang in ("en", "es"):
        assert "{" not in render(caught.value.says, lang)
    return render(caught.value.says)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"hidden_size": None}, "hidden_size"),
        ({"num_attention_heads": None}, "num_attention_heads"),
        ({"vocab_size": None}, "vocab_size"),
        ({"num_hidden_layers": -3}, "num_hidden_layers"),
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers"),
        ({"hidden_size": 10**40}, "hidden_size"),
        ({"hidden_size": "4096"}, "hidden_size"),
        ({"hidden_size": 4096.5}, "hidden_size"),
        ({"hidden_size": True}, "hidden_size"),
        ({"num_key_value_heads": [8, 8]}, "num_key_value_heads"),
        ({"num_key_value_heads": 16}, "num_key_value_heads"),
        ({"head_dim": -1}, "head_dim"),
        ({"layer_types": ["full_attention"]}, "layer_types"),
        ({"layer_types": ["quantum_attention"] * 4}, "quantum_attention"),
        ({"layer_types": "full_attention"}, "layer_types"),
        ({"layer_types": ["sliding_attention"] * 4}, "sliding_window"),
        ({"hybrid_override_pattern": "M?M*"}, "hybrid_override_pattern"),
        ({"kv_lora_rank": 512}, "qk_rope_head_dim"),
        ({"num_experts": 8, "moe_intermediate_size": 0}, "moe_intermediate_size"),
        ({"block_configs": [{}]}, "block_configs"),
        ({"is_encoder_decoder": True}, "is_encoder_decoder"),
    ],
)
def test_a_wrong_field_is_named_and_what_to_do_is_said(change, named):
    says = refused({**SMALL, **change})
    assert named in says
    assert says.count(".") >= 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "Nothing was pasted"),
        ("   \n", "Nothing was pasted"),
        ("not json", "line 1, column 1"),
        ('{"hidden_size": 4096,\n "vocab_size" 1}', "line 2"),
        ("[1, 2]", "braces"),
        ("null", "braces"),
        ("[" * 200_000, "nested too deeply"),
        ('{"hidden_size": ' + "9" * 5000 + "}", "a number is too long"),
        ('{"hidden_size": NaN, "num_hidden_layers": 2, "num_attention_heads": 2}', "hidden_size"),
        ('{"a": "' + "x" * 10_000_000 + '"}', "10,000,009 characters"),
    ],
)
def test_what_is_no_config_json_is_said(text, says):
    assert says in refused(text)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8), lambda inner: st.lists(inner, max_size=3), max_leaves=5
)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(
    st.dictionaries(
        st.sampled_from([*SMALL, "head_dim", "sliding_window", "layer_types", "num_experts", "text_config", "quantization_config"]),
        ANYTHING,
    )
)
def test_whatever_stands_in_the_fields_it_is_a_shape_or_a_sentence(change):
    try:
        said = f"{from_config(json.loads(json.dumps({**SMALL, **change}))).parameters}"
    except CallError as error:
        said = render(error.says)
    assert said not in ("", "0.0", "nan")


def test_a_listed_model_counts_to_its_publishers_total():
    off = {name: count(shape).total / shape.parameters - 1 for name, shape in models().items()}
    assert {name: round(share, 4) for name, share in off.items() if abs(share) > 0.004} == {"qwen2.5-32b": 0.0081}  # its card rounds down
    assert abs(off["deepseek-v3"]) < 0.0005
    assert abs(off["gpt-oss-120b"]) < 0.0005


def test_the_list_has_what_people_serve_and_every_entry_says_where_it_stands():
    assert len(models()) == 25
    assert len(gpus()) == 14
    assert [name for name, shape in models().items() if not shape.source.startswith("https://")] == []
    assert [found.id for found in gpus().values() if "https://github.com/" not in found.source] == []
    with pytest.raises(CallError, match="There is no model"):
        model("llama-9")
    with pytest.raises(CallError, match="There is no GPU"):
        gpu("h999")


@pytest.mark.parametrize(
    ("name", "bounded", "window", "kv_heads", "head_size"),
    [
        ("llama-3.1-70b", 0, 0, 8, 128),
        ("qwen2.5-32b", 0, 0, 8, 128),  # gives a window and turns it off
        ("gemma-2-27b", 23, 4096, 16, 128),
        ("gemma-3-27b", 52, 1024, 16, 128),
        ("gpt-oss-120b", 18, 128, 8, 64),
        ("mistral-small-24b", 0, 0, 8, 128),  # heads x head size is not the hidden size
    ],
)
def test_a_listed_models_layers(name, bounded, window, kv_heads, head_size):
    shape = model(name)
    assert (shape.bounded_layers, shape.window, shape.kv_heads, shape.head_size) == (bounded, window, kv_heads, head_size)


@pytest.mark.parametrize(
    ("given", "bounded"), [({"model_type": "qwen2"}, 0), ({"model_type": "qwen2", "use_sliding_window": True}, 4), ({}, 4)]
)
def test_a_window_counts_where_it_is_not_turned_off(given, bounded):
    assert from_config({**SMALL, "sliding_window": 100, **given}).bounded_layers == bounded


def test_the_output_head_is_the_embedding_where_the_class_says_so():
    assert not from_config(SMALL).tied_embeddings
    assert from_config({**SMALL, "tie_word_embeddings": True}).tied_embeddings
    assert from_config({**SMALL, "model_type": "gemma2"}).tied_embeddings


def test_a_multimodal_file_is_read_by_its_language_model_and_says_what_is_not_counted():
    shape = from_config(json.dumps({"model_type": "llava", "text_config": SMALL, "vision_config": {"hidden_size": 9}, "hidden_size": 9}))
    assert (shape.hidden_size, len(shape.layers)) == (64, 4)
    assert [render(note) for note in shape.notes] == ["Not counted: the vision tower (vision_config)."]


def test_deepseek_keeps_one_latent_vector_and_has_three_dense_layers():
    shape = model("deepseek-v3")
    assert {layer.attention for layer in shape.layers} == {Attention.LATENT}
    assert [layer.block for layer in shape.layers].count(Block.DENSE) == 3
    assert shape.weight_dtype == "fp8"


def test_linear_layers_have_a_state_of_fixed_size():
    """Figures by hand: value heads x value size x key size, and 3 inputs of the convolution over both keys and the values."""
    mixed = {"linear_num_key_heads": 2, "linear_key_head_dim": 16, "linear_num_value_heads": 4, "linear_value_head_dim": 16}
    shape = from_config({**SMALL, "full_attention_interval": 4, "linear_conv_kernel_dim": 4, "mamba_ssm_dtype": "float32", **mixed})
    assert (shape.state_layers, shape.state.recurrent, shape.state.convolution) == (3, 4 * 16 * 16, 3 * (2 * 2 * 16 + 4 * 16))
    assert shape.state.recurrent_bytes == 4


def test_a_state_whose_size_is_not_given_is_said_and_not_guessed():
    shape = from_config({**SMALL, "layer_types": ["mamba", "attention"] * 2})
    assert shape.state is None
    assert "2 layers without attention" in render(shape.notes[-1])


def test_a_pattern_of_letters_has_mixers_and_blocks():
    sizes = {"mamba_num_heads": 4, "mamba_head_dim": 16, "ssm_state_size": 8, "n_groups": 2, "conv_kernel": 4}
    shape = from_config({**SMALL, "model_type": "nemotron_h", "hybrid_override_pattern": "M-*-", **sizes})
    assert [layer.attention for layer in shape.layers] == [Attention.STATE, Attention.NONE, Attention.FULL, Attention.NONE]
    assert [layer.block for layer in shape.layers] == [Block.NONE, Block.DENSE, Block.NONE, Block.DENSE]
    assert (shape.state.recurrent, shape.state.convolution) == (4 * 16 * 8, 3 * (64 + 2 * 2 * 8))


@pytest.mark.parametrize(
    ("quantization", "dtype"),
    [
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "awq", "bits": 4}, "int4"),
        ({"quant_method": "gptq", "bits": 8}, "int8"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}}, "fp8"),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int"}}}}, "int4"),
        ({"quant_method": "something new"}, "fp16"),
        ({}, "fp16"),
        ([], "fp16"),
    ],
)
def test_the_format_of_the_checkpoint_is_read(quantization, dtype):
    assert from_config({**SMALL, "torch_dtype": "float16", "quantization_config": quantization}).weight_dtype == dtype
