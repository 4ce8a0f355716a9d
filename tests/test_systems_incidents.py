"""The incidents of the table, told by each system's own names: the right row where it can be told, and never a wrong one where not."""

from dataclasses import replace

import numpy as np
import pytest
from tests import dialects
from tests.exposition import Exposition, openmetrics
from tests.expositions import HOUR, put
from tests.incidents import BY_NAME, FIRST, LATENCY, LOAD, OOM, TROUBLE, truth
from tests.recordings import Recording
from tests.scrapes import T0, read

from obs.collect import collect
from obs.config import SourceSettings
from obs.diagnosis import diagnose
from obs.language import render
from obs.prometheus import Prometheus
from obs.signals import SIGNALS, Level, Status
from obs.verdict import State
from obs.vocabulary import vocabularies
from obs.window import Window

ENGINES = {v.id: v for v in vocabularies() if v.role == "engine"}
OUTSIDE = ("up", "container_restarts", "container_oom_killed", "host_memory", "gpu_memory", "gpu_oom_events")  # not the engine's
KINDS = {
    "healthy": "a healthy hour", "KV pressure": "more than the KV pool holds", "queue": "a queue with low KV use",
    "slow stage": "a slow prefill", "retries": "a retry storm", "OOM": "a GPU out-of-memory event",
    "hang": "a hung engine with frozen gauges",
}  # fmt: skip
# kind -> primary row where the engine tells all, and what others make of it
TOLD = {
    "healthy": ("none", {"insufficient": ("llamacpp", "lmdeploy", "tgi", "triton", "trtllm", "dynamo_worker", "kserve")}),
    "KV pressure": (LATENCY, {"insufficient": ("llamacpp", "kserve"), FIRST: ("tgi",)}),  # a queue it is; whether for KV space, TGI hides
    "queue": (FIRST, {"insufficient": ("llamacpp", "dynamo_worker", "kserve")}),
    "slow stage": (
        FIRST,
        {"insufficient": ("llamacpp", "dynamo_worker", "kserve"), "none": ("triton",)},
    ),  # of prefill Triton knows nothing
    "retries": (LOAD, {"insufficient": ("kserve",)}),  # whether the work stays, KServe does not know
    "OOM": (OOM, {}),
    "hang": ("insufficient", {}),
}
MAY_APPLY = {"KV pressure": {LATENCY, FIRST}, "queue": {FIRST, LATENCY}, "slow stage": {FIRST}, "OOM": {OOM},
             "retries": {LOAD, LATENCY, FIRST}, "healthy": set(), "hang": set()}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("system", [system for system, v in ENGINES.items() if v.gaps])
def test_an_engine_that_tells_less_leaves_rows_unknown_and_makes_none_up(kind, system):
    named = ENGINES[system].signals
    gone = {s for s, signal in SIGNALS.items() if signal.level is Level.REPLICA and s not in named and s not in OUTSIDE}
    incident = BY_NAME[KINDS[kind]]
    got = diagnose(read(truth(incident.name), replace(incident.how, without=incident.how.without | gone | {"gateway_ttft"})))
    usual, others = TOLD[kind]
    assert got.primary == next((primary for primary, systems in others.items() if system in systems), usual)
    assert {v.row for v in got.verdicts if v.state is State.APPLIES} <= MAY_APPLY[kind]
    if kind == "hang":  # clear would be the worst of answers
        assert {got.verdict(LATENCY).state, got.verdict(FIRST).state} == {State.UNKNOWN}
        assert (system == "kserve") != any(f.id == "engine_stalled" for f in got.findings)


# ---------------------------------------------------------------- through a real Prometheus, name by name

CROWD, STORM = (replace(BY_NAME[KINDS[kind]], how=replace(BY_NAME[KINDS[kind]].how, every=30.0)) for kind in ("KV pressure", "retries"))
MIXED = ("vllm", "vllm_old", "sglang", "tgi")  # one namespace, four kinds of replicas, one Envoy
CROWD_TOLD = {"llamacpp": "insufficient", "kserve": "insufficient", "tgi": FIRST}
NO_TIMEOUTS, NO_RETRIES = ("haproxy", "vllm_router"), ("ingress_nginx", "kong", "llm_d", "production_stack")


@pytest.fixture(scope="module")
def source(served):
    """Every engine under a crowd, and every gateway before a storm, each in a namespace of its own."""
    out = Exposition()
    for system in dialects.ENGINES:
        dialects.engine(out, system, truth(CROWD.name), CROWD.how, f"crowd-{system}")
        dialects.gateway(out, "envoy", truth(CROWD.name), CROWD.how, f"crowd-{system}")
    for system in dialects.GATEWAYS:
        dialects.engine(out, "ray", truth(STORM.name), STORM.how, f"storm-{system}")
        dialects.gateway(out, system, truth(STORM.name), STORM.how, f"storm-{system}")
    for system in MIXED:
        dialects.engine(out, system, truth(CROWD.name), CROWD.how, "mixed")
    dialects.gateway(out, "envoy", truth(CROWD.name), CROWD.how, "mixed")
    old = {"new": 0.0, "changed": float(TROUBLE + 600)}
    text = [openmetrics(truth(CROWD.name), CROWD.how, old_until=until, namespace=f"vllm-{name}") for name, until in old.items()]
    return Prometheus(SourceSettings(url=served(merged(out.text(), *text)), name="systems"))


def merged(*texts):
    """Several OpenMetrics texts as one, each family in one piece."""
    families = {}
    for text in texts:
        for line in text.splitlines():
            if line.startswith("# TYPE"):
                lines = families.setdefault(line, [])
            elif line != "# EOF":
                lines.append(line)
    return "\n".join([line for kind, lines in families.items() for line in (kind, *lines)] + ["# EOF\n"])


def seen(source, incident, **scope):
    return collect(source, Window(T0 + incident.how.start, T0 + incident.how.end), {k: (v,) for k, v in scope.items()}, buckets=False)


@pytest.mark.parametrize("system", dialects.ENGINES)
def test_more_than_the_kv_pool_holds_is_seen_under_the_names_of_every_engine(system, source):
    readings = seen(source, CROWD, namespace=f"crowd-{system}")
    got = diagnose(readings)
    assert [r.system for r in readings.replicas] == [system, system]
    assert got.primary == CROWD_TOLD.get(system, LATENCY)
    says = render(got.summary, "en")
    assert "KV space is not the reason" not in says
    assert ("whether KV space is the reason, nobody can tell" in says) == (system == "tgi")
    if got.primary == LATENCY:
        assert got.verdict(LATENCY).episodes[0].start == pytest.approx(T0 + TROUBLE, abs=90)
        assert got.verdict(LATENCY).episodes[0].replicas == (f"{system}-0", f"{system}-1")
    for signal in ENGINES[system].gaps:
        if signal not in ("gpu_memory",):
            assert readings.signals[signal].status is Status.ABSENT, signal


@pytest.mark.parametrize("system", dialects.GATEWAYS)
def test_a_retry_storm_is_seen_under_the_names_of_every_gateway_or_it_is_said_what_would_tell(system, source):
    got = diagnose(seen(source, STORM, namespace=f"storm-{system}")).verdict(LOAD)
    missing = " ".join(render(message, "en") for message in got.missing)
    if system in NO_TIMEOUTS:
        assert got.state is State.SUSPECTED
        assert "Time-outs: Not told by" in missing
    elif system in NO_RETRIES:
        assert got.state is State.UNKNOWN
        assert "Retries: Not told by" in missing
        assert [e.value for e in got.evidence if e.signal == "retry_ratio"] == [None]  # and not 0 %
    else:
        assert got.state is State.APPLIES
        assert got.episodes[0].start == pytest.approx(T0 + TROUBLE + 40, abs=90)
        assert "Not told" not in missing


def test_a_mixed_fleet_behind_one_gateway_is_one_view(source):
    readings = seen(source, CROWD, namespace="mixed")
    got = diagnose(readings)
    assert [(r.name, r.system) for r in readings.replicas] == [
        (f"{system}-{n}", system.partition("_")[0]) for system in sorted(MIXED) for n in "01"
    ]
    assert got.primary == LATENCY
    assert set(got.verdict(LATENCY).episodes[0].replicas) == {r.name for r in readings.replicas}
    kv = readings.signals["kv_use"]
    assert kv.metric == "vllm:kv_cache_usage_perc / vllm:gpu_cache_usage_perc / sglang:token_usage"
    lacking = ~np.isfinite(kv.values).any(axis=1)
    assert [name for name, missing in zip(kv.rows, lacking, strict=True) if missing] == ["tgi-0", "tgi-1"]
    lacks = " ".join(render(message, "en") for message in got.verdict(LATENCY).missing)
    assert "KV cache use: not measured on tgi-0, tgi-1. Not told by TGI: it shows the tokens that the running batch has reserved" in lacks
    same = readings.signals["requests_running"].values[:, -40:]
    assert np.nanmax(np.abs(same[::2] - same[0])) == 0  # the same fleet four times: no figure is anybody else's, or counted twice


def test_an_upgrade_in_the_middle_of_a_window_breaks_no_chart(source):
    """From 0.10's names to 0.12's ten minutes into the trouble: every signal is there at every step, with the same figures."""
    whole, changed = (seen(source, CROWD, namespace=f"vllm-{name}") for name in ("new", "changed"))
    assert changed.signals["itl"].metric == "vllm:inter_token_latency_seconds / vllm:time_per_output_token_seconds"
    inside = slice(whole.grid.index(whole.start), None)
    for name, reading in whole.signals.items():
        ours, theirs = reading.values[:, inside], changed.signals[name].values[:, inside]
        assert (np.isfinite(ours) & ~np.isfinite(theirs)).sum() == 0, name
        np.testing.assert_allclose(np.nan_to_num(theirs), np.nan_to_num(ours), rtol=0.05, atol=0.02, err_msg=name)
    assert diagnose(changed).verdict(LATENCY).episodes[0].start == diagnose(whole).verdict(LATENCY).episodes[0].start


def test_an_out_of_memory_error_that_the_engine_itself_counts_is_an_event(recorded):
    """LMDeploy is the only engine with such an outcome. It is counted on the replica that had it, and on no other."""
    recording = Recording(seconds=HOUR)
    for pod in "ab":
        put(recording, "lmdeploy", {"job": "lmdeploy", "namespace": "prod", "pod": pod, "instance": f"{pod}:23333"})
    labels = {"job": "lmdeploy", "namespace": "prod", "pod": "b", "instance": "b:23333", "model_name": "llama", "engine": "0"}
    out_of_memory = {**labels, "finished_reason": "ResponseType.OUT_OF_MEMORY"}
    recording.put("lmdeploy:request_success_total", out_of_memory, lambda age: 3.0 if age >= 3000 else None)
    readings = collect(recorded(recording), Window(T0 + 1200, T0 + 3600), {})
    events = readings.signals["gpu_oom_events"]
    assert dict(zip(events.rows, np.nanmax(events.values, axis=1).tolist(), strict=True)) == {"a": 0, "b": 3}
    assert diagnose(readings).verdict(OOM).state in (State.APPLIES, State.SUSPECTED)
