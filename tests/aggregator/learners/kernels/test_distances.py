"""Rows in tiles, and squared distances against those of scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, pdist

from aggregator.learners.kernels.exact import NegativeSquares, median_squared_distance, some_rows, tiles
from federation.contract.errors import InputError

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


@pytest.mark.parametrize("count", [1, 255, 256, 257, 1000])
def test_tiles_are_the_rows_in_order_whatever_their_type_and_layout(count):
    rows = ROWS[:count]
    for given_ in (rows, np.asfortranarray(rows), rows.astype(np.float32), rows.tolist()):
        found = list(tiles(given_, "rows"))
        assert all(len(tile) <= 256 and tile.flags.c_contiguous and tile.dtype == np.float64 for tile in found)
        np.testing.assert_array_equal(np.concatenate(found), np.asarray(given_, dtype=np.float64))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (np.ones(3), "must have two axes"),
        (np.ones((0, 3)), "none of them empty"),
        (np.array([["a"]]), "must be numbers, got"),
        (np.ones((2, 2)), "must have 3 columns"),
        (np.vstack([np.ones((300, 3)), [[1, np.nan, 1]]]), "row 300, column 1"),
    ],
)
def test_rows_that_make_no_tiles_are_refused(rows, words):
    with pytest.raises(InputError, match=f"the rows .*{words}"):
        list(tiles(rows, "the rows", columns=3))


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 30), st.floats(1e-3, 1e3), st.floats(-1e4, 1e4))
def test_negative_squares_are_scipys_wherever_the_rows_lie(count, scale, shift):
    fixed, rows = ROWS[:count] + shift, ROWS[100:117] + shift
    squares = NegativeSquares(fixed, scale)
    found = squares.between(squares.left(rows))
    assert found.max() <= 0
    np.testing.assert_allclose(found, -scale * cdist(rows, fixed, "sqeuclidean"), atol=1e-9 * scale)
    part = squares.between(squares.left(rows), count - 1, count)  # rounded another way, perhaps
    np.testing.assert_allclose(part, found[:, count - 1 :], atol=1e-9 * scale)


def test_squares_that_overflow_are_refused():
    with pytest.raises(InputError, match="finite squared distances"):
        NegativeSquares(np.array([[0.0], [1e200]]), 1.0)
    with pytest.raises(InputError, match="finite squared distances"):
        NegativeSquares(ROWS[:3], 1.0).left(np.full((1, 6), 1e200))


def test_some_rows_are_drawn_in_order_by_seed_and_purpose():
    drawn = some_rows(ROWS, 100, 1, "a")
    places = [int(np.flatnonzero((row == ROWS).all(axis=1))[0]) for row in drawn]
    assert places == sorted(set(places))
    assert len(places) == 100
    np.testing.assert_array_equal(some_rows(ROWS.copy(), 100, 1, "a"), drawn)
    assert not any(np.array_equal(some_rows(ROWS, 100, *other), drawn) for other in ((2, "a"), (1, "b")))
    np.testing.assert_array_equal(some_rows(ROWS[:100], 100, 1, "a"), ROWS[:100])
