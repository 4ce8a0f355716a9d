"""Every incident of the table gets the verdict that a careful person would give: row, state, stage, where, since when, and at the end."""

import pytest
from tests.incidents import BY_NAME, INCIDENTS, truth
from tests.incidents import readings as seen
from tests.scrapes import T0
from tests.traffic import simulate

from obs.diagnosis import diagnose
from obs.verdict import ROW_IDS, State

ONSET_SECONDS = 60
ALL = [incident.name for incident in INCIDENTS]
APPLY = [incident.name for incident in INCIDENTS if "applies" in incident.rows.values()]


@pytest.fixture(scope="module")
def diagnosed():
    """The diagnosis of an incident, made once."""
    made = {}

    def one(name):
        if name not in made:
            made[name] = diagnose(seen(name))
        return made[name]

    return one


@pytest.mark.parametrize("name", ALL)
def test_no_row_applies_that_must_not(name, diagnosed):
    wanted = BY_NAME[name].rows
    applying = {v.row for v in diagnosed(name).verdicts if v.state is State.APPLIES or v.state_now is State.APPLIES or v.episodes}
    assert applying <= {row for row, states in wanted.items() if "applies" in states}


@pytest.mark.parametrize("name", ALL)
def test_every_row_is_in_the_state_that_was_provoked(name, diagnosed):
    wanted = BY_NAME[name].rows
    states = {v.row: str(v.state) for v in diagnosed(name).verdicts}
    assert {row: state for row, state in states.items() if state not in wanted.get(row, "clear").split("|")} == {}


@pytest.mark.parametrize("name", ALL)
def test_the_primary_and_the_end_of_the_window_are_right(name, diagnosed):
    incident, got = BY_NAME[name], diagnosed(name)
    assert got.primary in incident.primary.split("|")
    assert got.now in incident.now.split("|")


@pytest.mark.parametrize("name", APPLY)
def test_a_row_that_applies_lasts_to_the_end_or_is_over(name, diagnosed):
    incident, got = BY_NAME[name], diagnosed(name)
    lasts = got.now == got.primary
    for row in (row for row, states in incident.rows.items() if states == "applies"):
        verdict = got.verdict(row)
        assert (verdict.state_now is State.APPLIES) == lasts
        assert (verdict.episodes[-1].end is None) == lasts


@pytest.mark.parametrize("name", APPLY)
def test_the_onset_is_within_a_minute_of_the_true_one(name, diagnosed):
    incident, got = BY_NAME[name], diagnosed(name)
    assert got.verdict(got.primary).episodes[0].start - T0 == pytest.approx(incident.onset, abs=ONSET_SECONDS)


@pytest.mark.parametrize("name", [n for n in ALL if BY_NAME[n].ends])
def test_an_episode_ends_within_two_minutes_of_the_recovery(name, diagnosed):
    got = diagnosed(name)
    assert [e.end - T0 for e in got.verdict(got.primary).episodes] == [pytest.approx(BY_NAME[name].ends, abs=120)]


@pytest.mark.parametrize("name", [n for n in ALL if BY_NAME[n].stage])
def test_the_slow_stage_is_the_one_that_was_slowed(name, diagnosed):
    assert diagnosed(name).verdict("slow_first_token").stage == BY_NAME[name].stage


@pytest.mark.parametrize("name", [n for n in APPLY if BY_NAME[n].primary != "load_after_timeouts"])  # counted in front of them all
def test_the_replicas_are_those_in_trouble(name, diagnosed):
    got = diagnosed(name)
    wanted = BY_NAME[name].replicas or got.replicas
    assert {replica for e in got.verdict(got.primary).episodes for replica in e.replicas} == set(wanted)


def test_retries_name_no_replica_because_they_are_counted_in_front_of_them(diagnosed):
    assert {e.replicas for e in diagnosed("a retry storm").verdict("load_after_timeouts").episodes} == {()}


@pytest.mark.parametrize("name", ALL)
def test_the_findings_are_those_that_were_provoked(name, diagnosed):
    incident = BY_NAME[name]
    found = {finding.id for finding in diagnosed(name).findings}
    assert set(incident.findings) <= found <= {*incident.findings, *incident.may_find}


@pytest.mark.parametrize("name", [n for n in ALL if BY_NAME[n].follows])
def test_a_row_that_follows_from_another_says_from_which(name, diagnosed):
    got = diagnosed(name)
    follows = {v.row: v.follows_from for v in got.verdicts if v.follows_from}
    assert {row: cause for row, cause in BY_NAME[name].follows.items() if follows.get(row) != cause and got.verdict(row).episodes} == {}


def test_an_incident_names_only_rows_that_exist():
    assert {row for incident in INCIDENTS for row in (*incident.rows, *incident.follows)} <= set(ROW_IDS)


def test_the_simulation_is_the_same_each_time():
    first, again = truth("latency without pressure"), simulate(BY_NAME["latency without pressure"].site, 1)
    assert all((first.gateway[name] == again.gateway[name]).all() for name in first.gateway)
