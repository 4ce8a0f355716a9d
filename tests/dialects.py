"""A simulated fleet in the words of each engine and each gateway: the true names, written down here apart from the vocabularies.

A row of an engine's table: the simulator's signal, the metric, its labels, and a factor to the metric's unit. Of a mean the metric is a
histogram, or the two counters that its sum and count are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from tests.exposition import Exposition
from tests.scrapes import Samples, Scraping, scraped
from tests.traffic import Truth

Word = tuple[str, str, str, float]  # metric of the level, rate or sum; its labels; metric of the count, "" for _sum and _count; factor


def _of(prefix: str, **names: str) -> dict[str, Word]:
    return {signal: (prefix + name, "", "", 1.0) for signal, name in names.items()}


_VLLM = _of(
    "ray_vllm_", kv_use="kv_cache_usage_perc", requests_running="num_requests_running", requests_waiting="num_requests_waiting",
    preemptions="num_preemptions_total", engine_steps="iteration_tokens_total_count", prompt_tokens="prompt_tokens_total",
    generation_tokens="generation_tokens_total", ttft="time_to_first_token_seconds", itl="inter_token_latency_seconds",
    e2e_latency="e2e_request_latency_seconds", queue_time="request_queue_time_seconds", prefill_time="request_prefill_time_seconds",
    prompt_length="request_prompt_tokens", output_length="request_generation_tokens",
)  # fmt: skip
_LMDEPLOY = {
    signal: (metric.replace("ray_vllm_", "lmdeploy:"), *rest) for signal, (metric, *rest) in _VLLM.items() if signal != "preemptions"
}
ENGINES: Mapping[str, Mapping[str, Word]] = {
    "ray": {
        **_VLLM,
        "requests_finished": ("ray_vllm_request_success_total", 'finished_reason="stop"', "", 1),
        "engine_errors": ("ray_vllm_request_success_total", 'finished_reason="error"', "", 1),
        "engine_aborts": ("ray_vllm_request_success_total", 'finished_reason="abort"', "", 1),
    },
    "sglang": {
        **_of(
            "sglang:", kv_use="token_usage", requests_running="num_running_reqs", requests_waiting="num_queue_reqs",
            preemptions="num_retracted_requests_total", requests_finished="num_requests_total", prompt_tokens="prompt_tokens_total",
            ttft="time_to_first_token_seconds", itl="inter_token_latency_seconds", e2e_latency="e2e_request_latency_seconds",
            queue_time="queue_time_seconds", prompt_length="prompt_tokens_histogram", output_length="generation_tokens_histogram",
        ),
        "engine_errors": ("sglang:http_responses_total", 'status_code="500"', "", 1),
        "engine_aborts": ("sglang:num_aborted_requests_total", "", "", 1),
        "generation_tokens": ("sglang:realtime_tokens_total", 'mode="decode"', "", 1),
        "prefill_time": ("sglang:per_stage_req_latency_seconds", 'stage="prefill_forward"', "", 1),
    },
    "tgi": {
        **_of(
            "tgi_", requests_running="batch_current_size", requests_waiting="queue_size", requests_finished="request_success",
            engine_steps="batch_inference_count", e2e_latency="request_duration", queue_time="request_queue_duration",
            itl="request_mean_time_per_token_duration", prompt_length="request_input_length", output_length="request_generated_tokens",
        ),
        "engine_errors": ("tgi_request_failure", 'err="generation"', "", 1),
        "prefill_time": ("tgi_batch_inference_duration", 'method="prefill"', "", 1),
    },
    "trtllm": {
        **_of(
            "trtllm_", kv_use="kv_cache_utilization", requests_running="num_requests_running", requests_waiting="num_requests_waiting",
            requests_finished="request_success_total", prompt_tokens="prompt_tokens_total", generation_tokens="generation_tokens_total",
            ttft="time_to_first_token_seconds", itl="time_per_output_token_seconds", e2e_latency="e2e_request_latency_seconds",
            queue_time="request_queue_time_seconds", prefill_time="request_prefill_time_seconds",
        ),
        "engine_errors": ("trtllm_request_error_total", 'http_code="500"', "", 1),
    },
    "triton": {
        "kv_use": ("nv_trt_llm_kv_cache_block_metrics", 'kv_cache_block_type="fraction"', "", 1),
        "requests_running": ("nv_trt_llm_request_metrics", 'request_type="scheduled"', "", 1),
        "requests_waiting": ("nv_trt_llm_request_metrics", 'request_type="waiting"', "", 1),
        "requests_finished": ("nv_inference_request_success", "", "", 1),
        "engine_errors": ("nv_inference_request_failure", 'reason="OTHER"', "", 1),
        "ttft": ("nv_inference_first_response_histogram_ms", "", "", 1000),
        "e2e_latency": ("nv_inference_request_duration_us", "", "nv_inference_request_success", 1e6),
        "queue_time": ("nv_inference_queue_duration_us", "", "nv_inference_request_success", 1e6),
    },
    "llamacpp": {
        **_of(
            "llamacpp:", requests_running="requests_processing", requests_waiting="requests_deferred", engine_steps="n_decode_total",
            prompt_tokens="prompt_tokens_total", generation_tokens="tokens_predicted_total",
        ),
        "itl": ("llamacpp:tokens_predicted_seconds_total", "", "llamacpp:tokens_predicted_total", 1),
    },
    "lmdeploy": {
        **_LMDEPLOY,
        "kv_use": ("lmdeploy:gpu_cache_usage_perc", "", "", 1),
        "itl": ("lmdeploy:iter_token_latency", "", "", 1),
        "requests_finished": ("lmdeploy:request_success_total", 'finished_reason="ResponseType.FINISH"', "", 1),
        "engine_errors": ("lmdeploy:request_success_total", 'finished_reason="ResponseType.INTERNAL_ENGINE_ERROR"', "", 1),
    },
    "dynamo_worker": {
        "kv_use": ("dynamo_component_gpu_cache_usage_percent", 'dynamo_endpoint="generate"', "", 1),
        "requests_finished": ("dynamo_component_requests_total", 'dynamo_endpoint="generate"', "", 1),
        "requests_running": ("dynamo_component_inflight_requests", 'dynamo_endpoint="generate"', "", 1),
        "engine_errors": ("dynamo_component_errors_total", 'dynamo_endpoint="generate"', "", 1),
        "e2e_latency": ("dynamo_component_request_duration_seconds", 'dynamo_endpoint="generate"', "", 1),
    },
    "kserve": {
        "requests_finished": ("request_preprocess_seconds_count", "", "", 1),
        "e2e_latency": ("request_predict_seconds", "", "", 1),
    },
}  # fmt: skip

_NEW = {signal: (metric.replace("ray_vllm_", "vllm:"), *rest) for signal, (metric, *rest) in ENGINES["ray"].items()}
_OLD = {"kv_use": ("vllm:gpu_cache_usage_perc", "", "", 1.0), "itl": ("vllm:time_per_output_token_seconds", "", "", 1.0)}
VLLM: Mapping[str, Mapping[str, Word]] = {"vllm": _NEW, "vllm_old": {**{s: w for s, w in _NEW.items() if s != "engine_errors"}, **_OLD}}
DOUBLES = "vllm_doubles"  # the old names that 0.10.2 to 0.11 show beside the new ones

PREFIX: Mapping[str, str] = {"vllm": "vllm:prefix_cache_", "vllm_old": "vllm:gpu_prefix_cache_", DOUBLES: "vllm:gpu_prefix_cache_"}
Spell = tuple[float, float]  # seconds of the fleet, from and until


def engine(
    out: Exposition, system: str, truth: Truth, how: Scraping, namespace: str, pods: str = "", *, spells: Mapping[int, Spell] | None = None,
    shares: Mapping[str, float] = {"+Inf": 1.0},
) -> None:  # fmt: skip
    """Adds the replicas of a fleet as this engine shows them; with `spells`, those replicas only, each for so long. `shares` is the part of
    all observations under each bound of a histogram."""
    extra = {"ray": 'engine="0"', "triton": 'model="tensorrt_llm"', "sglang": 'tp_rank="0"'}.get(system, "")
    for number, whole in enumerate(scraped(truth, how)[0]):
        if spells is not None and number not in spells:
            continue
        samples = whole if spells is None else _cut(whole, spells[number])
        pod = f"{pods or system}-{number}"
        target = {"job": pods or system, "namespace": namespace, "pod": pod, "instance": f"{pod}:8000"}
        model = {"model_name": "llama"} if system not in ("tgi", "triton", "llamacpp", "dynamo_worker") else {}
        process = {"ReplicaId": pod} if system == "ray" else {}
        labels = {**target, **model, **process, **_labels(extra)}
        for signal, (metric, match, count, factor) in {**ENGINES, **VLLM, DOUBLES: _OLD}[system].items():
            _series(out, samples, signal, metric, {**labels, **_labels(match)}, count, factor, shares)
        for name, part in (("queries_total", 1.0), ("hits_total", 0.25)) if system in PREFIX else ():
            _series(out, samples, "prompt_tokens", PREFIX[system] + name, labels, factor=part)
        if system == "tgi":  # one request after the other leaves the queue, and its validation takes no time
            _series(out, samples, "requests_finished", "tgi_request_count", labels)
            _series(out, samples, "queue_time", "tgi_request_validation_duration", labels, factor=0.0)
        if system == "sglang":
            _series(out, samples, "requests_finished", "sglang:http_responses_total", {**labels, "status_code": "200"})
        if system == "dynamo_worker":
            _series(out, replace(samples, series={"uptime": _uptime(samples)}), "uptime", "dynamo_component_uptime_seconds", labels)
        if system != DOUBLES:
            out.add("up", target, samples.times, samples.series["up"])


def _cut(samples: Samples, spell: Spell) -> Samples:
    there = (samples.times >= spell[0]) & (samples.times < spell[1])
    return Samples(samples.times[there], samples.failed[there], {name: values[there] for name, values in samples.series.items()})


def _uptime(samples: Samples) -> np.ndarray:
    """Seconds since the process came up: its counters began again then."""
    counted = samples.series["requests_finished"]
    known = np.isfinite(counted)
    born = np.zeros(counted.size)
    born[known] = np.where(np.diff(counted[known], prepend=0.0) < 0, samples.times[known], 0.0)
    return np.where(known, samples.times - np.maximum.accumulate(born), np.nan)


def _series(
    out: Exposition, samples: Samples, signal: str, metric: str, labels: dict[str, str], count: str = "", factor: float = 1.0,
    shares: Mapping[str, float] = {"+Inf": 1.0},
) -> None:  # fmt: skip
    if f"{signal}.sum" not in samples.series:
        out.add(metric, labels, samples.times, samples.series[signal] * factor)
        return
    total, observed = samples.series[f"{signal}.sum"] * factor, samples.series[f"{signal}.count"]
    out.add(metric if count else f"{metric}_sum", labels, samples.times, total)
    if not count:
        out.add(f"{metric}_count", labels, samples.times, observed)
        for bound, share in shares.items():
            out.add(f"{metric}_bucket", {**labels, "le": bound}, samples.times, observed * share)


def _labels(text: str) -> dict[str, str]:
    return dict(part.replace('"', "").split("=", 1) for part in text.split(",") if part)


def machine(out: Exposition, system: str, truth: Truth, how: Scraping, namespace: str) -> None:
    """Adds what stands under those replicas: the GPU, Kubernetes, and a log pipeline that counts out-of-memory errors."""
    for number, samples in enumerate(scraped(truth, how)[0]):
        pod = {"job": "cluster", "namespace": namespace, "pod": f"{system}-{number}"}
        used = samples.series["gpu_memory"] * 81920
        for name, labels, values in (
            ("kube_pod_container_status_restarts_total", {"container": "engine"}, samples.series["container_restarts"]),
            ("gpu_oom_events_total", {}, samples.series["gpu_oom_events"]),
            ("DCGM_FI_DEV_FB_USED", {"gpu": "0"}, used),
            ("DCGM_FI_DEV_FB_FREE", {"gpu": "0"}, 81920 - used),
        ):
            out.add(name, {**pod, **labels}, samples.times, values)


GATEWAYS = (
    "envoy", "haproxy", "istio", "linkerd", "litellm", "smg", "vllm_router", "dynamo", "ingress_nginx", "kong", "llm_d", "production_stack",
    "ai_gateway",
)  # fmt: skip


def gateway(out: Exposition, system: str, truth: Truth, how: Scraping, namespace: str) -> None:
    """Adds the gateway in front as this system shows it."""
    seen = scraped(truth, how)[1]
    at = seen.series
    fine, late = at["gateway_responses"] - at["gateway_errors"], at["gateway_timeouts"]
    wrong, first = at["gateway_errors"] - late, at["gateway_attempts"] - at["gateway_retries"]
    target = {"job": system, "namespace": namespace, "instance": f"{system}:9000"}

    def add(metric: str, labels: str, values: np.ndarray) -> None:
        out.add(metric, {**target, **_labels(labels)}, seen.times, values)

    def mean(metric: str, labels: str, factor: float = 1.0, of: str = "gateway_duration") -> None:
        add(f"{metric}_sum", labels, at[f"{of}.sum"] * factor)
        add(f"{metric}_count", labels, at[f"{of}.count"])

    if system == "envoy":
        llm = 'envoy_cluster_name="llm"'
        add("envoy_cluster_upstream_rq_total", llm, at["gateway_attempts"])
        add("envoy_cluster_upstream_rq_retry", llm, at["gateway_retries"])
        add("envoy_cluster_upstream_rq_timeout", llm, late)
        add("envoy_cluster_upstream_rq_xx", f'{llm},envoy_response_code_class="2"', fine)
        add("envoy_cluster_upstream_rq_xx", f'{llm},envoy_response_code_class="5"', at["gateway_errors"])
        add("envoy_cluster_upstream_rq_active", llm, at["gateway_active"])
        mean("envoy_cluster_upstream_rq_time", llm, 1000)
    elif system == "haproxy":
        add("haproxy_backend_http_requests_total", 'proxy="llm"', first)
        add("haproxy_backend_retry_warnings_total", 'proxy="llm"', at["gateway_retries"])
        add("haproxy_backend_http_responses_total", 'proxy="llm",code="2xx"', fine)
        add("haproxy_backend_http_responses_total", 'proxy="llm",code="5xx"', at["gateway_errors"])
    elif system == "istio":
        to = f'reporter="source",destination_service_name="llm",destination_service_namespace="{namespace}"'
        for code, flags, values in (("200", "-", fine), ("503", "UF", wrong), ("504", "UT", late)):
            add("istio_requests_total", f'{to},response_code="{code}",response_flags="{flags}"', values)
        cluster = f"outbound|8000||llm.{namespace}.svc.cluster.local"
        add("envoy_cluster_upstream_rq_retry", f'cluster_name="{cluster}"', at["gateway_retries"])
        mean("istio_request_duration_milliseconds", f'{to},response_code="200"', 1000)
    elif system == "linkerd":
        to = f'parent_name="llm",parent_namespace="{namespace}"'
        add("outbound_http_route_backend_requests_total", to, at["gateway_attempts"])
        add("outbound_http_route_retry_requests_total", to, at["gateway_retries"])
        for status, error, values in (("200", "", fine), ("503", "", wrong), ("", "RESPONSE_HEADERS_TIMEOUT", late)):
            add("outbound_http_route_request_statuses_total", f'{to},http_status="{status}",error="{error}"', values)
        mean("outbound_http_route_request_duration_seconds", to)
    elif system == "litellm":
        add("litellm_deployment_total_requests_total", 'requested_model="llama"', at["gateway_attempts"])
        add("litellm_deployment_failure_responses_total", 'requested_model="llama",exception_class="Openai.Timeout"', late)
        add("litellm_proxy_total_requests_metric_total", 'requested_model="llama",status_code="200"', first)
        mean("litellm_request_total_latency_metric", 'requested_model="llama"')
        mean("litellm_llm_api_time_to_first_token_metric", 'requested_model="llama"', of="gateway_ttft")
    elif system == "smg":
        add("smg_router_requests_total", 'model="llama"', first)
        add("smg_worker_retries_total", 'worker_type="regular"', at["gateway_retries"])
        for code, values in (("200", fine), ("500", wrong), ("504", late)):
            add("smg_router_upstream_responses_total", f'status_code="{code}"', values)
        mean("smg_router_request_duration_seconds", 'model="llama"')
    elif system == "vllm_router":
        add("vllm_router_requests_total", 'route="/v1/completions"', fine)
        add("vllm_router_retries_total", 'route="/v1/completions"', at["gateway_retries"])
        add("vllm_router_retries_exhausted_total", 'route="/v1/completions"', at["gateway_errors"] - at["gateway_retries"])
        mean("vllm_router_generate_duration_seconds", 'route="/v1/completions"')
    elif system == "dynamo":
        add("dynamo_frontend_requests_total", 'model="llama",error_type=""', fine)  # a request is counted once, by how it ends
        add("dynamo_frontend_requests_total", 'model="llama",error_type="response_timeout"', at["gateway_errors"] - at["gateway_retries"])
        add("dynamo_frontend_model_migration_total", 'model="llama"', at["gateway_retries"])
        mean("dynamo_frontend_request_duration_seconds", 'model="llama"')
        mean("dynamo_frontend_time_to_first_token_seconds", 'model="llama"', of="gateway_ttft")
    elif system in ("ingress_nginx", "kong"):
        name, label, row = ("kong_http_requests_total", "code", 'service="llm"')
        if system == "ingress_nginx":
            name, label, row = ("nginx_ingress_controller_requests", "status", 'ingress="llm"')
        for code, values in (("200", fine), ("503", wrong), ("504", late)):
            add(name, f'{row},{label}="{code}"', values)
        if system == "kong":
            mean("kong_request_latency_ms", row, 1000)
        else:
            mean("nginx_ingress_controller_request_duration_seconds", f'{row},status="200"')
    elif system == "llm_d":
        add("llm_d_epp_request_total", 'model_name="llama"', first)
        add("llm_d_epp_request_error_total", 'model_name="llama",error_code="ModelServerError"', wrong)
        mean("llm_d_epp_request_duration_seconds", 'model_name="llama"')
        mean("llm_d_epp_request_ttft_seconds", 'model_name="llama",streaming="true"', of="gateway_ttft")
    elif system == "production_stack":
        for part, status, values in (
            ("sum", "success", at["gateway_duration.sum"]), ("count", "success", fine), ("count", "error", at["gateway_errors"]),
        ):  # fmt: skip
            add(f"vllm:request_latency_seconds_{part}", f'server="http://a",status="{status}"', values)
        add("vllm:request_errors_total", 'server="http://a",error_type="ServerTimeoutError"', late)
    elif system == "ai_gateway":
        mean("gen_ai_server_request_duration_seconds", 'gen_ai_request_model="llama"')
        mean("gen_ai_server_time_to_first_token_seconds", 'gen_ai_request_model="llama"', of="gateway_ttft")
        add("gen_ai_server_request_duration_seconds_count", 'gen_ai_request_model="llama",error_type="_OTHER"', at["gateway_errors"])
