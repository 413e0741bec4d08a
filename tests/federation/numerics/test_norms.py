"""Rows cut to norm 1: none is longer afterwards, none that was short is moved, and directions stay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from federation.numerics.rows import within_norm

ROWS = arrays(np.float64, (3, 4), elements=st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-6))


@given(ROWS, st.one_of(st.none(), st.floats(0.1, 3)))
def test_no_row_is_longer_than_allowed(rows, l1_bound):
    found = within_norm(rows, l1_bound)
    assert np.linalg.norm(found, axis=1).max() <= 1 + 1e-14
    if l1_bound is not None:
        assert np.abs(found).sum(axis=1).max() <= l1_bound * (1 + 1e-14)
    scale = np.linalg.norm(found, axis=1) / np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
    np.testing.assert_allclose(found, rows * scale[:, None], rtol=1e-12)


@given(ROWS)
def test_cutting_twice_is_cutting_once(rows):
    once = within_norm(rows)
    np.testing.assert_allclose(within_norm(once), once, rtol=1e-15)


def test_short_rows_keep_every_bit():
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, (50, 4))
    np.testing.assert_array_equal(within_norm(rows), rows)
    np.testing.assert_array_equal(within_norm(rows, 2.0), rows)
    assert not np.shares_memory(within_norm(rows), rows)


@pytest.mark.parametrize(("row", "expected"), [([2.0, 2.0], [0.25, 0.25]), ([0.5, 0.0], [0.5, 0.0])])
def test_the_smaller_bound_decides(row, expected):
    np.testing.assert_allclose(within_norm(np.array([row]), 0.5), [expected])


def test_rows_whose_squares_overflow_become_zeros():
    found = within_norm(np.array([[1e200, 1.0], [3.0, 4.0]]))
    np.testing.assert_allclose(found, [[0, 0], [0.6, 0.8]])
