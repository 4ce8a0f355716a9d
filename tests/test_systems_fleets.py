"""Fleets that speak several languages at once, through a real Prometheus: old and new vLLM, SGLang and TGI behind one Envoy, and an upgrade
in the middle of a window. Every figure against the simulated fleet; nothing is missing, counted twice, or averaged.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests import dialects
from tests.exposition import Exposition
from tests.expositions import HOUR, put
from tests.incidents import FIRST, LATENCY, OOM, TROUBLE, truth
from tests.recordings import Recording
from tests.scrapes import T0, read
from tests.test_systems_kinds import HOW as SLOW
from tests.test_systems_kinds import said

from obs import (
    first_token,
    first_token_interference,
    first_token_stages,
    gpu,
    histogram,
    kv,
    queue,
    retries,
    retries_flow,
    shifts,
    timeline,
)
from obs.collect import collect
from obs.config import SourceSettings
from obs.diagnosis import diagnose
from obs.facts import Facts
from obs.flow import flow
from obs.heat import heat, offered
from obs.language import render
from obs.prometheus import Prometheus
from obs.seen import History
from obs.sick import fleet
from obs.thresholds import in_force
from obs.verdict import State
from obs.window import Window

HOW = replace(SLOW, every=15.0)
ALWAYS = (0.0, float("inf"))
MIXED = ("vllm", "vllm_old", "sglang", "tgi")
SHARES = {"0.05": 0.5, "0.5": 0.9, "2.5": 0.97, "+Inf": 1.0}
CHANGED = TROUBLE + 600  # ten minutes into the trouble
DEPLOYED = tuple(TROUBLE + 300 * number for number in range(3))
CROWD, BAD, DEPLOY = "more than the KV pool holds", "one bad replica of four", "a deploy, one replica after another"
BY_REPLICA = ("requests_running", "requests_waiting", "requests_finished", "e2e_latency", "itl", "queue_time", "prompt_length")


@pytest.fixture(scope="module")
def view(served):
    """(facts, diagnosis) of one namespace."""
    out = Exposition()
    for shift, sick in enumerate((*MIXED[2:], *MIXED[:2])):
        for number in range(4):  # the bad one is the third
            dialects.engine(out, MIXED[(number + shift) % 4], truth(BAD), HOW, f"mixed {sick}", spells={number: ALWAYS})
        dialects.gateway(out, "envoy", truth(BAD), HOW, f"mixed {sick}")
    ranks_and_copies(out, "mixed sglang")
    upgraded(out, "whole", CROWD, (0.0, 0.0))
    upgraded(out, "changed", CROWD, (CHANGED, CHANGED))
    upgraded(out, "deployed", DEPLOY, (0.0, 0.0, 0.0))
    upgraded(out, "renamed", DEPLOY, DEPLOYED)
    upgraded(out, "both", CROWD, (0.0, 0.0))
    dialects.engine(out, dialects.DOUBLES, truth(CROWD), HOW, "both", "vllm", shares=SHARES)
    source = Prometheus(SourceSettings(url=served(out.text()), name="fleets"))
    made = {}

    def of(namespace):
        if namespace not in made:
            readings = collect(source, Window(T0 + HOW.start, T0 + HOW.end), {"namespace": (namespace,)})
            made[namespace] = Facts(readings, in_force({})), diagnose(readings)
        return made[namespace]

    return of


def upgraded(out, namespace, fleet_, until):
    """vLLM that speaks as 0.10 does until a second of each replica, and then as 0.12 does."""
    for system, spells in (
        ("vllm_old", {number: (0.0, at) for number, at in enumerate(until) if at}),
        ("vllm", {number: (at, ALWAYS[1]) for number, at in enumerate(until)}),
    ):
        dialects.engine(out, system, truth(fleet_), HOW, namespace, "vllm", spells=spells, shares=SHARES)
    dialects.gateway(out, "envoy", truth(fleet_), HOW, namespace)


def ranks_and_copies(out, namespace):
    """A second tensor-parallel rank of SGLang that repeats its scheduler's series, and a router's copies of vLLM's gauges."""
    router = ('pod="vllm-0",instance="vllm-0:8000"', 'pod="router",instance="r:1",server="http://a"')
    repeated = ("token_usage", "num_running_reqs", "num_queue_reqs", "num_retracted_requests_total", "realtime_tokens_total")
    for name in (f"sglang:{end}" for end in repeated):
        mine = [line for line in out.families[name] if f'namespace="{namespace}"' in line]
        out.families[name] += [line.replace('tp_rank="0"', 'tp_rank="1"') for line in mine]
    for name in ("vllm:num_requests_running", "vllm:num_requests_waiting"):
        mine = [line for line in out.families[name] if f'namespace="{namespace}",pod="vllm-0"' in line]
        out.families[name] += [line.replace(*router) for line in mine]


# ---------------------------------------------------------------- several engines at once


def in_the_window(readings, values):
    return values[..., readings.grid.index(T0 + HOW.start) : readings.grid.index(T0 + HOW.end)]


@pytest.mark.parametrize("sick", MIXED)
def test_the_sick_replica_of_a_mixed_fleet_is_named_whatever_it_speaks(sick, view):
    facts, got = view(f"mixed {sick}")
    bad = f"{sick}-2"
    assert sorted(r.system for r in facts.readings.replicas) == ["sglang", "tgi", "vllm", "vllm"]
    assert got.primary == (FIRST if sick == "tgi" else LATENCY)  # whether for KV space, TGI hides
    assert {v.row for v in got.verdicts if v.state is State.APPLIES} == {LATENCY, FIRST}
    for row in (LATENCY, FIRST):
        assert got.verdict(row).episodes[0].replicas == (bad,)
        assert got.verdict(row).episodes[0].start == pytest.approx(T0 + TROUBLE, abs=60)
    assert [f.replicas for f in got.findings] == ([] if sick == "tgi" else [(bad,)])
    lacks = f"KV cache use: not measured on tgi-{next(r.name for r in facts.readings.replicas if r.system == 'tgi')[-1]}."
    assert f"{lacks} Not told by TGI: it shows the tokens that the running batch has reserved" in said(got)


@pytest.mark.parametrize("sick", MIXED)
def test_every_figure_of_a_mixed_fleet_is_its_own_replicas(sick, view):
    facts, _ = view(f"mixed {sick}")
    alone = read(truth(BAD), HOW, tuple("0123"))
    order = [int(replica.name[-1]) for replica in facts.readings.replicas]
    for signal in BY_REPLICA:
        ours = in_the_window(facts.readings, facts.readings.signals[signal].values)
        np.testing.assert_allclose(ours, in_the_window(alone, alone.signals[signal].values[order]), rtol=1e-6, err_msg=signal)
    full = in_the_window(facts.readings, facts.values("kv_use"))
    told = np.array([replica.system != "tgi" for replica in facts.readings.replicas])
    np.testing.assert_allclose(full[told], in_the_window(alone, alone.signals["kv_use"].values[order])[told], rtol=1e-6)
    assert not np.isfinite(full[~told]).any()


def test_a_mixed_fleet_is_added_up_once_and_its_ratios_are_not_averaged(view):
    """One of them has two ranks that repeat each other, and a router shows copies of another one's gauges."""
    facts, _ = view("mixed sglang")
    alone = Facts(read(truth(BAD), HOW, tuple("0123")), in_force({}))
    work, wanted = flow(facts), flow(alone)
    for name in ("arrivals", "admitted", "completed", "held"):
        ours, theirs = (in_the_window(f.readings, getattr(w, name)) for f, w in ((facts, work), (alone, wanted)))
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6, err_msg=name)
    means = in_the_window(facts.readings, facts.joint_mean("e2e_latency"))
    np.testing.assert_allclose(means, in_the_window(alone.readings, alone.joint_mean("e2e_latency")), rtol=1e-6)
    of_means = in_the_window(facts.readings, facts.readings.signals["e2e_latency"].values).mean(axis=0)
    assert np.abs(means / of_means - 1).max() > 0.1  # the mean of the replicas' means would be another figure
    fullest = kv.answer(facts).figures[0]
    assert fullest.value == pytest.approx(np.nanmax(in_the_window(alone.readings, alone.values("kv_use"))))
    assert "on sglang-2" in render(fullest.says, "en")


def test_room_on_the_replicas_that_tell_is_no_room_on_the_one_that_does_not(view):
    facts, _ = view("mixed tgi")
    found = kv.answer(facts)
    assert found.state is State.UNKNOWN
    assert render(found.says, "en").endswith("Of tgi-2 nobody can tell: KV cache use is not measured there.")
    advice = " ".join(render(each, "en") for each in found.advice)
    assert advice.startswith("Not told by TGI: it shows the tokens that the running batch has reserved")
    assert "not for KV space" not in advice  # 515 requests wait there, and nobody can tell for what


# ---------------------------------------------------------------- an upgrade in the middle of a window

LINES = {  # what each page draws
    "kv": lambda f, d: [*(f.values(s) for s in ("kv_use", "preemptions", "requests_waiting", "requests_running")), kv.per_request(f)],
    "queue": lambda f, d: [
        *(getattr(flow(f), line) for line in ("arrivals", "admitted", "completed", "held")), queue.mean_wait(f), queue.little(f),
        *quantiles(f, "queue_time"),
    ],
    "first token": lambda f, d: [
        first_token_stages.breakdown(f, first_token.named(f, d.verdict(FIRST))).stages, f.mean("ttft"), f.joint_mean("itl"),
        *quantiles(f, "ttft"), *quantiles(f, "itl"), *within(f, "itl"), first_token_interference.computed(f),
    ],
    "retries": lambda f, d: [
        *(line for layer in retries_flow.layers(f) for line in (layer.attempts, layer.originals)), f.retry_ratio, f.work, f.unattended,
        retries_flow.tokens(f).useful, retries_flow.tokens(f).wasted,
    ],
    "replicas": lambda f, d: [heat(f, signal, range(f.rows)).values for signal in offered(f)],
    "timeline": lambda f, d: [shifts.traffic(f), shifts.prompt_length(f)],
}  # fmt: skip
ANSWERS = {  # and what it says
    "kv": lambda f, d: kv.answer(f),
    "queue": lambda f, d: queue.answer(f),
    "first token": lambda f, d: first_token.answer(f, d.verdict(FIRST), first_token_interference.interference(f)),
    "retries": lambda f, d: retries.answer(f, d.verdict("load_after_timeouts"), d.findings),
    "gpu": lambda f, d: gpu.answer(f),
    "replicas": lambda f, d: fleet(f, d).said,
    "timeline": lambda f, d: timeline.answer(d, timeline.timeline(f, d, History((), ()))),
}


def quantiles(facts, signal):
    buckets = facts.readings.buckets[signal]
    return [histogram.quantile(buckets.bounds, buckets.rates, q)[0] for q in (0.5, 0.95, 0.99)]


def within(facts, signal):
    buckets = facts.readings.buckets[signal]
    return histogram.within(buckets.bounds, buckets.rates, facts.limit(f"{signal}_objective"))


PAIRS = (("changed", "whole"), ("both", "whole"), ("renamed", "deployed"))


@pytest.mark.parametrize("page", LINES)
@pytest.mark.parametrize(("namespace", "plain"), PAIRS)
def test_no_line_of_a_page_breaks_where_names_change(namespace, plain, page, view):
    """Against the same fleet under 0.12's names all the time: no hole, no double, no jump, at any step."""
    ours, theirs = (LINES[page](*view(name)) for name in (namespace, plain))
    assert len(ours) == len(theirs) > 0
    for line, (values, wanted) in enumerate(zip(ours, theirs, strict=True)):
        if values.shape[-1] == view(plain)[0].grid.count:
            values, wanted = (in_the_window(view(plain)[0].readings, each) for each in (values, wanted))
        assert np.isfinite(wanted).any()
        assert (np.isfinite(values) != np.isfinite(wanted)).sum() == 0, line
        np.testing.assert_allclose(np.nan_to_num(values), np.nan_to_num(wanted), rtol=0.1, atol=1e-3, err_msg=f"line {line}")


@pytest.mark.parametrize("page", ANSWERS)
@pytest.mark.parametrize(("namespace", "plain"), PAIRS)
def test_no_answer_of_a_page_changes_where_names_change(namespace, plain, page, view):
    ours, theirs = (ANSWERS[page](*view(name)) for name in (namespace, plain))
    assert (ours.state, render(ours.says, "en")) == (theirs.state, render(theirs.says, "en"))
    for mine, other in zip(ours.figures, theirs.figures, strict=True):
        assert render(mine.title, "en") == render(other.title, "en")
        same = (mine.value, other.value) == (None, None) or mine.value == pytest.approx(other.value, rel=0.02, nan_ok=True)
        assert same, (render(mine.title, "en"), mine.value, other.value)


@pytest.mark.parametrize(("namespace", "plain"), PAIRS)
def test_the_verdicts_are_those_of_one_name(namespace, plain, view):
    (_, ours), (_, theirs) = view(namespace), view(plain)
    assert [(v.row, v.state, v.episodes) for v in ours.verdicts] == [(v.row, v.state, v.episodes) for v in theirs.verdicts]
    assert [(f.id, f.start, f.replicas) for f in ours.findings] == [(f.id, f.start, f.replicas) for f in theirs.findings]
    assert view("changed")[0].readings.signals["itl"].metric == "vllm:inter_token_latency_seconds / vllm:time_per_output_token_seconds"


def test_a_distribution_counts_each_observation_once_under_two_names(view):
    """0.10.2 to 0.11 show the time between tokens under both names: twice the observations would outweigh other replicas'."""
    facts, _ = view("both")
    ours, theirs = facts.readings.buckets["itl"], view("whole")[0].readings.buckets["itl"]
    np.testing.assert_allclose(in_the_window(facts.readings, ours.rates), in_the_window(facts.readings, theirs.rates), rtol=1e-6)
    counted = in_the_window(facts.readings, facts.readings.signals["itl"].count).sum(axis=0)
    np.testing.assert_allclose(in_the_window(facts.readings, ours.rates[-1]), counted, rtol=1e-6)


# ---------------------------------------------------------------- what one engine alone tells


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
