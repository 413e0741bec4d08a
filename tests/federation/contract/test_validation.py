"""What is a number, how a refusal shows it, and how many digits tell two of them apart."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.contract.validation import apart, is_number, quoted_value, required, shown, typed


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
    with pytest.raises(InputError, match=r"share.*0.*1"):
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
@settings(derandomize=True)
def test_texts_are_in_the_order_of_the_numbers(first, second):
    one, other = map(float, apart(first, second))
    assert (first < second) == (one < other)
    assert one == pytest.approx(first, rel=1e-5)


@pytest.mark.parametrize(
    ("hint", "value", "found"),
    [
        (float, 1, 1.0),
        (float | None, None, None),
        (int | None, 4, 4),
        (tuple[float, ...], [], ()),
        (tuple[int, ...], [1, 2], (1, 2)),
        (tuple[float, int], [3, 4], (3.0, 4)),
        *((Literal["a", 1], value, value) for value in ("a", 1)),
        (Mapping[str, float], {"epsilon": 1}, {"epsilon": 1.0}),
        (Mapping[str, Any], {"a": [1]}, {"a": [1]}),
        (Any, [1], [1]),
    ],
)
def test_a_value_of_the_declared_type_is_taken(hint, value, found):
    taken = typed(hint, value, "x")
    assert repr(taken) == repr(found)  # whose numbers are of one type, too


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        *((int, value) for value in (True, 1.0, "3", None, [3])),
        *((bool, value) for value in (1, 0.0, "true", None)),
        *((str, value) for value in (1, None, ["x"])),
        *((float, value) for value in (math.nan, math.inf, -math.inf, 10**400, "1", True, None, [0.5])),
        *((tuple[float, int], value) for value in ([1.0], [1.0, 2, 3], [1.0, 2.0], [True, 2], [math.inf, 2], "12")),
        *((tuple[int, ...], value) for value in ([1, "2"], "12", [1, None], {"0": 1}, 1)),
        *((Literal["a", 1], value) for value in ("c", "A", "", 1.0, 4, None, True)),
        *((Mapping[str, float], value) for value in ({"epsilon": "1"}, {1: 1.0}, [1.0], "{}", None)),
        *((int | None, value) for value in ("1", 1.0, False)),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(hint, value):
    with pytest.raises(TypeError, match="part"):
        typed(hint, value, "part")
    with pytest.raises(TypeError, match="100"):  # more digits than Python writes
        typed(str, 10**5000, "name")
    assert quoted_value("x" * 1000) == repr("x" * 1000)[:100]
