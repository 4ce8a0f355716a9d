"""Quantiles as Prometheus has them, and the bounds where the buckets cannot tell."""

import numpy as np
import pytest

from obs.histogram import Bounded, Side, longest, over, quantile
from obs.language import render
from obs.signals import SIGNALS, Buckets

INF = float("inf")
BOUNDS = np.array([1.0, 2, 4, INF])


def buckets(*columns):
    return Buckets(SIGNALS["ttft"], BOUNDS, np.array(columns, float).T)


def one(rates, q):
    value, side = quantile(BOUNDS, np.array(rates, float)[:, None], q)
    return float(value[0]), float(side[0])


def test_without_an_observation_there_is_no_quantile():
    assert np.isnan(one([0, 0, 0, 0], 0.5)).all()
    assert np.isnan(one([np.nan] * 4, 0.5)).all()
    assert over(buckets([0, 0, 0, 0]), np.array([True]), 0.5) is None
    assert longest(buckets([0, 0, 0, 0]), np.array([True])) is None


def test_beyond_the_last_bound_it_is_a_bound():
    assert one([0, 0, 1, 10], 0.95) == (4.0, Side.MORE_THAN)
    assert render(Bounded(4.0, Side.MORE_THAN).says("seconds")) == "more than 4 s"


def test_in_the_first_bucket_it_is_a_bound():
    assert one([10, 10, 10, 10], 0.5) == (1.0, Side.AT_MOST)
    assert render(Bounded(1.0, Side.AT_MOST).says("seconds")) == "at most 1 s"


def test_within_a_bucket_it_is_linear():
    assert one([0, 10, 10, 10], 0.5) == (pytest.approx(1.5), Side.WITHIN)
    assert one([2, 4, 10, 10], 0.9) == (pytest.approx(2 + 2 * 5 / 6), Side.WITHIN)


def test_a_bucket_that_runs_ahead_of_a_larger_one_makes_no_negative_quantile():
    assert one([0, 5, 4, 10], 0.5)[0] == pytest.approx(2.0)


def test_each_step_has_its_own_and_a_window_takes_all_observations():
    found = buckets([0, 10, 10, 10], [0, 0, 10, 10], [0, 0, 0, 0])
    value, _side = quantile(found.bounds, found.rates, 0.5)
    assert value[:2].tolist() == [1.5, 3.0]
    assert np.isnan(value[2])
    assert over(found, np.array([True, True, True]), 0.5) == Bounded(2.0, Side.WITHIN)
    assert over(found, np.array([False, True, False]), 0.5) == Bounded(3.0, Side.WITHIN)


def test_of_the_longest_only_the_bucket_is_known():
    assert longest(buckets([0, 3, 3, 3]), np.array([True])) == Bounded(2.0, Side.AT_MOST)
    assert longest(buckets([0, 3, 3, 4]), np.array([True])) == Bounded(4.0, Side.MORE_THAN)
