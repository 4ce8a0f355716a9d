"""Weights and KV cache in bytes: the article's figures, and what splitting, windows and blocks do to them."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obs.errors import CallError
from obs.memory.config_json import from_config
from obs.memory.dtype import WEIGHTS
from obs.memory.figure import GIB
from obs.memory.kv import KvCache, growing_token_bytes, sequence_by_stage, sequence_bytes, token_by_stage, token_bytes
from obs.memory.listed import model, models
from obs.memory.split import Parallel, stages
from obs.memory.weights import model_weights, nominal_weights, raw_bytes, weights_by_stage

FP16, FP8 = KvCache("fp16"), KvCache("fp8")
LISTED = st.sampled_from(sorted(models()))
TENSOR = st.sampled_from([1, 2, 4, 8])
SPLITS = st.builds(Parallel, TENSOR, st.integers(1, 8))


def test_a_dtype_that_is_none_is_refused_with_the_ones_there_are():
    with pytest.raises(CallError, match="is no KV cache dtype"):
        KvCache("fp5")
    with pytest.raises(CallError, match="must lie between"):
        KvCache("fp16", 0)
    with pytest.raises(CallError, match="must lie between"):
        Parallel(0)
    with pytest.raises(CallError, match="fewer than"):
        stages(model("llama-3.1-8b"), 33)


def test_seventy_billion_in_fp16_are_140_gb():
    assert raw_bytes(70e9, WEIGHTS["fp16"]) == 140e9
    assert nominal_weights(model("llama-3.1-70b"), WEIGHTS["fp16"]).gb == 140.0
    assert model_weights(model("llama-3.1-70b"), WEIGHTS["fp16"]).gb == pytest.approx(141.2)
    assert nominal_weights(model("mixtral-8x7b"), WEIGHTS["fp16"]) is None


@pytest.mark.parametrize(("name", "kib"), [("llama-3.1-70b", 320), ("llama-3.1-8b", 128), ("gemma-3-27b", 496), ("mistral-small-24b", 160)])
def test_the_kv_cache_of_a_token(name, kib):
    assert token_bytes(model(name), FP16) == kib * 1024


def test_the_article_s_sequence_takes_40_gib_and_deepseek_s_8_58():
    assert sequence_bytes(model("llama-3.1-70b"), FP16, 131_072) == 40 * GIB
    assert sequence_bytes(model("llama-3.1-70b"), FP8, 131_072) == 20 * GIB
    assert sequence_bytes(model("deepseek-v3"), FP16, 131_072) == 61 * 576 * 2 * 131_072
    assert sequence_bytes(model("deepseek-v3"), FP16, 131_072) / GIB == pytest.approx(8.58, abs=0.005)


def test_a_checkpoint_s_published_size_is_met():
    """gpt-oss: 60.8 and 12.8 GiB by its model card; a format that covers the experts only."""
    assert model_weights(model("gpt-oss-120b"), WEIGHTS["mxfp4"]).gib == pytest.approx(60.8, rel=0.005)
    assert model_weights(model("gpt-oss-20b"), WEIGHTS["mxfp4"]).gib == pytest.approx(12.8, rel=0.005)


def test_four_bits_carry_their_scales_and_leave_the_ends_in_sixteen():
    """By hand: 68.45e9 in the layers x 0.51953 B, and twice 128,256 x 8,192 x 2 B, scaled to the published 70.6e9."""
    ends = 2 * 128_256 * 8_192
    counted = 70_553_706_496
    by_hand = ((counted - ends) * (0.5 + 2.5 / 128) + ends * 2) * 70.6e9 / counted
    assert model_weights(model("llama-3.1-70b"), WEIGHTS["int4"]).value == pytest.approx(by_hand, rel=1e-4)


def test_the_ends_lie_on_the_outer_stages_and_kv_projections_are_copied_with_their_heads():
    """Llama 3.1 70B by hand: a layer, embedding and head in values, 16 ranks for 8 KV heads."""
    shape, bf16 = replace(model("llama-3.1-70b"), parameters=0.0), WEIGHTS["bf16"]
    hidden, end = 8_192, 128_256 * 8_192
    split, keys, norms = 2 * hidden * hidden + 3 * hidden * 28_672, 2 * hidden * 1_024, 2 * hidden
    first, middle, last = weights_by_stage(replace(shape, tied_embeddings=False, layers=shape.layers[:3]), bf16, Parallel(16, 3))
    assert middle == pytest.approx(2 * (split / 16 + keys / 8 + norms))
    assert first == last == pytest.approx(middle + 2 * end / 16)
    tied = weights_by_stage(replace(shape, tied_embeddings=True, layers=shape.layers[:3]), bf16, Parallel(16, 3))
    assert tied == pytest.approx((first, middle, last))  # the last stage needs the embedding as its head
    assert model_weights(replace(shape, tied_embeddings=True), bf16).value == pytest.approx(2 * (80 * (split + keys + norms) + end))


def test_a_window_bounds_a_layer_and_only_that():
    """Gemma 3 27B: 10 layers keep everything, 52 keep 1,024 tokens and a block beside."""
    shape = model("gemma-3-27b")
    each = 2 * 16 * 128 * 2
    assert sequence_bytes(shape, FP16, 512) == 62 * each * 512
    assert sequence_bytes(shape, FP16, 131_072) == 10 * each * 131_072 + 52 * each * (1024 + 16)
    assert growing_token_bytes(shape, FP16) == 10 * each


def test_a_sequence_takes_whole_blocks():
    shape = model("llama-3.1-8b")
    assert sequence_bytes(shape, FP16, 1) == sequence_bytes(shape, FP16, 16) == 16 * token_bytes(shape, FP16)
    assert sequence_bytes(shape, FP16, 17) == 32 * token_bytes(shape, FP16)
    assert sequence_bytes(shape, FP16, 0) == 0


def test_heads_are_copied_where_gpus_outnumber_them_and_a_latent_vector_always():
    assert token_by_stage(model("llama-3.1-70b"), FP16, Parallel(8)) == (40 * 1024,)
    assert token_by_stage(model("llama-3.1-70b"), FP16, Parallel(16)) == (40 * 1024,)
    assert token_by_stage(model("deepseek-v3"), FP16, Parallel(8)) == (61 * 576 * 2,)
    assert token_by_stage(model("llama-3.1-70b"), FP16, Parallel(8, 2)) == (20 * 1024, 20 * 1024)


def test_a_state_does_not_grow():
    mixed = {"linear_num_key_heads": 2, "linear_key_head_dim": 16, "linear_num_value_heads": 4, "linear_value_head_dim": 16}
    base = {
        "num_hidden_layers": 4,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "vocab_size": 100,
        "head_dim": 16,
    }
    shape = from_config({**base, "full_attention_interval": 4, **mixed})
    state = 3 * (4 * 16 * 16 * 2 + 3 * (4 * 16 + 4 * 16) * 2)
    assert sequence_bytes(shape, FP16, 16) == state + 16 * 2 * 16 * 2
    assert sequence_bytes(shape, FP16, 160) == state + 160 * 2 * 16 * 2


def test_layers_that_do_not_divide_go_to_the_last_stages_but_one():
    assert [len(part) for part in stages(model("deepseek-v3"), 4)] == [15, 15, 16, 15]
    assert [len(part) for part in stages(replace(model("llama-3.1-8b"), layers=model("llama-3.1-8b").layers[:6]), 4)] == [1, 2, 2, 1]


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(LISTED, SPLITS, st.sampled_from(sorted(WEIGHTS)))
def test_splitting_loses_no_weights(name, parallel, dtype):
    whole = model_weights(model(name), WEIGHTS[dtype]).value
    held = weights_by_stage(model(name), WEIGHTS[dtype], parallel)
    assert len(held) == parallel.pipeline
    assert sum(held) * parallel.tensor >= whole * (1 - 1e-9)
    if parallel.gpus == 1:
        assert sum(held) == pytest.approx(whole)


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(LISTED, SPLITS, st.integers(0, 300_000), st.integers(0, 5_000))
def test_splitting_loses_no_kv_cache_and_longer_never_takes_less(name, parallel, tokens, more):
    shape = model(name)
    held = sequence_by_stage(shape, FP16, tokens, parallel)
    assert sum(held) * parallel.tensor >= sequence_bytes(shape, FP16, tokens) * (1 - 1e-9)
    longer = sequence_by_stage(shape, FP16, tokens + more, parallel)
    assert all(short <= long for short, long in zip(held, longer, strict=True))
    assert sequence_bytes(shape, FP16, tokens) <= tokens * token_bytes(shape, FP16) + 16 * token_bytes(shape, FP16)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(LISTED, TENSOR, st.sampled_from(sorted(WEIGHTS)))
def test_more_gpus_never_hold_more_each(name, tensor, dtype):
    one, two = (max(weights_by_stage(model(name), WEIGHTS[dtype], Parallel(n))) for n in (tensor, tensor * 2))
    assert two < one
    assert token_by_stage(model(name), FP16, Parallel(tensor * 2)) <= token_by_stage(model(name), FP16, Parallel(tensor))
