"""Arrays from outside: numbers of whatever type become float64, and anything else is named."""

from __future__ import annotations

import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.numerics.rows import all_finite, numbers, require_finite


@pytest.mark.parametrize("values", [[1, 2], (1.0, 2.0), np.array([1, 2], dtype=np.uint8), ["1", "2"], [True, 2]])
def test_what_can_be_read_as_numbers_becomes_float64(values):
    found = numbers(values, "rows")
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [1.0, 2.0])


def test_any_shape_is_kept_and_doubles_are_not_copied():
    rows = np.ones((2, 0, 3))
    assert numbers(rows, "rows") is rows
    assert numbers(7, "a number").shape == ()


@pytest.mark.parametrize("values", [["a"], [[1], [1, 2]], {}, [{}], [1j]])
def test_what_are_no_numbers_is_refused_by_name(values):
    with pytest.raises(InputError, match="the labels must be numbers: "):
        numbers(values, "the labels")


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 7), (300, 41)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_number_that_is_not_finite_is_not_overlooked(shape, value, rng):
    rows = rng.normal(size=shape)
    assert all_finite(rows)
    for place in range(0, rows.size, 11):
        spoilt = rows.copy()
        spoilt.flat[place] = value
        assert not all_finite(spoilt)


def test_numbers_whose_squares_overflow_are_looked_at_one_by_one():
    rows = np.full((2, 2), 1e200)
    assert not all_finite(rows)
    require_finite(rows, "rows")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_first_value_that_is_not_finite_is_told_with_its_place(value):
    rows = np.zeros((4, 3))
    rows[2, 1] = rows[3, 0] = value
    with pytest.raises(InputError, match=rf"rows must be finite: row 2, column 1 \(counted from 0\) is {value};"):
        require_finite(rows, "rows")
    with pytest.raises(InputError, match="row 514, column 1"):
        require_finite(rows, "rows", first=512)


@pytest.mark.parametrize("rows", [np.zeros((0, 3)), np.full((2, 2), 1e308), np.full((2, 2), 5e-324)])
def test_finite_rows_pass_however_large_small_or_few(rows):
    require_finite(rows, "rows")
