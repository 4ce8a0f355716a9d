"""Signals: the engine-neutral quantities that a diagnosis reads, and `Readings`, all of them measured over one grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from obs.series import Array, Grid
from obs.text import Message, say


class Kind(StrEnum):
    """What a signal's numbers are, hence how they are asked for and combined."""

    GAUGE = "gauge"  # a level; combined by the vocabulary's `combine`
    RATE = "rate"  # per second, from a counter
    MEAN = "mean"  # mean per observation, from a histogram's sum and count
    COUNT = "count"  # the raw lifetime counter: only its increments mean something


class Level(StrEnum):
    """What a row of a reading stands for."""

    REPLICA = "replica"  # rows are `Readings.replicas`, in that order, for every signal of this level
    GATEWAY = "gateway"  # rows are `Reading.rows`: one for each gateway cluster or route


LOOKED_FOR = say("Looked for {names}: no such series in this window and scope.")  # of why a reading is absent, the part that is names


class Status(StrEnum):
    """Four of the five displays of "no figure"; the fifth, beyond the buckets, belongs to a quantile."""

    MEASURED = "measured"
    NO_TRAFFIC = "no_traffic"  # the series are there, nothing was observed in the window
    ABSENT = "absent"  # no such series in the window or in the stretch before it
    STALE = "stale"  # there were such series, and at the window's end there are none


@dataclass(frozen=True)
class Signal:
    """An engine-neutral quantity. `unit` is one of `obs.text.Quantity`'s."""

    id: str
    title: Message
    unit: str
    kind: Kind
    level: Level


def _table(*rows: tuple[str, Message, str, Kind, Level]) -> dict[str, Signal]:
    return {row[0]: Signal(*row) for row in rows}


_G, _R, _M, _C = Kind.GAUGE, Kind.RATE, Kind.MEAN, Kind.COUNT
_REP, _GW = Level.REPLICA, Level.GATEWAY

SIGNALS: Mapping[str, Signal] = _table(
    # the engine
    ("kv_use", say("KV cache use"), "ratio", _G, _REP),
    ("requests_running", say("Running requests"), "count", _G, _REP),
    ("requests_waiting", say("Waiting requests"), "count", _G, _REP),
    ("requests_waiting_capacity", say("Waiting for capacity"), "count", _G, _REP),
    ("requests_waiting_deferred", say("Waiting, deferred"), "count", _G, _REP),
    ("kv_capacity_tokens", say("KV cache capacity"), "tokens", _G, _REP),
    ("preemptions", say("Preemptions"), "per_second", _R, _REP),
    ("engine_steps", say("Engine steps"), "per_second", _R, _REP),
    ("requests_finished", say("Finished requests"), "per_second", _R, _REP),
    ("engine_errors", say("Engine errors"), "per_second", _R, _REP),
    ("engine_aborts", say("Engine aborts"), "per_second", _R, _REP),
    ("admission_rejections", say("Rejected at admission"), "per_second", _R, _REP),
    ("prompt_tokens", say("Prompt tokens"), "tokens_per_second", _R, _REP),
    ("generation_tokens", say("Generated tokens"), "tokens_per_second", _R, _REP),
    ("prefix_cache_queries", say("Prefix cache queries"), "tokens_per_second", _R, _REP),
    ("prefix_cache_hits", say("Prefix cache hits"), "tokens_per_second", _R, _REP),
    ("ttft", say("Time to first token"), "seconds", _M, _REP),
    ("itl", say("Inter-token latency"), "seconds", _M, _REP),
    ("tpot", say("Time per output token, of each request"), "seconds", _M, _REP),
    ("e2e_latency", say("End-to-end latency"), "seconds", _M, _REP),
    ("queue_time", say("Queue time"), "seconds", _M, _REP),
    ("prefill_time", say("Prefill time"), "seconds", _M, _REP),
    ("prompt_length", say("Prompt length"), "tokens", _M, _REP),
    ("output_length", say("Output length"), "tokens", _M, _REP),
    ("weights_memory", say("GPU memory of the weights"), "bytes", _G, _REP),
    ("kv_memory", say("GPU memory of the KV cache"), "bytes", _G, _REP),
    ("graph_memory", say("GPU memory of the CUDA graphs"), "bytes", _G, _REP),
    ("gpu_memory_share", say("GPU memory given to the engine"), "ratio", _G, _REP),
    ("counter_resets", say("Counter resets"), "count", _G, _REP),  # resets within the last `Readings.resets_seconds`
    # the scrape and the machine under the replica
    ("up", say("Scrapes that succeed"), "state", _G, _REP),
    ("scrape_duration", say("Scrape duration"), "seconds", _G, _REP),
    ("container_restarts", say("Container restarts"), "count", _C, _REP),
    ("container_oom_killed", say("Last end was OOMKilled"), "state", _G, _REP),
    ("host_memory", say("Host memory of the limit"), "ratio", _G, _REP),
    ("gpu_memory", say("GPU memory, fullest"), "ratio", _G, _REP),
    ("gpu_memory_free", say("GPU memory free, least"), "bytes", _G, _REP),
    ("gpu_utilization", say("GPU utilization"), "ratio", _G, _REP),
    ("gpu_oom_events", say("GPU out-of-memory events"), "count", _C, _REP),
    ("gpu_memory_total", say("GPU memory, all of it"), "bytes", _G, _REP),
    ("gpu_xid", say("GPU error (XID), last code"), "count", _G, _REP),  # a code, not a count; it stays until the next one
    ("host_oom_kills", say("Host out-of-memory kills"), "count", _C, _REP),
    ("container_image", say("Container image"), "state", _G, _REP),  # its name is `Replica.image`
    # the gateway in front
    ("gateway_attempts", say("Attempts sent to the engines"), "per_second", _R, _GW),
    ("gateway_retries", say("Retries"), "per_second", _R, _GW),
    ("gateway_timeouts", say("Time-outs"), "per_second", _R, _GW),
    ("gateway_retry_overflow", say("Retries refused by the budget"), "per_second", _R, _GW),
    ("gateway_responses", say("Answers"), "per_second", _R, _GW),
    ("gateway_errors", say("5xx answers"), "per_second", _R, _GW),
    ("gateway_active", say("Requests open at the gateway"), "count", _G, _GW),
    ("gateway_cancelled", say("Requests cancelled by the client"), "per_second", _R, _GW),
    ("gateway_ttft", say("Time to first token at the gateway"), "seconds", _M, _GW),
    ("gateway_duration", say("Request time at the gateway"), "seconds", _M, _GW),
)


@dataclass(frozen=True)
class Replica:
    """One engine process as Prometheus sees it. `name` is the pod, else the instance, plus the engine rank where there are several.

    `image` is its container's image where Kubernetes' metrics tell it. `since` and `until` bound the engine's version by the metric names
    that it shows: the latest that came, the earliest that went; "" where they tell nothing.
    """

    name: str
    namespace: str = ""
    model: str = ""
    system: str = ""  # id of the vocabulary that names it: "vllm", "sglang"
    pool: str = ""  # the part of the work that it does, where prefill and decode are apart
    image: str = ""
    since: str = ""
    until: str = ""


@dataclass(frozen=True)
class Reading:
    """One signal over the grid.

    `values` has shape [rows, steps]: levels, rates per second, means, or raw counts by `signal.kind`; NaN where there is none.
    For `Kind.MEAN`, `total` and `count` (both per second, same shape) are what the mean was made of, so that a longer mean or a
    mean over replicas is `sum(total) / sum(count)` and never a mean of means.
    """

    signal: Signal
    status: Status
    rows: tuple[str, ...]
    values: Array
    total: Array | None = None
    count: Array | None = None
    metric: str | None = None  # the metric name(s) found, joined with " / " where old and new names share the window
    promql: str | None = None  # what was asked, scope filled in, ready to paste
    looked_for: tuple[str, ...] = ()  # candidates, in the order of preference
    row_labels: tuple[Mapping[str, str], ...] = ()  # gateway rows: namespace, model and system behind each
    why: Message | None = None  # where it is not measured: the reason, and which exporter or flag would give it
    parts: Mapping[str, Array] = field(default_factory=dict)  # where several metrics are added up, each of them by name, shaped as `values`

    @property
    def present(self) -> bool:
        """Whether there is any figure at all."""
        return self.status is not Status.ABSENT and bool(np.isfinite(self.values).any())


@dataclass(frozen=True)
class Buckets:
    """A histogram of the whole view: observations per second at or under each bound, shape [bounds, steps]; the last bound is +Inf."""

    signal: Signal
    bounds: Array
    rates: Array
    metric: str = ""
    promql: str = ""
    parts: Mapping[tuple[str, str], Array] = field(default_factory=dict)  # `rates` by (namespace, model), for narrowing


@dataclass(frozen=True)
class Readings:
    """Everything a diagnosis reads: every signal, on one grid that begins before the window (the baseline stretch)."""

    grid: Grid
    start: float  # the judged window, Unix seconds; grid.start < start where the source has a stretch before it
    end: float
    scrape_seconds: float  # found, not assumed
    rate_seconds: float  # the window of every rate: at least four scrape intervals
    replicas: tuple[Replica, ...]
    signals: Mapping[str, Reading]  # every id of SIGNALS is here, absent ones too
    buckets: Mapping[str, Buckets] = field(default_factory=dict)
    resets_seconds: float = 300.0
    engine_seen: bool = True  # whether any engine's vocabulary matched: without, the diagnosis is `insufficient`
    notes: tuple[Message, ...] = ()  # what the reader should know of this source or scope
