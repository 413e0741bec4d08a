"""Lengths that are tried next: between those known to be too short and too long, and near the root."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parties.training.elimination import further

numbers = st.floats(0.01, 100)


@given(st.floats(-3, 8), numbers, numbers)
def test_it_closes_in_on_the_root_of_any_slope_that_rises(root, steepness, bend):
    """Slopes that flatten out on both sides: tanh(bend (t - 10^root)) and a little more."""
    wanted = 10.0**root

    def slope(t):
        return steepness * (np.tanh(bend * (t - wanted)) + 1e-3 * (t - wanted))

    t, low, high = np.ones(1), np.zeros(1), np.full(1, np.inf)
    for _ in range(200):
        if abs(slope(t)) <= 1e-9 * steepness or high - low < 1e-9 * wanted:
            break
        curvature = steepness * (bend * (1 - np.tanh(bend * (t - wanted)) ** 2) + 1e-3)
        longer, low, high = further(t, slope(t), curvature, low, high)
        assert low <= wanted * (1 + 1e-9)
        assert high >= wanted * (1 - 1e-9)
        assert low <= longer <= min(high, 4 * t)
        t = longer
    assert t == pytest.approx(wanted, rel=1e-6, abs=2e-6 / min(1, bend))


def test_a_newton_step_on_a_straight_slope_is_exact():
    lengths, slopes, curvatures = np.array([1.0, 1.0, 2.0]), np.array([-1.0, 1.0, -1.0]), np.array([0.5, 2.0, 4.0])
    tried, low, high = further(lengths, slopes, curvatures, np.zeros(3), np.full(3, np.inf))
    np.testing.assert_allclose(tried, [3.0, 0.5, 2.25])
    np.testing.assert_array_equal(low, [1.0, 0.0, 2.0])
    np.testing.assert_array_equal(high, [np.inf, 1.0, np.inf])


def test_a_step_out_of_what_is_known_is_halved_and_none_is_longer_than_fourfold():
    lengths, slopes, curvatures = np.array([4.0, 1.0]), np.array([1.0, -1.0]), np.array([0.1, 1e-3])
    tried, _, _ = further(lengths, slopes, curvatures, np.array([2.0, 0.0]), np.full(2, np.inf))
    np.testing.assert_allclose(tried, [3.0, 4.0])
