"""The symptom table: four rows in the article's order, each with its symptom, what explains it and what speaks against it.

A row *applies* on a replica where its symptom and at least one explanation hold together (both, `every`, where the row says so), and
nothing excuses the replica: it is not stalled, down or warming up. One without the other is *suspected*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from obs.conditions import Condition, Limit
from obs.text import Message, say
from obs.titles import ROWS

PRESSURE = (
    Condition(
        "kv_use", "kv_use", say("KV cache use"), say("KV cache use is at {limit} or more"), "ratio",
        lambda f: f.values("kv_use"), Limit(floor="kv_use"), telling=False,
    ),
    Condition(
        "preemptions", "preemptions", say("Preemptions"), say("preemptions reach {limit}, and twice what is usual"), "per_second",
        lambda f: f.recent_rate("preemptions"), Limit(floor="preemptions", ratio="pressure_ratio"),
    ),
    Condition(
        "waiting", "requests_waiting", say("Waiting requests"), say("{limit} and more requests wait, and the queue leads"), "count",
        lambda f: np.where(f.queue_leads, f.values("requests_waiting"), np.minimum(f.values("requests_waiting"), 0.0)),
        Limit(floor="waiting", ratio="pressure_ratio"),
    ),
)  # fmt: skip

LATENCY = (
    Condition(
        "e2e_latency", "e2e_latency", say("End-to-end latency, mean"), say("the mean end-to-end latency reaches {limit}"), "seconds",
        lambda f: f.mean("e2e_latency"), Limit(ratio="latency_ratio", rise="latency_rise"), "e2e_latency",
    ),
    Condition(
        "itl", "itl", say("Inter-token latency, mean"), say("the mean time between tokens reaches {limit}"), "seconds",
        lambda f: f.mean("itl"), Limit(ratio="itl_ratio", rise="itl_rise", absolute="itl_limit"), "itl",
    ),
    Condition(
        "ttft", "ttft", say("Time to first token, mean"), say("the mean time to first token reaches {limit}"), "seconds",
        lambda f: f.mean("ttft"), Limit(ratio="ttft_ratio", rise="ttft_rise", absolute="ttft_limit", by_prompt=True), "ttft",
    ),
    Condition(
        "expected_wait", "requests_waiting", say("Wait by Little's law"),
        say("waiting over completions per second reaches {limit}"), "seconds",
        lambda f: f.expected_wait, Limit(ratio="pressure_ratio", rise="wait_limit", absolute="wait_limit"),
    ),
)  # fmt: skip

FIRST_TOKEN = (
    LATENCY[2],
    Condition(
        "gateway_ttft", "gateway_ttft", say("Time to first token at the gateway, mean"),
        say("the mean time to first token at the gateway reaches {limit}"), "seconds",
        lambda f: f.edge_ttft, Limit(ratio="ttft_ratio", rise="ttft_rise", absolute="ttft_limit", by_prompt=True), "gateway_ttft",
    ),
    Condition(
        "network", "gateway_ttft", say("Network: gateway less engine"),
        say("the time between gateway and engine reaches {limit}"), "seconds",
        lambda f: f.network, Limit(ratio="ttft_ratio", rise="network_rise", absolute="ttft_limit"), "gateway_ttft",
    ),
)  # fmt: skip

STAGES = ("queue", "tokenization", "prefill", "network")

RETRIES = (
    Condition(
        "retry_ratio", "gateway_retries", say("Retries per request"), say("retries reach {limit} of the requests"), "ratio",
        lambda f: f.retry_ratio, Limit(floor="retry_ratio", ratio="pressure_ratio"),
    ),
    Condition(
        "timeouts", "gateway_timeouts", say("Time-outs in ten minutes"), say("{limit} and more time-outs in ten minutes"), "count",
        lambda f: f.timeouts, Limit(floor="timeouts", ratio="pressure_ratio"),
    ),
)  # fmt: skip

WORK_LEFT = (
    Condition(
        "work_left", "requests_running", say("Work still running"),
        say("running and waiting requests do not fall under {limit}, most of the usual"), "count",
        lambda f: f.work, Limit(floor="least_work", ratio="work_left"), stays=True, telling=False,
    ),
    Condition(
        "waste", "generation_tokens", say("Tokens made for nobody"), say("{limit} of the generated tokens reach nobody"), "ratio",
        lambda f: f.fleet_waste, Limit(floor="waste"),
    ),
)  # fmt: skip

ERRORS = Condition(
    "error_ratio", "gateway_errors", say("Errors, time-outs aside"), say("{limit} of the answers are errors"), "ratio",
    lambda f: f.error_ratio, Limit(floor="error_ratio", ratio="pressure_ratio"),
)  # fmt: skip

OUT_OF_MEMORY = Condition(
    "gpu_oom_events", "gpu_oom_events", say("GPU out-of-memory events"), say("a GPU out-of-memory event was counted"), "count",
    lambda f: f.oom_events, Limit(),
)  # fmt: skip

GPU_FULL = Condition(
    "gpu_memory", "gpu_memory", say("GPU memory, fullest"), say("GPU memory is {limit} full"), "ratio",
    lambda f: f.values("gpu_memory"), Limit(floor="gpu_memory"),
)  # fmt: skip


@dataclass(frozen=True)
class Symptom:
    """One row of the table."""

    id: str
    title: Message
    symptom: tuple[Condition, ...]
    explained_by: tuple[Condition, ...]
    against: tuple[Condition, ...] = ()
    every: bool = False  # all of the symptom's conditions are needed, not any one


SYMPTOMS = (
    Symptom("gpu_oom", ROWS["gpu_oom"], (OUT_OF_MEMORY,), (GPU_FULL,)),
    Symptom("latency_without_errors", ROWS["latency_without_errors"], LATENCY, PRESSURE, against=(ERRORS,)),
    Symptom("slow_first_token", ROWS["slow_first_token"], FIRST_TOKEN, ()),  # explained by the stage that takes the rise: obs.stages
    Symptom("load_after_timeouts", ROWS["load_after_timeouts"], RETRIES, WORK_LEFT, every=True),
)
