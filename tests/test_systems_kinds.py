"""The seven kinds of incidents in every system's own names, through a real Prometheus: the right row, or the sentence that says what cannot
be known there and what would tell. One Prometheus holds all of them, each in a namespace of its own.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from tests import dialects
from tests.exposition import Exposition
from tests.incidents import BY_NAME, FIRST, LATENCY, LOAD, OOM, TROUBLE, truth
from tests.scrapes import T0

from obs.collect import collect
from obs.config import SourceSettings
from obs.diagnosis import diagnose
from obs.language import render
from obs.prometheus import Prometheus
from obs.verdict import Stance, State
from obs.vocabulary import vocabularies
from obs.window import Window

ENGINES = (*dialects.VLLM, *dialects.ENGINES)
HOW = replace(BY_NAME["a healthy hour"].how, every=30.0, since=900.0, start=2100.0, end=3900.0)
WHOLE = "insufficient"  # of the window nothing can be said
KINDS = {  # kind -> what happens, and what a system that tells all makes of it: primary, stage, which replicas by number
    "healthy": ("a healthy hour", "none", None, ()),
    "KV pressure": ("more than the KV pool holds", LATENCY, None, (0, 1)),
    "queue": ("a queue with low KV use", FIRST, "queue", (0, 1)),
    "slow stage": ("a slow prefill", FIRST, "prefill", (0, 1)),
    "retries": ("a retry storm", LOAD, None, ()),
    "OOM": ("a GPU out-of-memory event", OOM, None, (1,)),
    "hang": ("a hung engine with frozen gauges", WHOLE, None, ()),
}
EDGES = {
    "healthy": KINDS["healthy"],
    "retries": KINDS["retries"],
    "slow stage": ("a slow network that only request times show", FIRST, "network", (0, 1)),
}
MAY_APPLY = {"healthy": set(), "hang": set(), "OOM": {OOM}, "slow stage": {FIRST}, "queue": {FIRST, LATENCY},
             "KV pressure": {LATENCY, FIRST}, "retries": {LOAD, LATENCY, FIRST}}  # fmt: skip

# What a system cannot tell: kind -> system -> (primary there, what is said of it). Each of these sentences is the vocabulary's.
TGI = "KV cache use: Not told by TGI: it shows the tokens that the running batch has reserved, not the pool's use"
TRITON = "Inter-token latency: Not told by Triton: "
LLAMACPP = "Not told by llama.cpp: newer builds have no metric for it; the slots' page (/slots) tells."
NO_TTFT = "Time to first token: Not told by llama.cpp: a gateway in front of it would tell."
WORKER = "Time to first token: Not told by Dynamo worker: the metrics of the engine inside, which a worker passes through, tell it."
KSERVE = "KV cache use: Not told by KServe: the metrics of the engine inside tell it, where it is vLLM."
NO_STEPS = "Running requests: Not told by KServe: the metrics of the engine inside tell it, where it is vLLM."
PREFILL = "Prefill time: Not told by Triton: its compute time is that of the whole answer; a trace would tell the prefill."
UNTOLD = {
    "healthy": {
        "tgi": (WHOLE, TGI), "triton": (WHOLE, TRITON),
        "llamacpp": (WHOLE, LLAMACPP), "dynamo_worker": (WHOLE, WORKER), "kserve": (WHOLE, KSERVE),
    },
    "KV pressure": {
        "tgi": (FIRST, "whether KV space is the reason, nobody can tell: KV use is not measured."),
        "llamacpp": (WHOLE, LLAMACPP), "kserve": (WHOLE, KSERVE),
    },
    "queue": {"llamacpp": (WHOLE, NO_TTFT), "dynamo_worker": (WHOLE, WORKER), "kserve": (WHOLE, KSERVE)},
    "slow stage": {
        "triton": ("none", PREFILL), "llamacpp": (WHOLE, NO_TTFT), "dynamo_worker": (WHOLE, WORKER), "kserve": (WHOLE, KSERVE),
    },
    "retries": {"kserve": (WHOLE, NO_STEPS)},  # whether the work stays
    "OOM": {},
    "hang": {"kserve": (WHOLE, NO_STEPS)},
}  # fmt: skip
LATE = "Time-outs: Not told by {}: {}"
TRIED = "Retries: Not told by {}: {}"
HAPROXY = LATE.format("HAProxy", "a 504 is one of its 5xx answers; the termination state in its access log (sH, sT) would tell.")
ROUTER = LATE.format("vLLM router", "a time-out is one of the errors that it tries again; a gateway in front of it, or its log, would")
NO_ROW_4 = {
    "haproxy": HAPROXY,
    "vllm_router": ROUTER,
    "ingress_nginx": TRIED.format("ingress-nginx", "its access log has each try ($upstream_status)."),
    "kong": TRIED.format("Kong", "Kong tries again (a service's retries, 5 by default) and has no metric for it; its log has the tries"),
    "llm_d": TRIED.format("llm-d endpoint picker", "the statistics of the Envoy behind it would tell."),
    "production_stack": TRIED.format("vLLM production-stack router", "it counts none; a gateway in front of it, or the callers' own"),
    "ai_gateway": TRIED.format("AI gateway", "the statistics of the Envoy in it would tell."),
}
# A gateway that cannot tell row 4 leaves what the engines tell; one that tells no time-outs leaves open whether the 5xx are more than those
INSTEAD = {"haproxy": FIRST, "vllm_router": FIRST, "ai_gateway": FIRST}
FIRST_BYTE = "Not told by HAProxy: its access log has the time to the answer's first byte (Tr)."


TITLES = {v.id: v.title for v in vocabularies()}
SHORT = {LATENCY: "as latency", FIRST: "as a slow first token", "none": "suspected", WHOLE: "no"}


def table(kinds, systems, cell):
    """The lines of a table of docs/systems.md: a row a system, a column a kind."""
    head = [f"| | {' | '.join(kinds)} |", f"|---|{'---|' * len(kinds)}"]
    return [*head, *(f"| {TITLES[system]} | {' | '.join(cell(system, kind) for kind in kinds)} |" for system in systems)]


def of_engine(system, kind):
    if kind == "OOM" and system != "lmdeploy":
        return "by a log's counter"
    return SHORT[UNTOLD[kind][system][0]] if system in UNTOLD[kind] else "yes"


def of_gateway(system, kind):
    if kind == "retries":
        return "half: no time-outs" if NO_ROW_4.get(system) in (HAPROXY, ROUTER) else "no" if system in NO_ROW_4 else "yes"
    return "no" if (system, kind) == ("haproxy", "slow stage") else "yes"


def test_the_documentation_says_what_each_system_tells():
    text = (Path(__file__).resolve().parent.parent / "docs/systems.md").read_text("utf-8")
    engines = table(KINDS, [system for system in ENGINES if system != "vllm_old"], of_engine)
    assert "\n".join(engines) in text
    assert "\n".join(table(EDGES, dialects.GATEWAYS, of_gateway)) in text


@pytest.fixture(scope="module")
def view(served):
    """(readings, diagnosis) of one namespace; all kinds of all systems lie in one Prometheus."""
    out = Exposition()
    for kind, (name, *_) in KINDS.items():
        for system in ENGINES:
            dialects.engine(out, system, truth(name), HOW, f"engine {kind} {system}")
            dialects.gateway(out, "envoy", truth(name), HOW, f"engine {kind} {system}")
            if kind == "OOM":
                dialects.machine(out, system, truth(name), HOW, f"engine {kind} {system}")
    for kind, (name, *_) in EDGES.items():
        for system in dialects.GATEWAYS:
            dialects.engine(out, "vllm", truth(name), HOW, f"gateway {kind} {system}")
            dialects.gateway(out, system, truth(name), HOW, f"gateway {kind} {system}")
    source = Prometheus(SourceSettings(url=served(out.text()), name="systems"))

    def of(namespace):
        readings = collect(source, Window(T0 + HOW.start, T0 + HOW.end), {"namespace": (namespace,)}, buckets=False)
        return readings, diagnose(readings)

    return of


def said(diagnosis):
    """All that a person reads of the rows, as one text."""
    every = [diagnosis.summary, *(m for v in diagnosis.verdicts for m in ((v.reason,) if v.reason else ()) + v.missing)]
    return " ".join(render(message, "en") for message in every)


def applying(diagnosis):
    return {v.row for v in diagnosis.verdicts if v.state is State.APPLIES}


def is_told(diagnosis, wanted, names):
    """The row, its stage, since when and where."""
    _, primary, stage, where = wanted
    assert diagnosis.primary == primary
    if primary not in ("none", WHOLE):
        row = diagnosis.verdict(primary)
        assert row.stage == stage
        assert row.episodes[0].start == pytest.approx(T0 + TROUBLE, abs=90)
        assert row.episodes[0].replicas == tuple(names[number] for number in where)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("system", ENGINES)
def test_an_engine_tells_the_incident_in_its_own_names_or_what_it_cannot_tell(system, kind, view):
    readings, got = view(f"engine {kind} {system}")
    names = tuple(replica.name for replica in readings.replicas)
    assert names == (f"{system}-0", f"{system}-1")
    assert {replica.system for replica in readings.replicas} == {system.partition("_old")[0]}
    assert applying(got) <= MAY_APPLY[kind]
    if system in UNTOLD[kind]:
        primary, sentence = UNTOLD[kind][system]
        assert got.primary == primary
        assert sentence in said(got)
    else:
        is_told(got, KINDS[kind], names)
    if kind == "hang":  # clear would be the worst of answers
        assert {got.verdict(LATENCY).state, got.verdict(FIRST).state} == {State.UNKNOWN}
        assert [f.replicas for f in got.findings if f.id == "engine_stalled"] == ([] if system == "kserve" else [(f"{system}-0",)])
    if kind == "OOM":
        assert [f.replicas for f in got.findings if f.id == "restarted"] == [(f"{system}-1",)]
    elif system == "lmdeploy":
        assert got.verdict(OOM).state is State.CLEAR  # it counts them itself
    else:
        assert got.verdict(OOM).state is State.UNKNOWN
        assert "a log pipeline that counts “CUDA out of memory” as gpu_oom_events_total would give it." in said(got)


@pytest.mark.parametrize("kind", EDGES)
@pytest.mark.parametrize("system", dialects.GATEWAYS)
def test_a_gateway_tells_the_incident_in_its_own_names_or_what_it_cannot_tell(system, kind, view):
    readings, got = view(f"gateway {kind} {system}")
    owners = {labels["namespace"] for reading in readings.signals.values() for labels in reading.row_labels}
    assert owners == {f"gateway {kind} {system}"}  # thirty other gateways lie beside it
    assert applying(got) <= MAY_APPLY[kind]
    load, lacks = got.verdict(LOAD), NO_ROW_4.get(system)
    if lacks:
        assert lacks in said(got)
        assert load.state is (State.SUSPECTED if kind == "retries" and lacks in (HAPROXY, ROUTER) else State.UNKNOWN)
        if load.state is State.SUSPECTED:
            assert render(load.reason, "en") == "retries are seen, and whether they answer time-outs is not known."
    if lacks and kind == "retries":
        assert got.primary == INSTEAD.get(system, LATENCY)
        tries = [e.value for e in load.evidence if e.signal == "retry_ratio"]
        assert (tries == [None]) == lacks.startswith("Retries")  # and not 0 %
    elif system == "haproxy" and kind == "slow stage":  # no time of its own can be added up
        assert got.primary == "none"
        assert got.verdict(FIRST).state is State.UNKNOWN
        assert FIRST_BYTE in said(got)
    else:
        is_told(got, EDGES[kind], ("vllm-0", "vllm-1"))
    if kind == "healthy" and not lacks:
        assert {got.verdict(row).state for row in (LATENCY, FIRST, LOAD)} == {State.CLEAR}


@pytest.mark.parametrize(("system", "log"), [("trtllm", "its iteration log would tell"), ("lmdeploy", "its log would tell")])
def test_preemptions_that_an_engine_does_not_count_leave_a_healthy_hour_healthy(system, log, view):
    """A request is preempted for want of KV space, and there was room all the time; in the incident of a full pool it is not said so."""
    room = "KV cache use stayed under 90 %, and with room in the pool none is preempted."
    healthy, full = (said(view(f"engine {kind} {system}")[1]) for kind in ("healthy", "KV pressure"))
    assert f"{log}. {room}" in healthy
    assert log in full
    assert room not in full


@pytest.mark.parametrize(("system", "stance"), [("vllm", Stance.NEUTRAL), ("ray", Stance.NEUTRAL), ("sglang", Stance.SUPPORTS)])
def test_aborts_that_an_engine_does_not_count_prove_nothing(system, stance, view):
    """vLLM counts no client that leaves: no aborts there say as little of work that goes on as of work that was stopped. SGLang does."""
    _, got = view(f"engine retries {system}")
    aborts = next(e for e in got.verdict(LOAD).evidence if e.signal == "engine_aborts")
    assert (aborts.value, aborts.stance) == (0, stance)
    assert ("a client that leaves is no abort there" in render(aborts.says, "en")) == (stance is Stance.NEUTRAL)
