"""Which version a replica runs, and what the exporters say of its GPU's memory: read from a real Prometheus."""

import numpy as np
from tests.recordings import T0, Recording

from obs.collect import collect
from obs.signals import Status
from obs.versions import tag
from obs.window import Window

WINDOW = Window(T0 + 600, T0 + 1800)
GIB = 2.0**30


def image(recording, pod, name, container="engine"):
    return recording.put("kube_pod_container_info", {"namespace": "prod", "pod": pod, "container": container, "image": name}, 1)


def replicas(readings):
    return {replica.name: replica for replica in readings.replicas}


def last(readings, signal):
    return dict(zip((r.name for r in readings.replicas), readings.signals[signal].values[:, -1], strict=True))


def test_an_image_without_a_tag_tells_no_version():
    assert tag("vllm/vllm-openai") == ""
    assert tag("registry:5000/vllm/vllm-openai@sha256:12ab") == ""
    assert tag("registry:5000/vllm/vllm-openai:v0.20.1@sha256:12ab") == "v0.20.1"


def test_without_kubernetes_only_the_names_bound_the_version(recorded):
    recording = Recording().vllm("a", kv_cache_usage_perc=lambda _age: None).vllm("b")
    target = {"job": "vllm", "namespace": "prod", "pod": "a", "instance": "a:8000", "model_name": "llama", "engine": "0"}
    recording.put("vllm:gpu_cache_usage_perc", target, 0.3)
    found = replicas(collect(recorded(recording), WINDOW, {}))
    assert (found["a"].image, found["a"].since, found["a"].until) == ("", "", "0.10.2")
    assert (found["b"].image, found["b"].since, found["b"].until) == ("", "0.9.2", "")


def test_old_names_beside_a_new_one_bound_no_version_from_above(recorded):
    """A pod that was upgraded within the window, or an engine that is told to show its hidden names: “0.13 to 0.10.2” is no version."""
    target = {"job": "vllm", "namespace": "prod", "pod": "a", "instance": "a:8000", "model_name": "llama", "engine": "0"}
    recording = Recording().vllm("a", gpu_cache_usage_perc=0.3)
    recording.rate("vllm:request_success_total", {**target, "finished_reason": "error"}, 0.1)
    found = replicas(collect(recorded(recording), WINDOW, {}))["a"]
    assert (found.since, found.until) == ("0.13", "")


def test_the_engines_own_container_tells_the_version_and_not_a_sidecar(recorded):
    recording = Recording().vllm("a").vllm("b")
    image(recording, "a", "docker.io/istio/proxyv2:1.22.0", "istio-proxy")
    image(recording, "a", "docker.io/vllm/vllm-openai:v0.20.1")
    image(recording, "b", "example.org/own/serving:7")
    found = replicas(collect(recorded(recording), WINDOW, {}))
    assert found["a"].image == "docker.io/vllm/vllm-openai:v0.20.1"
    assert found["b"].image == "example.org/own/serving:7"  # the only one


def test_of_two_containers_that_nothing_tells_apart_none_is_believed(recorded):
    recording = Recording().vllm("a")
    image(recording, "a", "example.org/one:1", "one")
    image(recording, "a", "example.org/two:2", "two")
    assert replicas(collect(recorded(recording), WINDOW, {}))["a"].image == ""


def test_the_split_is_that_of_one_rank_in_gib_and_a_zero_is_no_figure(recorded):
    recording = Recording()
    for pod, weights in (("a", 15.25), ("b", 0.0)):
        for rank in ("0", "1"):
            labels = {"job": "sglang", "namespace": "prod", "pod": pod, "instance": f"{pod}:1", "model_name": "m", "tp_rank": rank}
            recording.put("sglang:num_running_reqs", labels, 1).rate("sglang:generation_tokens_total", labels, 50)
            recording.put("sglang:weight_memory_usage_gb", labels, weights).put("sglang:kv_cache_memory_usage_gb", labels, 4 * weights)
            for phase, size in (("prefill", 0.25), ("decode", 0.5)):
                recording.put("sglang:graph_memory_usage_gb", {**labels, "phase": phase}, size)
    readings = collect(recorded(recording), WINDOW, {})
    assert last(readings, "weights_memory")["a"] == 15.25 * GIB
    assert np.isnan(last(readings, "weights_memory")["b"])  # some platforms report 0 for what they do not measure
    assert last(readings, "kv_memory")["a"] == 61 * GIB
    assert last(readings, "graph_memory")["a"] == 0.75 * GIB
    assert replicas(readings)["a"].since == "0.5.19"


def test_the_gpus_size_errors_and_the_hosts_kills_are_read(recorded):
    recording = Recording().vllm("a")
    gpu = {"job": "dcgm", "exported_namespace": "prod", "exported_pod": "a", "gpu": "0", "Hostname": "n", "instance": "n:9400"}
    for name, value in (("FB_USED", 70_000), ("FB_FREE", 11_000), ("FB_RESERVED", 559), ("XID_ERRORS", 79)):
        recording.put(f"DCGM_FI_DEV_{name}", gpu, value)
    recording.put("container_oom_events_total", {"namespace": "prod", "pod": "a", "container": "engine"}, 2)
    cache = {"job": "vllm", "namespace": "prod", "pod": "a", "instance": "a:8000", "engine": "0", "gpu_memory_utilization": "0.92"}
    recording.put("vllm:cache_config_info", cache, 1)
    readings = collect(recorded(recording), WINDOW, {})
    assert last(readings, "gpu_memory_total")["a"] == 81_559 * 2**20
    assert last(readings, "gpu_xid")["a"] == 79
    assert last(readings, "host_oom_kills")["a"] == 2
    assert last(readings, "gpu_memory_share")["a"] == 0.92


def test_without_their_exporters_these_are_absent_and_say_what_would_give_them(recorded):
    readings = collect(recorded(Recording().vllm("a")), WINDOW, {})
    for signal in ("weights_memory", "gpu_memory_total", "gpu_xid", "host_oom_kills", "container_image", "gpu_memory_share"):
        assert readings.signals[signal].status is Status.ABSENT, signal
        assert readings.signals[signal].why is not None
