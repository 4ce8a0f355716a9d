"""Which stage is slow: rises and not levels, the lag of what is observed at the finish, and what no stage explains."""

import pytest
from tests.arrays import course, verdicts

from obs.language import render
from obs.verdict import Stance, State

FIRST = "slow_first_token"
STEPS = 240
LATE = 160


def late(inside, outside):
    return course(STEPS, (0, outside), (LATE, inside))


def stage(means, **levels):
    return verdicts(means, **levels).verdict(FIRST).stage


# ---------------------------------------------------------------- not this stage


def test_a_stage_that_was_always_slow_is_not_the_slow_one():
    """Prefill takes a second as always; what rose is the way to the gateway, by less than that."""
    means = {"prefill_time": 1.0, "ttft": 1.05, "gateway_ttft": late(1.65, 1.06)}
    got = verdicts(means).verdict(FIRST)
    assert (got.state, got.stage) == (State.APPLIES, "network")


def test_while_a_queue_grows_the_remainder_is_its_wait_and_no_tokenization():
    """Queue times are observed at the finish: for minutes they still tell of those who came before."""
    means = {"ttft": late(6.0, 0.1), "gateway_ttft": late(6.01, 0.11), "queue_time": 0.005, "prefill_time": 0.05}
    assert stage(means, requests_waiting=late(30.0, 0.0)) == "queue"
    assert stage(means) == "tokenization"


def test_a_gateway_that_sees_what_the_engine_sees_has_no_slow_network():
    means = {"ttft": late(2.0, 0.1), "gateway_ttft": late(2.01, 0.11), "prefill_time": late(1.9, 0.05)}
    got = verdicts(means).verdict(FIRST)
    assert got.stage == "prefill"
    assert next(e for e in got.evidence if e.signal == "network_time").stance is not Stance.SUPPORTS


def test_a_rise_that_is_not_felt_is_none():
    assert verdicts({"ttft": late(0.3, 0.1), "gateway_ttft": late(0.31, 0.11), "prefill_time": late(0.25, 0.05)}).primary == "none"


def test_several_stages_that_rise_alike_explain_nothing_alone():
    thirds = {"queue_time": late(1.0, 0.0), "prefill_time": late(1.05, 0.05), "ttft": late(3.1, 0.1), "gateway_ttft": late(4.1, 0.11)}
    got = verdicts(thirds).verdict(FIRST)
    assert got.state is State.SUSPECTED
    assert got.episodes == ()


# ---------------------------------------------------------------- this stage


@pytest.mark.parametrize(
    ("means", "slow"),
    [
        ({"ttft": late(2.0, 0.1), "gateway_ttft": late(2.01, 0.11), "queue_time": late(1.9, 0.005)}, "queue"),
        ({"ttft": late(2.0, 0.1), "gateway_ttft": late(2.01, 0.11), "prefill_time": late(1.9, 0.05)}, "prefill"),
        ({"ttft": late(2.0, 0.1), "gateway_ttft": late(2.01, 0.11)}, "tokenization"),
        ({"ttft": 0.1, "gateway_ttft": late(2.0, 0.11)}, "network"),
    ],
    ids=["queue", "prefill", "tokenization", "network"],
)
def test_the_stage_whose_mean_rose_is_named(means, slow):
    got = verdicts(means).verdict(FIRST)
    assert (got.state, got.stage) == (State.APPLIES, slow)


def test_the_evidence_warns_where_fewer_finish_than_begin():
    means = {"ttft": late(6.0, 0.1), "gateway_ttft": late(6.01, 0.11)}
    got = verdicts(means, requests_waiting=late(30.0, 0.0), requests_finished=late(0.3, 1.0)).verdict(FIRST)
    lag = next(e for e in got.evidence if e.signal == "requests_finished")
    assert lag.value == pytest.approx(0.3, abs=0.05)
    assert [e for e in verdicts(means).verdict(FIRST).evidence if e.signal == "requests_finished"] == []


# ---------------------------------------------------------------- the remainder


def remainder(means, **levels):
    return next(e for e in verdicts(means, **levels).verdict(FIRST).evidence if e.signal == "ttft_remainder")


def test_the_remainder_is_the_front_end_s_only_while_no_queue_stands_and_says_that_nobody_measures_it():
    """The same figures, with and without a queue: the stage, the evidence and the first token page have one name for each."""
    means = {"ttft": late(6.0, 0.1), "gateway_ttft": late(6.01, 0.11), "queue_time": 0.005, "prefill_time": 0.05}
    waiting, alone = remainder(means, requests_waiting=late(30.0, 0.0)), remainder(means)
    assert waiting.value == pytest.approx(alone.value, rel=0.05)
    assert (waiting.stance, alone.stance) == (Stance.NEUTRAL, Stance.SUPPORTS)
    assert render(waiting.title) == "Remainder of the first token, mean"
    assert "the wait of those that have not finished is in it" in render(waiting.says)
    assert render(alone.title) == "Tokenization and front end, mean"
    assert "no engine measures it" in render(alone.says)


# ---------------------------------------------------------------- what a figure is


def test_a_peak_says_when_it_was_and_a_mean_of_what_stretch_it_is():
    """The first token stands in two rows: as the highest of its minutes in one, as the mean of the episode in the other."""
    means = {"ttft": course(STEPS, (0, 0.1), (LATE, 4.0), (LATE + 20, 8.0), (LATE + 24, 4.0)), "e2e_latency": late(9.0, 1.0)}
    got = verdicts({**means, "queue_time": late(3.9, 0.0)}, kv_use=late(0.99, 0.2), requests_waiting=late(30.0, 0.0))
    ttft = [next(e for e in got.verdict(row).evidence if e.signal == "ttft") for row in ("latency_without_errors", FIRST)]
    assert [e.value for e in ttft] == [pytest.approx(8.0), pytest.approx(4.2, abs=0.2)]
    said = [render(e.of) for e in ttft]
    assert said == ["highest, at 08:45:00", "mean while the row applied"]
    assert all(words in render(e.says) for words, e in zip(said, ttft, strict=True))
