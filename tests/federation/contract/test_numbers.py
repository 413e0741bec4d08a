"""What is a number, how a refusal shows it, and how many digits tell two of them apart."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.contract.validation import apart, is_number, required, shown


@pytest.mark.parametrize("value", [0, -3, 0.5, Fraction(1, 3), np.float64(2.0), np.float32(2.0), np.int64(7), 1e308])
def test_numbers_of_any_kind_are_numbers(value):
    assert is_number(value)
    assert required("share", value, "be anything", lambda given: True) is value


@pytest.mark.parametrize(
    "value",
    [None, "1", b"1", True, np.True_, math.nan, math.inf, -math.inf, 10**400, -(10**400), 1j, [1.0], np.ones(1)],
)
def test_all_else_is_none(value):
    assert not is_number(value)
    with pytest.raises(InputError, match=r"^share must lie in \(0, 1\), got .{1,70}$"):
        required("share", value, "lie in (0, 1)", lambda given: 0 < given < 1)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1", "'1'"),
        (np.float64(0.5), "0.5"),
        (10**40, "a whole number of more than 30 digits"),
        (Fraction(1, 10**40), "1/a whole number of more than 30 digits"),
        ("x" * 100, "'" + "x" * 59),
    ],
)
def test_a_refusal_shows_what_came_in_few_characters(value, text):
    assert shown(value) == text


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((2.0, 1), ("2", "1")),
        ((1.0000000003, 1), ("1.0000000003", "1")),
        ((0.99999999, 1.0), ("0.99999999", "1")),
        ((1e6, 1e6 + 1), ("1000000", "1000001")),
        ((math.nextafter(1, 2), 1.0), ("1.0000000000000002", "1")),
        ((1.0, 1.0), ("1", "1")),
    ],
)
def test_numbers_that_differ_are_written_differently(values, texts):
    assert apart(*values) == texts


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
@settings(derandomize=True, deadline=None)
def test_texts_are_in_the_order_of_the_numbers(first, second):
    one, other = map(float, apart(first, second))
    assert (first < second) == (one < other)
    assert one == pytest.approx(first, rel=1e-5)
