"""What fills the GPU, and what would still fit? Figures compared, each with its origin; what no exporter shows is not room."""

import numpy as np
import pytest
from tests.arrays import START, by_hand, course, facts

from obs import gpu, gpu_events, gpu_live, gpu_use
from obs.language import render
from obs.memory.compare import Live
from obs.memory.figure import GIB, Origin
from obs.memory.listed import gpu as card
from obs.memory.listed import model
from obs.memory.plan import plan
from obs.memory.setup import Setup, listed_gpu
from obs.seen import Shown, Span
from obs.signals import SIGNALS, Buckets, Replica
from obs.verdict import State

STEPS = 240
GPU = {"gpu_memory": 0.9, "gpu_memory_total": 80 * GIB, "gpu_memory_free": 8 * GIB}
QUIET = {"gpu_oom_events": 0.0, "host_oom_kills": 0.0, "gpu_xid": 0.0, "counter_resets": 0.0, "kv_use": 0.3, "generation_tokens": 50.0}
SEVENTY = plan(Setup(model("llama-3.1-8b"), listed_gpu(card("h100-80gb"))))


def made(replicas=1, **levels):
    return facts(by_hand(STEPS, replicas=replicas, **levels))


def figure(found, title):
    return next(f for f in found.figures if render(f.title).startswith(title))


def lane(found, kind):
    return next(lane for lane in gpu_events.lanes(found) if lane.kind == kind)


def sizes(use, plan=None):
    return {part.kind: (round(part.size.gib, 2), part.size.origin) for part in gpu_use.parts(use, plan)}


# ---------------------------------------------------------------- not known


def test_without_any_exporter_it_is_not_known_and_said_what_would_tell():
    found = gpu.answer(made(kv_use=0.3))
    assert found.state is State.UNKNOWN
    assert render(found.says) == "Nobody can tell how full the GPU is: no exporter shows its memory."
    assert render(found.advice[0]) == "looked for gpu_memory, found no series"  # the reading's own reason
    assert {f.value for f in found.figures} == {None}
    assert gpu_use.parts(gpu_use.fullest(made(kv_use=0.3)), SEVENTY) == ()
    assert {lane.kind for lane in gpu_events.lanes(made(kv_use=0.3)) if lane.why is None} == set()


def test_without_replicas_nothing_is_drawn():
    found = made(0)
    assert gpu_use.fullest(found) is None
    assert gpu.answer(found).figures == ()


def test_a_counter_that_nobody_has_is_not_no_event():
    found = gpu.answer(made(**GPU, counter_resets=0.0))
    assert (figure(found, "GPU out-of-memory").value, figure(found, "GPU out-of-memory").state) == (None, State.UNKNOWN)
    assert figure(found, "Restarts").value == 0


# ---------------------------------------------------------------- what fills it


def test_room_is_told_in_both_units_with_the_fullest_replica():
    found = gpu.answer(made(3, **QUIET, **{**GPU, "gpu_memory": [[0.5], [0.9], [0.2]]}))
    assert found.state is State.CLEAR
    assert render(found.says) == "There is room: at most 90 % of the GPU memory was used, on pod-1; 8.59 GB (8 GiB) free."
    used = figure(found, "GPU memory used")
    assert (used.value, render(used.says)) == (0.9, "on pod-1; now 77.3 GB (72 GiB) of 85.9 GB (80 GiB)")
    assert "Raise gpu_memory_utilization only after you have confirmed that the other allocations still fit" in render(found.advice[1])


def test_a_full_gpu_is_suspected_and_not_an_error():
    found = gpu.answer(made(**QUIET, **{**GPU, "gpu_memory": course(STEPS, (0, 0.9), (150, 0.985)), "gpu_memory_free": 1.2 * GIB}))
    assert found.state is State.SUSPECTED
    assert render(found.says).startswith("Nearly nothing is left: 98 % of the GPU memory was used on pod-0; 1.29 GB (1.2 GiB) free")


def test_an_engine_that_tells_its_split_is_believed_and_the_rest_is_what_is_left():
    split = {"weights_memory": 15 * GIB, "kv_memory": 50 * GIB, "graph_memory": 0.5 * GIB}
    use = gpu_use.fullest(made(**QUIET, **GPU, **split))
    assert sizes(use, SEVENTY) == {
        "weights": (15, Origin.MEASURED), "kv": (50, Origin.MEASURED), "graphs": (0.5, Origin.MEASURED), "other": (6.5, Origin.COMPUTED),
        "free": (8, Origin.MEASURED),
    }  # fmt: skip


def test_what_the_engine_does_not_tell_is_computed_from_the_model():
    use = gpu_use.fullest(made(**QUIET, **GPU, kv_capacity_tokens=400_000.0))
    assert sizes(use, SEVENTY) == {
        "weights": (14.96, Origin.COMPUTED), "kv": (48.83, Origin.COMPUTED),  # 400,000 tokens of 128 KiB
        "other": (pytest.approx(72 - 14.96 - 48.83, abs=0.011), Origin.COMPUTED), "free": (8, Origin.MEASURED),
    }  # fmt: skip
    assert sizes(use) == {"other": (72, Origin.MEASURED), "free": (8, Origin.MEASURED)}
    assert not gpu_use.overfull(use, SEVENTY)


def test_what_is_left_over_is_called_by_what_it_may_hold():
    def rest(plan=None, **levels):
        use = gpu_use.fullest(made(**QUIET, **GPU, **levels))
        return next(render(part.title) for part in gpu_use.parts(use, plan) if part.kind == "other")

    assert rest() == "Used: weights, KV cache and all else"
    assert rest(SEVENTY) == "KV cache, activations and what else"
    assert rest(SEVENTY, kv_capacity_tokens=400_000.0) == "Activations, context and what else"
    assert rest(kv_memory=50 * GIB) == "Weights, activations and what else"


def test_a_model_that_cannot_be_the_one_that_runs_is_noticed():
    use = gpu_use.fullest(made(**QUIET, **{**GPU, "gpu_memory": 0.2}, kv_capacity_tokens=400_000.0))
    assert gpu_use.overfull(use, SEVENTY)
    assert [part.kind for part in gpu_use.parts(use, SEVENTY)] == ["weights", "kv", "free"]  # and no rest below nothing


# ---------------------------------------------------------------- what happened


def test_the_four_kinds_are_told_apart():
    grown = course(STEPS, (0, 3.0), (150, 4.0))
    resets = course(STEPS, (0, 0.0), (200, 1.0), (205, 0.0))
    found = made(
        2, **{**QUIET, "counter_resets": [np.zeros(STEPS), resets], "gpu_oom_events": [grown, np.full(STEPS, 3.0)],
              "host_oom_kills": [np.zeros(STEPS), course(STEPS, (0, 1.0), (190, 3.0))],
              "gpu_xid": [course(STEPS, (0, 31.0), (170, 79.0)), np.zeros(STEPS)]},
    )  # fmt: skip
    at = found.grid.times
    assert [(e.at, e.replica) for e in lane(found, "oom").events] == [(at[150], "pod-0")]
    assert [(e.at, e.replica) for e in lane(found, "host").events] == [(at[190], "pod-1")]
    assert [(e.at, render(e.says)) for e in lane(found, "xid").events] == [(at[170], "XID 79: the GPU has fallen off the bus")]
    assert [(e.at, e.replica) for e in lane(found, "restart").events] == [(at[200], "pod-1")]
    said = gpu.answer(found)
    assert said.state is State.APPLIES
    assert render(said.says) == "The GPU ran out of memory 1 time, on pod-0, first at 08:37:30."


def test_an_old_xid_is_no_event_and_an_unknown_code_is_looked_up():
    assert lane(made(**{**QUIET, "gpu_xid": 31.0}), "xid").events == ()
    code = course(STEPS, (0, 0.0), (140, 999.0))
    assert [render(e.says) for e in lane(made(**{**QUIET, "gpu_xid": code}), "xid").events] == ["XID 999: see NVIDIA's list of XID errors"]


def test_without_the_kernels_counter_a_start_after_an_end_by_oomkilled_is_a_kill():
    killed = {"container_oom_killed": course(STEPS, (0, 0.0), (201, 1.0)), "container_restarts": course(STEPS, (0, 1.0), (200, 2.0))}
    quiet = {name: level for name, level in QUIET.items() if name != "host_oom_kills"}
    found = made(**quiet, **killed)
    assert [render(e.says) for e in lane(found, "host").events] == ["killed for host memory"]
    error = made(**quiet, **{**killed, "container_oom_killed": 0.0})
    assert (lane(error, "host").events, len(lane(error, "restart").events)) == ((), 1)


# ---------------------------------------------------------------- what the planner takes from the window


def test_lengths_are_the_windows_with_the_mean_answer_and_bounds_are_called_so():
    readings = by_hand(STEPS, means={"output_length": 100.0, "prompt_length": 300.0})
    bounds = np.array([100.0, 1000.0, np.inf])
    readings.buckets["prompt_length"] = Buckets(SIGNALS["prompt_length"], bounds, np.outer([60.0, 100.0, 100.0], np.ones(STEPS)))
    found = gpu_live.lengths(facts(readings))
    assert [(length.label, round(length.tokens)) for length in found] == [("p50 ≤", 200), ("p95", 988), ("max ≤", 1100)]
    del readings.buckets["prompt_length"]
    assert [(length.label, length.tokens) for length in gpu_live.lengths(facts(readings))] == [("mean", pytest.approx(400.0))]
    assert gpu_live.lengths(made(kv_use=0.5)) == ()


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", "llama-3.1-70b"),
        ("Qwen/Qwen3-32B-AWQ", "qwen3-32b"),
        ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "qwen3-8b"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("microsoft/phi-4-mini-instruct", None),
        ("my-model", None),
        ("", None),
    ],
)
def test_the_engines_model_name_means_a_listed_model_or_none(name, wanted):
    readings = by_hand(STEPS, kv_use=0.5)
    object.__setattr__(readings, "replicas", (Replica("pod-0", "prod", name, "vllm"),))
    assert gpu_live.guessed(facts(readings)) == wanted


# ---------------------------------------------------------------- what the engine's labels tell


def info(metric="vllm:cache_config_info", **labels):
    return Shown(metric, {"pod": "a", **labels}, (Span(START, None),))


def test_without_labels_the_share_is_the_measured_one_and_nothing_else_is_known():
    assert gpu_live.engine((), made(gpu_memory_share=0.85)) == Live(utilization=0.85)
    other = info("vllm:lora_config_info", cache_dtype="fp8", num_gpu_blocks_override="7")
    assert gpu_live.engine((other,), made(kv_use=0.5)) == Live()


def test_of_several_engines_the_one_with_the_smallest_cache_tells_why():
    infos = (
        info(kv_cache_size_tokens="400000", cache_dtype="auto", gpu_memory_utilization="0.9"),
        info(kv_cache_size_tokens="25600", num_gpu_blocks_override="1600", cache_dtype="fp8", gpu_memory_utilization="0.5"),
    )
    found = gpu_live.engine(infos, made(gpu_memory_share=0.85))
    assert (found.fixed_blocks, found.kv_dtype, found.utilization) == (1600, "fp8", 0.5)
