"""Windows of days: the coarse scan, what is read again, and how the two are put together."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.arrays import HEALTHY, HEALTHY_MEANS, START, by_hand, course, facts

from obs import scan as scanning
from obs.config import SourceSettings, load
from obs.diagnosis import look_at
from obs.language import render
from obs.order import Applying
from obs.prometheus import Prometheus
from obs.refusals import TooSlowError
from obs.scan import _ended, _of_a_step, _outside, _Part, _spikes, _stretches, begin, dated, scan
from obs.series import Grid
from obs.source import Query
from obs.text import Moment, Sentences, say
from obs.verdict import Episode
from obs.window import Window

HOUR, DAY = 3600.0, 86400.0
LAB_END = 1796040406.0


def episode(start, end, *replicas):
    return Applying("latency_without_errors", Episode(start, end, replicas))


def read(*windows):
    return [_Part(Window(*window), (), ()) for window in windows]


def spans(pieces):
    return [(piece.start, piece.episode.end) for piece in pieces]


@pytest.mark.parametrize(
    ("coarse", "windows", "left"),
    [
        ((10, 20), [(0, 30)], []),
        ((10, None), [(0, 30)], [(30, None)]),
        ((10, 90), [(20, 40), (60, 70)], [(10, 20), (40, 60), (70, 90)]),
        ((10, 20), [(40, 60)], [(10, 20)]),
        ((10, 50), [(40, 60)], [(10, 40)]),
    ],
)
def test_a_coarse_episode_is_kept_only_where_nothing_was_read_exactly(coarse, windows, left):
    assert spans(_outside(episode(*coarse), read(*windows))) == left


def test_what_lasts_to_the_end_of_the_window_is_not_kept_behind_a_stretch_that_reaches_it():
    assert _outside(episode(10, None), read((0, 30)), 30.0) == []
    assert spans(_outside(episode(10, None), read((0, 30)), 40.0)) == [(30, None)]


def test_an_episode_whose_replica_is_no_longer_seen_ends_where_it_was_last_seen():
    """The stretch ends at 1000 s, the other replica lives on; of the one that the episode is about, the last sample is at 500 s."""
    grid = Grid(0.0, 10.0, 101)
    levels = np.full((2, 101), 0.5)
    levels[0, 51:] = np.nan
    nothing = np.full((2, 101), np.nan)
    signals = {name: SimpleNamespace(values=nothing) for name in ("requests_running", "requests_waiting", "up")}
    readings = SimpleNamespace(
        grid=grid, end=1000.0, replicas=(SimpleNamespace(name="a"), SimpleNamespace(name="b")),
        signals={**signals, "kv_use": SimpleNamespace(values=levels)},
    )  # fmt: skip
    assert spans([_ended(episode(300, None, "a"), readings)]) == [(300, 510.0)]
    assert spans([_ended(episode(300, None, "b"), readings)]) == [(300, 1000.0)]
    assert spans([_ended(episode(300, 400, "a"), readings)]) == [(300, 400)]


STEP = 3480.0


def month(*parts):
    """A month in steps of almost an hour; the mean time to first token in its course."""
    means = {**HEALTHY_MEANS, "ttft": course(744, (0, 0.1), *parts)}
    return facts(replace(by_hand(744, step=STEP, means=means, before=0, **HEALTHY), scrape_seconds=60.0, rate_seconds=STEP))


def test_minutes_of_trouble_that_a_long_step_thins_out_are_looked_at_and_hours_of_a_daily_curve_are_not():
    assert _spikes(month()) == []
    assert _spikes(month((400, 0.15), (401, 0.1))) == []  # a fifth of what is felt
    assert _spikes(month((400, 0.3), (406, 0.1))) == []
    assert _spikes(month((400, 0.3), (401, 0.1), (500, 0.6), (502, 0.1))) == [
        (START + 500 * STEP, START + 501 * STEP),  # the higher one first
        (START + 400 * STEP, START + 400 * STEP),
    ]


def test_a_stretch_begins_a_long_step_before_what_shows_and_those_of_spikes_come_last():
    facts_of = month((400, 0.3), (401, 0.1))
    lasting = replace(row_of(facts_of), applying=(episode(START + 600 * STEP, START + 600 * STEP, "pod-0"),))
    found = _stretches(facts_of.readings, [lasting], (), _spikes(facts_of))
    assert [(w.start, w.end) for w in found] == [
        (START + (at - 1) * STEP - 900, START + at * STEP + 900) for at in (600, 400)
    ]  # fmt: skip


def row_of(of):
    """A row that applies nowhere."""
    return look_at(of)[0][1]


def test_a_sentence_of_a_stretch_tells_the_day_in_a_window_of_days():
    at = Moment(1793521200.0)
    told = say("{all}", all=Sentences((say("Since {at}.", at=at), say("{inner}", inner=say("From {at}.", at=at)))))
    assert render(told) == "Since 08:20:00. From 08:20:00."
    assert render(dated(told)) == "Since 1 Nov 08:20:00. From 1 Nov 08:20:00."


@pytest.fixture(scope="module")
def week(lab):
    """A week of which the lab's hour is the end."""
    return scan(lab, Window(LAB_END - 7 * DAY, LAB_END), {}, load())


def test_a_week_has_the_episodes_of_its_hour_and_no_other(lab, week):
    _, hour = scan(lab, Window(LAB_END - HOUR * 2, LAB_END), {}, load())
    wide = week[1]
    for row in ("latency_without_errors", "load_after_timeouts"):
        exact, seen = hour.verdict(row).episodes, wide.verdict(row).episodes
        assert exact
        assert [e.replicas for e in seen] == [e.replicas for e in exact]
        assert np.allclose([e.start for e in seen], [e.start for e in exact], atol=60)
    assert wide.primary == hour.primary
    assert not wide.verdict("gpu_oom").episodes


def test_a_week_is_read_without_distributions_and_says_so(week):
    readings, _ = week
    assert not readings.buckets
    assert any("are not read over more than 2 d" in render(note) for note in readings.notes)


def test_what_the_time_does_not_suffice_for_stays_coarse_and_is_said(lab, week, monkeypatch):
    monkeypatch.setattr(scanning, "BUDGET_SECONDS", -1.0)
    monkeypatch.setattr(scanning, "LEAST_SECONDS", -1.0)
    readings, found = scan(lab, Window(LAB_END - 7 * DAY, LAB_END), {}, load())
    assert any("of this window were read coarsely" in render(note) for note in readings.notes)
    assert not any("of this window were read coarsely" in render(note) for note in week[0].notes)
    assert found.verdict("latency_without_errors").state is not None


def slow_over(seconds, monkeypatch, source):
    """The source answers a range of `seconds` at most with its own times as values, and is too slow for more."""

    def answer(promql, grid):
        if grid.end - grid.start > seconds:
            raise TooSlowError(504, source.session._too_slow(1))
        return [{"metric": {"pod": "a"}, "values": [[at, str(at)] for at in grid.times.tolist()]}]

    monkeypatch.setattr(source, "_range", answer)
    return source


@pytest.mark.parametrize("seconds", [15 * DAY, 8 * DAY])
def test_a_query_that_is_too_slow_over_a_month_is_asked_for_in_parts(monkeypatch, seconds):
    source = slow_over(seconds, monkeypatch, Prometheus(SourceSettings(url="http://127.0.0.1:9")))
    grid = Grid(0.0, 1740.0, 1490)
    (answer,) = source.answer([Query("kv_use|x|value", "x", (), ("pod",))], grid)
    assert answer.labels == ({"pod": "a"},)
    assert np.array_equal(answer.values, [grid.times])


def test_a_source_that_is_too_slow_in_parts_too_is_given_up(monkeypatch):
    source = slow_over(HOUR, monkeypatch, Prometheus(SourceSettings(url="http://127.0.0.1:9")))
    with pytest.raises(TooSlowError):
        source.answer([Query("kv_use|x|value", "x", (), ("pod",))], Grid(0.0, 1740.0, 1490))


def test_what_a_coarse_scan_saw_at_one_step_only_lies_between_it_and_the_step_before():
    assert spans([_of_a_step(episode(1740, 1740, "a"), 600.0), _of_a_step(episode(1740, 2340, "a"), 600.0)]) == [(1140, 1740), (1740, 2340)]
    assert spans([_of_a_step(episode(1740, None, "a"), 600.0)]) == [(1740, None)]


def test_days_are_asked_query_by_query(lab):
    """Joined, they cost Prometheus three times the work."""
    lab.about()
    before = lab.requests
    read = begin(lab, Window(LAB_END - 3 * DAY, LAB_END), {}, load())
    apart = lab.requests - before
    begin(lab, Window(LAB_END - HOUR, LAB_END), {}, load())
    assert apart > 2 * (lab.requests - before - apart)
    assert read.stretches
