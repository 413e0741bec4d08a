"""The search for the smallest scale on its dyadic grid."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.mechanisms.counts.additive import smallest_scale


@given(st.floats(1e-5, 1e9), st.floats(0.01, 100))
@settings(derandomize=True, deadline=None, max_examples=200)
def test_it_is_the_smallest_on_a_fine_grid_wherever_the_search_starts(wanted: float, off: float) -> None:
    near = wanted * off
    scale = smallest_scale(lambda scale: scale >= wanted, near)
    step = max(near * 2**-19, 2**-40, 1.0 if near >= 2**20 else 0.0)
    assert wanted <= scale < wanted + step * (1 + 1e-9)
    assert scale == Fraction(float(scale))  # JSON keeps it


@pytest.mark.parametrize("near", [0.0, 1e-30, 2.0**-39, 0.3, 1.0, 2.0**30])
def test_no_scale_is_zero_and_none_is_tried(near: float) -> None:
    """Where any noise is enough, as where near is 0, the grid is as fine as it may be."""

    def enough(scale: Fraction) -> bool:
        assert scale > 0
        return True

    scale = smallest_scale(enough, near)
    assert scale > 0
    if near < 2.0**-21:
        assert scale == Fraction(1, 2**40)


def test_the_next_smaller_scale_is_not_enough() -> None:
    tried: dict[Fraction, bool] = {}

    def enough(scale: Fraction) -> bool:
        tried[scale] = scale * scale >= 2
        return tried[scale]

    scale = smallest_scale(enough, 1.0)
    assert tried[scale]
    assert max(failed for failed, served in tried.items() if not served) == scale - Fraction(1, 2**19)


def test_integers_and_simple_fractions_are_hit_exactly() -> None:
    assert smallest_scale(lambda scale: scale * Fraction(0.05) >= 2, 39.0) == 40
    assert smallest_scale(lambda scale: scale >= Fraction(3, 8), 0.4) == Fraction(3, 8)


@pytest.mark.parametrize("near", [1e12, float("inf"), float("nan")])
def test_noise_beyond_the_samplers_is_refused(near: float) -> None:
    with pytest.raises(InputError, match="choose a larger epsilon"):
        smallest_scale(lambda scale: True, near)
