"""Grids and masks: what an edge, a hole and a single step do."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obs.series import (
    Grid,
    anywhere,
    backward_max,
    divide,
    latch,
    median,
    median_of_others,
    near,
    painted,
    runs,
    settle,
    spans,
    total_of,
    trailing,
    worst,
)

NAN = float("nan")
bounded = settings(max_examples=25, deadline=None, derandomize=True, database=None)
masks = st.lists(st.booleans(), min_size=1, max_size=40).map(lambda steps: np.array(steps))


def mask(text):
    """A mask from a picture: "..##." """
    return np.array([c == "#" for c in text])


def picture(values):
    return "".join("#" if v else "." for v in values)


# ---------------------------------------------------------------- nothing out of nothing


def test_nothing_divided_by_nothing_is_no_figure_and_not_zero():
    assert np.isnan(divide(np.array([0.0, 5.0, NAN]), np.array([0.0, 0.0, 1.0]))).all()
    assert divide(np.array([0.0, 6.0]), np.array([2.0, 3.0])).tolist() == [0.0, 2.0]


def test_rows_without_a_value_have_no_median_no_peak_and_no_sum():
    nothing = np.full((2, 3), NAN)
    assert np.isnan(median(nothing)).all()
    assert np.isnan(worst(nothing)).all()
    assert np.isnan(total_of(nothing)).all()


def test_a_missing_value_counts_as_nothing_in_a_sum_and_not_at_all_in_a_median():
    assert trailing(np.array([1.0, NAN, 2.0, 4.0]), 2).tolist() == [1.0, 1.0, 2.0, 6.0]
    assert median(np.array([[1.0, NAN, 2.0, 9.0], [1.0, 2.0, 3.0, 4.0]])).tolist() == [2.0, 2.5]
    assert total_of(np.array([[1.0, NAN], [2.0, NAN]])).tolist()[0] == 3.0


def test_an_empty_mask_has_no_runs():
    assert runs(mask(".....")) == []
    assert not anywhere(np.array([mask("..."), mask("...")])).any()


# ---------------------------------------------------------------- grids


@pytest.mark.parametrize(
    ("start", "end", "first", "count"), [(100, 160, 90, 5), (90, 150, 90, 5), (104.9, 104.95, 90, 1), (105, 105, 105, 1)]
)
def test_a_grid_begins_at_the_step_at_or_before_its_start(start, end, first, count):
    grid = Grid.covering(start, end, 15)
    assert (grid.start, grid.count) == (first, count)
    assert grid.end <= end < grid.end + 15


def test_an_index_outside_the_grid_is_clipped_into_it():
    grid = Grid(100, 10, 5)
    assert [grid.index(t) for t in (0, 100, 109.9, 110, 140, 999)] == [0, 0, 0, 1, 4, 4]


def test_a_span_is_never_less_than_a_step_and_is_rounded_up():
    grid = Grid(0, 15, 10)
    assert [grid.steps(s) for s in (0, 1, 15, 16, 60, 60.0000000001)] == [1, 1, 1, 2, 4, 4]


# ---------------------------------------------------------------- masks over time


def test_runs_are_inclusive_at_both_ends():
    assert runs(mask("##..#.###")) == [(0, 1), (4, 4), (6, 8)]


def test_a_short_gap_is_closed_before_a_short_run_is_dropped():
    assert picture(settle(mask("##.##...#....##")[None, :], hold=3, gap=1)[0]) == "#####.........."
    assert picture(settle(mask("##..##")[None, :], hold=3, gap=1)[0]) == "......"


def test_each_row_settles_by_itself():
    rows = np.array([mask("#.#..."), mask("..####")])
    assert [picture(row) for row in settle(rows, hold=3, gap=1)] == ["###...", "..####"]


def test_a_latch_keeps_its_state_between_on_and_off():
    on, off = mask(".#......#."), mask("....#....#")
    assert picture(latch(on, off)) == ".###....#."


def test_what_is_both_on_and_off_is_off():
    assert picture(latch(mask(".#."), mask(".##"))) == "..."


def test_near_widens_to_both_sides_and_backward_only_to_the_later():
    assert picture(near(mask("....#...."), 2)) == "..#####.."
    assert picture(backward_max(mask("....#...."), 3)) == "....###.."
    assert picture(near(mask("#.......#"), 1)) == "##.....##"


@bounded
@given(given_mask=masks, steps=st.integers(1, 6))
def test_near_never_loses_a_step_and_settle_never_adds_beyond_the_gaps(given_mask, steps):
    assert (near(given_mask, steps) | given_mask == near(given_mask, steps)).all()
    settled = settle(given_mask[None, :], 1, steps)[0]
    assert (settled | given_mask == settled).all()
    assert all(last - first + 1 > 0 for first, last in runs(settled))
    assert [b[0] - a[1] - 1 for a, b in zip(runs(settled), runs(settled)[1:], strict=False) if b[0] - a[1] - 1 <= steps] == []


def _slowly(given_mask, hold, gap):
    """`settle`, step by step."""
    out = given_mask.copy()
    stretches = runs(given_mask)
    for (_, before), (after, _) in pairwise(stretches):
        if after - before - 1 <= gap:
            out[before + 1 : after] = True
    for first, last in runs(out):
        if last - first + 1 < hold:
            out[first : last + 1] = False
    return out


@bounded
@given(rows=st.lists(masks, min_size=1, max_size=4), hold=st.integers(1, 5), gap=st.integers(0, 4))
def test_rows_settle_at_once_as_they_do_step_by_step(rows, hold, gap):
    width = max(len(row) for row in rows)
    both = np.array([np.pad(row, (0, width - len(row))) for row in rows])
    assert [picture(row) for row in settle(both, hold, gap)] == [picture(_slowly(row, hold, gap)) for row in both]
    assert painted(both.shape, *spans(both)).tolist() == both.tolist()


def test_stretches_at_the_edges_of_two_rows_do_not_touch():
    row, first, last = spans(np.array([mask("..##"), mask("##..")]))
    assert (row.tolist(), first.tolist(), last.tolist()) == ([0, 1], [2, 0], [3, 1])


def test_the_median_of_the_others_leaves_out_the_row_itself_and_what_is_not_known():
    assert np.isnan(median_of_others(np.array([[1.0]]))).all()
    assert median_of_others(np.array([[1.0], [5.0], [NAN], [7.0], [9.0]]))[:, 0].tolist() == [7.0, 7.0, 6.0, 5.0, 5.0]


@bounded
@given(st.lists(st.integers(0, 5).map(float) | st.just(NAN), min_size=2, max_size=9))
def test_the_median_of_the_others_is_the_median_without_the_row(values):
    column = np.array(values)[:, None]
    want = [median(np.delete(column, row, axis=0).T)[0] for row in range(len(values))]
    assert median_of_others(column)[:, 0] == pytest.approx(want, nan_ok=True)


@bounded
@given(st.lists(st.floats(-1e6, 1e6) | st.just(NAN), min_size=1, max_size=30))
def test_the_median_is_numpys_where_there_is_one(values):
    known = [v for v in values if not np.isnan(v)]
    got = median(np.array([values]))[0]
    assert np.isnan(got) if not known else got == pytest.approx(float(np.median(known)))


def test_the_median_of_one_and_of_a_pair_knows_what_is_missing():
    assert median(np.array([[[4.0], [NAN]]])) == pytest.approx(np.array([[4.0, NAN]]), nan_ok=True)
    pairs = np.array([[NAN, NAN], [3.0, NAN], [NAN, 5.0], [2.0, 4.0]])
    assert median(pairs) == pytest.approx(np.array([NAN, 3.0, 5.0, 3.0]), nan_ok=True)
