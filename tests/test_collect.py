"""Readings of a real recording, figures compared; and what must not be read into one."""

import numpy as np
import pytest
from tests.recordings import SCRAPE, T0, Recording

from obs.collect import collect, groups, narrow, scope_values
from obs.config import load
from obs.errors import CallError
from obs.language import render
from obs.signals import SIGNALS, Status
from obs.window import Window

KV_PRESSURE = Window(1796036544, 1796036996)  # a rate looks back a minute: it takes the minute after to see all
STORM = Window(1796037566, 1796037993)
WINDOW = Window(T0 + 600, T0 + 1800)
POD = {"namespace": "prod", "pod": "a"}


@pytest.fixture(scope="module")
def pressure(lab):
    return collect(lab, KV_PRESSURE, {})


def judged(readings, signal):
    """The window's values of a signal, [rows, steps]."""
    return readings.signals[signal].values[:, readings.grid.index(readings.start) : readings.grid.index(readings.end) + 1]


def levels(readings, signal):
    """The last value of each row."""
    return dict(zip(readings.signals[signal].rows, judged(readings, signal)[:, -1].tolist(), strict=True))


# ---------------------------------------------------------------- the window and the scope


@pytest.mark.parametrize(
    ("window", "now"),
    [(Window(100, 100), None), (Window(200, 100), None), (Window(0, 40 * 86400), None), (Window(5000, 6000), 4000)],
    ids=["empty", "backwards", "too long", "future"],
)
def test_an_impossible_window_is_refused_before_anything_is_asked(lab, window, now):
    before = lab.requests
    with pytest.raises(CallError):
        collect(lab, window, {}, now=now)
    assert lab.requests - before <= 1


def test_a_window_that_reaches_into_the_future_ends_now(lab):
    assert collect(lab, Window(1796036544, 1796099999), {}, now=1796036936).end == 1796036936


def test_a_label_that_is_no_name_is_refused(lab):
    with pytest.raises(CallError, match="label name"):
        collect(lab, KV_PRESSURE, {'a"}': ("x",)})


def test_a_scope_that_nothing_fits_finds_no_engine_and_says_what_was_looked_for(lab):
    readings = collect(lab, KV_PRESSURE, {"namespace": ("'; drop",)})
    assert not readings.engine_seen
    assert readings.replicas == ()
    assert {reading.status for reading in readings.signals.values()} == {Status.ABSENT}
    assert "vllm:kv_cache_usage_perc" in render(readings.signals["kv_use"].why, "en")


def test_any_other_label_is_passed_on_exactly(lab):
    assert collect(lab, KV_PRESSURE, {"service": ("tiny-llama",)}).engine_seen
    assert not collect(lab, KV_PRESSURE, {"service": ("tiny",)}).engine_seen


def test_a_gateways_own_label_does_not_hide_the_engines(lab):
    readings = collect(lab, KV_PRESSURE, {"envoy_cluster_name": ("vllm_far",)})
    assert readings.engine_seen
    assert readings.signals["gateway_attempts"].rows == ("vllm_far",)


def test_a_word_that_a_gateway_cannot_follow_is_noted_once(lab):
    readings = collect(lab, KV_PRESSURE, {"model": ("tiny-llama",)})
    assert ["Envoy" in render(note, "en") for note in readings.notes] == [True]
    assert readings.signals["gateway_attempts"].status is Status.MEASURED


# ---------------------------------------------------------------- figures of the real recording


def test_the_kv_pressure_of_the_lab_reads_as_it_was(pressure):
    assert [(r.name, r.model, r.system) for r in pressure.replicas] == [("127.0.0.1:18000", "tiny-llama", "vllm")]
    assert (pressure.scrape_seconds, pressure.rate_seconds, pressure.grid.step) == (5, 60, 5)
    assert judged(pressure, "kv_use").max() == 1.0
    assert judged(pressure, "requests_waiting").max() == 67
    assert judged(pressure, "requests_running").max() == 64
    assert levels(pressure, "kv_capacity_tokens") == {"127.0.0.1:18000": 25600}
    assert judged(pressure, "preemptions").sum() * 5 == pytest.approx(791, rel=0.05)
    assert judged(pressure, "engine_errors").max() == 0
    assert judged(pressure, "up").min() == 1


def test_a_mean_over_the_window_is_the_sum_over_the_count(pressure):
    window = slice(pressure.grid.index(pressure.start), None)
    queue = pressure.signals["queue_time"]
    assert queue.total[:, window].sum() / queue.count[:, window].sum() == pytest.approx(14, rel=0.1)


def test_the_buckets_of_the_view_end_in_the_count(pressure):
    buckets = pressure.buckets["ttft"]
    assert np.isinf(buckets.bounds[-1])
    assert buckets.rates.shape == (23, pressure.grid.count)
    np.testing.assert_allclose(buckets.rates[-1], pressure.signals["ttft"].count[0], rtol=1e-9)
    assert (np.diff(buckets.rates, axis=0)[:, -1] >= 0).all()


def test_the_storm_at_the_gateway_reads_as_it_was(lab):
    readings = collect(lab, STORM, {})
    assert readings.signals["gateway_attempts"].rows == ("vllm",)  # vllm_far has seen no request yet
    assert judged(readings, "gateway_retries").sum() * 5 == pytest.approx(13010, rel=0.05)
    assert judged(readings, "gateway_attempts").sum() * 5 == pytest.approx(18276, rel=0.05)
    assert judged(readings, "gateway_timeouts").sum() * 5 == pytest.approx(17657, rel=0.05)


def test_milliseconds_become_seconds(pressure):
    engine, gateway = (pressure.signals[name].values[0, -1] for name in ("e2e_latency", "gateway_duration"))
    assert gateway == pytest.approx(engine, rel=0.1)


def test_what_the_lab_lacks_is_absent_and_says_which_exporter_would_give_it(pressure):
    assert pressure.signals["gpu_memory"].status is Status.ABSENT
    assert "DCGM" in render(pressure.signals["gpu_memory"].why, "en")
    assert "CUDA out of memory" in render(pressure.signals["gpu_oom_events"].why, "en")
    assert np.isnan(pressure.signals["gpu_memory"].values).all()


def test_errors_are_zero_before_the_first_one_where_answers_are_counted(pressure):
    assert judged(pressure, "gateway_errors").max() == 0
    assert pressure.signals["gateway_errors"].status is Status.MEASURED


def test_a_crash_shows_in_up_and_in_the_resets(lab):
    readings = collect(lab, Window(1796039495, 1796039735), {})
    assert judged(readings, "up").min() == 0
    assert judged(readings, "counter_resets").max() >= 1


def test_a_diagnosis_takes_at_most_twenty_requests(lab):
    before = lab.requests
    collect(lab, KV_PRESSURE, {})
    assert lab.requests - before <= 20


def test_every_signal_is_there_and_replica_rows_are_in_the_order_of_the_replicas(pressure):
    assert set(pressure.signals) == set(SIGNALS)
    names = tuple(r.name for r in pressure.replicas)
    assert {r.rows for r in pressure.signals.values() if r.signal.level == "replica"} == {names}


def test_a_long_window_keeps_the_peak_of_a_level(lab):
    readings = collect(lab, Window(1796036400, 1796036400 + 7 * 3600), {})
    assert readings.grid.step > 15
    fine = collect(lab, Window(1796036400, 1796040400), {})
    assert np.nanmax(judged(readings, "requests_waiting")) == np.nanmax(judged(fine, "requests_waiting")) == 116
    assert np.nanmin(judged(readings, "up")) == 0  # of the crash, 50 s long


# ---------------------------------------------------------------- what is in view


def test_over_more_than_an_hour_a_distribution_stands_for_its_minute_and_levels_are_as_fine_as_ever(lab):
    hour = collect(lab, Window(KV_PRESSURE.end - 1800, KV_PRESSURE.end), {})
    longer = collect(lab, Window(KV_PRESSURE.end - 3700, KV_PRESSURE.end), {})
    fine, minutes = hour.buckets["ttft"].rates, longer.buckets["ttft"].rates
    assert hour.grid.step == longer.grid.step == 5
    assert np.allclose(minutes[:, -1], fine[:, -1])
    assert np.array_equal(minutes[:, -12:], np.repeat(minutes[:, -1:], 12, axis=1))
    assert (np.diff(fine[-1, -120:]) != 0).sum() > 3 * (np.diff(minutes[-1, -120:]) != 0).sum() > 0
    assert np.allclose(judged(longer, "kv_use")[:, -300:], judged(hour, "kv_use")[:, -300:], equal_nan=True)


def test_the_bar_is_offered_what_the_window_has(lab, recorded):
    assert scope_values(lab, KV_PRESSURE) == {"namespace": [], "model": ["tiny-llama"], "replica": ["127.0.0.1:18000"]}
    recording = Recording().vllm("b").vllm("a", until=300).vllm("c", namespace="dev", model="qwen")
    assert scope_values(recorded(recording), Window(T0, T0 + 1800)) == {
        "namespace": ["dev", "prod"],
        "model": ["llama", "qwen"],
        "replica": ["a", "b", "c"],
    }


def test_a_part_of_the_view_is_cut_out_and_its_gateway_with_it(recorded):
    recording = Recording().vllm("a").vllm("b", namespace="dev", kv_cache_usage_perc=0.7)
    for namespace in ("prod", "dev"):
        recording.rate("envoy_cluster_upstream_rq_total", {"namespace": namespace, "envoy_cluster_name": "llm", "job": "envoy"}, 2)
    readings = collect(recorded(recording), WINDOW, {})
    assert groups(readings) == [("dev", "llama"), ("prod", "llama")]
    assert readings.signals["gateway_attempts"].rows == ("dev/llm", "prod/llm")
    part = narrow(readings, namespace="dev", model="llama")
    assert [r.name for r in part.replicas] == ["b"]
    assert levels(part, "kv_use") == {"b": 0.7}
    assert part.signals["gateway_attempts"].rows == ("dev/llm",)


def test_one_replica_of_several_is_selected_by_its_name(recorded):
    source = recorded(Recording().vllm("a").vllm("b"))
    assert [r.name for r in collect(source, WINDOW, {"replica": ("b",)}).replicas] == ["b"]
    assert [r.name for r in collect(source, WINDOW, {"replica": ("b:8000",)}).replicas] == ["b"]


def test_the_step_is_never_finer_than_the_scrape(recorded):
    readings = collect(recorded(Recording().vllm("a")), WINDOW, {})
    assert (readings.grid.step, readings.scrape_seconds, readings.rate_seconds) == (SCRAPE, SCRAPE, 60)
    assert readings.grid.start == WINDOW.start - 3600
    assert levels(readings, "generation_tokens")["a"] == pytest.approx(50)


def test_a_signals_promql_can_be_overridden_in_the_settings(lab, monkeypatch):
    monkeypatch.setenv("OBS_PROMQL__KV_USE", "max by ($by) (vllm:kv_cache_usage_perc{$sel}) / 2")
    readings = collect(lab, KV_PRESSURE, {}, load())
    assert judged(readings, "kv_use").max() == 0.5
    assert readings.signals["kv_use"].metric == "settings:kv_use"


def test_an_override_that_does_not_hold_is_said_where_the_signal_is_missing(lab, monkeypatch):
    monkeypatch.setenv("OBS_PROMQL__KV_USE", "max by (")
    readings = collect(lab, KV_PRESSURE, {}, load())
    assert "parse error" in render(readings.signals["kv_use"].why, "en")
    assert readings.signals["requests_waiting"].status is Status.MEASURED


def test_an_override_with_an_unknown_hole_names_its_variable(lab, monkeypatch):
    monkeypatch.setenv("OBS_PROMQL__KV_USE", "max by ($labels) (x)")
    with pytest.raises(CallError) as error:
        collect(lab, KV_PRESSURE, {}, load())
    assert "OBS_PROMQL__KV_USE" in render(error.value.says, "en")
