"""Can the page be trusted: what cannot be judged is named, nothing is called whole that is not, and every figure says what it rests on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.arrays import HEALTHY, HEALTHY_MEANS, by_hand, course
from tests.recordings import T0, Recording

from obs import api
from obs.collect import collect
from obs.diagnosis import diagnose
from obs.language import render
from obs.report import Report
from obs.signals import SIGNALS, Replica, Status
from obs.source import About, Inspection
from obs.transport import Asked
from obs.trust import engines, suffers, trust
from obs.trust_text import to_text
from obs.verdict import State
from obs.window import Window

ABOUT = About("prod", "prometheus", "2.42.0")
WELL = Inspection(clock_seconds=0.2, retention="15d", oldest=1_790_000_000.0, requests=8, slowest_seconds=0.4, total_seconds=1.5)
WHOLE = {**HEALTHY, "gpu_oom_events": 0.0, "gpu_memory": 0.8}


def trusted(inspection: Inspection = WELL, about: About = ABOUT, means=HEALTHY_MEANS, **levels):
    readings = by_hand(means=means, **levels)
    return trust(readings, diagnose(readings), about, inspection, {"vllm": "vLLM"})


def stale(readings, signal: str):
    """The same, with a signal that ended before the window did."""
    return replace(readings, signals={**readings.signals, signal: replace(readings.signals[signal], status=Status.STALE)})


def said(found) -> str:
    return render(found.said.says, "en")


def figure(found, title: str):
    """(value, words, state) of a large figure."""
    one = next(each for each in found.said.figures if render(each.title, "en") == title)
    return one.value, render(one.says, "en").replace("\u00a0", " "), one.state


# ---------------------------------------------------------------- what must not be trusted


def test_without_an_engine_nothing_can_be_judged():
    readings = replace(by_hand(up=1.0), engine_seen=False)
    found = trust(readings, diagnose(readings), ABOUT, WELL, {})
    assert (found.said.state, said(found)) == (State.UNKNOWN, "No: no engine's metrics were found, so nothing can be judged.")
    assert figure(found, "Scrape interval")[0] is None


def test_a_row_that_cannot_be_judged_is_named_with_its_reason():
    found = trusted(**HEALTHY)
    assert said(found) == "In part: three of the four rows can be judged, and “GPU out-of-memory error” cannot."
    assert [render(each, "en") for each in found.said.advice] == [
        "GPU out-of-memory error: GPU out-of-memory events: looked for gpu_oom_events, found no series"
    ]
    assert found.said.state is State.SUSPECTED


def test_what_a_row_needs_stands_first_and_says_which_row():
    found = trusted(**HEALTHY)
    first = found.lines[0]
    assert (first.reading.signal.id, [render(each.says, "en") for each in first.suffers]) == (
        "gpu_oom_events", ["GPU out-of-memory error: unknown"],
    )  # fmt: skip
    statuses = [line.reading.status for line in found.lines]
    assert Status.MEASURED not in statuses[: statuses.count(Status.ABSENT)]


def test_a_signal_whose_like_is_measured_costs_no_row():
    """Engine errors or the gateway's answers: one of them is enough to say that errors are few."""
    readings = by_hand(gateway_responses=1.0)
    assert suffers(readings, readings.signals["engine_errors"]) == ()
    assert [each.row for each in suffers(by_hand(), by_hand().signals["engine_errors"])] == ["latency_without_errors"]


def test_a_signal_that_only_explains_leaves_the_row_harder_to_explain():
    readings = by_hand()
    assert [(each.row, each.needed) for each in suffers(readings, readings.signals["queue_time"])] == [("slow_first_token", False)]


def test_series_that_ended_are_counted_and_their_rows_are_unknown_since_then():
    found = trust(ended := stale(by_hand(means=HEALTHY_MEANS, **WHOLE), "kv_use"), diagnose(ended), ABOUT, WELL, {})
    _value, words, state = figure(found, "Signals measured")
    assert words == f"of {len(SIGNALS)}; 1 ended before this window did"
    assert state is State.SUSPECTED
    line = next(line for line in found.lines if line.reading.signal.id == "kv_use")
    assert [render(each.says, "en") for each in line.suffers] == ["Latency rises without errors: unknown since then"]


def test_failed_scrapes_are_told_of_the_worst_replica():
    up = np.ones((2, 240))
    up[1, 180:204] = 0.0
    readings = by_hand(replicas=2, means=HEALTHY_MEANS, **{**WHOLE, "up": up})
    found = trust(readings, diagnose(readings), ABOUT, WELL, {})
    value, words, state = figure(found, "Scrapes that failed")
    assert value == pytest.approx(0.1)
    assert words == "most on pod-1: 20 %"
    assert state is State.SUSPECTED


def test_without_up_nobody_knows_whether_scrapes_failed():
    value, words, state = figure(trusted(**{name: level for name, level in WHOLE.items() if name != "up"}), "Scrapes that failed")
    assert (value, words, state) == (None, "no series `up` for these replicas: nobody knows", None)


@pytest.mark.parametrize(
    ("seconds", "value", "words", "state"),
    [
        (None, None, "the source sends no date", None),
        (1.9, 0, "the source and this machine agree to the second", None),
        (42.4, 42, "the source is ahead: what is newest there is not read", State.SUSPECTED),
        (-90.0, 90, "the source is behind: its newest samples look old", State.SUSPECTED),
    ],
)
def test_the_clocks(seconds, value, words, state):
    assert figure(trusted(replace(WELL, clock_seconds=seconds), **WHOLE), "Clock difference") == (value, words, state)


def test_a_source_that_begins_within_the_window_is_out_of_line():
    from_160 = {name: course(240, (160, WHOLE[name])) for name in ("kv_use", "requests_running", "requests_waiting", "generation_tokens")}
    readings = by_hand()
    late = readings.grid.start + 160 * 15
    value, words, state = figure(trusted(replace(WELL, oldest=late + 600), **{**WHOLE, **from_160}), "Samples reach back")
    assert value == readings.end - late
    assert words.startswith("that is less than the window")
    assert state is State.SUSPECTED


# ---------------------------------------------------------------- what may be trusted


def test_a_whole_source_is_trusted():
    found = trusted(**WHOLE, gateway_ttft=0.1)
    assert (found.said.state, said(found)) == (State.CLEAR, "Yes: all four rows can be judged, and nothing in the data is out of line.")
    assert found.said.advice == ()
    assert figure(found, "Requests to the source")[:2] == (8, "since obs began; the slowest took 0.4 s, all 1.5 s")


def test_the_other_names_of_a_signal_are_those_that_were_not_found():
    readings = by_hand(**HEALTHY)
    kv = replace(readings.signals["kv_use"], metric="new", looked_for=("new", "old"))
    readings = replace(readings, signals={**readings.signals, "kv_use": kv})
    found = trust(readings, diagnose(readings), ABOUT, WELL, {})
    assert next(line for line in found.lines if line.reading.signal.id == "kv_use").others == ("old",)


def test_engines_are_counted_by_what_they_show():
    pods = [Replica(name, system="vllm", image="vllm/vllm-openai:v0.10.1") for name in "abc"]
    pods += [Replica("d", system="vllm", since="0.9.2", until="0.10.2"), Replica("e", system="sglang", since="0.5.3")]
    found = engines((*pods, Replica("f", system="vllm")), {"vllm": "vLLM", "sglang": "SGLang"})
    assert [(each.title, render(each.counted, "en")) for each in found] == [
        ("vLLM", "3 replicas, image vllm/vllm-openai:v0.10.1"),
        ("vLLM", "1 replica, version 0.9.2 to 0.10.2, by its metric names"),
        ("SGLang", "1 replica, version 0.5.3 or newer, by its metric names"),
        ("vLLM", "1 replica, a version that neither an image nor its metric names tell"),
    ]


# ---------------------------------------------------------------- what the source itself tells


@pytest.mark.parametrize(("date", "seconds"), [("Mon, 30 Nov 2026 11:00:42 GMT", 42.5), (None, None), ("yesterday", None)])
def test_the_clock_of_a_source_is_read_from_the_date_of_its_answers(date, seconds):
    asked = Asked()
    asked.clock(date, 1796036400.0)  # 11:00:00
    assert asked.clock_seconds == seconds


def test_a_real_prometheus_tells_its_retention_and_its_oldest_sample(recorded):
    """Four hours of samples: the search looks every six hours, back from the window's end."""
    source = recorded(Recording(4 * 3600).vllm("a"))
    readings = collect(source, Window(T0 + 3 * 3600, T0 + 4 * 3600), {})
    before = source.requests
    found = api.inspected(source, readings)
    assert source.requests - before == 2
    assert found.retention.startswith("100y")
    assert found.oldest == T0 + 4 * 3600
    shown = api.trusted(readings, diagnose(readings), source.about(), found)
    assert figure(shown, "Samples reach back")[0] == 2 * 3600  # the search is coarse; the baseline hour was read, and is older
    assert abs(found.clock_seconds) < 2
    assert found.requests == source.requests
    assert 0 < found.slowest_seconds <= found.total_seconds


def test_of_a_long_window_the_source_says_itself_how_long_it_keeps_and_is_asked_no_more(recorded):
    """Its pages have few requests to spare; what was read of the window is what is known to be there."""
    source = recorded(Recording(9 * 3600, scrape=60).vllm("a"))
    readings = collect(source, Window(T0 + 3600, T0 + 9 * 3600), {})
    before = source.requests
    found = api.inspected(source, readings)
    assert source.requests - before == 1
    assert (found.retention[:4], found.oldest) == ("100y", None)
    shown = figure(api.trusted(readings, diagnose(readings), source.about(), found), "Samples reach back")
    assert shown[0] == pytest.approx(8 * 3600, abs=120)
    assert shown[1] == "before this window's end, at least: it was not looked further back"


def test_the_command_line_says_what_the_page_says(recorded):
    source = recorded(Recording(1800).vllm("a"))
    readings = collect(source, Window(T0 + 600, T0 + 1800), {})
    report = Report(diagnose(readings), readings, source.about())
    found = api.trusted(readings, report.diagnosis, report.about, api.inspected(source, readings))
    lines = to_text(found, report).splitlines()
    assert lines[0] == render(found.said.says, "en")
    assert any(line.startswith("Scrape interval ") and "15 s; found, not assumed" in line.replace("\u00a0", " ") for line in lines)
    assert any(line.startswith("vLLM ") and "1 replica," in line for line in lines)
    at = next(i for i, line in enumerate(lines) if line.startswith("GPU out-of-memory events"))
    assert lines[at + 1].strip() == "without it: GPU out-of-memory error: unknown"


@pytest.mark.parametrize(("version", "shown"), [("2.42.0", "x: prometheus 2.42.0"), ("", "x: prometheus; it does not say which version")])
def test_a_source_that_does_not_say_its_version_is_said_not_to(version, shown):
    told = {render(name, "en"): render(says, "en") for name, says in trusted(about=About("x", "prometheus", version)).facts}
    assert told["Source"] == shown


def test_what_differs_in_another_source_is_said_and_nothing_where_nothing_does():
    def told(flavor, version):
        return [
            render(says, "en") for name, says in trusted(about=About("x", flavor, version)).facts if render(name, "en") == "What differs"
        ]

    assert told("prometheus", "2.42.0") == []
    assert "not extrapolated" in told("victoriametrics", "")[0]
    assert "dotted" in told("prometheus", "3.5.0")[0]
