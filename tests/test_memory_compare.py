"""The plan against the engine: within the band or not, and which sentence explains it."""

import pytest

from obs.language import render
from obs.memory.compare import Comparison, Live, Stands, compare, live_from_labels
from obs.memory.kv import KvCache
from obs.memory.listed import gpu, model
from obs.memory.plan import plan
from obs.memory.setup import Setup, listed_gpu
from obs.memory.split import Parallel

MADE = plan(Setup(model("llama-3.1-70b"), listed_gpu(gpu("h100-80gb")), parallel=Parallel(4)))
LOW, HIGH = MADE.capacity.low, MADE.capacity.high


def said(found: Comparison) -> str:
    for lang in ("en", "es"):
        assert "{" not in render(found.says, lang) + "".join(render(reason, lang) for reason in found.reasons)
    return " ".join(render(reason) for reason in found.reasons)


@pytest.mark.parametrize("nothing", [None, float("nan"), float("inf")])
def test_an_engine_that_shows_no_capacity_is_not_compared(nothing):
    found = compare(MADE, nothing)
    assert (found.stands, found.live, found.difference, found.reasons) == (Stands.UNKNOWN, None, None, ())
    assert "shows no KV capacity" in render(found.says)


def test_within_the_band_nothing_is_explained():
    found = compare(MADE, (LOW + HIGH) / 2)
    assert (found.stands, found.difference.value, found.reasons) == (Stands.WITHIN, 0, ())
    assert "lie in the planned" in render(found.says)


def test_the_difference_is_counted_from_the_nearest_end_of_the_band():
    below, above = compare(MADE, LOW - 1000), compare(MADE, HIGH + 1000)
    assert (below.stands, below.difference.value) == (Stands.BELOW, pytest.approx(-1000))
    assert (above.stands, above.difference.value) == (Stands.ABOVE, pytest.approx(1000))
    assert "1,000 tokens fewer than planned at least" in render(below.says)
    assert "1,000 tokens more than planned at most" in render(above.says)
    assert "another process on the GPU" in said(below)
    assert "mem_fraction_static" in said(above)


def test_settings_that_differ_are_named_first():
    live = live_from_labels({"gpu_memory_utilization": "0.92", "cache_dtype": "fp8_e4m3", "num_gpu_blocks_override": "None"})
    reasons = [render(reason) for reason in compare(MADE, HIGH * 2.2, live).reasons]
    assert reasons[:2] == [
        "The engine runs with gpu_memory_utilization 92 %, the plan with 90 %.",
        "The engine keeps the KV cache as fp8, the plan as bf16.",
    ]


def test_a_fixed_pool_is_said_even_where_the_figures_agree():
    live = Live(fixed_blocks=800, fixed_bytes=2.0**30, utilization=0.9, kv_dtype="bf16")
    words = said(compare(MADE, LOW, live))
    assert "fixes the pool at 800 blocks" in words
    assert "kv_cache_memory_bytes fixes the pool at 1 GiB" in words


def test_where_the_pool_is_fixed_nothing_else_is_suspected():
    assert [render(reason) for reason in compare(MADE, LOW / 2, Live(fixed_blocks=800, kv_dtype="bf16")).reasons] == [
        "num_gpu_blocks_override fixes the pool at 800 blocks, however much memory is free."
    ]


@pytest.mark.parametrize(
    ("factor", "live", "expected", "unexpected"),
    [
        (2, Live(), "8 bits instead of 16", "16 bits instead of 8"),
        (2, Live(kv_dtype="bf16"), "about 2 times the plan", "8 bits"),
        (4, Live(), "about 4 times the plan", "8 bits"),
        (0.5, Live(), "another process", "8 bits"),
    ],
)
def test_a_factor_says_what_it_is(factor, live, expected, unexpected):
    words = said(compare(MADE, (LOW + HIGH) / 2 * factor, live))
    assert expected in words
    assert unexpected not in words


def test_half_of_an_eight_bit_plan_is_a_sixteen_bit_cache():
    made = plan(Setup(model("llama-3.1-70b"), listed_gpu(gpu("h100-80gb")), kv=KvCache("fp8"), parallel=Parallel(4)))
    assert "16 bits instead of 8" in said(compare(made, made.capacity.low * 0.55))


def test_layers_that_keep_different_amounts_are_counted_in_different_ways():
    made = plan(Setup(model("gemma-3-27b"), listed_gpu(gpu("h100-80gb"))))
    assert "count such a pool in different ways" in said(compare(made, made.capacity.high * 3))
    assert "count such a pool" not in said(compare(MADE, HIGH * 3))


def test_the_engine_s_labels_are_read_and_what_is_not_set_stays_unknown():
    """As vLLM 0.32 shows them, and as versions before 0.24 did."""
    labels = {
        "block_size": "32",
        "cache_dtype": "auto",
        "gpu_memory_utilization": "0.92",
        "kv_cache_memory_bytes": "1073741824",
        "kv_cache_size_tokens": "25600",
        "num_gpu_blocks": "800",
        "num_gpu_blocks_override": "800",
    }
    assert live_from_labels(labels) == Live(25_600, 32, 800, 0.92, "bf16", 2.0**30, 800)
    old = live_from_labels({"block_size": "16", "num_gpu_blocks": "1000", "kv_cache_memory_bytes": "None", "cache_dtype": "weird"})
    assert old == Live(16_000, 16, 1000)
    assert live_from_labels({}) == live_from_labels({"block_size": "nan", "num_gpu_blocks": "-4"}) == Live()
