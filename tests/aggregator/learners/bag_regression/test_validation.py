"""Scaling of columns: indicators keep their values, other columns get one scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.learners.bag_regression.network import column_scaling


@pytest.mark.parametrize("share", [0.001, 0.3, 0.7, 0.999])
@pytest.mark.parametrize("values", [(0.0, 1.0), (-3.0, 40.0)])
def test_a_column_of_two_values_becomes_an_indicator_of_the_rarer(share, values):
    column = np.random.default_rng(0).random(5000) < share
    rows = np.where(column, values[1], values[0])[:, None]
    centre, scale = column_scaling(rows)
    assert set(np.abs((rows - centre) / scale).ravel()) == {0.0, 1.0}
    assert ((rows != centre).mean()) <= 0.5


def test_continuous_columns_get_unit_mean_square_about_the_median():
    rows = np.random.default_rng(0).normal([[5.0, -300.0]], [[1e-3, 40.0]], size=(4001, 2))
    centre, scale = column_scaling(rows)
    np.testing.assert_array_equal(centre, np.median(rows, axis=0))
    np.testing.assert_allclose(np.mean(((rows - centre) / scale) ** 2, axis=0), 1, rtol=1e-3)


def test_columns_that_do_not_vary_keep_their_scale():
    centre, scale = column_scaling(np.full((10, 2), [7.0, 0.0]))
    assert centre.tolist() == [7.0, 0.0]
    assert scale.tolist() == [1.0, 1.0]


def test_many_rows_are_sampled_from_all_over():
    rows = np.linspace(0, 1, 100_000)[:, None]
    centre, scale = column_scaling(rows)
    assert centre[0] == pytest.approx(0.5, abs=1e-3)
    assert scale[0] == pytest.approx(np.sqrt(1 / 12), rel=1e-3)


@given(st.integers(1, 50), st.integers(-3, 3), st.floats(-100, 100), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_units_change_nothing(rows, power, shift, seed):
    values = np.random.default_rng(seed).normal(size=(rows, 2))
    moved = values * 8.0**power + shift
    (centre, scale), (other, others) = column_scaling(values), column_scaling(moved)
    assert (scale > 0).all()
    np.testing.assert_allclose((moved - other) / others, (values - centre) / scale, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_extreme_units_do_not_overflow(size):
    rows = np.random.default_rng(0).normal(size=(100, 1)) * size
    centre, scale = column_scaling(rows)
    assert np.mean(((rows - centre) / scale) ** 2) == pytest.approx(1, rel=0.02)
