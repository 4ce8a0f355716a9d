"""What stands under the engines: each exporter's own exposition beside one replica, every figure in the signal's unit."""

import numpy as np
import pytest
from tests.expositions import FOLDER, HOUR, WINDOW, put, samples
from tests.recordings import Recording

from obs.collect import collect
from obs.signals import SIGNALS, Level
from obs.vocabulary import vocabularies

MIB = 2**20
BY_ID = {v.id: v for v in vocabularies()}
NAMES = tuple(sorted(path.stem for path in (FOLDER / "hardware").glob("*.prom")))
TABLE = {
    "dcgm": {"gpu_memory": 0.75, "gpu_memory_free": 15000 * MIB, "gpu_memory_total": 80000 * MIB, "gpu_utilization": 0.9, "gpu_xid": 31},
    "amd": {"gpu_memory": 0.75, "gpu_memory_free": 48e9, "gpu_memory_total": 192e9, "gpu_utilization": 0.9},
    "nvidia_gpu_exporter": {"gpu_memory": 0.75, "gpu_memory_free": 20e9, "gpu_memory_total": 80e9, "gpu_utilization": 0.9},
    "node_exporter": {"host_memory": 0.75, "host_oom_kills": 2},
    "kubernetes": {"container_restarts": 3, "container_oom_killed": 1, "host_memory": 0.75, "host_oom_kills": 2, "container_image": 1},
    "events": {"gpu_oom_events": 1},
}
BY_HOST = ("nvidia_gpu_exporter", "node_exporter")  # they know no pods


def beside(name, engine_host="10.0.0.1"):
    """An engine, and the exporter that is scraped through a pod of its own, or at the same host."""
    engine = {"job": "vllm", "namespace": "prod", "pod": "a", "instance": "10.0.0.1:8000"}
    target = {"job": name, "namespace": "monitoring", "pod": f"{name}-x7", "instance": "10.0.9.9:9400"}
    if name in BY_HOST:
        engine, target = {"job": "vllm", "instance": f"{engine_host}:8000"}, {"job": name, "instance": "10.0.0.1:9400"}
    recording = put(Recording(seconds=HOUR), "vllm-0.33", engine)
    return put(recording, name, target, (FOLDER / "hardware" / f"{name}.prom").read_text("utf-8"))


def measured(readings):
    own = {s for v in vocabularies() if v.role == "hardware" for s in v.signals}
    found = {s: readings.signals[s].values[:, -1] for s in own if readings.signals[s].present}
    return {s: values[0] for s, values in found.items() if np.isfinite(values).any()}


@pytest.mark.parametrize("name", NAMES)
def test_an_exporter_is_measured_in_the_signals_unit_and_tied_to_its_replica(name, recorded):
    readings = collect(recorded(beside(name)), WINDOW, {}, buckets=False)
    assert len(readings.replicas) == 1
    assert measured(readings) == pytest.approx(TABLE[name])
    if name == "kubernetes":
        assert readings.replicas[0].image.endswith("vllm-openai:v0.11.0")


@pytest.mark.parametrize("name", BY_HOST)
def test_another_hosts_figures_are_not_this_replicas(name, recorded):
    assert measured(collect(recorded(beside(name, engine_host="10.0.0.2")), WINDOW, {}, buckets=False)) == {}


def test_the_exporters_of_pods_and_hosts_have_an_exposition_each_and_show_every_name():
    hardware = [v for v in vocabularies() if v.role == "hardware"]
    assert {v.id for v in hardware} == set(NAMES)
    for vocabulary in hardware:
        shown = {sample[0] for sample in samples((FOLDER / "hardware" / f"{vocabulary.id}.prom").read_text("utf-8"))}
        assert sorted(vocabulary.names() - shown) == []
        assert {SIGNALS[s].level for s in vocabulary.signals} == {Level.REPLICA}


def test_two_exporters_of_one_gpu_are_one_figure(recorded):
    recording = beside("dcgm")
    put(recording, "amd", {"job": "amd", "namespace": "monitoring", "pod": "amd-1", "instance": "10.0.9.8:5000"},
        (FOLDER / "hardware" / "amd.prom").read_text("utf-8"))  # fmt: skip
    readings = collect(recorded(recording), WINDOW, {}, buckets=False)
    assert readings.signals["gpu_memory_total"].values[0, -1] == 80000 * MIB
