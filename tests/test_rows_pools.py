"""A fleet in which every replica has too few requests for a mean of its own is judged by its pools, and says so."""

from dataclasses import replace

import numpy as np
import pytest
from tests.alterations import beside, idle
from tests.scrapes import T0, Scraping, read
from tests.traffic import Site, simulate

from obs.diagnosis import diagnose
from obs.facts import Facts
from obs.language import render
from obs.signals import Replica
from obs.thresholds import THRESHOLDS
from obs.verdict import Stance, State

LATE = 3600
THIN = Site(8, 5400, rate=0.01, timeout=300.0)  # one request in 100 s and replica
FIRST = "slow_first_token"


def seen(**what):
    return read(simulate(replace(THIN, **what)), Scraping())


@pytest.fixture(scope="module")
def healthy():
    return seen()


# ---------------------------------------------------------------- not


def test_a_healthy_thin_fleet_is_clear_and_not_unknown(healthy):
    got = diagnose(healthy)
    assert got.primary == "none"
    assert got.verdict("latency_without_errors").state is State.CLEAR


def test_a_replica_that_serves_nothing_borrows_no_figure(healthy):
    readings = beside(healthy, idle(healthy, 2), gateway=False)
    facts = Facts(readings, THRESHOLDS)
    assert np.isfinite(facts.mean("ttft")[:8, -1]).any()
    assert not np.isfinite(facts.mean("ttft")[8:]).any()


@pytest.mark.parametrize("label", ["model", "namespace", "system", "pool"])
def test_a_pool_lends_nothing_to_another(healthy, label):
    models = tuple(replace(r, **{label: "one" if i % 2 else "two"}) for i, r in enumerate(healthy.replicas))
    own, slow = healthy.signals["ttft"], np.arange(8)[:, None] % 2  # every second one is ten seconds slower
    ttft = replace(own, total=own.total + 10.0 * slow * own.count)
    signals = {**healthy.signals, "ttft": ttft}
    facts = Facts(replace(healthy, replicas=models, signals=signals), THRESHOLDS)
    assert np.nanmax(np.where(facts.lent("ttft"), facts.mean("ttft"), np.nan)[::2]) < 1
    assert np.nanmin(np.where(facts.lent("ttft"), facts.mean("ttft"), np.nan)[1::2]) > 10


def test_a_replica_with_traffic_enough_keeps_its_own_mean():
    facts = Facts(seen(replicas=2, rate=1.0), THRESHOLDS)
    assert not facts.lent("ttft")[:, 40:].any()


# ---------------------------------------------------------------- but


@pytest.mark.parametrize(
    ("what", "stage"),
    [({"prefill_speed": ((0, 10_000.0), (LATE, 300.0))}, "prefill"), ({"front_end": ((0, 0.02), (LATE, 2.0))}, "tokenization")],
)
def test_what_slows_every_first_token_is_seen_though_no_replica_has_a_mean(what, stage):
    got = diagnose(seen(**what)).verdict(FIRST)
    assert (got.state, got.stage) == (State.APPLIES, stage)
    assert got.episodes[0].start - T0 == pytest.approx(LATE, abs=60)
    assert len(got.episodes[0].replicas) == 8
    told = next(e for e in got.evidence if e.signal == "ttft")
    assert told.stance is Stance.SUPPORTS
    assert "of its replicas together, as each has too few requests" in render(told.says)


def test_the_pool_of_one_is_the_replica(healthy):
    assert Facts(replace(healthy, replicas=tuple(Replica(f"r{i}", model=str(i)) for i in range(8))), THRESHOLDS).lent("ttft").sum() == 0
