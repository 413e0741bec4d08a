"""Scales that the samplers take, and the search for the smallest integer that is enough."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.mechanisms.noise.mechanism import first, first_between, require_scale


@given(st.integers(0, 2**40), st.integers(1, 2**20))
@settings(derandomize=True, deadline=None)
def test_the_first_that_is_enough_is_found_from_below_and_between(low: int, distance: int) -> None:
    wanted = low + distance
    assert first(lambda n: n >= wanted, low) == wanted
    assert first_between(lambda n: n >= wanted, low, wanted + 7) == wanted
    assert first_between(lambda n: False, low, wanted) == wanted  # the upper end is taken to be enough


@pytest.mark.parametrize("scale", [0, -1, 2**40 + 1, 0.5, Fraction(1, 2**41)])
def test_scales_beyond_the_samplers_are_refused(scale: float) -> None:
    with pytest.raises(InputError, match="sigma must be an integer from 1 to 2\\^40 grid units"):
        require_scale("sigma", scale)


def test_rational_scales_pass() -> None:
    for scale in (1, 2**40, Fraction(3, 2**20)):
        require_scale("scale", scale)
