"""Since when, and until when: ramps, states that were there before, time-outs before their retries, and what ends an episode."""

import numpy as np
import pytest
from tests.arrays import START, course, verdicts

LATENCY, FIRST, LOAD = "latency_without_errors", "slow_first_token", "load_after_timeouts"
STEPS = 240
LATE = 160  # minute 40: the first scrape that shows it
SINCE = LATE - 1  # the scrape before, after which it began


def late(inside, outside, until=None):
    return course(STEPS, (0, outside), (LATE, inside), *(((until, outside),) if until else ()))


def ramp(low, high, steps, first=LATE):
    """From `low` to `high` within so many steps."""
    return np.interp(np.arange(STEPS), [0, first, first + steps, STEPS], [low, low, high, high])


def steps(diagnosis, row):
    """The row's episodes in steps (first, last)."""
    return [
        ((e.start - START) / 15, None if e.end is None else (e.end - START) / 15) for e in diagnosis.verdict(row).episodes
    ]  # fmt: skip


# ---------------------------------------------------------------- not the onset


def test_a_pool_that_was_full_for_long_is_no_onset():
    """It did its job for half an hour; the trouble began when the latency rose."""
    got = verdicts({"e2e_latency": late(9.0, 3.0)}, kv_use=course(STEPS, (0, 0.3), (30, 0.97)))
    assert [first for first, _ in steps(got, LATENCY)] == [pytest.approx(LATE, abs=2)]


def test_one_noisy_scrape_before_a_step_is_no_foot():
    latency = late(9.0, 3.0)
    latency[LATE - 3] = 3.9
    got = verdicts({"e2e_latency": latency}, kv_use=late(0.97, 0.3))
    assert [first for first, _ in steps(got, LATENCY)] == [pytest.approx(LATE, abs=1)]


def test_a_single_time_out_long_before_is_somebody_s():
    timeouts = late(0.3, 0.0)
    timeouts[LATE - 18] = 1 / 60
    got = verdicts(gateway_timeouts=timeouts, gateway_retries=late(0.5, 0.0), gateway_attempts=late(1.5, 1.0))
    assert [first for first, _ in steps(got, LOAD)] == [pytest.approx(LATE, abs=1)]


def test_retries_without_a_time_out_for_ten_minutes_have_another_reason():
    """Connections are refused first; the row begins with the first time-out."""
    timeouts = course(STEPS, (0, 0.0), (LATE, 0.3))
    got = verdicts(
        gateway_timeouts=timeouts, gateway_retries=course(STEPS, (0, 0.0), (LATE - 40, 0.5)),
        gateway_attempts=course(STEPS, (0, 1.0), (LATE - 40, 1.5)),
    )  # fmt: skip
    assert [first for first, _ in steps(got, LOAD)] == [SINCE]


# ---------------------------------------------------------------- the onset


def test_a_step_begins_at_the_step():
    got = verdicts({"e2e_latency": late(9.0, 3.0)}, kv_use=late(0.97, 0.3))
    assert steps(got, LATENCY) == [(SINCE, None)]


def test_a_ramp_begins_at_its_foot_and_not_where_it_crosses():
    """Three minutes from 3 s to 5 s: the limit, 4.2 s, is crossed after two of them; 15 % of the way after 25 s."""
    got = verdicts({"e2e_latency": ramp(3.0, 5.0, 12)}, kv_use=ramp(0.3, 0.97, 12))
    (first, _), *_ = steps(got, LATENCY)
    assert SINCE <= first <= SINCE + 4


def test_the_first_of_what_belongs_together_is_the_onset():
    """The pool is full two minutes before the latency shows it."""
    got = verdicts({"e2e_latency": course(STEPS, (0, 3.0), (LATE + 8, 9.0))}, kv_use=late(0.97, 0.3))
    assert steps(got, LATENCY) == [(SINCE, None)]


def test_time_outs_that_come_densely_before_their_retries_are_the_onset():
    got = verdicts(
        gateway_timeouts=late(0.3, 0.0), gateway_retries=course(STEPS, (0, 0.0), (LATE + 12, 0.5)),
        gateway_attempts=course(STEPS, (0, 1.0), (LATE + 12, 1.5)),
    )  # fmt: skip
    assert [first for first, _ in steps(got, LOAD)] == [SINCE]


def test_retries_before_the_first_counted_time_out_are_the_onset():
    """A time-out every three minutes is counted late; the retries that answer them were there before."""
    timeouts = np.zeros(STEPS)
    timeouts[LATE + 8 :: 12] = 1 / 15
    got = verdicts(gateway_timeouts=timeouts, gateway_retries=late(0.5, 0.0), gateway_attempts=late(1.5, 1.0))
    assert [first for first, _ in steps(got, LOAD)] == [SINCE]


def test_an_onset_before_the_window_is_told_as_it_is():
    got = verdicts({"e2e_latency": course(STEPS, (0, 3.0), (100, 9.0))}, kv_use=course(STEPS, (0, 0.3), (100, 0.97)))
    assert steps(got, LATENCY) == [(99, None)]
    assert got.start > got.verdict(LATENCY).episodes[0].start


# ---------------------------------------------------------------- the end


def test_an_episode_ends_with_its_latency():
    got = verdicts({"e2e_latency": late(9.0, 3.0, LATE + 40)}, kv_use=late(0.97, 0.3, LATE + 40))
    (first, last), *more = steps(got, LATENCY)
    assert (first, more) == (SINCE, [])
    assert LATE + 39 <= last <= LATE + 44
    assert got.now == "none"


def test_an_episode_that_runs_into_a_hang_ends_there():
    """Ten minutes of pressure are an episode of their own; from the first silent scrape on, nothing is judged."""
    hangs = LATE + 40
    silent = course(STEPS, (0, 50.0), (hangs, 0.0))
    got = verdicts({"e2e_latency": late(9.0, 3.0)}, kv_use=late(0.97, 0.3), engine_steps=silent, generation_tokens=silent * 2)
    (first, last), *more = steps(got, LATENCY)
    assert (first, more) == (SINCE, [])
    assert last == pytest.approx(hangs, abs=2)
    assert got.now != LATENCY


def test_what_hangs_within_minutes_was_the_hang_from_the_start():
    silent = course(STEPS, (0, 50.0), (LATE + 12, 0.0))
    got = verdicts({"e2e_latency": late(9.0, 3.0)}, kv_use=late(0.97, 0.3), engine_steps=silent, generation_tokens=silent * 2)
    assert steps(got, LATENCY) == []


def test_a_pause_of_a_minute_is_the_same_episode_and_one_of_five_another():
    short = course(STEPS, (0, 3.0), (LATE, 9.0), (LATE + 20, 3.0), (LATE + 24, 9.0))
    assert len(steps(verdicts({"e2e_latency": short}, kv_use=0.97), LATENCY)) == 1
    long = course(STEPS, (0, 3.0), (LATE, 9.0), (LATE + 20, 3.0), (LATE + 40, 9.0))
    assert len(steps(verdicts({"e2e_latency": long}, kv_use=0.97), LATENCY)) == 2


def test_what_ended_as_the_window_began_is_not_told():
    """The window begins at step 120."""
    got = verdicts({"e2e_latency": course(STEPS, (0, 3.0), (90, 9.0), (121, 3.0))}, kv_use=course(STEPS, (0, 0.3), (90, 0.97), (121, 0.3)))
    assert steps(got, LATENCY) == []
    assert got.primary == "none"
