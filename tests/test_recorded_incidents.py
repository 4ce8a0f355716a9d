"""The real recording (vLLM behind Envoy, driven through labelled scenarios): every one diagnosed right, and quiet in between."""

from dataclasses import dataclass

import pytest

from obs.collect import collect
from obs.diagnosis import diagnose
from obs.verdict import ROW_IDS, State
from obs.window import Window

OOM, LATENCY, FIRST, LOAD = ROW_IDS
BEGIN = 1796036334  # 2026-11-30T10:58:54Z: the first scrape
ONSET_SECONDS = 60
TAIL_SECONDS = 60  # an episode that ends this soon after a window's start was before it


@dataclass(frozen=True)
class Scenario:
    """What was done between `onset` and `to` (seconds of the recording), looked at from `since` on."""

    name: str
    since: int
    onset: int
    to: int
    primary: str = "none|insufficient"
    also: str = ""  # rows that may apply as well
    stage: str | None = None
    findings: str = ""
    may_find: str = ""
    early: bool = False  # something of it is there from the first minute


SCENARIOS = (
    Scenario("healthy_0", 0, 0, 210, may_find="restarted"),
    Scenario("kv_pressure", 0, 210, 601, LATENCY, also=FIRST, may_find="restarted"),
    Scenario("healthy_1", 661, 661, 751),
    Scenario("slow_first_token_prefill", 661, 751, 1082, FIRST, stage="prefill"),
    Scenario("healthy_2", 1142, 1142, 1232),
    Scenario("retry_storm", 1142, 1232, 1598, LOAD, also=f"{LATENCY}|{FIRST}", may_find="abandoned_work"),
    Scenario("healthy_3", 1658, 1658, 1778, may_find="abandoned_work"),
    Scenario("slow_first_token_tokenization", 1658, 1778, 1958, FIRST, stage="tokenization"),
    Scenario("healthy_4", 2018, 2018, 2078),
    Scenario("slow_first_token_network", 2018, 2078, 2259, FIRST, stage="network"),
    Scenario("healthy_5", 2319, 2319, 2379),
    Scenario("abandoned_stream_disconnect", 2319, 2379, 2501, findings="abandoned_work"),
    Scenario("abandoned_nonstream_timeout", 2501, 2501, 2602, findings="abandoned_work", may_find="abandoned_work", early=True),
    Scenario("abandoned_leaky", 2602, 2602, 2737, f"none|insufficient|{LATENCY}", also=LATENCY, may_find="abandoned_work", early=True),
    Scenario("healthy_6", 2797, 2797, 2887, may_find="abandoned_work"),
    Scenario("overload_no_kv", 2797, 2887, 3101, f"{LATENCY}|{FIRST}", also=f"{LATENCY}|{FIRST}"),
    Scenario("healthy_7", 3161, 3161, 3221),
    Scenario("crash_restart", 3161, 3221, 3401, findings="restarted", may_find="engine_stalled|no_traffic|scrape_failing|series_vanished"),
    Scenario("healthy_8", 3461, 3461, 3551, may_find="restarted"),
    Scenario("slow_first_token_queue", 3461, 3551, 3855, f"{FIRST}|{LATENCY}", also=f"{LATENCY}|{FIRST}", stage="queue",
             may_find="restarted"),
    Scenario("admission_rejected", 3855, 3855, 3982, f"none|insufficient|{FIRST}", also=f"{LATENCY}|{FIRST}", may_find="restarted",
             early=True),
)  # fmt: skip
HEALTHY = tuple(s for s in SCENARIOS if s.name.startswith("healthy"))
TROUBLE = tuple(s for s in SCENARIOS if not s.early and s not in HEALTHY and s.primary != "none|insufficient")


@pytest.fixture(scope="module")
def diagnosed(lab):
    """The diagnosis of a stretch of the recording, made once."""
    made = {}

    def one(since, to):
        if (since, to) not in made:
            made[since, to] = diagnose(collect(lab, Window(BEGIN + since, BEGIN + to), {}))
        return made[since, to]

    return one


def _episodes(diagnosis, row, since):
    """The row's episodes (from, to) in seconds of the recording, without what ended as the window began."""
    found = [(e.start - BEGIN, (diagnosis.end if e.end is None else e.end) - BEGIN) for e in diagnosis.verdict(row).episodes]
    return [(start, end) for start, end in found if end > since + TAIL_SECONDS]


def _words(text):
    return {word for word in text.split("|") if word}


@pytest.mark.parametrize("stretch", HEALTHY, ids=lambda s: s.name)
def test_not_one_second_of_a_healthy_stretch_has_an_applying_row(stretch, diagnosed):
    got = diagnosed(stretch.since, stretch.to)
    assert {row: _episodes(got, row, stretch.since) for row in ROW_IDS} == {row: [] for row in ROW_IDS}
    assert got.primary in ("none", "insufficient")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_no_row_applies_that_was_not_provoked(scenario, diagnosed):
    got = diagnosed(scenario.since, scenario.to)
    wanted = _words(scenario.primary) | _words(scenario.also)
    assert {row for row in ROW_IDS if _episodes(got, row, scenario.since)} <= wanted


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_the_primary_is_the_row_that_was_provoked(scenario, diagnosed):
    got = diagnosed(scenario.since, scenario.to)
    assert got.primary in _words(scenario.primary)
    if got.primary in ROW_IDS:
        assert got.verdict(got.primary).state is State.APPLIES


@pytest.mark.parametrize("scenario", TROUBLE, ids=lambda s: s.name)
def test_the_onset_is_within_a_minute_of_what_was_done(scenario, diagnosed):
    got = diagnosed(scenario.since, scenario.to)
    assert _episodes(got, got.primary, scenario.since)[0][0] == pytest.approx(scenario.onset, abs=ONSET_SECONDS)


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s.stage], ids=lambda s: s.name)
def test_the_slow_stage_is_the_one_that_was_slowed(scenario, diagnosed):
    assert diagnosed(scenario.since, scenario.to).verdict(FIRST).stage == scenario.stage


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_the_findings_are_those_that_were_provoked(scenario, diagnosed):
    found = {finding.id for finding in diagnosed(scenario.since, scenario.to).findings}
    assert _words(scenario.findings) <= found <= _words(scenario.findings) | _words(scenario.may_find)


def test_the_retry_storm_has_the_arithmetic_that_was_counted(diagnosed):
    """The driver counted 5,349 requests that became 18,276 tries; Envoy's retries are a part of them, three for each at the worst."""
    evidence = {e.signal: e for e in diagnosed(1142, 1598).verdict(LOAD).evidence}
    assert evidence["retry_ratio"].value == pytest.approx(3.0, abs=0.25)
    assert evidence["waste"].value == pytest.approx(0.91, abs=0.09)


def test_the_pressure_has_the_figures_that_were_measured(diagnosed):
    evidence = {e.signal: e for e in diagnosed(0, 601).verdict(LATENCY).evidence}
    assert evidence["kv_use"].value == pytest.approx(1.0, abs=0.02)
    assert evidence["waiting"].value == pytest.approx(67, abs=7)
    assert evidence["error_ratio"].value == 0


def test_the_slow_prefill_has_the_means_that_were_measured(diagnosed):
    evidence = {e.signal: e for e in diagnosed(661, 1082).verdict(FIRST).evidence}
    assert evidence["prefill_time"].value == pytest.approx(0.29, abs=0.06)
    assert evidence["ttft"].baseline == pytest.approx(0.03, abs=0.02)


# ---------------------------------------------------------------- the same from elsewhere


def test_the_whole_recording_at_once_has_every_episode_and_nothing_in_the_healthy_stretches(diagnosed):
    got = diagnosed(0, 4072)
    for scenario in TROUBLE:
        rows = _words(scenario.primary)
        starts = [e[0] for row in rows for e in _episodes(got, row, 0)]
        assert any(abs(start - scenario.onset) <= ONSET_SECONDS for start in starts), scenario.name
    quiet = [(s.since + TAIL_SECONDS, s.to - ONSET_SECONDS) for s in HEALTHY]  # the scrape that shows it may be read as its beginning
    every = [(row, *episode) for row in ROW_IDS for episode in _episodes(got, row, 0)]
    assert [(row, s, e) for row, s, e in every if any(max(s, a) < min(e, b) for a, b in quiet)] == []


@pytest.mark.parametrize("minutes", [1, 3])
@pytest.mark.parametrize("scenario", [s for s in TROUBLE if s.to - s.onset > 300], ids=lambda s: s.name)
def test_whoever_opens_the_page_late_sees_the_same_row_and_onset(scenario, minutes, diagnosed):
    got = diagnosed(scenario.onset + 60 * minutes, scenario.to)
    assert got.primary in _words(scenario.primary)
    assert got.verdict(got.primary).episodes[0].start - BEGIN == pytest.approx(scenario.onset, abs=ONSET_SECONDS)


@pytest.mark.parametrize("scenario", [s for s in TROUBLE if s.to - s.onset > 300], ids=lambda s: s.name)
def test_a_live_page_in_the_middle_says_now_what_the_retrospective_says(scenario, diagnosed):
    """Five minutes in, because the last of them began minutes after a start, and a warm-up is not judged."""
    live, later = diagnosed(scenario.since, scenario.onset + 290), diagnosed(scenario.since, scenario.to)
    assert live.primary == live.now == later.primary
