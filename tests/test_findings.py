"""What lies outside the table: when a finding must not be made, when it is, from when on, and which row it excuses."""

import numpy as np
import pytest
from tests.arrays import START, course, verdicts
from tests.incidents import TROUBLE, readings
from tests.scrapes import T0

from obs.diagnosis import diagnose
from obs.verdict import ROW_IDS, State

NAN = float("nan")
STEPS = 240
LATE = 160  # the step at which the trouble begins: minute 40, ten minutes into the window


def found(diagnosis, finding):
    """(from, to) in steps, of each finding of this kind."""
    mine = [f for f in diagnosis.findings if f.id == finding]
    return [((f.start - START) / 15, None if f.end is None else (f.end - START) / 15) for f in mine]


def from_late(inside, outside, until=None):
    parts = ((0, outside), (LATE, inside), *(((until, outside),) if until else ()))
    return course(STEPS, *parts)


def no_row_applies(diagnosis):
    return [v.row for v in diagnosis.verdicts if v.state is State.APPLIES] == []


# ---------------------------------------------------------------- nothing found


def test_a_healthy_replica_has_no_finding():
    assert verdicts().findings == ()


def test_an_idle_engine_that_makes_no_step_is_not_stalled():
    idle = verdicts(engine_steps=from_late(0.0, 50.0), generation_tokens=from_late(0.0, 100.0), requests_running=from_late(0.0, 4.0),
                    requests_finished=from_late(0.0, 1.0))  # fmt: skip
    assert found(idle, "engine_stalled") == []


def test_a_pause_under_two_minutes_is_no_stall():
    short = verdicts(engine_steps=from_late(0.0, 50.0, LATE + 7), generation_tokens=from_late(0.0, 100.0, LATE + 7))
    assert found(short, "engine_stalled") == []


def test_a_night_with_a_request_now_and_then_is_not_without_traffic():
    quiet = np.zeros(STEPS)
    quiet[::16] = 1.0  # every four minutes
    night = verdicts({"ttft": NAN}, requests_running=quiet, requests_finished=quiet / 60, generation_tokens=quiet)
    assert found(night, "no_traffic") == []


def test_a_replica_that_is_new_is_no_restart():
    new = np.full((2, STEPS), 4.0)
    new[1, :LATE] = NAN
    added = verdicts(replicas=2, requests_running=new, kv_use=np.where(np.isnan(new), NAN, 0.3), generation_tokens=new * 25, up=new / new,
                     requests_waiting=new * 0)  # fmt: skip
    assert found(added, "restarted") == []


def test_a_single_failed_scrape_is_no_finding():
    one = verdicts(up=from_late(0.0, 1.0, LATE + 1))
    assert found(one, "scrape_failing") == []
    assert no_row_applies(one)


def test_one_full_replica_among_full_ones_is_no_imbalance():
    assert found(verdicts(replicas=3, kv_use=0.97), "replica_imbalance") == []


def test_a_replica_above_the_others_without_trouble_is_no_imbalance():
    uneven = np.full((3, STEPS), 0.2)
    uneven[1] = 0.7
    assert found(verdicts(replicas=3, kv_use=uneven), "replica_imbalance") == []
    waits = np.zeros((3, STEPS))
    waits[1, LATE : LATE + 8] = 9.0
    assert found(verdicts(replicas=3, kv_use=uneven, requests_waiting=waits), "replica_imbalance") == []


def test_tokens_that_are_counted_twice_are_no_waste_where_nobody_leaves():
    assert found(verdicts(generation_tokens=from_late(400.0, 100.0)), "abandoned_work") == []


def test_tokens_that_a_long_answer_is_still_making_are_no_waste():
    """Ten minutes without a finish while many run: nothing is lost yet."""
    grows = np.concatenate([np.full(LATE, 4.0), np.minimum(4 + np.arange(STEPS - LATE), 60)])
    busy = verdicts(requests_running=grows, generation_tokens=from_late(150.0, 100.0))
    assert found(busy, "abandoned_work") == []


def test_a_signal_that_was_never_there_has_not_vanished():
    assert found(verdicts(means={"queue_time": NAN}), "series_vanished") == []


# ---------------------------------------------------------------- found, with its time


def test_a_hang_is_found_from_its_first_silent_scrape_and_excuses_every_row():
    hung = verdicts(
        {"ttft": from_late(30.0, 0.1), "e2e_latency": from_late(90.0, 3.0)}, engine_steps=from_late(0.0, 50.0),
        generation_tokens=from_late(0.0, 100.0), requests_finished=from_late(0.0, 1.0), requests_waiting=from_late(40.0, 0.0),
        kv_use=from_late(0.99, 0.3),
    )  # fmt: skip
    assert found(hung, "engine_stalled") == [(LATE, None)]
    assert [start for start, _ in found(hung, "stale_gauges")] == [pytest.approx(LATE, abs=1)]
    assert no_row_applies(hung)


def test_without_a_step_counter_a_hang_takes_five_minutes_to_be_seen():
    silent = {"generation_tokens": from_late(0.0, 100.0, LATE + 16), "requests_finished": from_late(0.0, 1.0, LATE + 16)}
    assert found(verdicts(engine_steps=NAN, **silent), "engine_stalled") == []
    longer = {"generation_tokens": from_late(0.0, 100.0, LATE + 24), "requests_finished": from_late(0.0, 1.0, LATE + 24)}
    assert found(verdicts(engine_steps=NAN, **longer), "engine_stalled") == [(LATE, LATE + 23)]


def test_silence_of_five_minutes_is_no_traffic_and_leaves_no_row_applying():
    got = diagnose(readings("no traffic"))
    mine = [f for f in got.findings if f.id == "no_traffic"]
    assert [f.start - T0 for f in mine] == [pytest.approx(TROUBLE + 60, abs=60)]  # a rate looks back a minute
    assert mine[0].end is None
    assert no_row_applies(got)


def test_a_restart_is_found_once_and_its_warm_up_is_excused():
    resets = np.zeros(STEPS)
    resets[LATE : LATE + 20] = 1.0  # a reset stays in sight for five minutes
    slow = course(STEPS, (0, 0.1), (LATE, 6.0), (LATE + 20, 0.1))
    got = verdicts({"ttft": slow, "queue_time": slow}, counter_resets=resets)
    assert found(got, "restarted") == [(LATE, LATE + 3)]
    assert no_row_applies(got)
    assert got.verdict("slow_first_token").state is State.CLEAR


def test_the_same_without_a_restart_is_a_slow_first_token():
    slow = course(STEPS, (0, 0.1), (LATE, 6.0), (LATE + 20, 0.1))
    got = verdicts({"ttft": slow, "queue_time": slow}, counter_resets=0.0)
    assert got.primary == "slow_first_token"


def test_host_memory_is_not_gpu_memory():
    got = diagnose(readings("killed for host memory"))
    assert [(f.replicas, f.start - T0) for f in got.findings if f.id == "host_oom"] == [(("vllm-1",), pytest.approx(TROUBLE, abs=30))]
    assert got.verdict("gpu_oom").state is State.CLEAR


def test_an_imbalance_names_the_replica_that_is_full():
    uneven = np.full((3, STEPS), 0.3)
    uneven[1, LATE:] = 0.97
    got = verdicts(replicas=3, kv_use=uneven)
    assert found(got, "replica_imbalance") == [(LATE, None)]
    assert [f.replicas for f in got.findings if f.id == "replica_imbalance"] == [("pod-1",)]


def test_a_minute_of_failed_scrapes_is_found_with_its_end():
    got = verdicts(replicas=2, up=np.stack([from_late(0.0, 1.0, LATE + 8), np.ones(STEPS)]))
    mine = [f for f in got.findings if f.id == "scrape_failing"]
    assert mine[0].start == START + LATE * 15
    assert mine[0].end is not None
    assert mine[0].end - (START + (LATE + 8) * 15) <= 600  # one scrape in ten, over ten minutes
    assert mine[0].replicas == ("pod-0",)


def test_one_scrape_in_eight_that_fails_is_found():
    flaky = np.ones(STEPS)
    flaky[LATE::8] = 0.0
    assert found(verdicts(up=flaky), "scrape_failing") != []
    assert no_row_applies(verdicts(up=flaky))


def test_a_series_that_ends_while_its_replica_works_has_vanished_since_its_last_sample():
    got = verdicts(kv_use=from_late(NAN, 0.3))
    assert found(got, "series_vanished") == [(LATE - 1, None)]
    assert got.verdict("latency_without_errors").state is State.UNKNOWN


def test_abandoned_work_is_found_when_the_callers_leave():
    got = diagnose(readings("callers who leave long answers"))
    assert [f.start - T0 for f in got.findings if f.id == "abandoned_work"] == [pytest.approx(TROUBLE, abs=90)]
    assert no_row_applies(got)


def test_a_finding_that_ended_before_the_window_is_not_told():
    early = course(STEPS, (0, 50.0), (60, 0.0), (80, 50.0))
    assert verdicts(engine_steps=early, generation_tokens=early * 2).findings == ()
    assert set(ROW_IDS) == {v.row for v in verdicts().verdicts}
