"""Is more work admitted than we finish? Figures compared; what is not measured is never called an empty queue."""

import math

import numpy as np
import pytest
from tests.arrays import by_hand, course, facts

from obs import flow, queue
from obs.language import render
from obs.verdict import State

CALM = {
    "kv_use": 0.3, "preemptions": 0.0, "requests_waiting": 0.0, "requests_running": 4.0, "requests_finished": 2.0, "engine_errors": 0.0,
    "engine_aborts": 0.0, "admission_rejections": 0.0,
}  # fmt: skip
STEP = 15.0
GROWS = np.clip((np.arange(240) - 160) * STEP, 0, 600)  # one more a second waits from step 160 to step 200


def said(means=None, **levels):
    return queue.answer(facts(by_hand(means=means, **{**CALM, **levels})))


def figure(found, title):
    return next(f for f in found.figures if render(f.title).startswith(title))


# ---------------------------------------------------------------- no queue, and not known


def test_without_waiting_requests_nobody_can_tell():
    found = queue.answer(facts(by_hand(requests_running=64.0, requests_finished=2.0)))
    assert found.state is State.UNKNOWN
    assert render(found.says).startswith("Nobody can tell whether a queue stands: waiting requests are not measured.")


def test_a_queue_that_was_measured_before_the_window_only_is_not_known():
    assert said(requests_waiting=np.where(np.arange(240) < 120, 50.0, np.nan)).state is State.UNKNOWN


def test_no_traffic_is_neither_yes_nor_no():
    found = said(requests_running=0.0, requests_finished=0.0)
    assert found.state is State.UNKNOWN
    assert render(found.says).startswith("No traffic")


def test_as_much_in_as_out_is_no_queue():
    found = said()
    assert found.state is State.CLEAR
    assert render(found.says) == "No: what is admitted is finished (2 /s in, 2 /s out), and nobody waited."
    assert figure(found, "Until the queue").value == 0


def test_a_queue_of_a_minute_is_none():
    found = said(requests_waiting=course(240, (0, 0.0), (160, 40.0), (164, 0.0)))
    assert found.state is State.CLEAR
    assert render(found.says).endswith("at most 40 waited, and not for long.")


def test_rejections_that_are_not_counted_are_not_none():
    assert figure(said(admission_rejections=np.nan), "Rejected").value is None
    assert figure(said(admission_rejections=np.nan), "Rejected").state is State.UNKNOWN
    assert figure(said(), "Rejected").value == 0
    assert figure(said(admission_rejections=2.0), "Rejected").value == 3600  # two a second over half an hour


# ---------------------------------------------------------------- a queue


def test_what_is_admitted_is_counted_back_from_what_is_held():
    work = flow.flow(facts(by_hand(**{**CALM, "requests_waiting": GROWS, "engine_errors": 0.5})))
    assert work.admitted[190] == pytest.approx(2.0 + 0.5 + 1.0)  # finished, failed, and one more a second is held
    assert work.admitted[230] == pytest.approx(2.5)
    assert not work.at_gateway
    assert work.arrivals[190] == pytest.approx(3.5)


def test_what_a_dead_process_held_was_not_finished():
    """A restart empties the replica: held work falls by 300 and nobody was served."""
    held = course(240, (0, 300.0), (180, 0.0))
    work = flow.flow(facts(by_hand(**{**CALM, "requests_waiting": held, "counter_resets": course(240, (0, 0.0), (180, 1.0), (190, 0.0))})))
    assert work.admitted[181] == pytest.approx(2.0 + 4 / 60)  # the four that it runs again, and not -5 a second


def test_more_in_than_out_makes_a_queue_with_its_figures():
    found = said(requests_waiting=GROWS)
    assert found.state is State.APPLIES
    assert render(found.says).startswith("Yes: requests queue up on pod-0, since 08:40:00; up to 600 wait. While it grew, ")
    assert figure(found, "Waiting").value == 600
    assert figure(found, "Until the queue").value == math.inf
    assert figure(found, "Until the queue").state is State.APPLIES


def test_a_queue_that_stands_still_stays():
    found = said(requests_waiting=course(240, (0, 50.0)))
    assert "As much is completed as admitted (2 /s), so it stays." in render(found.says)


def test_the_queue_is_empty_when_the_last_minutes_go_on():
    falls = np.clip(900 - np.arange(240) * 3.0, 0, None)  # 183 at the end, three fewer every 15 s
    assert queue.until_empty(facts(by_hand(**{**CALM, "requests_waiting": falls}))) == pytest.approx(183 / (3 / STEP))
    flat = 100 - np.arange(240) * 0.01
    assert queue.until_empty(facts(by_hand(**{**CALM, "requests_waiting": flat}))) == math.inf
    gone = np.where(np.arange(240) < 225, 50.0, np.nan)
    assert queue.until_empty(facts(by_hand(**{**CALM, "requests_waiting": gone}))) is None


def test_littles_law_is_waiting_by_completed_and_infinite_where_nothing_completes():
    wait = queue.little(facts(by_hand(**{**CALM, "requests_waiting": 30.0, "requests_finished": course(240, (0, 2.0), (200, 0.0))})))
    assert wait[0, 150] == pytest.approx(15.0)
    assert wait[0, 230] == math.inf
    assert np.isnan(queue.little(facts(by_hand(requests_waiting=30.0)))).all()


def test_the_queue_time_has_the_law_beside_it():
    found = said(means={"queue_time": 12.0}, requests_waiting=30.0)
    time = figure(found, "Queue time")
    assert (render(time.title), time.value) == ("Queue time, highest mean", pytest.approx(12.0))
    assert render(time.says) == "by Little's law 15 s on average"


def test_a_level_that_is_held_while_others_wait_is_likely_the_limit():
    reached = figure(said(requests_running=64.0, requests_waiting=30.0), "Running on one replica")
    assert reached.value == 64
    assert render(reached.says) == "on pod-0, for 30 min while others waited: likely its limit, which it does not tell"
    free = figure(said(requests_running=64.0), "Running on one replica")
    assert render(free.says) == "on pod-0, which does not tell its limit"


def test_the_advice_says_what_the_queue_waits_for():
    assert render(said(requests_waiting=50.0).advice[1]).startswith("KV space is not short")
    assert render(said(requests_waiting=50.0, kv_use=0.97, preemptions=1.0).advice[1]).startswith("KV space is short meanwhile")
    assert "is not known" in render(said(requests_waiting=50.0, kv_use=np.nan).advice[1])


def test_attempts_that_no_engine_accounts_for_are_pointed_out():
    lost = said(requests_waiting=50.0, gateway_attempts=40.0)
    assert "The gateway sends 40 /s and the engines account for 2 /s" in render(lost.advice[2])
    assert len(said(requests_waiting=50.0, gateway_attempts=2.2).advice) == 2


def test_an_engine_that_makes_no_step_has_no_queue_that_anybody_knows():
    stuck = course(240, (0, 50.0), (140, 0.0))
    found = said(engine_steps=stuck, requests_waiting=course(240, (0, 0.0), (140, 30.0)))
    assert found.state is State.UNKNOWN
    assert "On pod-0 nothing is known since 08:35:00 or so" in render(found.says)
