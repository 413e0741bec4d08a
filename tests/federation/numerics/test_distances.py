"""Medians of squared distances against scipy's distances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from federation.contract.errors import InputError
from federation.numerics.distances import median_squared_distance

ROWS = np.random.default_rng(0).normal(size=(5000, 6))


def test_few_rows_are_all_compared():
    expected = np.median(pdist(ROWS[:1000], "sqeuclidean"))
    assert median_squared_distance(ROWS[:1000]) == pytest.approx(expected, rel=1e-12)


def test_many_rows_are_sampled_with_a_public_seed():
    medians = [median_squared_distance(ROWS, seed) for seed in range(5)]
    assert len(set(medians)) == 5
    np.testing.assert_allclose(medians, np.median(pdist(ROWS, "sqeuclidean")), rtol=0.05)
    assert median_squared_distance(ROWS.copy(), 3) == medians[3]


def test_equal_rows_are_no_pair():
    rows = np.vstack([np.zeros((90, 2)), [[3.0, 4.0]]])
    assert median_squared_distance(rows) == pytest.approx(25)


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 40), st.floats(1e-120, 1e120), st.floats(-1e3, 1e3))
def test_moves_with_the_rows_and_scales_with_their_square(count, scale, shift):
    rows = ROWS[:count]
    expected = scale**2 * median_squared_distance(rows)
    assert median_squared_distance(scale * (rows + shift)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((5, 2)),
        np.ones((1, 3)),
        np.full((4, 2), np.inf),
        np.empty((0, 3)),
        np.ones(4),
        1e-170 * ROWS[:5],
        1e170 * ROWS[:5],
    ],
)
def test_refuses_rows_without_a_distance(rows):
    with pytest.raises(InputError, match="public rows"):
        median_squared_distance(rows)
