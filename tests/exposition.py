"""A simulated fleet as OpenMetrics text, under the names of vLLM (V1, or V0 up to a moment), Envoy, the GPU exporter and Kubernetes."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from tests.scrapes import T0, Samples, Scraping, scraped
from tests.traffic import Truth

GIB = 1024.0  # the GPU exporter's unit is MiB
ENGINE = {
    "kv_use": "vllm:kv_cache_usage_perc", "requests_running": "vllm:num_requests_running", "requests_waiting": "vllm:num_requests_waiting",
    "preemptions": "vllm:num_preemptions_total", "engine_steps": "vllm:iteration_tokens_total_count",
    "prompt_tokens": "vllm:prompt_tokens_total", "generation_tokens": "vllm:generation_tokens_total",
    "ttft": "vllm:time_to_first_token_seconds", "itl": "vllm:inter_token_latency_seconds",
    "e2e_latency": "vllm:e2e_request_latency_seconds", "queue_time": "vllm:request_queue_time_seconds",
    "prefill_time": "vllm:request_prefill_time_seconds", "prompt_length": "vllm:request_prompt_tokens",
    "output_length": "vllm:request_generation_tokens",
}  # fmt: skip
OLD = {"kv_use": "vllm:gpu_cache_usage_perc", "itl": "vllm:time_per_output_token_seconds"}
ENVOY = {
    "gateway_attempts": "envoy_cluster_upstream_rq_total", "gateway_retries": "envoy_cluster_upstream_rq_retry",
    "gateway_timeouts": "envoy_cluster_upstream_rq_timeout", "gateway_active": "envoy_cluster_upstream_rq_active",
    "gateway_duration": "envoy_cluster_upstream_rq_time",
}  # fmt: skip
OUTSIDE = {
    "up": "up", "container_restarts": "kube_pod_container_status_restarts_total", "gpu_oom_events": "gpu_oom_events_total",
}  # fmt: skip


class Exposition:
    """Samples by metric and labels."""

    def __init__(self) -> None:
        self.families: dict[str, list[str]] = defaultdict(list)

    def add(self, name: str, labels: dict[str, str], times: np.ndarray, values: np.ndarray) -> None:
        """One series; where there is no value, there is no sample."""
        body = ",".join(f'{label}="{value}"' for label, value in labels.items())
        self.families[name] += [f"{name}{{{body}}} {v:.12g} {T0 + t:.3f}" for t, v in zip(times, values, strict=True) if np.isfinite(v)]

    def text(self) -> str:
        """Each family in one piece."""
        lines = [line for name, series in self.families.items() for line in (f"# TYPE {name} unknown", *series)]
        return "\n".join([*lines, "# EOF\n"])


def openmetrics(truth: Truth, how: Scraping, *, old_until: float = 0.0, namespace: str = "prod") -> str:
    """The text of a fleet's scrapes. Until `old_until` (seconds of the fleet), the engines speak under their old names."""
    out = Exposition()
    expose(out, truth, how, old_until=old_until, namespace=namespace)
    return out.text()


def expose(out: Exposition, truth: Truth, how: Scraping, *, old_until: float = 0.0, namespace: str = "prod") -> None:
    """The same samples, added to `out`."""
    replicas, gateway = scraped(truth, how)
    for number, samples in enumerate(replicas):
        pod = f"vllm-{number}"
        target = {"job": "vllm", "namespace": namespace, "pod": pod, "instance": f"{pod}:8000"}
        _engine(out, samples, {**target, "model_name": "llama", "engine": "0"}, old_until)
        out.add("up", target, samples.times, samples.series["up"])
        seen = {"job": "kube", "namespace": namespace, "pod": pod}
        for signal in ("container_restarts", "gpu_oom_events"):
            out.add(OUTSIDE[signal], {**seen, **({"container": "vllm"} if signal == "container_restarts" else {})}, samples.times,
                    samples.series[signal])  # fmt: skip
        used = samples.series["gpu_memory"] * 80 * GIB
        for name, values in (("DCGM_FI_DEV_FB_USED", used), ("DCGM_FI_DEV_FB_FREE", 80 * GIB - used)):
            out.add(name, {"job": "dcgm", "namespace": namespace, "pod": pod, "gpu": "0"}, samples.times, values)
    edge = {"job": "envoy", "namespace": namespace, "instance": "envoy:9901", "envoy_cluster_name": "llm"}
    for signal, name in ENVOY.items():
        scale = 1000.0 if signal == "gateway_duration" else 1.0
        _series(out, gateway, signal, name, edge, np.ones_like(gateway.times, dtype=bool), scale)
    fine = gateway.series["gateway_responses"] - gateway.series["gateway_errors"]
    for name, values in (("2", fine), ("5", gateway.series["gateway_errors"])):
        born = np.maximum.accumulate(np.nan_to_num(values)) > 0  # a class does not exist before its first answer
        out.add("envoy_cluster_upstream_rq_xx", {**edge, "envoy_response_code_class": name}, gateway.times[born], values[born])


def _engine(out: Exposition, samples: Samples, labels: dict[str, str], old_until: float) -> None:
    for signal, name in ENGINE.items():
        new = samples.times >= (old_until if signal in OLD else 0.0)
        _series(out, samples, signal, name, labels, new)
        if signal in OLD:
            _series(out, samples, signal, OLD[signal], labels, ~new)
    for signal, reason in (("requests_finished", "stop"), ("engine_errors", "error"), ("engine_aborts", "abort")):
        out.add("vllm:request_success_total", {**labels, "finished_reason": reason}, samples.times, samples.series[signal])


def _series(
    out: Exposition, samples: Samples, signal: str, name: str, labels: dict[str, str], where: np.ndarray, scale: float = 1.0
) -> None:
    times = samples.times[where]
    if f"{signal}.sum" not in samples.series:
        out.add(name, labels, times, samples.series[signal][where])
        return
    out.add(f"{name}_sum", labels, times, samples.series[f"{signal}.sum"][where] * scale)
    out.add(f"{name}_count", labels, times, samples.series[f"{signal}.count"][where])
    out.add(f"{name}_bucket", {**labels, "le": "+Inf"}, times, samples.series[f"{signal}.count"][where])
