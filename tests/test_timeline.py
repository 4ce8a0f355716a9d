"""What happened in a window: incidents with their peaks, replicas that came or went, shifts, changes of configuration, alerts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.arrays import START, by_hand, course, facts, verdicts
from tests.recordings import T0, Recording
from tests.test_bundle import of_schema_1

from obs import bundle, events, scan
from obs.config import load
from obs.configuration import capacity, configuration, node
from obs.diagnosis import look
from obs.errors import SourceError
from obs.facts import Facts
from obs.history import history, in_scope, info_metrics
from obs.language import render
from obs.prometheus import Prometheus
from obs.seen import History, Shown, Span
from obs.series import Grid
from obs.shifts import shifts
from obs.signals import Replica
from obs.source import About, Answer
from obs.text import say
from obs.timeline import Alert, alerts, answer, shortly_before, timeline, window_of
from obs.ui.reader import Reader
from obs.ui.strip import axis
from obs.verdict import Incident, State
from obs.window import Window

NOTHING = History((), (), None, None)
PAIR = (Replica("a", "prod", "llama"), Replica("b", "prod", "llama"))


def at(seconds: float) -> float:
    """A moment of a grid of `by_hand`."""
    return START + seconds


def told(found: tuple[events.Event, ...]) -> list[tuple[str, float, str]]:
    return [(event.kind, event.at - START, render(event.says)) for event in found]


# --- shifts --------------------------------------------------------------------------------------------------------------------


def traffic_of(values: np.ndarray, **more: float) -> list[tuple[str, float, str]]:
    return told(shifts(facts(by_hand(len(values), requests_finished=values, **more))))


def test_noise_and_a_daily_curve_are_no_shift() -> None:
    steps, chance = np.arange(2400), np.random.default_rng(2)
    assert traffic_of(10 + 2 * chance.standard_normal(2400)) == []
    assert traffic_of(10 - 8 * np.cos(2 * np.pi * steps / 2400)) == []  # from 2 to 18 in five hours


def test_a_ramp_of_a_quarter_of_an_hour_is_no_shift() -> None:
    assert traffic_of(np.exp2(np.interp(np.arange(480), [240, 300], [1.0, 3.0]))) == []  # from 2 to 8


def test_a_shift_is_told_where_it_is_and_from_what_to_what() -> None:
    (up, down) = traffic_of(course(480, (0, 2.0), (240, 6.0), (360, 1.0)))
    assert up[2] == "traffic rises from 2 /s to 6 /s"
    assert down[2] == "traffic falls from 6 /s to 1 /s"
    assert up[1] == pytest.approx(240 * 15, abs=45)
    assert down[1] == pytest.approx(360 * 15, abs=45)


def test_a_shift_is_told_where_it_begins_and_not_where_it_is_sure() -> None:
    found = shifts(Facts(scan.scan(bundle.sample(), bundle.sample().window, {}, load())[0], {}))
    for name, kind, up in (
        ("kv_pressure", "traffic", True),  # of which the first tokens come later and later
        ("healthy_1", "traffic", False),
        ("slow_first_token_prefill", "prompt_length", True),
        ("healthy_2", "prompt_length", False),
        ("slow_first_token_queue", "traffic", True),
    ):
        done = next(one.start for one in bundle.incidents() if one.name == name)
        assert min(abs(event.at - done) for event in found if (event.kind, event.up) == (kind, up)) <= 15


def test_traffic_that_begins_or_ends_has_no_factor() -> None:
    assert [words for _, _, words in traffic_of(course(480, (0, 0.0), (240, 3.0), (360, 0.0)))] == [
        "traffic begins: 3 /s",
        "traffic ends: it was 3 /s",
    ]


def test_a_replica_whose_scrapes_fail_is_no_fall_of_the_traffic() -> None:
    each = np.full((2, 480), 3.0)
    each[1, 240:360] = np.nan
    up = np.ones((2, 480))
    assert [words for _, _, words in told(shifts(facts(by_hand(480, replicas=2, requests_finished=each, up=up))))] == [
        "traffic falls from 6 /s to 3 /s",
        "traffic rises from 3 /s to 6 /s",
    ]
    up[1, 240:360] = 0.0
    assert shifts(facts(by_hand(480, replicas=2, requests_finished=each, up=up))) == ()


def test_prompts_that_become_longer_are_a_shift_of_their_own() -> None:
    (one,) = told(shifts(facts(by_hand(480, means={"prompt_length": course(480, (0, 300.0), (240, 900.0))}, requests_finished=1.0))))
    assert one[::2] == ("prompt_length", "prompts of 300 tokens became 900 tokens on average")


# --- replicas ------------------------------------------------------------------------------------------------------------------


def test_replicas_come_and_go_and_a_lost_scrape_is_neither() -> None:
    use = np.full((4, 480), 0.3)
    use[1, :240] = np.nan  # comes at 3600 s
    use[2, 242:] = np.nan  # goes
    use[3, 200:204] = np.nan  # a minute without a sample
    use[3, 477:] = np.nan  # and the last scrapes of all
    of = facts(by_hand(480, replicas=4, kv_use=use))
    found = events.lifecycle(of, ())
    assert told(found) == [("replicas", 3600.0, "1 replica came"), ("replicas", 3615.0, "1 replica went")]
    assert [event.replicas for event in found] == [("pod-1",), ("pod-2",)]


def test_a_replica_that_is_down_has_not_gone_and_a_recording_that_begins_late_brings_none() -> None:
    use, up = np.full((2, 480), 0.3), np.ones((2, 480))
    use[1, 240:], up[1, 240:] = np.nan, 0.0
    assert events.lifecycle(facts(by_hand(480, replicas=2, kv_use=use, up=up)), ()) == ()
    late = course(480, (150, 0.3))
    assert events.lifecycle(facts(by_hand(480, replicas=2, kv_use=late)), ()) == ()


def test_a_restart_is_the_diagnosis_own_finding() -> None:
    readings = by_hand(480, kv_use=0.3, counter_resets=np.where((np.arange(480) >= 300) & (np.arange(480) < 320), 1.0, 0.0))
    _, found = look(readings, {})
    assert told(events.lifecycle(facts(readings), found)) == [("restart", 4500.0, "1 process started again")]


# --- configuration -------------------------------------------------------------------------------------------------------------


def info(pod: str, start: float, end: float | None, **labels: str) -> Shown:
    return Shown("vllm:cache_config_info", {"namespace": "prod", "pod": pod, "engine": "0", **labels}, (Span(start, end),))


def test_the_same_labels_after_a_restart_are_no_change() -> None:
    same = Shown("vllm:cache_config_info", {"pod": "a", "block_size": "16"}, (Span(0, 100), Span(200, None)))
    assert configuration([same, info("b", 0, None, block_size="16")], PAIR, 0) == ()
    assert configuration([info("x", 0, 50, block_size="16"), info("x", 60, None, block_size="32")], PAIR, 0) == ()  # of no replica in view


def test_labels_that_change_are_told_from_what_to_what_and_a_rollout_is_one_change() -> None:
    shown = [
        info(pod, *span, block_size="16", gpu_memory_utilization=share)
        for pod, late in (("a", 0.0), ("b", 300.0))
        for span, share in (((0, 500 + late), "0.9"), ((560 + late, None), "0.95"))
    ]
    (one,) = configuration(shown, PAIR, 0)
    assert (one.kind, one.at, one.replicas) == ("configuration", 560, ("a", "b"))
    assert render(one.says) == "vllm:cache_config_info: gpu_memory_utilization 0.9 → 0.95"


def test_a_new_replica_that_differs_from_those_before_it_is_a_change() -> None:
    (one,) = configuration([info("a", 0, None, block_size="16"), info("b", 900, None, block_size="32")], PAIR, 0)
    assert (one.at, one.replicas, render(one.says)) == (900, ("b",), "vllm:cache_config_info: block_size 16 → 32")
    assert configuration([info("a", 0, None, block_size="16"), info("b", 900, None, block_size="16")], PAIR, 0) == ()


def test_an_image_is_a_version_and_each_container_is_compared_with_itself() -> None:
    def image(container: str, name: str, start: float, end: float | None) -> Shown:
        labels = {"namespace": "prod", "pod": "a", "container": container, "image": name, "image_id": name + "@", "uid": str(start)}
        return Shown("kube_pod_container_info", labels, (Span(start, end),))

    (one,) = configuration([image("vllm", "vllm:v1", 0, 100), image("vllm", "vllm:v2", 160, None), image("proxy", "p:1", 0, None)], PAIR, 0)
    assert (one.kind, render(one.says)) == ("version", "kube_pod_container_info: image vllm:v1 → vllm:v2")


@pytest.mark.parametrize(
    ("replica", "found"),
    [
        (Replica("a/0", "prod", "llama"), "a"),
        (Replica("prod/a", "prod", "llama"), "a"),
        (Replica("a llama", "prod", "llama"), "a"),
        (Replica("10.0.0.1:8000", "prod", "llama"), "10.0.0.1:8000"),
    ],
)
def test_the_pod_in_a_replicas_name(replica: Replica, found: str) -> None:
    assert node(replica) == found


def test_where_no_labels_are_seen_the_readings_tell_of_the_capacity() -> None:
    (one,) = capacity(facts(by_hand(480, kv_capacity_tokens=course(480, (0, 25_600.0), (240, 12_800.0)))))
    assert told((one,)) == [("configuration", 3600.0, "KV cache capacity: 25,600 tokens → 12,800 tokens")]


# --- alerts --------------------------------------------------------------------------------------------------------------------


def firing(name: str, *spans: tuple[float, float | None], **labels: str) -> Shown:
    return Shown("ALERTS", {"alertname": name, **labels}, tuple(Span(*span) for span in spans))


def test_an_alert_of_several_series_is_one_and_what_fires_all_the_time_comes_last() -> None:
    found = alerts([firing("Always", (0, None)), firing("Slow", (10, 20), pod="a"), firing("Slow", (15, 40), (80, None), pod="b")], 0)
    assert found == (
        Alert("Slow", "", (Span(10, 40), Span(80, None)), 2, False),
        Alert("Always", "", (Span(0, None),), 1, True),
    )


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [({"namespace": "prod"}, True), ({"namespace": "dev"}, False), ({}, True), ({"namespace": "prod", "pod": "b"}, False)],
)
def test_an_alert_of_another_scope_is_left_out_and_one_that_names_none_is_kept(labels: dict[str, str], wanted: bool) -> None:
    assert in_scope(labels, {"namespace": ("prod",), "replica": ("a",)}) is wanted


def test_the_load_of_the_moment_is_no_configuration() -> None:
    names = {"vllm:cache_config_info", "vllm:lora_requests_info", "node_uname_info", "python_info", "vllm:num_requests_running"}
    assert info_metrics(names) == ("python_info", "vllm:cache_config_info")


def fleet() -> Recording:
    """Two hours of two replicas; the second is started anew with more memory at 3600 s, and two alerts fire."""
    recording = Recording(7200).vllm("a").vllm("b", prompt_tokens_total=lambda age: 50 * (age if age < 3600 else age - 3600))
    for pod in ("a", "b"):
        for share, there in (("0.9", lambda age: age < 3600), ("0.95", lambda age: age >= 3600)):
            if (pod, share) == ("a", "0.95"):
                continue
            labels = {"job": "vllm", "namespace": "prod", "pod": pod, "engine": "0", "gpu_memory_utilization": share, "block_size": "16"}
            recording.put("vllm:cache_config_info", labels, lambda age, p=pod, t=there: 1.0 if p == "a" or t(age) else None)
    for name, state, first, last in (("KVFull", "firing", 4000, 4100), ("Watchdog", "firing", 0, 9999), ("Slow", "pending", 0, 9999)):
        labels = {"alertname": name, "alertstate": state, "severity": "page", "namespace": "prod"}
        recording.put("ALERTS", labels, lambda age, a=first, b=last: 1.0 if a <= age <= b else None)
    return recording.put("ALERTS", {"alertname": "Elsewhere", "alertstate": "firing", "namespace": "dev"}, 1.0)


def test_a_real_prometheus_tells_configuration_and_alerts_to_the_scrape(recorded: Callable[..., Prometheus]) -> None:
    source = recorded(fleet())
    readings, found = scan.scan(source, Window(T0, T0 + 7200.0), {"namespace": ("prod",)}, load())
    shown = timeline(Facts(readings, dict(found.thresholds)), found, history(source, readings, {"namespace": ("prod",)}))
    changed = [(event.kind, event.at - T0, event.replicas, render(event.says)) for event in shown.events if event.kind == "configuration"]
    assert changed == [("configuration", 3600.0, ("b",), "vllm:cache_config_info: gpu_memory_utilization 0.9 → 0.95")]
    assert [(alert.name, alert.severity, alert.always) for alert in shown.alerts] == [("KVFull", "page", False), ("Watchdog", "page", True)]
    (span,) = shown.alerts[0].spans
    assert span.start - T0 == 4005.0
    assert (span.end or 0.0) - T0 == pytest.approx(4095.0, abs=15)  # to the scrape
    assert shown.no_alerts is None
    assert shown.no_configuration is None


def test_an_alert_shorter_than_a_step_of_a_long_window_is_seen_and_told_to_the_minute(recorded: Callable[..., Prometheus]) -> None:
    source = recorded(fleet())
    window = Window(T0 - 6 * 86400.0, T0 + 7200.0)
    readings, _ = scan.scan(source, window, {}, load())
    assert readings.grid.step > 300
    found = {each.labels["alertname"]: each.spans for each in history(source, readings, {}).alerts}
    (span,) = found["KVFull"]
    assert span.start - T0 == pytest.approx(4005, abs=60)
    assert span.end is not None
    assert span.end - T0 == pytest.approx(4095, abs=60)


def test_over_a_day_the_samples_in_a_step_tell_when_something_began_and_ended_without_being_asked_again(
    recorded: Callable[..., Prometheus],
) -> None:
    """Steps of four minutes; the info metric is scraped every 30 s, the rule evaluated every 60 s."""

    def every(seconds: int, first: int, last: int) -> Callable[[float], float | None]:
        return lambda age: 1.0 if age % seconds == 0 and first <= age <= last else None

    recording = Recording(86400, 30).vllm("a")
    labels = {"job": "vllm", "namespace": "prod", "pod": "a", "engine": "0"}
    recording.put("vllm:cache_config_info", {**labels, "block_size": "16"}, every(30, 0, 40_050))
    recording.put("vllm:cache_config_info", {**labels, "block_size": "32"}, every(30, 40_080, 86_400))
    recording.put("ALERTS", {"alertname": "Slow", "alertstate": "firing"}, every(60, 50_100, 53_940))
    source, window = recorded(recording), Window(T0, T0 + 86400.0)
    readings, _ = scan.scan(source, window, {}, load())
    before = source.requests
    found = history(source, readings, {})
    assert source.requests - before == 2  # the names, and one question
    first, second = sorted((span.start - T0, span.end) for shown in found.infos for span in shown.spans)
    assert first == (0.0, T0 + 40_050.0)
    assert second == (40_080.0, None)
    (span,) = found.alerts[0].spans
    assert (span.start - T0, (span.end or 0.0) - T0, span.doubt) == (50_100.0, 53_940.0, 0.0)


class _Refusing:
    """A source that has the names and refuses the questions."""

    def about(self) -> About:
        return About("x", "prometheus", "2")

    def metric_names(self, start: float, end: float) -> frozenset[str]:
        return frozenset({"ALERTS", "python_info"})

    def scrape_intervals(self, metrics: list[str], matchers: str, start: float, end: float) -> list[float | None]:
        return [None] * len(metrics)

    def answer(self, queries: object, grid: Grid) -> list[Answer]:
        raise SourceError(say("too much was asked."))


class _HalfRefusing(_Refusing):
    """One that refuses the alerts only."""

    def answer(self, queries: object, grid: Grid) -> list[Answer]:
        known = Answer(({"pod": "pod-0", "version": "3.12"},), np.ones((1, grid.count)))
        return [known, Answer((), np.empty((0, grid.count)), say("the alerts were refused."))]


def test_alerts_that_were_refused_are_said_beside_labels_that_were_not() -> None:
    seen = history(_HalfRefusing(), by_hand(kv_use=0.3), {})
    assert [shown.metric for shown in seen.infos] == ["python_info"]
    assert (seen.no_infos, seen.alerts) == (None, ())
    assert seen.no_alerts is not None
    assert render(seen.no_alerts) == "the alerts were refused."


def test_what_was_refused_or_is_not_recorded_is_said_and_is_not_none_fired() -> None:
    refused = history(_Refusing(), by_hand(kv_use=0.3), {})
    assert refused.no_alerts is not None
    assert render(refused.no_alerts) == "too much was asked."
    old = of_schema_1()
    readings, found = scan.scan(old, old.window, {}, load())
    seen = history(old, readings, {})
    assert seen.no_alerts is not None
    assert render(seen.no_alerts) == "Alerts are not in this recording."
    figure = answer(found, timeline(Facts(readings, dict(found.thresholds)), found, seen)).figures[-1]
    assert (figure.value, figure.state) == (None, State.UNKNOWN)


# --- incidents -----------------------------------------------------------------------------------------------------------------


def test_a_quiet_window_has_no_incident_and_a_blind_one_does_not_say_so() -> None:
    assert verdicts().incidents == ()
    quiet = answer(verdicts(), timeline(facts(by_hand(kv_use=0.3)), verdicts(), NOTHING))
    assert (quiet.state, quiet.figures[0].value) == (State.CLEAR, 0.0)
    blind = replace(verdicts(), primary="insufficient", headline=say("no metric."))
    said = answer(blind, timeline(facts(by_hand(kv_use=0.3)), blind, NOTHING))
    assert (said.state, said.says) == (State.UNKNOWN, blind.headline)
    assert [(figure.value, figure.state) for figure in said.figures[:3]] == [(None, State.UNKNOWN)] * 3  # and not 0 changes


def test_an_axis_of_days_names_the_day_at_midnight_and_the_time_between() -> None:
    first = 1793487600  # midnight in Madrid
    assert re.findall(r">([^<>]+)</span>", str(axis(first, first + 3 * 86400, Reader(zone="Europe/Madrid"))))[:7] == [
        "Europe/Madrid", "1 Nov", "12:00", "2 Nov", "12:00", "3 Nov", "12:00",
    ]  # fmt: skip
    assert re.findall(r">([^<>]+)</span>", str(axis(first, first + 6 * 86400, Reader(zone="Europe/Madrid"))))[1:3] == ["1 Nov", "2 Nov"]


def test_an_incident_has_its_rows_its_replicas_and_its_highest_figures() -> None:
    def late(calm: float, hot: float) -> np.ndarray:
        both = np.full((2, 480), calm)
        both[1, 240:300] = hot
        return both

    found = verdicts(
        {"e2e_latency": late(3.0, 30.0), "ttft": 0.1}, replicas=2, steps=480,
        kv_use=late(0.3, 1.0), requests_waiting=late(0.0, 40.0), preemptions=late(0.0, 1.5),
    )  # fmt: skip
    (incident,) = found.incidents
    assert (incident.row, incident.replicas, incident.others) == ("latency_without_errors", ("pod-1",), ())
    assert incident.start == pytest.approx(at(3600), abs=30)
    assert {peak.id: peak.value for peak in incident.peaks} == {"kv_use": 1.0, "waiting": 40.0, "preemptions": 1.5, "e2e_latency": 30.0}


def test_the_sample_has_its_incidents_in_the_order_of_time() -> None:
    sample = bundle.sample()
    _, found = scan.scan(sample, sample.window, {}, load())
    assert [(i.row, i.stage) for i in found.incidents][:5] == [
        ("latency_without_errors", None),
        ("slow_first_token", "prefill"),
        ("load_after_timeouts", None),
        ("slow_first_token", "tokenization"),
        ("slow_first_token", "network"),
    ]
    peaks = {peak.id: peak.value for peak in found.incidents[0].peaks}
    assert (peaks["kv_use"], peaks["waiting"]) == (1.0, 67.0)


def test_changes_up_to_fifteen_minutes_before_an_incident_stand_beside_it_the_nearest_first() -> None:
    incident = Incident("gpu_oom", 10_000.0, 10_600.0, ("a",))
    near, far, early, late = (events.Event("restart", moment, say("x")) for moment in (9_990.0, 9_200.0, 9_000.0, 10_100.0))
    assert shortly_before(incident, [early, far, near, late]) == (near, far)
    assert shortly_before(incident, [replace(early, doubt=300.0)]) == (replace(early, doubt=300.0),)
    elsewhere = replace(near, replicas=("x",))
    assert shortly_before(incident, [elsewhere], (*PAIR, Replica("x", "dev", "llama"))) == ()
    assert shortly_before(incident, [replace(near, replicas=("b",))], PAIR) == (replace(near, replicas=("b",)),)


@pytest.mark.parametrize(
    ("incident", "window"),
    [
        ((1000.0, 1400.0), (930.0, 1470.0)),
        ((1000.0, None), (600.0, 3600.0)),  # it lasts: to the end of what is shown
        ((-400.0, 200.0), (-400.0, 300.0)),  # its onset lies before the window
    ],
)
def test_the_window_of_an_incident_shows_what_was_around_it(incident: tuple[float, float | None], window: tuple[float, float]) -> None:
    start, end = window_of(Incident("gpu_oom", *incident, ()), 0.0, 3600.0)
    assert (start, end) == window


def test_a_scan_that_goes_on_step_by_step_finds_what_one_at_once_finds(
    recorded: Callable[..., Prometheus], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two restarts, three hours apart, in two days: a stretch each, read one after the other."""
    starts = (0, 1200, 12600)
    source = recorded(Recording(14400).vllm("a", prompt_tokens_total=lambda age: 50 * (age - max(s for s in starts if s <= age))))
    window = Window(T0 - 2 * 86400.0, T0 + 14400.0)
    monkeypatch.setattr(scan, "THREADS", 1)
    read = scan.begin(source, window, {}, load())
    for left in (2, 1, 0):
        assert (len(read.parts), len(read.stretches)) == (2 - left, left)
        if left:
            read = scan.further(source, read, {}, load())
    _, whole = scan.scan(source, window, {}, load())
    found = scan.told(read, load())[1].findings
    assert [(f.id, f.start - T0) for f in found] == [("restarted", 1200.0), ("restarted", 12600.0)]
    assert [(f.id, f.start) for f in found] == [(f.id, f.start) for f in whole.findings]
