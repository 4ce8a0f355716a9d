"""Which series belong to which replica: names that coexist, ranks, exporters beside, targets that died."""

import numpy as np
import pytest
from tests.recordings import T0, Recording
from tests.test_collect import WINDOW, judged, levels

from obs.collect import collect
from obs.language import render
from obs.signals import Status
from obs.window import Window

POD = {"namespace": "prod", "pod": "a"}
ENGINE = {**POD, "job": "vllm", "instance": "a:8000", "model_name": "llama"}


# ---------------------------------------------------------------- names


def test_old_and_new_names_of_one_replica_are_one_figure(recorded):
    recording = Recording().vllm("a", kv_cache_usage_perc=0.6)
    recording.put("vllm:gpu_cache_usage_perc", {**ENGINE, "engine": "0"}, 0.6)
    readings = collect(recorded(recording), WINDOW, {})
    assert levels(readings, "kv_use") == {"a": 0.6}
    assert readings.signals["kv_use"].metric == "vllm:kv_cache_usage_perc / vllm:gpu_cache_usage_perc"


def test_old_and_new_names_share_a_window_after_an_upgrade(recorded):
    recording = Recording().vllm("a", kv_cache_usage_perc=lambda age: 0.7 if age >= 1200 else None)
    recording.put("vllm:gpu_cache_usage_perc", ENGINE, lambda age: 0.4 if age < 1200 else None)
    readings = collect(recorded(recording), WINDOW, {})
    values = judged(readings, "kv_use")[0]
    assert (values[0], values[-1]) == (0.4, 0.7)
    assert np.isfinite(values).all()


def test_the_routers_copies_are_not_counted(recorded):
    recording = Recording().vllm("a", num_requests_running=5)
    recording.put("vllm:num_requests_running", {"job": "router", "instance": "router:8001", "server": "http://a:8000"}, 5)
    readings = collect(recorded(recording), WINDOW, {})
    assert levels(readings, "requests_running") == {"a": 5}


def test_tensor_parallel_ranks_are_one_replica_and_data_parallel_ranks_several(recorded):
    recording = Recording()
    for dp in "01":
        for tp in "0123":
            labels = {**ENGINE, "job": "sglang", "dp_rank": dp, "tp_rank": tp}
            recording.put("sglang:num_queue_reqs", labels, 3).put("sglang:token_usage", labels, 0.1 if dp == "0" else 0.9)
            recording.put("sglang:num_queue_reqs", {**labels, "priority": "1"}, 99)
    readings = collect(recorded(recording), WINDOW, {})
    assert levels(readings, "requests_waiting") == {"a/0": 3, "a/1": 3}
    assert levels(readings, "kv_use") == {"a/0": 0.1, "a/1": 0.9}


def test_prefill_and_decode_are_replicas_of_two_pools(recorded):
    recording = Recording()
    for pod, part in (("p", "prefill"), ("d", "decode")):
        labels = {**ENGINE, "pod": pod, "instance": f"{pod}:30000", "job": "sglang", "engine_type": part}
        recording.put("sglang:num_queue_reqs", labels, 3).put("sglang:num_running_reqs", labels, 1)
    readings = collect(recorded(recording), WINDOW, {})
    assert {replica.name: replica.pool for replica in readings.replicas} == {"p": "prefill", "d": "decode"}
    assert levels(readings, "requests_waiting") == {"p": 3, "d": 3}


def test_a_pods_rate_is_shared_by_its_ranks_so_that_the_sum_is_right(recorded):
    recording = Recording()
    for rank in "01":
        recording.put("vllm:num_requests_waiting", {**ENGINE, "engine": rank}, 0)
    recording.rate("vllm:admission_rejections_total", {**ENGINE, "reason": "max_num_queued_reqs"}, 4)
    readings = collect(recorded(recording), WINDOW, {})
    assert levels(readings, "admission_rejections") == {"a/0": pytest.approx(2), "a/1": pytest.approx(2)}


def test_pods_of_the_same_name_in_two_namespaces_stay_two(recorded):
    recording = Recording().vllm("vllm-0", kv_cache_usage_perc=0.1).vllm("vllm-0", namespace="dev", kv_cache_usage_perc=0.9)
    source = recorded(recording)
    assert levels(collect(source, WINDOW, {}), "kv_use") == {"dev/vllm-0": 0.9, "prod/vllm-0": 0.1}
    assert levels(collect(source, WINDOW, {"replica": ("dev/vllm-0",)}), "kv_use") == {"dev/vllm-0": 0.9}


def test_pods_of_the_same_name_in_two_clusters_stay_two(recorded):
    """As where Thanos or Mimir holds several clusters with the same manifests; what stands under a pod is its own cluster's."""
    recording = Recording()
    for cluster, use in (("eu", 0.1), ("us", 0.9)):
        target = {"job": "vllm", "namespace": "prod", "pod": "vllm-0", "instance": "10.0.0.1:8000", "cluster": cluster}
        labels = {**target, "model_name": "llama", "engine": "0"}
        recording.put("vllm:kv_cache_usage_perc", labels, use).put("vllm:num_requests_running", labels, 2.0)
        recording.rate("vllm:generation_tokens_total", labels, 50).put("up", target, 1.0 if cluster == "eu" else 0.0)
        gpu = {"job": "dcgm", "exported_namespace": "prod", "exported_pod": "vllm-0", "instance": "n:9400", "cluster": cluster}
        recording.put("DCGM_FI_DEV_GPU_UTIL", gpu, 100 * use)
        recording.rate("envoy_cluster_upstream_rq_total", {"envoy_cluster_name": "llm", "namespace": "prod", "cluster": cluster}, 10 * use)
    source = recorded(recording)
    readings = collect(source, WINDOW, {})
    assert levels(readings, "kv_use") == {"eu/vllm-0": 0.1, "us/vllm-0": 0.9}
    assert levels(readings, "generation_tokens") == {"eu/vllm-0": pytest.approx(50), "us/vllm-0": pytest.approx(50)}
    assert levels(readings, "up") == {"eu/vllm-0": 1, "us/vllm-0": 0}
    assert levels(readings, "gpu_utilization") == {"eu/vllm-0": 0.1, "us/vllm-0": 0.9}
    assert levels(readings, "gateway_attempts") == {"eu/llm": pytest.approx(1), "us/llm": pytest.approx(9)}
    assert levels(collect(source, WINDOW, {"replica": ("us/vllm-0",)}), "kv_use") == {"us/vllm-0": 0.9}
    assert levels(collect(source, WINDOW, {"cluster": ("us",)}), "kv_use") == {"vllm-0": 0.9}


def test_a_target_that_two_jobs_scrape_counts_once(recorded):
    """A ServiceMonitor and a PodMonitor on the same pods: levels would not show it, rates would double."""
    recording = Recording()
    for job, until in (("monitoring/llm", 1200.0), ("vllm", 1e9)):
        labels = {**ENGINE, "job": job, "engine": "0"}
        recording.put("vllm:num_requests_waiting", labels, lambda age, until=until: 3.0 if age < until else None)
        recording.put("vllm:generation_tokens_total", labels, lambda age, until=until: 50 * age if age < until else None)
        recording.mean("vllm:time_to_first_token_seconds", labels, 0.5, 2)
        gateway = {"job": job, "namespace": "prod", "instance": "e:9901", "envoy_cluster_name": "llm"}
        recording.rate("envoy_cluster_upstream_rq_total", gateway, 2)
    readings = collect(recorded(recording), WINDOW, {})
    assert levels(readings, "requests_waiting") == {"a": 3}
    np.testing.assert_allclose(judged(readings, "generation_tokens"), 50, rtol=1e-6)  # also from where one job ends
    assert readings.signals["ttft"].count[0, -1] == pytest.approx(2)
    assert readings.buckets["ttft"].rates[-1, -1] == pytest.approx(2)
    assert levels(readings, "ttft") == pytest.approx({"a": 0.5})
    assert levels(readings, "gateway_attempts") == pytest.approx({"llm": 2})


def test_two_services_of_one_kong_stay_two(recorded):
    """Its rows have the very label that tells one job's targets from another's."""
    recording = Recording()
    for service, rate in (("chat", 3), ("code", 5)):
        labels = {"job": "kong", "namespace": "prod", "instance": "k:8100", "service": service, "code": "200"}
        recording.rate("kong_http_requests_total", labels, rate)
    assert levels(collect(recorded(recording), WINDOW, {}), "gateway_attempts") == {"chat": pytest.approx(3), "code": pytest.approx(5)}


def test_an_engine_whose_series_name_no_place_has_a_name_all_the_same(recorded):
    recording = Recording().put("vllm:num_requests_waiting", {"job": "llm"}, 3.0).rate("vllm:generation_tokens_total", {"job": "llm"}, 50)
    assert levels(collect(recorded(recording), WINDOW, {}), "requests_waiting") == {"llm": 3}


def test_capacity_is_read_from_the_labels_that_this_version_has(recorded):
    recording = Recording().vllm("old").vllm("new")
    for pod, labels in (
        ("old", {"num_gpu_blocks": "100", "block_size": "16"}),
        ("new", {"kv_cache_size_tokens": "5000", "block_size": "16"}),
    ):
        recording.put(
            "vllm:cache_config_info",
            {"namespace": "prod", "pod": pod, "job": "vllm", "instance": f"{pod}:8000", "engine": "0", **labels},
            1,
        )
    assert levels(collect(recorded(recording), WINDOW, {}), "kv_capacity_tokens") == {"new": 5000, "old": 1600}


# ---------------------------------------------------------------- what has no figure


def test_no_observation_is_no_traffic_and_not_zero(recorded):
    recording = Recording().vllm("a").mean("vllm:time_to_first_token_seconds", {**ENGINE, "engine": "0"}, 0.5, 0.0)
    reading = collect(recorded(recording), WINDOW, {}).signals["ttft"]
    assert reading.status is Status.NO_TRAFFIC
    assert np.isnan(reading.values).all()


def test_a_replica_that_vanished_is_stale_and_says_since_when(recorded):
    reading = collect(recorded(Recording().vllm("a", until=1200)), WINDOW, {}).signals["kv_use"]
    assert reading.status is Status.STALE
    assert np.isnan(reading.values[0, -1])
    assert "2027-01-15" in render(reading.why, "en") or "08:" in render(reading.why, "en")


def test_one_replica_that_vanished_leaves_the_other_measured(recorded):
    readings = collect(recorded(Recording().vllm("a", until=1200).vllm("b")), WINDOW, {})
    assert readings.signals["kv_use"].status is Status.MEASURED
    assert np.isnan(levels(readings, "kv_use")["a"])
    assert levels(readings, "up") == {"a": 0, "b": 1}


# ---------------------------------------------------------------- targets


def test_targets_that_are_no_engine_are_left_out(recorded):
    recording = Recording().vllm("a").put("up", {"job": "node", "instance": "a:9100"}, 0)
    recording.put("up", {"job": "vllm", "namespace": "prod", "pod": "a", "instance": "a:15020"}, 0)  # a sidecar of the pod
    recording.put("up", {"job": "vllm", "instance": "proxy:1", "pod": "proxy"}, 1)
    readings = collect(recorded(recording), WINDOW, {})
    assert levels(readings, "up") == {"a": 1}


def test_a_target_that_was_dead_all_along_is_a_replica_if_its_job_is_the_engines(recorded):
    recording = Recording().vllm("a").put("up", {"job": "vllm", "namespace": "prod", "pod": "b", "instance": "b:8000"}, 0)
    readings = collect(recorded(recording), WINDOW, {})
    assert levels(readings, "up") == {"a": 1, "b": 0}
    assert np.isnan(levels(readings, "kv_use")["b"])


def test_where_every_engine_is_gone_the_target_is_still_seen(recorded):
    recording = Recording().put("up", {"job": "my-vllm", "namespace": "prod", "pod": "a", "instance": "a:8000"}, 0)
    recording.put("up", {"job": "node", "instance": "n:9100"}, 1)
    recording.rate("envoy_cluster_upstream_rq_total", {"envoy_cluster_name": "llm"}, 1)
    readings = collect(recorded(recording), WINDOW, {})
    assert levels(readings, "up") == {"a": 0}
    assert not readings.engine_seen


# ---------------------------------------------------------------- the machine under it


def test_the_fullest_gpu_counts_and_the_exporters_own_pod_does_not(recorded):
    recording = Recording().vllm("a").vllm("b")
    for pod, gpu, used in (("a", "0", 20_000), ("a", "1", 79_000), ("b", "0", 10_000)):
        labels = {"job": "dcgm", "namespace": "monitoring", "pod": "dcgm-x", "exported_namespace": "prod", "exported_pod": pod, "gpu": gpu}
        recording.put("DCGM_FI_DEV_FB_USED", labels, used).put("DCGM_FI_DEV_FB_FREE", labels, 80_000 - used)
        recording.put("DCGM_FI_DEV_GPU_UTIL", labels, 50)
    readings = collect(recorded(recording), WINDOW, {"namespace": ("prod",)})
    assert levels(readings, "gpu_memory") == {"a": pytest.approx(79 / 80), "b": pytest.approx(1 / 8)}
    assert levels(readings, "gpu_memory_free")["a"] == 1000 * 2**20
    assert levels(readings, "gpu_utilization")["a"] == 0.5


def test_reserved_memory_counts_where_it_is_exported_and_blanks_do_not(recorded):
    recording = Recording().vllm("a")
    labels = {"job": "dcgm", "namespace": "prod", "pod": "a", "gpu": "0"}
    recording.put("DCGM_FI_DEV_FB_USED", labels, 70_000).put("DCGM_FI_DEV_FB_FREE", labels, 5_000).put(
        "DCGM_FI_DEV_FB_RESERVED", labels, 5_000
    )
    recording.put("DCGM_FI_DEV_GPU_UTIL", labels, 9223372036854775794)
    readings = collect(recorded(recording), WINDOW, {})
    assert levels(readings, "gpu_memory") == {"a": pytest.approx(70 / 80)}
    assert readings.signals["gpu_utilization"].status is Status.ABSENT


def test_without_kubernetes_the_host_ties_a_gpu_to_its_engine(recorded):
    recording = Recording().put("vllm:num_requests_waiting", {"job": "vllm", "instance": "10.0.0.5:8000", "model_name": "llama"}, 0)
    for host in ("10.0.0.5", "10.0.0.6"):
        labels = {"job": "dcgm", "instance": f"{host}:9400", "gpu": "0"}
        recording.put("DCGM_FI_DEV_FB_USED", labels, 60 if host.endswith("5") else 90).put("DCGM_FI_DEV_FB_FREE", labels, 40)
    assert levels(collect(recorded(recording), WINDOW, {}), "gpu_memory") == {"10.0.0.5:8000": 0.6}


def test_kubernetes_figures_are_those_of_the_engines_pods(recorded):
    recording = Recording().vllm("a")
    for pod, container in (("a", "vllm"), ("a", "sidecar"), ("other", "web")):
        labels = {"job": "ksm", "namespace": "prod", "pod": pod, "container": container}
        recording.put("kube_pod_container_status_restarts_total", labels, 3 if container == "vllm" else 0)
        recording.put("container_memory_working_set_bytes", {**labels, "job": "kubelet", "id": "/x"}, 60e9 if container == "vllm" else 1e9)
        recording.put("kube_pod_container_resource_limits", {**labels, "resource": "memory", "unit": "byte"}, 100e9)
        recording.put("kube_pod_container_resource_limits", {**labels, "resource": "cpu", "unit": "core"}, 4)
    readings = collect(recorded(recording), WINDOW, {})
    assert levels(readings, "container_restarts") == {"a": 3}
    assert levels(readings, "host_memory") == {"a": pytest.approx(0.6)}
    assert levels(readings, "container_oom_killed") == {"a": 0}


def test_a_pod_that_a_log_names_is_a_replica_even_if_its_engine_never_came_up(recorded):
    recording = Recording().put("gpu_oom_events_total", {"job": "logs", **POD}, lambda age: age // 600)
    recording.put("gpu_oom_events_total", {"job": "logs", "namespace": "prod", "pod": "fine"}, 0)
    readings = collect(recorded(recording), WINDOW, {})
    assert levels(readings, "gpu_oom_events") == {"a": 3}
    assert not readings.engine_seen


# ---------------------------------------------------------------- gateways


def test_clusters_that_never_see_a_request_are_left_out(recorded):
    recording = Recording().vllm("a")
    for cluster, rate in (("llm", 3), ("xds", 0)):
        labels = {"job": "envoy", "envoy_cluster_name": cluster}
        recording.rate("envoy_cluster_upstream_rq_total", labels, rate).rate("envoy_cluster_upstream_rq_retry", labels, 0)
        recording.put("envoy_cluster_upstream_rq_active", labels, 0)
    readings = collect(recorded(recording), WINDOW, {})
    assert levels(readings, "gateway_attempts") == {"llm": pytest.approx(3)}
    assert levels(readings, "gateway_retries") == {"llm": 0}


def test_both_kinds_of_time_out_add_up_and_neither_is_absent(recorded):
    recording = Recording().vllm("a").rate("envoy_cluster_upstream_rq_total", {"envoy_cluster_name": "llm"}, 3)
    recording.rate("envoy_cluster_upstream_rq_timeout", {"envoy_cluster_name": "llm"}, 1)
    source = recorded(recording)
    assert levels(collect(source, WINDOW, {}), "gateway_timeouts") == {"llm": pytest.approx(1)}
    assert collect(source, WINDOW, {}).signals["gateway_retry_overflow"].status is Status.ABSENT
    both = recorded(recording.rate("envoy_cluster_upstream_rq_per_try_timeout", {"envoy_cluster_name": "llm"}, 2))
    assert levels(collect(both, WINDOW, {}), "gateway_timeouts") == {"llm": pytest.approx(3)}


def test_a_window_before_the_recording_has_nothing(recorded):
    readings = collect(recorded(Recording().vllm("a")), Window(T0 - 9000, T0 - 8000), {})
    assert not readings.engine_seen
