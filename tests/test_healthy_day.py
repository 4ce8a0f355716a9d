"""A healthy day: a daily curve, deploys, single slow requests and a night with hardly any. Not one second of an applying row."""

from dataclasses import replace

import numpy as np
import pytest
from tests.scrapes import T0, Scraping, read
from tests.traffic import Death, Site, simulate

from obs.diagnosis import diagnose
from obs.signals import Level
from obs.verdict import ROW_IDS

HOUR = 3600
DAY = 24 * HOUR
REPLICAS = 4
NIGHT, NOON = 0.01, 1.5  # requests per second and replica
DEPLOYS = (10 * HOUR, 15.5 * HOUR)
WINDOWS = tuple((hour * HOUR, (hour + 6) * HOUR) for hour in (0, 6, 12, 18))


def _curve(second: float) -> float:
    return NIGHT + (NOON - NIGHT) * max(0.0, -np.cos(2 * np.pi * second / DAY)) ** 1.5


def _day() -> Site:
    rng = np.random.default_rng(24)
    singles = tuple((int(at), float(rng.choice([500, 4000])), float(rng.choice([100, 2500]))) for at in rng.uniform(0, DAY, 60))
    deploys = tuple(Death(n, int(begin + 300 * n), away=int(35 + 10 * n)) for begin in DEPLOYS for n in range(REPLICAS))
    rate = tuple((float(at), _curve(at)) for at in range(0, DAY, 300))
    lengths = tuple((float(at), 150 + 40 * np.sin(at / 9000)) for at in range(0, DAY, 600))
    return Site(REPLICAS, DAY, rate=rate, output=lengths, deaths=deploys, singles=singles, timeout=300.0, retries=1)


@pytest.fixture(scope="module")
def day():
    """The whole day, second by second."""
    return simulate(_day(), 5)


def _applying(diagnosis) -> dict[str, list[tuple[float, float | None]]]:
    return {row: [(e.start - T0, e.end and e.end - T0) for e in diagnosis.verdict(row).episodes] for row in ROW_IDS}


NOTHING = {row: [] for row in ROW_IDS}


def test_the_day_has_what_it_is_said_to_have(day):
    """A night with stretches in which nothing runs, a noon with traffic on every replica, slow single requests, deploys."""
    running = day.replica["requests_running"]
    assert np.nanmean(running[:, : 2 * HOUR] == 0) > 0.9
    assert np.nanmean(running[:, 11 * HOUR : 13 * HOUR]) > 2
    assert (np.nan_to_num(day.replica["up"]) == 0).sum(axis=1).tolist() == [70, 90, 110, 130]
    assert np.nanmax(day.replica["kv_use"]) > 0.5


@pytest.mark.parametrize(("start", "end"), WINDOWS, ids=["night", "morning", "afternoon", "evening"])
def test_not_one_second_of_six_healthy_hours_has_an_applying_row(day, start, end):
    got = diagnose(read(day, Scraping(since=max(0, start - HOUR), start=start, end=end)))
    assert _applying(got) == NOTHING
    assert got.primary == "none"


@pytest.mark.parametrize("every", [5.0, 30.0, 60.0])
def test_nor_at_another_scrape_interval(day, every):
    got = diagnose(read(day, Scraping(every, since=8 * HOUR, start=9 * HOUR, end=12 * HOUR)))
    assert _applying(got) == NOTHING


def test_nor_over_the_whole_day_at_the_coarse_step(day):
    got = diagnose(read(day, Scraping(since=0, start=0, end=DAY, step=60.0)))
    assert _applying(got) == NOTHING
    assert got.primary == "none"


@pytest.mark.parametrize("hour", range(0, 24, 3))
def test_nor_for_somebody_who_opens_any_hour_of_it_without_a_history(day, hour):
    start = hour * HOUR + 600
    got = diagnose(read(day, Scraping(since=start, start=start, end=start + HOUR)))
    assert _applying(got) == NOTHING


def _as_pods(readings, at):
    """The same where a deploy gives every replica a new pod: the old series end, new ones begin."""
    times = readings.grid.times

    def change(reading):
        if reading.signal.level is Level.GATEWAY:
            return reading
        ends = np.array([at + 300 * n for n in range(REPLICAS)])[:, None]

        def split(array):
            return (
                None if array is None else np.concatenate([np.where(times < ends, array, np.nan), np.where(times >= ends, array, np.nan)])
            )

        parts = {part: split(getattr(reading, part)) for part in ("values", "total", "count")}
        if reading.signal.id == "up":
            parts["values"][parts["values"] < 0.5] = np.nan  # a pod that is gone is no target
        return replace(reading, **parts, rows=(*reading.rows, *(f"{name}-new" for name in reading.rows)))

    signals = {id: change(reading) for id, reading in readings.signals.items()}
    return replace(readings, signals=signals, replicas=(*readings.replicas, *(replace(r, name=f"{r.name}-new") for r in readings.replicas)))


def test_nor_where_a_deploy_gives_every_replica_a_new_pod(day):
    readings = read(day, Scraping(since=8.5 * HOUR, start=9.5 * HOUR, end=11 * HOUR))
    got = diagnose(_as_pods(readings, T0 + DEPLOYS[0]))
    assert _applying(got) == NOTHING
    assert got.primary == "none"


def test_a_deploy_is_found_and_is_no_row(day):
    got = diagnose(read(day, Scraping(since=8.5 * HOUR, start=9.5 * HOUR, end=11 * HOUR)))
    restarts = {replica for finding in got.findings if finding.id == "restarted" for replica in finding.replicas}
    assert restarts == {f"vllm-{n}" for n in range(REPLICAS)}
    assert {finding.id for finding in got.findings} <= {"restarted", "scrape_failing"}
