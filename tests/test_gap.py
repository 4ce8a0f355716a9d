"""A window of which the source has forgotten a part, or never knew it: what is said is of the rest, and nothing is clear over all of it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.arrays import HEALTHY, HEALTHY_MEANS, START, by_hand, course, facts, verdicts

from obs.coverage import gap, untold
from obs.language import render
from obs.text import Message
from obs.verdict import State

STEPS, STEP, BEFORE = 240, 15.0, 120  # half an hour before the window, half an hour of it


def cut(first: int, last: int, of: float) -> np.ndarray:
    """A figure that is not there from step `first` to before step `last`."""
    values = np.full(STEPS, float(of))
    values[first:last] = np.nan
    return values


def known(first: int, last: int, **more: object) -> dict[str, object]:
    """Healthy figures, none of them there in these steps; `more` are other courses."""
    return {name: cut(first, last, value) for name, value in HEALTHY.items()} | more  # type: ignore[arg-type]


def seen(first: int, last: int, **more: object):
    means = {name: cut(first, last, value) for name, value in HEALTHY_MEANS.items()}  # type: ignore[arg-type]
    return facts(by_hand(STEPS, means=means, before=BEFORE, **known(first, last, **more)))  # type: ignore[arg-type]


def said(message: Message | None) -> str:
    assert message is not None
    return render(message)


def test_a_lost_scrape_or_a_few_minutes_are_no_gap_and_what_was_before_the_window_is_none_of_it() -> None:
    assert gap(seen(150, 152)) is None
    assert gap(seen(150, 170)) is None  # five minutes of thirty
    assert gap(seen(0, BEFORE)) is None


def test_a_replica_that_comes_late_leaves_no_gap_while_another_is_there() -> None:
    two = np.full((2, STEPS), 0.3)
    two[1, :200] = np.nan
    assert gap(facts(by_hand(STEPS, replicas=2, kv_use=two))) is None


@pytest.mark.parametrize(("first", "last", "begin", "end"), [(0, 180, 120, 180), (160, 200, 160, 200), (190, 240, 190, 239)])
def test_the_gap_is_told_from_its_first_to_its_last_moment(first: int, last: int, begin: int, end: int) -> None:
    found = gap(seen(first, last))
    assert found is not None
    assert found[:2] == (START + begin * STEP, START + end * STEP)
    assert found[2] == pytest.approx((min(last, STEPS) - max(first, BEFORE)) / 120, abs=0.01)


def test_no_row_is_clear_over_a_window_of_which_half_is_gone() -> None:
    whole = verdicts()
    assert {v.state for v in whole.verdicts if v.row != "gpu_oom"} == {State.CLEAR}
    means = {name: cut(0, 180, value) for name, value in HEALTHY_MEANS.items()}  # type: ignore[arg-type]
    half = verdicts(means, **known(0, 180))  # type: ignore[arg-type]
    assert {v.state for v in half.verdicts} == {State.UNKNOWN}
    assert (half.primary, half.now) == ("insufficient", "none")  # at its end everything is known
    assert said(half.headline) == "Not enough data to tell: there are no figures of any replica from 08:30:00 to 08:45:00."
    (note,) = untold(seen(0, 180))
    assert said(note) == "For 50 % of this window there are no figures, from 08:30:00 to 08:45:00: what is said here is of the rest."


def test_what_applies_in_the_half_that_is_there_applies() -> None:
    means = {name: cut(0, 180, value) for name, value in HEALTHY_MEANS.items()}  # type: ignore[arg-type]
    slow = np.where(np.arange(STEPS) >= 210, 6.0, means["ttft"])
    found = verdicts({**means, "ttft": slow, "prefill_time": slow - 0.05}, **known(0, 180))  # type: ignore[arg-type]
    assert found.primary == "slow_first_token"
    assert {v.row: v.state for v in found.verdicts}["latency_without_errors"] is State.UNKNOWN


def test_a_gateway_that_was_seen_all_the_time_tells_of_the_retries() -> None:
    means = {name: cut(0, 180, value) for name, value in HEALTHY_MEANS.items()}  # type: ignore[arg-type]
    edge = {name: course(STEPS, (0, value)) for name, value in HEALTHY.items() if name.startswith("gateway")}  # type: ignore[arg-type]
    found = {v.row: v.state for v in verdicts(means, **known(0, 180, **edge)).verdicts}  # type: ignore[arg-type]
    assert found["load_after_timeouts"] is State.CLEAR
    assert found["slow_first_token"] is State.UNKNOWN
