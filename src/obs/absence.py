"""Why a signal has no figure: what was looked for, and which exporter or flag would give it."""

from __future__ import annotations

from collections.abc import Mapping

from obs.signals import LOOKED_FOR
from obs.text import Message, Moment, Names, Sentences, say

_ENGINE = say(
    "The engine's own metrics are missing: vLLM hides them with --disable-log-stats; SGLang needs --enable-metrics, llama.cpp --metrics."
)
_GATEWAY = say("No gateway's metrics: let Prometheus scrape the gateway; of Envoy /stats/prometheus, with these statistics included.")
_SPLIT = say("Only SGLang tells its split, from 0.5.19 on; vLLM writes it into its start-up log.")
_DCGM = say("No GPU metrics: the DCGM exporter would give them.")

REMEDY: Mapping[str, Message] = {
    "requests_waiting_capacity": say("vLLM tells why requests wait from version 0.20 on."),
    "requests_waiting_deferred": say("vLLM tells why requests wait from version 0.20 on."),
    "kv_capacity_tokens": say(
        "vLLM gives it in the labels of vllm:cache_config_info, SGLang as sglang:max_total_num_tokens from 0.5.6 on."
    ),
    "engine_steps": say("vLLM counts its steps from 0.6.6 on; several API servers may leave the count out."),
    "engine_errors": say("vLLM counts requests that end in an error from 0.13 on, SGLang its 5xx answers from 0.5.10 on."),
    "engine_aborts": say("The engine counts none: a client that leaves is not counted by vLLM."),
    "admission_rejections": say("vLLM counts them from 0.32 on, where a queue limit is set."),
    "prefix_cache_queries": say("vLLM counts them from 0.7.3 on."),
    "prefix_cache_hits": say("vLLM counts them from 0.7.3 on."),
    "queue_time": say("vLLM measures it from 0.6.6 on, SGLang from 0.5.3 on."),
    "prefill_time": say("vLLM measures it from 0.6.6 on, SGLang as a stage from 0.5.3 on."),
    "up": say("Prometheus writes it for every target it scrapes itself; a pushed or rewritten series has none."),
    "scrape_duration": say("Prometheus writes it for every target it scrapes itself; a pushed or rewritten series has none."),
    "container_restarts": say("No Kubernetes metrics for these pods: kube-state-metrics would give them."),
    "container_oom_killed": say("No Kubernetes metrics for these pods: kube-state-metrics would give them."),
    "host_memory": say("cAdvisor's working set and kube-state-metrics' memory limit would give it, where a limit is set."),
    "host_oom_kills": say("cAdvisor, in the kubelet, counts them from Kubernetes 1.24 on."),
    "container_image": say("No Kubernetes metrics for these pods: kube-state-metrics would give them."),
    "weights_memory": _SPLIT,
    "kv_memory": _SPLIT,
    "graph_memory": _SPLIT,
    "gpu_memory_share": say("Only vLLM tells it, in the labels of vllm:cache_config_info."),
    "gpu_memory": _DCGM,
    "gpu_memory_total": _DCGM,
    "gpu_xid": _DCGM,
    "gpu_memory_free": _DCGM,
    "gpu_utilization": _DCGM,
    "gpu_oom_events": say(
        "No counter of GPU out-of-memory events: a log pipeline that counts “CUDA out of memory” as gpu_oom_events_total would give it."
    ),
    "gateway_attempts": _GATEWAY,
    "gateway_retries": _GATEWAY,
    "gateway_timeouts": _GATEWAY,
    "gateway_retry_overflow": _GATEWAY,
    "gateway_responses": _GATEWAY,
    "gateway_errors": _GATEWAY,
    "gateway_active": _GATEWAY,
    "gateway_cancelled": _GATEWAY,
    "gateway_duration": _GATEWAY,
    "gateway_ttft": say("Envoy itself has no first-byte time: an AI gateway with OpenTelemetry's GenAI metrics would give it."),
}


def absent(
    signal: str, looked_for: tuple[str, ...], systems: tuple[str, ...], any_engine: bool, gaps: Mapping[str, str] | None = None
) -> Message:
    """Nothing of the kind exists in the window and scope. `systems`: the engines that are there. `gaps`: what the systems that are
    there, and do not have it, say of it."""
    if gaps and not looked_for:
        return told(gaps)
    if gaps:  # another system that is there could tell
        tried = absent(signal, looked_for, systems, any_engine)
        return Message("{first}", {"first": Sentences((tried, told(gaps)))})
    remedy = REMEDY.get(signal, _ENGINE)
    if not looked_for:
        return Message("{first}", {"first": Sentences((say("{systems} has no metric for it.", systems=Names(systems)), remedy))})
    tried = Message(LOOKED_FOR.template, {"names": Names(looked_for)})
    if any_engine and remedy is _ENGINE:  # the engine is there, so a flag that hides everything is not it
        return tried
    return Message("{first}", {"first": Sentences((tried, remedy))})


def told(gaps: Mapping[str, str]) -> Message:
    """What systems (by title) do not tell, and what would, as their vocabularies say it."""
    found: list[Message] = []
    for text in dict.fromkeys(gaps.values()):
        names = Names(tuple(system for system, own in gaps.items() if own == text))
        found.append(
            say("Not told by {systems}: {why}.", systems=names, why=Message(text)) if text else say("Not told by {systems}.", systems=names)
        )
    return found[0] if len(found) == 1 else Message("{first}", {"first": Sentences(tuple(found))})


def no_traffic() -> Message:
    """The histogram is there and took no observation."""
    return say("The series are there, but nothing was observed in this window.")


def stale(at: float, dated: bool = False) -> Message:
    """There were samples, and there are none at the window's end. `dated` where a time of day does not say which day."""
    return say("Last seen at {at}; since then there are no samples.", at=Moment(at, dated))
