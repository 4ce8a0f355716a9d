"""What is usual: it follows the quiet, stands still while there is trouble, and is not there before there was any quiet."""

import numpy as np
import pytest

from obs.baseline import BLOCK_SECONDS, MEMORY_SECONDS, MOST_BLOCKS, follow
from obs.series import Grid

STEP = 15.0
NAN = float("nan")


def twice(base):
    """Out of line: twice the usual and 1 more; without a baseline, 100."""
    return np.where(np.isfinite(base), 2 * base + 1, 100.0)


def usual(values, limit=twice, step=STEP):
    values = np.atleast_2d(np.asarray(values, float))
    return follow(values, Grid(0, step, values.shape[1]), limit)


def minutes(*parts):
    """A course: (minutes, figure) one after the other."""
    return np.concatenate([np.full(int(m * 60 / STEP), figure, float) for m, figure in parts])


def at(found, minute):
    return found[0, int(minute * 60 / STEP)]


def test_there_is_none_in_the_first_two_minutes():
    found = usual(minutes((10, 4.0)))
    assert np.isnan(found[0, : int(2 * BLOCK_SECONDS / STEP)]).all()
    assert at(found, 3) == 4.0


def test_there_is_none_where_nothing_is_measured():
    assert np.isnan(usual(minutes((10, NAN)))).all()


def test_there_is_none_where_all_is_trouble_from_the_first_minute():
    assert np.isnan(usual(minutes((60, 500.0)))).all()


def test_a_long_trouble_does_not_become_the_usual():
    found = usual(minutes((10, 4.0), (110, 50.0)))
    assert at(found, 119) == 4.0


def test_one_wild_scrape_a_minute_is_no_level():
    course = minutes((30, 4.0))
    course[::4] = 1000.0
    assert at(usual(course), 29) == 4.0


def test_after_the_trouble_it_goes_on_from_what_it_was():
    found = usual(minutes((10, 4.0), (20, 50.0), (30, 5.0)))
    assert at(found, 29) == 4.0
    assert at(found, 31) == 4.0
    assert at(found, 55) == 5.0  # half of what is remembered is younger


def test_it_follows_a_slow_curve_that_doubles_in_hours():
    course = 4.0 * 2 ** (np.arange(0, 4 * 3600, STEP) / (2 * 3600))
    found = usual(course)
    assert found[0, -1] / course[-1] == pytest.approx(2**-0.5, rel=0.05)  # the middle of the last two hours


def test_it_remembers_two_hours_and_no_more():
    assert MEMORY_SECONDS == 7200
    found = usual(minutes((110, 8.0), (100, 4.0)))
    assert at(found, 155) == 8.0  # of the last 120 minutes, 75 had 8
    assert at(found, 180) == 4.0  # now 50; of all 180, 110


def test_each_row_has_its_own():
    found = usual(np.stack([minutes((10, 4.0), (10, 40.0)), minutes((10, 40.0), (10, 40.0))]))
    assert found[:, -1].tolist() == [4.0, 40.0]


def test_a_hole_in_the_data_keeps_what_was():
    found = usual(minutes((10, 4.0), (30, NAN), (5, 4.0)))
    assert at(found, 39) == 4.0


@pytest.mark.parametrize("step", [5.0, 30.0, 60.0])
def test_it_is_the_same_at_another_step(step):
    course = np.concatenate([np.full(int(m * 60 / step), figure) for m, figure in ((20, 4.0), (20, 50.0))])
    assert usual(course, step=step)[0, -1] == 4.0


def test_a_long_grid_takes_longer_blocks():
    found = usual(np.full(20 * 24 * 60, 3.0), step=60.0)
    first = int(np.isfinite(found[0]).argmax())
    assert first == 2 * -(-20 * 24 * 60 // MOST_BLOCKS)
