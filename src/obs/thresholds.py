"""Every figure that a rule uses: value, unit, source and reason, in one table. Any can be overridden by setting."""

from __future__ import annotations

from collections.abc import Mapping

from obs.errors import CallError
from obs.text import Message, say
from obs.verdict import Threshold


def _table(*rows: tuple[str, float, str, str, Message]) -> dict[str, Threshold]:
    return {row[0]: Threshold(*row) for row in rows}


_WORDS = (say("chosen on recorded and sketched incidents"), say("measured on a real vLLM"), say("this site's settings"))
_OURS, _MEASURED, _SITE = (words.template for words in _WORDS)
_BOARDS = "vLLM's Grafana boards"
_MLPERF = "MLPerf Inference, Llama 2 70B, conversational"

THRESHOLDS: Mapping[str, Threshold] = _table(
    # latency rises without errors
    ("kv_use", 0.90, "ratio", _BOARDS, say("a pool this full has no room for the next request")),
    ("preemptions", 0.05, "per_second", _BOARDS, say("fewer are noticed and change nothing")),
    ("waiting", 5.0, "count", "Gateway API Inference Extension", say("a replica with five waiting is saturated for its router")),
    ("pressure_ratio", 2.0, "times", _OURS, say("a queue or preemptions at twice what is usual here")),
    ("latency_ratio", 1.4, "times", _OURS, say("1.2 to 2 times the usual all separate; means, not percentiles")),
    ("latency_rise", 1.0, "seconds", _OURS, say("a smaller rise of the end-to-end latency is not felt")),
    ("itl_ratio", 1.5, "times", _OURS, say("as the end-to-end latency, for each token")),
    ("itl_rise", 0.02, "seconds", _OURS, say("a smaller rise of the time per token is not felt")),
    ("itl_limit", 0.2, "seconds", _OURS, say("slower than reading: decides where there is no baseline")),
    ("error_ratio", 0.05, "ratio", _OURS, say("above it the trouble has errors, time-outs not counted")),
    # slow first token
    ("ttft_ratio", 2.0, "times", _OURS, say("twice the usual time to first token")),
    ("ttft_rise", 0.25, "seconds", _OURS, say("a smaller rise of the time to first token is not felt")),
    ("ttft_limit", 2.0, "seconds", "vllm-doctor", say("slow for anybody: decides where there is no baseline")),
    ("prefill_speed", 1000.0, "tokens_per_second", _OURS, say("a long prompt may take its time: a second for each thousand tokens")),
    ("wait_limit", 10.0, "seconds", "LLMKube backtest", say("the usual band of a queue ends at 3 s, a stall begins at 30 s")),
    ("network_rise", 0.25, "seconds", _OURS, say("between gateway and engine nothing else takes time")),
    ("stage_share", 0.4, "ratio", _OURS, say("the stage that takes this much of the rise is the slow one")),
    # objectives: shown on the first token page, they decide no row
    ("ttft_objective", 2.0, "seconds", _MLPERF, say("the first token of a conversation in time")),
    ("itl_objective", 0.2, "seconds", _MLPERF, say("faster than anybody reads")),
    ("objective_share", 0.99, "ratio", _MLPERF, say("the part that is to be within the objectives")),
    # load increases after timeouts
    ("retry_ratio", 0.10, "ratio", "Site Reliability Engineering, ch. 21", say("the client's retry budget: 10 % of its requests")),
    ("gateway_retry_budget", 0.20, "ratio", "Envoy API", say("the gateway's retry budget: 20 % of what it holds")),
    ("timeouts", 2.0, "count", _OURS, say("fewer time-outs in ten minutes are chance")),
    ("work_left", 0.7, "ratio", _OURS, say("work that falls below this part of the usual is not load that stays")),
    ("least_work", 1.0, "count", _OURS, say("less than one request is no load")),
    ("waste", 0.5, "ratio", _MEASURED, say("half of the tokens are made for nobody")),
    # GPU memory
    ("gpu_memory", 0.97, "ratio", _OURS, say("what is left does not hold one more activation")),
    ("host_memory", 0.97, "ratio", _OURS, say("the container is about to be killed for host memory")),
    # findings
    ("imbalance", 0.30, "ratio", "vllm-doctor", say("KV use this far above the median of the others")),
    ("scrape_failures", 0.10, "ratio", _OURS, say("one scrape in ten fails")),
    # time
    ("hold", 120.0, "seconds", _OURS, say("one minute is too short, eight are too long")),
    ("stall", 120.0, "seconds", _OURS, say("no engine step for this long, with work to do")),
    ("warm_up", 300.0, "seconds", "sglang#28706", say("compilation and a cold prefix cache after a start")),
)


def source(threshold: Threshold) -> Message:
    """Where a threshold's value is from, for a reader: a name as it is, words in their language."""
    words = next((words for words in _WORDS if words.template == threshold.source), None)
    return words or Message("{name}", {"name": threshold.source})


def in_force(overrides: Mapping[str, float]) -> dict[str, Threshold]:
    """The table with a site's own figures in it; an unknown name is a `CallError`."""
    for name in overrides:
        if name not in THRESHOLDS:
            raise CallError(say("There is no threshold named {name}. Known: {known}.", name=name, known=", ".join(THRESHOLDS)))
    own = {name: Threshold(name, value, THRESHOLDS[name].unit, _SITE, THRESHOLDS[name].reason) for name, value in overrides.items()}
    return {**THRESHOLDS, **own}
