"""Vocabularies are data: broken data is named, and a real Prometheus accepts every query that they lead to."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest

from obs.errors import CallError
from obs.language import render
from obs.plan import BUCKETED, Ranges, asks
from obs.series import Grid
from obs.signals import SIGNALS, Kind
from obs.vocabulary import parse, vocabularies

WHOLE = """
id = "x"
title = "X"
role = "engine"
probe = ["kv_use"]
[signals.kv_use]
candidates = [{ metric = "x_kv" }]
"""
UNMISTAKABLE = (
    "vllm:", "sglang:", "llamacpp:", "lmdeploy:", "ray_vllm", "tgi_", "trtllm_", "nv_", "dynamo_", "envoy_", "istio_", "haproxy_",
    "litellm_", "smg_", "kong_", "nginx_", "outbound_http", "kube_", "DCGM_", "nvidia_smi_",
)  # fmt: skip
LEFT_OUT = {"vllm:lora_requests_info"}  # named so as not to be read: its labels are the load of the moment
ROOT = Path(__file__).resolve().parent.parent
FINE = Ranges(15, 15, {}, 300)
COARSE = Ranges(120, 15, {}, 300)


def every(ranges=FINE, scope=None):
    return [a for v in vocabularies() for a in asks(v, v.names(), scope or {}, ranges)]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (WHOLE + "[", "TOML"),
        (WHOLE.replace("kv_use", "kv_usage"), "kv_usage"),
        (WHOLE.replace('{ metric = "x_kv" }', ""), "signals.kv_use.candidates"),
        (WHOLE.replace("metric =", "metrik ="), "metrik"),
        (WHOLE.replace('metric = "x_kv"', 'metric = "x_kv", expr = "x"'), "either metric or expr"),
        (WHOLE.replace('metric = "x_kv"', 'expr = "x"'), "a name"),
        (WHOLE.replace('metric = "x_kv"', 'metric = "x_kv", combine = "avg"'), "combine"),
        (WHOLE.replace("engine", "motor"), "role"),
        (WHOLE.replace('probe = ["kv_use"]', ""), "probe"),
        (WHOLE.replace('probe = ["kv_use"]', 'probe = ["ttft"]'), "ttft"),
        (WHOLE.replace('title = "X"', ""), "title"),
        (WHOLE.replace('metric = "x_kv"', 'metric = "x_kv", count = "y"'), "count goes with an expr"),
        (WHOLE.replace('metric = "x_kv"', 'metric = "x_kv", zero_where = "x"'), "belongs to a rate"),
        (WHOLE.replace('metric = "x_kv"', 'metric = "x_kv", bounds = [1, 2]'), "belong to a mean"),
        (WHOLE.replace('metric = "x_kv"', 'metric = "x_kv", bounds = [2, 1]'), "lowest and the highest"),
        (WHOLE.replace('metric = "x_kv"', 'metric = "x_kv", native = true'), "found in the source"),
        (WHOLE + '[gaps]\nkv_use = "both"', "a gap at once"),
        (WHOLE + '[gaps]\npreemptions = "a whole sentence."', "full stop"),
        (WHOLE + '[gaps]\npreemption = "unknown"', "preemption"),
    ],
)
def test_a_file_that_does_not_hold_together_is_named_with_the_place(broken, said):
    with pytest.raises(CallError) as error:
        parse(broken, "engines/x.toml")
    text = render(error.value.says, "en")
    assert "engines/x.toml" in text
    assert said in text


def test_a_new_engine_is_a_file_and_nothing_else():
    found = parse(WHOLE, "engines/x.toml")
    queries = [a.query for a in asks(found, {"x_kv"}, {"namespace": ("prod",)}, FINE)]
    assert [query.key for query in queries] == ["kv_use|x_kv|value"]
    assert queries[0].promql == 'max by (namespace, pod, instance, job, cluster, service) (x_kv{namespace="prod"})'


def test_what_does_not_exist_is_not_asked_for():
    vllm = vocabularies()[[v.id for v in vocabularies()].index("vllm")]
    assert asks(vllm, set(), {}, FINE) == []
    assert {a.query.key for a in asks(vllm, {"vllm:request_queue_time_seconds_sum"}, {}, FINE)} == set()  # a sum without its count


def test_no_query_averages():
    assert [a.query.promql for a in every() if "avg" in a.query.promql or "quantile" in a.query.promql] == []


def test_every_vllm_query_leaves_the_routers_copies_out():
    assert [a.query.key for a in every() if a.vocabulary.id == "vllm" and 'server=""' not in a.query.promql] == []


def test_every_signal_has_a_name_somewhere_and_every_key_is_its_own():
    assert {a.signal for a in every()} == set(SIGNALS)
    keys = [a.query.key for a in every()]
    assert sorted(keys) == sorted(set(keys))


def test_counters_end_in_total_where_the_exposition_has_it():
    engine = [
        c
        for v in vocabularies()
        if v.role == "engine" and v.id not in ("tgi", "triton")
        for s, n in v.signals.items()
        for c in n.candidates
        if SIGNALS[s].kind is Kind.RATE
    ]
    assert [c.metric for c in engine if c.metric and not c.metric.endswith(("_total", "_count", "_sum"))] == []


def test_a_histogram_is_asked_for_once_with_its_buckets():
    assert {a.signal for a in every() if a.part == "buckets"} == set(BUCKETED)
    assert all("sum by (le, " in a.query.promql for a in every() if a.part == "buckets")


@pytest.mark.parametrize("ranges", [FINE, COARSE], ids=["fine", "coarse"])
def test_a_real_prometheus_accepts_every_query(lab, ranges):
    asked = every(ranges, {"namespace": ('a"b', "c|d"), "model": ("m",), "cluster": ("x",)})
    answers = lab.answer([a.query for a in asked], Grid.covering(1796036544, 1796036600, 5))
    assert {a.query.promql: render(answer.refused, "en") for a, answer in zip(asked, answers, strict=True) if answer.refused} == {}
    assert len(asked) > 400


def test_a_coarse_step_keeps_the_worst_of_a_level():
    promql = {a.query.key: a.query.promql for a in every(COARSE)}
    assert "max_over_time(vllm:kv_cache_usage_perc" in promql["kv_use|vllm:kv_cache_usage_perc|value"]
    assert "min_over_time(up" in promql["up|up|value"]
    assert "[120s]" in promql["preemptions|vllm:num_preemptions_total|value"]


def test_over_days_an_expression_is_looked_at_every_five_minutes_and_what_stays_or_has_an_event_once_a_step():
    """Each minute of a month was two thirds of the work of a Prometheus."""
    inner = {a.query.key: re.findall(r":(\d+)s\]", a.query.promql) for a in every(replace(COARSE, step=3480.0, scrape=60.0))}
    minutes = {a.query.key: re.findall(r":(\d+)s\]", a.query.promql) for a in every(COARSE)}
    once = [f"{name}|value" for name in ("gpu_memory|DCGM_FI_DEV_FB_USED/(used+free)", "gpu_memory_total|DCGM_FI_DEV_FB_USED+FREE")]
    assert [inner[key] for key in once] == [[], []]
    assert [minutes[key] for key in once] == [["20"], []]
    of_engines = {key: found for key, found in inner.items() if found}
    assert of_engines
    assert {found for each in of_engines.values() for found in each} == {"300"}
    capacity = next(a.query.promql for a in every(COARSE) if a.query.key.startswith("kv_capacity_tokens|vllm:"))
    assert "_over_time" not in capacity  # its figures are labels


def test_the_current_names_are_those_of_a_real_vllm(lab):
    """Every name without an end is in the recording of vLLM 0.32 and Envoy 1.40."""
    there = lab.metric_names(1796036544, 1796040316)
    for vocabulary in vocabularies():
        if vocabulary.id in ("vllm", "envoy"):
            now = {name for s, n in vocabulary.signals.items() for c in n.candidates if not c.until for name in c.metrics(SIGNALS[s].kind)}
            assert sorted(now - there) == []


def test_every_metric_name_in_the_code_stands_in_a_vocabulary():
    """A name in a sentence or a rule that no vocabulary knows is a typing error, or knowledge in the wrong place."""
    known = {name for v in vocabularies() for name in (*v.names(), *(c.metric for n in v.signals.values() for c in n.candidates))}
    code = [path for folder in ("src/obs", "pages") for path in (ROOT / folder).rglob("*.py")]
    texts = (node.value for path in code for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Constant))
    token = re.compile(rf"(?<![\w:])(?:{'|'.join(UNMISTAKABLE)})\w*[a-z0-9]")
    found = {name for text in texts if isinstance(text, str) for name in token.findall(text)}
    assert "vllm:cache_config_info" in found
    assert sorted(found - known - LEFT_OUT) == []


@pytest.mark.parametrize("job", ["array-store", "x-ray", "ray-head", "kserve-controller-manager", "node", "kong", "prometheus"])
def test_a_target_of_another_job_is_no_engine_that_died(job):
    """A dead target is told by its job alone where no engine is left: a wrong one would be a replica that never was."""
    hints = [v.job_hint for v in vocabularies() if v.job_hint]
    assert [hint for hint in hints if re.search(hint, job)] == []


@pytest.mark.parametrize(
    ("job", "system"),
    [("vllm-prod", "vllm"), ("sglang", "sglang"), ("llm/tgi", "tgi"), ("text-generation-inference", "tgi"), ("ray-serve-llm", "ray"),
     ("trtllm-serve", "trtllm"), ("tritonserver", "triton"), ("llama.cpp", "llamacpp"), ("lmdeploy", "lmdeploy")],
)  # fmt: skip
def test_an_engine_that_died_is_known_by_its_job(job, system):
    assert [v.id for v in vocabularies() if v.job_hint and re.search(v.job_hint, job)] == [system]
