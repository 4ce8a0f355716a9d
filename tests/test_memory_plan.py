"""A plan: budget, what fills it, what is left, and what fits; labels that say how sure each figure is."""

import math
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obs.errors import CallError
from obs.language import render
from obs.memory.config_json import from_config
from obs.memory.dtype import KV_BYTES, WEIGHTS
from obs.memory.figure import GIB, Band, Figure, Origin
from obs.memory.kv import KvCache
from obs.memory.listed import gpu, gpus, model, models
from obs.memory.plan import Fits, Plan, plan
from obs.memory.setup import Length, Setup, default_limits, given_gpu, listed_gpu, measured_gpu
from obs.memory.split import Parallel
from obs.text import say

H100 = listed_gpu(gpu("h100-80gb"))
SEVENTY = Setup(
    model("llama-3.1-70b"),
    H100,
    parallel=Parallel(4),
    lengths=(Length("p50", 800.2), Length("p95", 4000), Length("max", 500_000)),
    sequences=20,
)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"gpu_memory_utilization": 0.0}, "gpu_memory_utilization"),
        ({"gpu_memory_utilization": 1.5}, "gpu_memory_utilization"),
        ({"gpu_memory_utilization": math.nan}, "gpu_memory_utilization"),
        ({"max_num_batched_tokens": 0}, "max_num_batched_tokens"),
        ({"max_num_seqs": -1}, "max_num_seqs"),
        ({"sequences": 0}, "sequences"),
        ({"gpu": given_gpu(-80)}, "GPU memory in GiB"),
        ({"gpu": given_gpu(math.inf)}, "GPU memory in GiB"),
        ({"weights": "fp5"}, "fp5"),
        ({"parallel": Parallel(3)}, "64"),
        ({"lengths": (Length("p95", math.nan),)}, "p95"),
    ],
)
def test_a_setting_out_of_its_limits_is_refused_by_name(change, named):
    with pytest.raises(CallError) as caught:
        replace(SEVENTY, **change)
    assert named in render(caught.value.says)
    assert "{" not in render(caught.value.says, "es")


def test_the_parts_add_up_to_the_budget():
    made = plan(SEVENTY)
    assert made.budget.gib == pytest.approx(0.9 * 79.22)
    assert made.outside.gib == pytest.approx(0.1 * 79.22)
    assert made.weights_on_gpu.gb == pytest.approx(141.2 / 4, rel=1e-3)
    assert made.pool.low == pytest.approx(made.budget.value - made.weights_on_gpu.value - made.overhead.high)
    assert made.pool.high == pytest.approx(made.budget.value - made.weights_on_gpu.value - made.overhead.low)


def test_the_lengths_seen_are_whole_tokens_and_none_is_longer_than_the_engine_accepts():
    made = plan(SEVENTY)
    assert [(fit.length.label, fit.length.tokens) for fit in made.lengths] == [("p50", 801), ("p95", 4000), ("max", 131_072)]
    assert [fit.each.gib for fit in made.lengths] == pytest.approx([816 * 320 / 2**20, 4000 * 320 / 2**20, 40.0])
    assert [fit.each_on_gpu.value * 4 for fit in made.lengths] == pytest.approx([fit.each.value for fit in made.lengths])


def test_what_fits_is_the_pool_by_the_sequence():
    made = plan(SEVENTY)
    for fit in made.lengths:
        assert fit.sequences.low == made.pool.low // fit.each_on_gpu.value
        assert fit.sequences.high == made.pool.high // fit.each_on_gpu.value
        assert fit.running.high <= SEVENTY.max_num_seqs
    assert made.capacity.low == pytest.approx(made.pool.low / (80 * 1024))
    assert made.longest.low == made.pool.low // (80 * 1024 * 16) * 16


def test_headroom_is_a_band_that_falls_below_nothing():
    """20 sequences of 800 tokens fit, 20 of 131,072 do not: both ends are said."""
    made = plan(SEVENTY)
    assert made.headroom.low == pytest.approx(made.pool.low - 20 * 10 * GIB)
    assert made.headroom.high == pytest.approx(made.pool.high - 20 * 816 * 80 * 1024)
    assert made.headroom.low < 0 < made.headroom.high


def test_every_figure_says_how_sure_it_is_and_how_it_came_about():
    made = plan(SEVENTY)
    found = {f.name: getattr(made, f.name) for f in fields(Plan) if isinstance(getattr(made, f.name), Figure | Band)}
    assert {name: figure.origin for name, figure in found.items()} == {
        "budget": Origin.ASSUMED,  # the GPU is one of the list
        "outside": Origin.ASSUMED,
        "weights": Origin.COMPUTED,
        "weights_nominal": Origin.COMPUTED,
        "weights_on_gpu": Origin.COMPUTED,
        "activations": Origin.ASSUMED,
        "other": Origin.ASSUMED,
        "graphs": Origin.ASSUMED,
        "left": Origin.ASSUMED,
        "pool": Origin.ASSUMED,
        "token": Origin.COMPUTED,
        "token_on_gpu": Origin.COMPUTED,
        "growing": Origin.COMPUTED,
        "capacity": Origin.ASSUMED,
        "longest": Origin.ASSUMED,
        "headroom": Origin.ASSUMED,
    }
    for lang in ("en", "es"):
        assert [name for name, figure in found.items() if not render(figure.how, lang) or not render(figure.says, lang)] == []
    measured = plan(replace(SEVENTY, gpu=measured_gpu(80 * GIB)))
    assert (measured.budget.origin, measured.pool.origin) == (Origin.MEASURED, Origin.ASSUMED)
    assert "70.6 billion parameters (published)" in render(made.weights.how)


def test_a_size_is_written_in_both_units():
    how = say("as given")
    assert render(Figure(140e9, Origin.COMPUTED, how).says) == "140 GB (130 GiB)"
    assert render(Figure(61 * 576 * 2 * 131_072, Origin.COMPUTED, how).says) == "9.21 GB (8.58 GiB)"
    assert render(Figure(61 * 576 * 2 * 131_072, Origin.COMPUTED, how).says, "es") == "9,21 GB (8,58 GiB)"
    assert render(Figure(327_680, Origin.COMPUTED, how).says) == "328 kB (320 KiB)"
    assert render(Band(1e9, 2e9, Origin.ASSUMED, how).says) == "1 GB (954 MiB) to 2 GB (1.86 GiB)"
    assert render(Band(3, 3, Origin.ASSUMED, how, "count").says) == "3"
    with pytest.raises(ValueError, match="not below"):
        Band(2, 1, Origin.ASSUMED, how)


@pytest.mark.parametrize(
    ("change", "fits", "says"),
    [
        ({}, Fits.YES, "Fits: 35.3 GB (32.9 GiB)"),
        ({"parallel": Parallel(1)}, Fits.NO, "Does not fit: the weights take 141 GB (132 GiB)"),
        ({"parallel": Parallel(2)}, Fits.TOO_LONG, "not one sequence of 131,072 tokens"),
        ({"parallel": Parallel(2), "max_model_len": 8192}, Fits.PERHAPS, "May fit"),
        ({"parallel": Parallel(1), "weights": "int4", "max_model_len": 8192}, Fits.YES, "Fits: 39.8 GB"),
    ],
)
def test_the_verdict_says_whether_it_fits_and_what_to_do(change, fits, says):
    made = plan(replace(SEVENTY, **change))
    assert made.fits is fits
    assert says in render(made.says)
    assert "{" not in render(made.says, "es")


def test_the_stage_with_the_most_layers_is_the_tightest():
    """Of 126 layers the inner stages have 32; the outer ones 31, and an end of 2.1e9 values, which is less than a layer of 3.2e9."""
    made = plan(Setup(model("llama-3.1-405b"), listed_gpu(gpu("h200")), parallel=Parallel(4, 4), max_model_len=8192))
    assert made.stage in (1, 2)
    assert made.weights_on_gpu.gb == pytest.approx(32 * 2 * 3.1882e9 / 4 / 1e9, rel=0.01)


def test_a_model_that_keeps_nothing_needs_no_pool():
    shape = from_config(
        {"hybrid_override_pattern": "----", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 9}
    )
    made = plan(Setup(shape, H100))
    assert made.fits is Fits.YES
    assert made.capacity.high == 0


def test_the_limits_follow_the_gpu_as_vllm_sets_them():
    assert default_limits(gpu("h100-80gb")) == (8192, 1024)
    assert default_limits(gpu("a100-80gb")) == (2048, 256)
    assert default_limits(gpu("l4")) == (2048, 256)


SETUPS = st.builds(
    Setup,
    st.sampled_from(sorted(models())).map(model),
    st.sampled_from([listed_gpu(found) for found in gpus().values()]),
    st.sampled_from(["", *sorted(WEIGHTS)]),
    st.builds(KvCache, st.sampled_from(sorted(KV_BYTES)), st.sampled_from([1, 16, 64])),
    st.builds(Parallel, st.sampled_from([1, 2, 4]), st.integers(1, 4)),
    st.sampled_from([0.3, 0.8, 0.9, 0.95]),
    st.sampled_from([256, 2048, 8192]),
    st.sampled_from([1, 64, 256, 1024]),
    st.sampled_from([0, 1000, 131_072]),
    st.booleans(),
    st.just((Length("p50", 700), Length("max", 30_000))),
    st.sampled_from([1, 30]),
).filter(lambda setup: setup.shape.attention_heads % setup.parallel.tensor == 0)
many = settings(max_examples=60, deadline=None, derandomize=True, database=None)


@many
@given(SETUPS)
def test_whatever_is_planned_the_bands_hold_together(setup):
    made = plan(setup)
    assert 0 <= made.pool.low <= made.pool.high <= made.budget.value <= setup.gpu.value
    assert made.growing.value <= made.token.value
    assert made.token_on_gpu.value <= made.token.value
    short, long = made.lengths
    assert (long.sequences.low, long.sequences.high) <= (short.sequences.low, short.sequences.high)
    if setup.parallel.pipeline == 1:
        assert (made.fits is Fits.NO) == (made.left.high <= 0)
    assert render(made.says)
    assert render(made.says, "es")


@many
@given(SETUPS, st.floats(0.1, 200))
def test_more_memory_never_fits_fewer(setup, more_gib):
    bigger = replace(setup, gpu=given_gpu(setup.gpu.gib + more_gib))
    for before, after in zip(plan(setup).lengths, plan(bigger).lengths, strict=True):
        assert after.sequences.low >= before.sequences.low
        assert after.sequences.high >= before.sequences.high


@many
@given(SETUPS)
def test_a_smaller_kv_cache_a_higher_share_and_smaller_batches_never_fit_fewer(setup):
    before = plan(setup).lengths[0].sequences
    for change in (
        {"kv": KvCache("fp8", setup.kv.block_size)} if setup.kv.each > 1 else {},
        {"gpu_memory_utilization": 0.99},
        {"max_num_batched_tokens": 128, "max_num_seqs": 1},
        {"cuda_graphs": False},
        {"max_model_len": setup.longest * 2},
    ):
        after = plan(replace(setup, **change)).lengths[0].sequences
        assert after.low >= before.low
        assert after.high >= before.high


@many
@given(SETUPS)
def test_twice_the_tensor_parallelism_never_fits_fewer(setup):
    """On GPUs that work together already: the step from one to two also brings the buffers of their communication."""
    if setup.parallel.gpus == 1 or setup.shape.attention_heads % (setup.parallel.tensor * 2):
        return
    wider = replace(setup, parallel=Parallel(setup.parallel.tensor * 2, setup.parallel.pipeline))
    before, after = plan(setup).lengths[0].sequences, plan(wider).lengths[0].sequences
    assert (after.low, after.high) >= (before.low, before.high)
