"""At most one retry, of what is transient, from a budget; and a source that is down is left alone."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.faults import Reply, serving, success

from obs.config import SourceSettings
from obs.errors import SourceError
from obs.language import render
from obs.patience import BUDGET_RESERVE, FAILURES, OPEN_SECONDS, Circuit, RetryBudget
from obs.prometheus import Prometheus
from obs.refusals import StatusError, TooSlowError
from obs.series import Grid
from obs.source import Query

GRID = Grid(1_800_000_000.0, 15.0, 3)
OK = success([{"metric": {"a": "1"}, "values": [[GRID.start, "1"]]}])
ONE = [Query("x", "x")]


def source(address, **more):
    return Prometheus(SourceSettings(url=address, name="it", **more))


def in_turn(*replies):
    """Each request gets the next reply, and the last one from then on."""
    left = list(replies)
    return lambda _seen: left.pop(0) if len(left) > 1 else left[0]


# ---------------------------------------------------------------- no retry


@pytest.mark.parametrize("status", [400, 401, 404, 422, 429, 500])
def test_what_would_be_answered_alike_is_not_asked_again(status):
    with serving(Reply(status=status, body={"status": "error", "error": "no"})) as (address, seen):
        with pytest.raises(SourceError):
            source(address).answer(ONE, GRID)
        assert len(seen) == 1


def test_a_query_that_took_too_long_is_not_asked_again():
    with serving(Reply(wait=2.5)) as (address, seen):
        with pytest.raises(TooSlowError):
            source(address, timeout_seconds=0.5).answer(ONE, GRID)
        assert len(seen) == 1


def test_a_second_failure_is_final():
    with serving(Reply(status=502)) as (address, seen):
        with pytest.raises(StatusError):
            source(address).answer(ONE, GRID)
        assert len(seen) == 2


def test_the_budget_bounds_the_retries_of_a_failing_source():
    """Sixty questions, of which two of three fail: three retries in reserve, and one for ten of the questions."""
    busy = Reply(status=503, body={"status": "error", "error": "busy"})
    with serving(lambda seen: OK if seen.params["query"] == ["fine"] else busy) as (address, seen):
        asked = source(address)
        for _ in range(20):
            for _ in range(2):
                with pytest.raises(StatusError):
                    asked.answer(ONE, GRID)
            asked.answer([Query("fine", "fine")], GRID)
    assert 60 < len(seen) <= 60 + BUDGET_RESERVE + 6
    assert asked.session.retries.refused > 30


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_source_that_wants_to_be_left_alone_is_left_alone(status):
    with serving(Reply(status=status, body={"status": "error", "error": "not now"})) as (address, seen):
        asked = source(address)
        for _ in range(20):
            with pytest.raises(SourceError):
                asked.answer(ONE, GRID)
        assert len(seen) == FAILURES
    with serving(Reply(status=500, body={"status": "error", "error": "a fault"})) as (address, seen):
        asked = source(address)
        for _ in range(FAILURES + 3):
            with pytest.raises(SourceError):
                asked.answer(ONE, GRID)
        assert len(seen) == FAILURES + 3  # it is there, and other questions it may answer


def test_a_source_that_is_down_is_left_alone_and_the_reason_is_said_at_once():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{probe.getsockname()[1]}"
    asked = source(address)
    for _ in range(FAILURES):
        with pytest.raises(SourceError):
            asked.answer(ONE, GRID)
    before, began = asked.session.asked.count, time.monotonic()
    with pytest.raises(SourceError) as raised:
        asked.answer(ONE, GRID)
    assert time.monotonic() - began < 0.05
    assert asked.session.asked.count == before
    words = render(raised.value.says)
    assert "refused the connection" in words
    assert words.endswith("It is left alone for a while, and asked again by itself.")


# ---------------------------------------------------------------- one retry


@pytest.mark.parametrize(
    "first", [Reply(status=502), Reply(status=503, body={"status": "error", "error": "busy"}), Reply(body=OK.body, cut=10)], ids=str
)
def test_what_is_transient_is_asked_once_more_and_then_answered(first):
    with serving(in_turn(first, OK)) as (address, seen):
        assert source(address).answer(ONE, GRID)[0].labels == ({"a": "1"},)
        assert len(seen) == 2


def test_retries_do_not_come_at_once():
    with serving(in_turn(Reply(status=502), OK)) as (address, _seen):
        began = time.monotonic()
        source(address).answer(ONE, GRID)
        assert time.monotonic() - began >= 0.05


# ---------------------------------------------------------------- the two by themselves


def test_ten_requests_earn_a_retry_and_no_more_than_the_reserve_is_saved():
    budget = RetryBudget()
    assert [budget.spend() for _ in range(5)] == [True, True, True, False, False]
    for _ in range(10):
        budget.asked()
    assert [budget.spend() for _ in range(2)] == [True, False]
    for _ in range(1000):
        budget.asked()
    assert [budget.spend() for _ in range(4)] == [True, True, True, False]


def test_one_request_tries_whether_it_is_back_and_each_failure_doubles_the_wait():
    now = 0.0
    circuit = Circuit(lambda: now)
    for _ in range(FAILURES + 3):  # three more were under way
        circuit.failed()
    assert circuit.wait_seconds() == OPEN_SECONDS[0]
    now += OPEN_SECONDS[0]
    assert circuit.wait_seconds() == 0.0
    assert circuit.wait_seconds() > 0  # the second one waits
    circuit.failed()
    assert circuit.wait_seconds() == 2 * OPEN_SECONDS[0]
    for _ in range(9):
        now += circuit.wait_seconds()
        assert circuit.wait_seconds() == 0.0
        circuit.failed()
    assert circuit.wait_seconds() == OPEN_SECONDS[1]
    now += OPEN_SECONDS[1]
    assert circuit.wait_seconds() == 0.0
    circuit.worked()
    assert [circuit.wait_seconds() for _ in range(3)] == [0.0, 0.0, 0.0]


def test_no_more_than_eight_requests_are_under_way_at_once():
    under_way, most = [], []

    def answer(seen):
        under_way.append(seen)
        most.append(len(under_way))
        time.sleep(0.1)
        under_way.remove(seen)
        return OK

    with serving(answer) as (address, seen), ThreadPoolExecutor(30) as pool:
        asked = source(address)
        list(pool.map(lambda _: asked.answer(ONE, GRID), range(30)))
    assert len(seen) == 30
    assert 4 <= max(most) <= 8
