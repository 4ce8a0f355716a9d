"""Which of a system's names a source has, and that no quantity is counted twice: spellings, layers, several systems, a site's own rules."""

import re
from itertools import product

import numpy as np
import pytest
from tests.expositions import HOUR, WINDOW, exposition, put
from tests.incidents import readings as simulated
from tests.recordings import T0, Recording
from tests.scrapes import EDGE
from tests.test_collect import levels

from obs.collect import collect
from obs.config import SourceSettings, load
from obs.errors import CallError
from obs.facts import Facts
from obs.flow import flow
from obs.language import render
from obs.plan import Ranges, asks
from obs.prometheus import Prometheus
from obs.series import Grid
from obs.signals import SIGNALS, Reading, Status
from obs.source import Query
from obs.spelling import present, spelled
from obs.thresholds import in_force
from obs.vocabulary import Candidate, vocabularies
from obs.window import Window

BY_ID = {v.id: v for v in vocabularies()}
FINE = Ranges(15, 15, {}, 300)
A = {"job": "llm", "namespace": "prod", "pod": "a", "instance": "a:8000"}
B = {"job": "llm", "namespace": "prod", "pod": "b", "instance": "b:8000"}


@pytest.fixture
def of(recorded):
    """The readings of a recording in its window."""
    return lambda recording, settings=None: collect(recorded(recording), WINDOW, {}, settings)


def hour():
    return Recording(seconds=HOUR)


# ---------------------------------------------------------------- spellings


def test_a_name_that_is_only_like_another_is_not_taken_for_it():
    assert spelled(Candidate(metric="vllm:num_requests_waiting"), SIGNALS["requests_waiting"].kind, {"my_vllm:num_requests_waiting"}) == ()
    assert present(BY_ID["vllm"], {"vllm:num_requests_waiting_by"}) == frozenset()


def test_a_collector_that_writes_underscores_is_read_beside_a_target_that_is_scraped(of):
    recording = put(hour(), "vllm-0.33", A)
    put(recording, "vllm-0.33", B, exposition("vllm-0.33").replace("vllm:", "vllm_"))
    readings = of(recording)
    assert levels(readings, "kv_use") == {"a": 0.5, "b": 0.5}
    assert levels(readings, "ttft") == pytest.approx({"a": 0.4, "b": 0.4})
    assert readings.signals["kv_use"].metric == "vllm:kv_cache_usage_perc / vllm_kv_cache_usage_perc"


def test_one_replica_under_both_spellings_is_counted_once(of):
    recording = put(put(hour(), "lmdeploy", A), "lmdeploy", A, exposition("lmdeploy").replace("lmdeploy:", "lmdeploy_"))
    readings = of(recording)
    assert levels(readings, "requests_waiting") == {"a": 3}  # two names that add up, in two spellings
    terms = readings.signals["requests_waiting"].promql.split(" + ")
    assert [re.findall(r"\((lmdeploy.\w+)", term) for term in terms] == [
        [f"lmdeploy{mark}num_requests_waiting" for mark in ":_"], [f"lmdeploy{mark}num_api_requests_waiting" for mark in ":_"],
    ]  # fmt: skip
    assert levels(readings, "requests_finished") == pytest.approx({"a": 9})
    assert levels(readings, "kv_capacity_tokens") == pytest.approx({"a": np.nan}, nan_ok=True)


def test_what_adds_up_is_whole_on_each_replica_where_one_is_spelled_otherwise(of):
    recording = put(hour(), "lmdeploy", A)
    put(recording, "lmdeploy", B, exposition("lmdeploy").replace("lmdeploy:", "lmdeploy_"))
    assert levels(of(recording), "requests_waiting") == {"a": 3, "b": 3}


def test_what_is_shown_as_asked_gives_the_whole_figure_when_it_is_pasted(recorded):
    """Of what is added up the first name alone would be a part of it."""
    recording = put(put(hour(), "lmdeploy", A), "envoy", {"job": "envoy", "namespace": "prod", "instance": "e:1"})
    source = recorded(recording)
    readings = collect(source, WINDOW, {})
    for signal, figure in (("requests_waiting", 3.0), ("gateway_timeouts", 1.2), ("gateway_retry_overflow", 0.2)):
        answer = source.answer([Query("x", readings.signals[signal].promql)], readings.grid)[0]
        assert answer.values[:, -1].tolist() == pytest.approx([figure]), signal


def test_dotted_names_stand_in_quotes_and_bring_their_dotted_labels():
    """As Prometheus 3 holds what OTLP brings, with and without the unit; the other tests' Prometheus 2 cannot hold them."""
    names = {f"gen_ai.server.time_to_first_token{part}" for part in ("_sum", "_count", "_bucket")}
    found = {a.part: a.query.promql for a in asks(BY_ID["ai_gateway"], names, {"model": ("m",)}, FINE) if a.signal == "gateway_ttft"}
    assert found["sum"].endswith('(rate({"gen_ai.server.time_to_first_token_sum", "gen_ai.request.model"="m"}[60s]))')
    assert found["sum"].startswith(
        'sum by (namespace, pod, kubernetes_namespace, instance, job, gen_ai_request_model, "gen_ai.request.model"'
    )
    assert found["buckets"].startswith('sum by (le, namespace, gen_ai_request_model, "gen_ai.request.model")')


def test_a_histogram_that_the_source_keeps_as_a_native_one_is_read_by_its_sum_and_count(recorded):
    names = {"vllm:time_to_first_token_seconds", "vllm:e2e_request_latency_seconds_sum", "vllm:e2e_request_latency_seconds_count"}
    found = [a for a in asks(BY_ID["vllm"], names, {}, FINE) if a.signal == "ttft"]
    assert {a.part for a in found} == {"sum", "count"}
    assert all(f"histogram_{a.part}(rate(vllm:time_to_first_token_seconds{{" in a.query.promql for a in found)
    source = recorded(put(hour(), "vllm-0.33", A))
    assert source.metric_names(WINDOW.start, WINDOW.end)
    assert [answer.refused for answer in source.answer([a.query for a in found], Grid(T0, 60, 2))] == [None, None]


def test_a_name_in_a_label_or_inside_a_longer_name_stays_as_it_is():
    candidate = Candidate(name="x:a", expr='x:a{why="x:a", $sel} + x:a_b{$sel}', needs=("x:a",))
    assert spelled(candidate, SIGNALS["kv_use"].kind, {"x_a"})[0].expr == 'x_a{why="x:a", $sel} + x:a_b{$sel}'


# ---------------------------------------------------------------- several systems, layers


def test_a_worker_that_passes_its_engines_metrics_on_is_one_replica_and_the_engines_word_counts(of):
    recording = put(put(hour(), "vllm-0.33", A), "dynamo_worker", A, exposition("dynamo_worker").replace(" 0.5\n", " 0.9\n"))
    readings = of(recording)
    assert [(r.name, r.system) for r in readings.replicas] == [("a", "vllm")]
    assert levels(readings, "kv_use") == {"a": 0.5}
    assert levels(readings, "requests_running") == {"a": 6}
    assert levels(readings, "requests_finished") == pytest.approx({"a": 9})


def test_a_layer_fills_in_what_its_engine_does_not_tell(of):
    readings = of(put(put(hour(), "vllm-0.12", A), "dynamo_worker", A))
    assert [r.system for r in readings.replicas] == ["vllm"]
    assert levels(readings, "engine_errors") == pytest.approx({"a": 0.5})  # vLLM counts them from 0.13 on


def test_requests_that_pass_two_layers_of_gateways_arrive_once():
    """LiteLLM before Envoy: the attempts that reach the engines are those of the one that sends most, not their sum."""
    readings = simulated("a healthy hour")
    facts = {}
    for count in (1, 2):
        signals = dict(readings.signals)
        for name in ("gateway_attempts", "gateway_active"):
            one = readings.signals[name]
            labels = tuple({**EDGE, "system": system} for system in ("envoy", "litellm")[:count])
            signals[name] = Reading(
                one.signal, one.status, ("llm", "proxy")[:count], np.repeat(one.values, count, axis=0), row_labels=labels
            )
        facts[count] = Facts(type(readings)(**{**vars(readings), "signals": signals}), in_force({}))
    np.testing.assert_array_equal(flow(facts[2]).arrivals, flow(facts[1]).arrivals)
    np.testing.assert_array_equal(facts[2].over_layers("gateway_active"), facts[1].over_layers("gateway_active"))


def test_two_gateways_of_one_kind_share_the_requests():
    readings = simulated("a healthy hour")
    one = readings.signals["gateway_attempts"]
    both = Reading(one.signal, one.status, ("x", "y"), np.repeat(one.values, 2, axis=0), row_labels=({**EDGE, "system": "envoy"},) * 2)
    facts = Facts(type(readings)(**{**vars(readings), "signals": {**readings.signals, "gateway_attempts": both}}), in_force({}))
    np.testing.assert_allclose(facts.over_layers("gateway_attempts"), 2 * one.values[0])


def test_a_capacity_that_a_process_tells_for_all_its_ranks_is_shared_among_them(of):
    """vLLM shows the sum of the blocks on each data-parallel rank; a rank that is a process of its own shows its own."""
    recording = Recording(seconds=HOUR)
    for target, engine, blocks in ((A, "0", 2500), (A, "1", 2500), (B, "1", 1250)):
        labels = {**target, "model_name": "llama", "engine": engine}
        recording.put("vllm:num_requests_running", labels, 3.0).put("vllm:num_requests_waiting", labels, 0.0)
        recording.put("vllm:cache_config_info", {**target, "engine": engine, "block_size": "16", "num_gpu_blocks": str(blocks)}, 1.0)
    assert levels(of(recording), "kv_capacity_tokens") == {"a/0": 20_000, "a/1": 20_000, "b": 20_000}


QUEUES = "num_grammar_queue_reqs", "num_prefill_inflight_queue_reqs", "num_decode_prealloc_queue_reqs", "num_decode_transfer_queue_reqs"


def worker(recording, target, part, **queues):
    """SGLang where prefill and decode are apart: one worker, whose queues hold so many requests (of each priority half)."""
    text = exposition("sglang-0.5").replace('engine_type="unified"', f'engine_type="{part}"')
    text = re.sub(rf"^(# TYPE )?sglang:({'|'.join(QUEUES)}).*\n", "", text, flags=re.M)
    put(recording, "sglang-0.5", target, text)
    for name, held in queues.items():
        for rank, priority in product("01", ("", "0", "1")):
            labels = {**target, "model_name": "llama", "engine_type": part, "tp_rank": rank} | ({"priority": priority} if priority else {})
            recording.put(f"sglang:{name}", labels, held / 2 if priority else held)


def test_a_request_between_prefill_and_decode_waits_once(of):
    """For space on the decode worker it waits in two queues at once, and while it is prefilled in a third one."""
    recording = hour()
    worker(recording, A, "prefill", num_prefill_bootstrap_queue_reqs=8.0, num_prefill_prealloc_queue_reqs=8.0,
           num_prefill_inflight_queue_reqs=4.0)  # fmt: skip
    worker(recording, B, "decode", num_decode_prealloc_queue_reqs=8.0, num_decode_transfer_queue_reqs=12.0)
    readings = of(recording)
    assert {r.name: r.pool for r in readings.replicas} == {"a": "prefill", "b": "decode"}
    assert levels(readings, "requests_waiting") == {"a": 2 + 4, "b": 2 + 8}


# ---------------------------------------------------------------- a site's own rules


def set_to(monkeypatch, **signals):
    for signal, text in signals.items():
        monkeypatch.setenv(f"OBS_PROMQL__{signal.upper()}", text)
    return load()


def test_a_recording_rule_comes_first_and_the_engines_name_fills_in(of, monkeypatch):
    recording = put(put(hour(), "vllm-0.33", A), "vllm-0.33", B)
    recording.put("site:kv:max", {"namespace": "prod", "pod": "a", "model_name": "llama"}, 0.75)
    readings = of(recording, set_to(monkeypatch, kv_use="site:kv:max"))
    assert levels(readings, "kv_use") == {"a": 0.75, "b": 0.5}
    assert readings.signals["kv_use"].metric == "site:kv:max / vllm:kv_cache_usage_perc"
    assert [r.name for r in readings.replicas] == ["a", "b"]


def test_a_mean_is_made_of_two_recording_rules(of, monkeypatch):
    labels = {"namespace": "prod", "pod": "a", "model_name": "llama"}
    recording = put(hour(), "vllm-0.33", A).put("site:ttft_sum", labels, 20.0).put("site:ttft_count", labels, 10.0)
    reading = of(recording, set_to(monkeypatch, ttft="site:ttft_sum / site:ttft_count")).signals["ttft"]
    assert (reading.values[0, -1], reading.total[0, -1], reading.count[0, -1]) == (2, 20, 10)


def test_a_rule_for_what_is_added_up_is_not_added_to_it_and_the_engines_names_fill_in(of, monkeypatch):
    recording = put(put(hour(), "lmdeploy", A), "lmdeploy", B)
    recording.put("site:waiting:max", {"namespace": "prod", "pod": "a", "model_name": "llama"}, 7.0)
    assert levels(of(recording, set_to(monkeypatch, requests_waiting="site:waiting:max")), "requests_waiting") == {"a": 7, "b": 3}


def test_a_recording_rule_that_is_not_there_changes_nothing(of, monkeypatch):
    assert levels(of(put(hour(), "vllm-0.33", A), set_to(monkeypatch, kv_use="site:typo")), "kv_use") == {"a": 0.5}


def test_a_rule_of_two_engines_makes_no_replica_and_goes_to_its_own(of, monkeypatch):
    recording = put(put(hour(), "vllm-0.33", A), "sglang-0.5", B)
    for pod, value in (("a", 0.1), ("b", 0.2)):
        recording.put("site:kv:max", {"namespace": "prod", "pod": pod}, value)
    readings = of(recording, set_to(monkeypatch, kv_use="max by ($by) (site:kv:max{$sel})"))
    assert [(r.name, r.system) for r in readings.replicas] == [("a", "vllm"), ("b", "sglang")]
    assert levels(readings, "kv_use") == {"a": 0.1, "b": 0.2}


def test_a_site_can_fill_a_gap_of_its_gateway(of, monkeypatch):
    """Kong has no metric for its retries; a log pipeline may count them. Envoy beside it keeps its own rows."""
    recording = put(hour(), "kong", {"job": "kong", "namespace": "prod", "instance": "kong:1"})
    put(recording, "envoy", {"job": "envoy", "namespace": "prod", "instance": "envoy:1"})
    recording.rate("site_kong_retries_total", {"namespace": "prod", "job": "logs", "service": "llm"}, 2)
    settings = set_to(monkeypatch, gateway_retries="sum by ($by) (rate(site_kong_retries_total{$sel}[$rate]))")
    reading = of(recording, settings).signals["gateway_retries"]
    assert [labels["system"] for labels in reading.row_labels] == ["kong"]
    assert reading.values[:, -1] == pytest.approx([2])
    assert reading.status is Status.MEASURED


def test_a_signal_that_does_not_exist_is_named(recorded, monkeypatch):
    settings = set_to(monkeypatch, kv_usage="x")
    with pytest.raises(CallError) as error:
        collect(recorded(Recording().vllm("a")), Window(T0 + 600, T0 + 1800), {}, settings)
    assert "OBS_PROMQL__KV_USAGE" in render(error.value.says, "en")


# ---------------------------------------------------------------- what it costs


def test_systems_that_are_not_there_cost_nothing(lab_url):
    """Thirty vocabularies, and as many requests as the two that this source has need."""
    source = Prometheus(SourceSettings(url=lab_url, name="lab"))
    collect(source, Window(1796036544, 1796036996), {})
    assert source.requests <= 20
    every = source.metric_names(1796036544, 1796036996)
    there = [v.id for v in vocabularies() if present(v, every)]
    assert there == ["vllm", "envoy", "prometheus"]
