"""Ranks, Spearman's rho against figures worked out by hand, and the minutes that it is taken over."""

import numpy as np
import pytest

from obs.correlation import at_end, mean_in, minutes, rank_correlation, ranks
from obs.series import Grid

NAN = float("nan")


def test_too_few_pairs_have_no_correlation_but_a_number():
    found = rank_correlation(np.array([1.0, 2, 3, 4, NAN]), np.array([1.0, 2, 3, 4, 5]))
    assert (found.rho, found.n) == (None, 4)


def test_a_figure_that_never_changes_has_no_correlation():
    assert rank_correlation(np.ones(9), np.arange(9.0)).rho is None
    assert rank_correlation(np.arange(9.0), np.zeros(9)).rho is None


def test_a_pair_counts_only_where_both_are_known():
    x = np.array([1.0, 2, NAN, 3, 4, 5, 6])
    y = np.array([1.0, 2, 99, 3, 4, NAN, 6])
    found = rank_correlation(x, y)
    assert (found.rho, found.n) == (pytest.approx(1.0), 5)


def test_equal_values_share_the_mean_of_their_ranks():
    assert ranks(np.array([3.0, 1, 1, 2, 3])).tolist() == [4.5, 1.5, 1.5, 3.0, 4.5]


def test_it_is_the_order_that_counts_and_not_the_size():
    x = np.array([1.0, 2, 3, 4, 5])
    assert rank_correlation(x, np.exp(x)).rho == pytest.approx(1.0)
    assert rank_correlation(x, -(x**3)).rho == pytest.approx(-1.0)


def test_the_textbook_example_with_distances_of_ranks():
    """1 - 6 sum d^2 / n(n^2 - 1) with d = 0, 1, 1, 1, 1: 1 - 24/120."""
    found = rank_correlation(np.array([10.0, 20, 30, 40, 50]), np.array([1.0, 3, 2, 5, 4]))
    assert found.rho == pytest.approx(0.8)


def test_the_window_is_cut_into_whole_minutes_that_end_at_its_end():
    grid = Grid(0, 15, 241)  # an hour
    bins = minutes(grid, 1800, 3600, 60)
    assert (bins.seconds, len(bins.last)) == (60, 30)
    assert grid.times[bins.last][[0, -1]].tolist() == [1860, 3600]


def test_a_rate_that_looks_back_longer_makes_longer_bins():
    bins = minutes(Grid(0, 30, 241), 0, 7200, 120)
    assert (bins.seconds, bins.size, len(bins.last)) == (120, 4, 60)


def test_a_day_is_at_most_240_bins():
    bins = minutes(Grid(0, 60, 1441), 0, 86400, 60)
    assert (bins.seconds, len(bins.last)) == (360, 240)


def test_a_level_is_averaged_over_its_bin_and_a_rate_read_at_its_end():
    bins = minutes(Grid(0, 15, 9), 0, 120, 60)
    level = np.array([9.0, 1, 2, 3, 4, NAN, NAN, 6, 8])
    assert mean_in(level, bins).tolist() == [2.5, 7.0]
    assert at_end(level, bins).tolist() == [4.0, 8.0]
    assert np.isnan(mean_in(np.full(9, NAN), bins)).all()
