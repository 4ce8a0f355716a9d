"""The bands against what engines measured: start-up logs of vLLM that people posted, five of the seven with their addresses."""

from dataclasses import replace

import pytest

from obs.memory.config_json import from_config
from obs.memory.figure import GIB
from obs.memory.listed import model
from obs.memory.plan import plan
from obs.memory.setup import Setup, given_gpu
from obs.memory.split import Parallel

QWEN_1_5B = from_config(
    {
        "model_type": "qwen2",
        "num_hidden_layers": 28,
        "hidden_size": 1536,
        "intermediate_size": 8960,
        "num_attention_heads": 12,
        "num_key_value_heads": 2,
        "vocab_size": 151_936,
        "tie_word_embeddings": True,
    }
)  # Qwen/Qwen2.5-1.5B-Instruct
LLAMA_8B, QWEN_8B = model("llama-3.1-8b"), model("qwen3-8b")

# (setup, weights, activations, outside the allocator, KV pool) in GiB on a GPU; None where the log does not say
LOGS = {
    # https://github.com/vllm-project/vllm/pull/10511
    "Llama 3 8B on an H100": (
        Setup(LLAMA_8B, given_gpu(79.22), max_model_len=8192), 14.96, 1.26, 1.79, 53.29
    ),
    # the same, tensor parallel; the log was cut before the pool
    "Llama 3 8B on two H100": (
        Setup(LLAMA_8B, given_gpu(79.22), parallel=Parallel(2), max_model_len=8192), 7.48, 1.26, 3.58, None
    ),
    # https://github.com/vllm-project/vllm/issues/10517: no chunked prefill, so the batch is the longest sequence
    "Llama 3.1 8B on an RTX 3090, 20,000 tokens": (
        Setup(LLAMA_8B, given_gpu(23.58), max_num_batched_tokens=20_000, max_model_len=20_000), 14.99, 17.06 - 14.99, 0.35, 3.81
    ),
    "Llama 3.1 8B on an RTX 3090, 29,000 tokens": (
        Setup(LLAMA_8B, given_gpu(23.58), max_num_batched_tokens=29_000, max_model_len=20_000), 14.99, 17.98 - 14.99, 0.35, 2.89
    ),
    # a notebook's log: Tesla T4, vLLM 0.7, gpu_memory_utilization 0.5
    "Qwen2.5 1.5B on a T4": (
        Setup(QWEN_1_5B, given_gpu(14.56), gpu_memory_utilization=0.5, max_num_batched_tokens=32_768, max_model_len=32_768),
        2.89, 2.02, 0.01, 2.36,
    ),
    # a deployment guide's log: four GPUs of 21.48 GiB, vLLM 0.8.5, eager, `DeepSeek-R1-0528-Qwen3-8B`
    "Qwen3 8B on four small GPUs": (
        Setup(
            QWEN_8B, given_gpu(21.48), parallel=Parallel(4), gpu_memory_utilization=0.93, max_model_len=65_536, cuda_graphs=False
        ),
        3.85, 1.45, 0.20, 14.49,
    ),
    # https://github.com/vllm-project/vllm/issues/21348
    "Qwen3 235B FP8 on four H100": (
        Setup(model("qwen3-235b-a22b"), given_gpu(79.22), weights="fp8", parallel=Parallel(4), max_num_seqs=1024),
        None, None, None, 8.11,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_a_measured_start_lies_in_the_bands(name):
    setup, weights, active, other, pool = LOGS[name]
    made = plan(setup)
    if weights is not None:
        assert made.weights_on_gpu.gib == pytest.approx(weights, rel=0.02)
    if active is not None:
        assert made.activations.contains(active * GIB), made.activations.gib
    if other is not None:
        assert made.other.contains(other * GIB), made.other.gib
    if pool is not None:
        assert made.pool.contains(pool * GIB), made.pool.gib


def test_a_measured_pool_holds_the_tokens_that_the_engine_counted():
    """178,880 tokens in 8.11 GiB on each of four GPUs, by the same log: 48,128 bytes a token there."""
    setup, *_, pool = LOGS["Qwen3 235B FP8 on four H100"]
    made = plan(setup)
    assert made.token_on_gpu.value == 48_128
    assert pool * GIB / made.token_on_gpu.value == pytest.approx(178_880, rel=0.015)
    assert made.capacity.contains(178_880)


def test_a_band_is_no_wider_than_what_it_has_to_allow_for():
    """A band that holds everything says nothing: on one GPU it spans less than 8 % of it, and the tokens less than twice."""
    made = plan(LOGS["Llama 3 8B on an H100"][0])
    assert made.pool.high - made.pool.low < 0.08 * 79.22 * GIB
    assert made.capacity.high < 1.2 * made.capacity.low


def test_the_narrowest_batch_of_the_log_shows_that_the_band_follows_the_batch():
    wide = LOGS["Llama 3.1 8B on an RTX 3090, 29,000 tokens"][0]
    narrow = replace(wide, max_num_batched_tokens=512, max_num_seqs=8)
    assert plan(narrow).activations.high < 0.2 * plan(wide).activations.high
