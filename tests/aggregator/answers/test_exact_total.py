"""Sums that do not depend on the order: against rational arithmetic, in any groups and any order."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from aggregator.collectors.labels import ExactTotal

NUMBERS = st.floats(-(2.0**160), 2.0**160)


def total(*groups):
    found = ExactTotal(groups[0].shape[1:])
    for group in groups:
        found.add(group)
    return found.value


def exact(column):
    """The sum in rational arithmetic, rounded once."""
    return float(sum(map(Fraction, column), Fraction(0)))


@given(arrays(np.float64, (7, 2), elements=NUMBERS), st.permutations(range(7)), st.integers(1, 6))
def test_any_order_in_any_groups_has_the_same_bits_and_these_are_right(values, order, cut):
    found = total(values)
    shuffled = values[np.array(order)]
    assert total(shuffled[:cut], shuffled[cut:]).tobytes() == found.tobytes()
    assert total(*(one[None] for one in shuffled)).tobytes() == found.tobytes()
    np.testing.assert_allclose(found, [exact(column) for column in values.T], rtol=1e-15, atol=2.0**-950)


def test_what_cancels_leaves_what_was_small():
    random = np.random.default_rng(1)
    large, small = random.normal(size=(500, 3)) * 1e30, random.normal(size=(40, 3))
    found = total(large, small, -large[::-1])
    np.testing.assert_allclose(found, [exact(column) for column in small.T], rtol=1e-15)
    assert np.abs((large.sum(axis=0) + small.sum(axis=0)) - large.sum(axis=0) - found).max() > 1  # others lose it


@pytest.mark.parametrize("values", [np.zeros((0, 2)), np.zeros((3, 2)), np.full((2, 2), -0.0)])
def test_nothing_adds_up_to_zero(values):
    assert total(values).tobytes() == np.zeros(2).tobytes()


def test_many_arrays_take_the_memory_of_a_few():
    found = ExactTotal((5,))
    random = np.random.default_rng(2)
    for _ in range(200):
        found.add(random.normal(size=(100, 5)))
    assert len(found._places) <= 5


def test_a_number_of_no_arrays_has_no_shape():
    assert total(np.array([1.5, 2.25])) == 3.75
