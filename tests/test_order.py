"""Which row explains the others: order in time, KV space before the queue it makes, and the chain in a sentence."""

import re

import pytest
from tests.incidents import BY_NAME, readings
from tests.scrapes import T0

from obs.diagnosis import diagnose
from obs.language import render
from obs.order import APART_SECONDS, LEAD_SECONDS, Applying, incidents, main_incident
from obs.verdict import Episode

OOM, LATENCY, FIRST, LOAD = "gpu_oom", "latency_without_errors", "slow_first_token", "load_after_timeouts"


def part(row, start, end=None, *, memory=False):
    return Applying(row, Episode(start, end, ("a",)), memory, "queue" if row == FIRST else None)


def primary(*parts):
    found = incidents(parts)
    assert len(found) == 1
    return found[0].primary


# ---------------------------------------------------------------- what is not one incident, and what does not come first


def test_nothing_that_applies_is_no_incident():
    assert incidents(()) == ()
    assert main_incident(()) is None


def test_what_begins_long_after_all_else_has_ended_is_another_incident():
    first, second = part(LATENCY, 0, 600), part(LOAD, 600 + APART_SECONDS + 1, 900)
    assert [i.primary for i in incidents((second, first))] == [LATENCY, LOAD]
    assert len(incidents((first, part(LOAD, 600 + APART_SECONDS, 900)))) == 1


def test_pressure_minutes_before_the_retries_is_not_yet_their_cause():
    assert primary(part(LATENCY, 0, memory=True), part(LOAD, LEAD_SECONDS)) == LOAD


def test_a_queue_without_full_kv_space_never_comes_before_retries():
    assert primary(part(LATENCY, 0), part(FIRST, 0), part(LOAD, 2000)) == LOAD


def test_a_queue_without_full_kv_space_is_the_first_token_s():
    assert primary(part(LATENCY, 0), part(FIRST, 30)) == FIRST


# ---------------------------------------------------------------- what comes first


@pytest.mark.parametrize("row", [OOM, LATENCY, FIRST, LOAD])
def test_a_row_alone_is_the_primary(row):
    assert primary(part(row, 100)) == row


def test_an_out_of_memory_error_explains_what_the_replicas_left_over_suffer():
    assert primary(part(LATENCY, 0, memory=True), part(FIRST, 0), part(LOAD, 50), part(OOM, 60)) == OOM


def test_full_kv_space_explains_the_slow_first_token():
    assert primary(part(FIRST, 0), part(LATENCY, 60, memory=True)) == LATENCY


def test_full_kv_space_long_before_the_retries_explains_them():
    assert primary(part(LATENCY, 0, memory=True), part(LOAD, LEAD_SECONDS + 1)) == LATENCY


def test_the_incident_that_lasts_is_the_main_one_else_the_longest():
    short, long, lasting = part(FIRST, 0, 200), part(LATENCY, 1000, 3000), part(LOAD, 5000)
    assert main_incident(incidents((short, long))).primary == LATENCY
    assert main_incident(incidents((short, long, lasting))).primary == LOAD


def test_the_others_are_told_by_their_onset():
    only = incidents((part(FIRST, 50), part(LOAD, 0), part(LATENCY, 20)))[0]
    assert (only.primary, only.others()) == (LOAD, (LATENCY, FIRST))


# ---------------------------------------------------------------- the same on fleets, and in words


@pytest.fixture(scope="module")
def storm():
    return diagnose(readings("a retry storm"))


@pytest.fixture(scope="module")
def crowd():
    return diagnose(readings("a full KV pool ten minutes before the retries"))


def test_retries_that_come_first_make_the_latency(storm):
    assert storm.primary == LOAD
    assert storm.verdict(LATENCY).follows_from == LOAD
    assert re.search(r"The latency [^.]*of the retries", render(storm.summary))


def test_kv_space_that_fills_ten_minutes_earlier_makes_the_retries(crowd):
    first, retries = crowd.verdict(LATENCY).episodes[0].start, crowd.verdict(LOAD).episodes[0].start
    assert (first - T0, retries - T0) == (pytest.approx(2700, abs=60), pytest.approx(3330, abs=120))
    assert crowd.primary == LATENCY
    assert crowd.verdict(LOAD).follows_from == LATENCY
    assert re.search(r"The time-outs and retries [^.]*the latency\.", render(crowd.summary))


def test_a_queue_from_full_kv_space_is_the_pool_s_doing(crowd):
    assert crowd.verdict(FIRST).follows_from == LATENCY
    assert re.search(r"first token [^.]*queue[^.]*KV space", render(crowd.summary))


def test_the_chain_names_stage_and_replicas():
    got = diagnose(readings("one bad replica of four"))
    assert "on 1 of 4 replicas" in render(got.headline)
    assert "Where: vllm-2." in render(got.summary)
    slow = diagnose(readings("a slow prefill"))
    assert "The slow stage is: prefill." in render(slow.summary)


def test_the_primary_follows_from_nothing(storm, crowd):
    for got in (storm, crowd):
        assert got.verdict(got.primary).follows_from is None
    assert BY_NAME["a retry storm"].primary == LOAD
