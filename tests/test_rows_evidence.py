"""The figures beside a verdict are those that were simulated, not merely some."""

import numpy as np
import pytest
from tests.incidents import BY_NAME, TROUBLE, readings, truth
from tests.scrapes import T0

from obs.diagnosis import diagnose
from obs.language import render
from obs.verdict import Stance

LATENCY, FIRST, LOAD = "latency_without_errors", "slow_first_token", "load_after_timeouts"
END = 4500


@pytest.fixture(scope="module")
def diagnosed():
    made = {}

    def one(name):
        if name not in made:
            made[name] = diagnose(readings(name))
        return made[name]

    return one


def evidence(diagnosis, row):
    return {e.signal: e for e in diagnosis.verdict(row).evidence}


def mean(name, signal, first=TROUBLE + 120, last=END, row=0):
    """The true mean of a signal between two seconds, on one replica or at the gateway."""
    fleet = truth(name)
    source = {key: values[row] for key, values in fleet.replica.items()} if f"{signal}.sum" in fleet.replica else fleet.gateway
    total, count = source[f"{signal}.sum"], source[f"{signal}.count"]
    return (total[last] - total[first]) / (count[last] - count[first])


# ---------------------------------------------------------------- what did not hold has its figure too


def test_a_clear_row_shows_the_figures_that_made_it_clear(diagnosed):
    seen = evidence(diagnosed("a healthy hour"), LATENCY)
    assert {e.stance for e in seen.values()} <= {Stance.CONTRADICTS, Stance.NEUTRAL}
    assert seen["waiting"].value == 0
    use = truth("a healthy hour").replica["kv_use"][:, 1500:END]
    assert np.median(use) < seen["kv_use"].value <= np.max(use)  # the most that lasted, not a peak of seconds
    assert evidence(diagnosed("a healthy hour"), LOAD)["retry_ratio"].value == 0


def test_what_is_missing_says_so_and_has_no_figure(diagnosed):
    got = diagnosed("a healthy hour without a gateway")
    seen = evidence(got, LOAD)
    assert {seen[s].stance for s in ("retry_ratio", "timeouts")} == {Stance.MISSING}
    assert seen["retry_ratio"].value is None
    assert "gateway_retries" in render(seen["retry_ratio"].says)
    assert [render(m) for m in got.verdict(LOAD).missing if "Retries" in render(m)] != []


def test_time_outs_are_not_counted_as_errors(diagnosed):
    fleet = truth("time-outs without retries").gateway
    ratio = (fleet["gateway_errors"][END] - fleet["gateway_errors"][3000]) / (
        fleet["gateway_responses"][END] - fleet["gateway_responses"][3000]
    )
    assert ratio > 0.05
    assert evidence(diagnosed("time-outs without retries"), LATENCY)["error_ratio"].value < 0.02


def test_errors_speak_against_latency_without_errors(diagnosed):
    seen = evidence(diagnosed("latency with errors"), LATENCY)["error_ratio"]
    assert seen.stance is Stance.CONTRADICTS
    assert seen.value == pytest.approx(0.3, abs=0.08)


# ---------------------------------------------------------------- latency


def test_the_pressure_s_figures_are_the_simulated_ones(diagnosed):
    name = "more than the KV pool holds"
    seen, fleet = evidence(diagnosed(name), LATENCY), truth(name).replica
    assert seen["kv_use"].value == pytest.approx(np.max(fleet["kv_use"][:, TROUBLE:END]), abs=0.01)
    assert seen["kv_use"].baseline == pytest.approx(np.median(fleet["kv_use"][:, :TROUBLE]), abs=0.05)
    assert seen["waiting"].value == pytest.approx(np.max(fleet["requests_waiting"][:, TROUBLE:END]), rel=0.02)
    assert seen["waiting"].baseline == 0
    assert seen["preemptions"].value > 0.05
    assert seen["e2e_latency"].baseline == pytest.approx(mean(name, "e2e_latency", 300, TROUBLE), rel=0.05)
    assert seen["e2e_latency"].value == pytest.approx(max(mean(name, "e2e_latency", END - 75, END, row) for row in (0, 1)), rel=0.05)


def test_each_piece_of_evidence_has_its_threshold_metric_and_onset(diagnosed):
    seen = evidence(diagnosed("more than the KV pool holds"), LATENCY)
    assert seen["kv_use"].threshold == pytest.approx(0.90)
    assert seen["kv_use"].metric == "kv_use"
    assert seen["kv_use"].onset - T0 == pytest.approx(TROUBLE, abs=60)
    assert render(seen["kv_use"].says) == "KV cache use 99.9 % (highest, at 08:55:45; threshold 90 %, before 23 %)"


def test_only_the_bad_replica_is_named_in_its_evidence(diagnosed):
    seen = evidence(diagnosed("one bad replica of four"), LATENCY)
    assert {replica for e in seen.values() if e.stance is Stance.SUPPORTS for replica in e.replicas} == {"vllm-2"}


# ---------------------------------------------------------------- the first token

STAGES = {"prefill": "prefill_time", "tokenization": "ttft_remainder", "network": "network_time", "queue": "queue_time"}


@pytest.mark.parametrize("name", ["a slow prefill", "a slow front end", "a slow network", "a queue with low KV use"])
def test_the_slow_stage_supports_and_the_others_do_not(name, diagnosed):
    seen = evidence(diagnosed(name), FIRST)
    slow = STAGES[BY_NAME[name].stage]
    assert {signal for signal in STAGES.values() if seen[signal].stance is Stance.SUPPORTS} == {slow}


def test_the_stages_have_the_means_that_were_simulated(diagnosed):
    name = "a slow prefill"
    seen = evidence(diagnosed(name), FIRST)
    assert seen["prefill_time"].value == pytest.approx(mean(name, "prefill_time"), rel=0.15)
    assert seen["prefill_time"].baseline == pytest.approx(mean(name, "prefill_time", 300, TROUBLE), rel=0.1)
    assert seen["queue_time"].value == pytest.approx(0.002, abs=0.002)
    slow = evidence(diagnosed("a slow front end"), FIRST)
    assert slow["ttft_remainder"].value == pytest.approx(0.9, rel=0.1)
    assert slow["ttft_remainder"].baseline == pytest.approx(0.02, abs=0.005)


def test_the_network_is_the_gateway_s_mean_less_the_engines(diagnosed):
    name = "a slow network"
    fleet = truth(name)
    inside = sum(fleet.replica["ttft.sum"][:, END] - fleet.replica["ttft.sum"][:, 3000]) / sum(
        fleet.replica["ttft.count"][:, END] - fleet.replica["ttft.count"][:, 3000]
    )
    seen = evidence(diagnosed(name), FIRST)["network_time"]
    assert seen.value == pytest.approx(mean(name, "gateway_ttft", 3000) - inside, rel=0.1)
    assert seen.value == pytest.approx(1.2, rel=0.1)


# ---------------------------------------------------------------- retries and memory


def test_the_retry_arithmetic_is_that_of_the_gateway(diagnosed):
    """Two retries at the most: each request becomes three attempts; the ratio is retries over originals."""
    name = "a retry storm"
    seen, fleet = evidence(diagnosed(name), LOAD), truth(name).gateway
    retries = np.diff(fleet["gateway_retries"][3600:END:300])
    attempts = np.diff(fleet["gateway_attempts"][3600:END:300])
    assert seen["retry_ratio"].value == pytest.approx(2.0, abs=0.4)
    assert seen["retry_ratio"].value >= float(np.max(retries / (attempts - retries))) * 0.9
    assert seen["timeouts"].value == pytest.approx(
        np.max(fleet["gateway_timeouts"][3300:END] - fleet["gateway_timeouts"][2700 : END - 600]), rel=0.05
    )


def test_the_change_to_test_has_the_amplification(diagnosed):
    change = diagnosed("a retry storm").verdict(LOAD).changes[0]
    assert render(change.detail).startswith("Each request became 3")
    assert "10" in render(change.detail)


def test_one_event_is_counted_once_with_the_memory_before_it(diagnosed):
    got = diagnosed("a GPU out-of-memory event")
    seen = evidence(got, "gpu_oom")
    assert seen["gpu_oom_events"].value == 1
    assert seen["gpu_oom_events"].replicas == ("vllm-1",)
    assert seen["gpu_memory"].value == pytest.approx(0.985)
    assert seen["restarts"].value == 1


def test_wasted_tokens_are_those_that_nobody_was_waiting_for(diagnosed):
    fleet = truth("callers who leave long answers").replica
    made = sum(fleet["generation_tokens"][:, END] - fleet["generation_tokens"][:, 3000])
    delivered = sum(fleet["output_length.sum"][:, END] - fleet["output_length.sum"][:, 3000])
    seen = evidence(diagnosed("callers who leave long answers"), LOAD)["waste"]
    assert seen.value == pytest.approx(1 - delivered / made, abs=0.12)
