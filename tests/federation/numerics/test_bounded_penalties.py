"""Penalties and their conjugates: each is the derivative or the inverse of the other."""

from __future__ import annotations

import numpy as np
import pytest

from aggregator.learners.error_marginals.fits.bounded_fits import Entropy, Quadratic

PENALTIES = [Quadratic(0.5, high=1.0), Quadratic(1.0), Quadratic(-2.0, -3.0, 5.0), Entropy()]


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_conjugate_slope_inverts_the_gradient(penalty):
    arguments = np.linspace(-0.45, 0.45, 13)
    found = penalty.unknowns(arguments)
    np.testing.assert_allclose(penalty.gradient(found - penalty.low, penalty.high - found), arguments, atol=1e-14)
    assert penalty.unknowns(np.zeros(1)) == penalty.centre


@pytest.mark.parametrize("penalty", PENALTIES)
def test_slopes_and_curvatures_are_derivatives_and_each_the_inverse_of_the_other(penalty):
    arguments, width = np.linspace(-0.45, 0.45, 13), 1e-6
    rise = (penalty.unknowns(arguments + width) - penalty.unknowns(arguments - width)) / (2 * width)
    np.testing.assert_allclose(penalty.slopes(arguments), rise, rtol=1e-8)
    found = penalty.unknowns(arguments)
    curvature = penalty.curvature(found - penalty.low, penalty.high - found)
    np.testing.assert_allclose(curvature * penalty.slopes(arguments), 1, rtol=1e-12)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_unknowns_stay_in_their_interval(penalty):
    found = penalty.unknowns(np.array([-1e9, -50.0, 50.0, 1e9]))
    assert penalty.low <= found.min() < found.max() <= penalty.high
    assert penalty.slopes(np.array([-1e9, 1e9])).tolist() == [0, np.isinf(penalty.high)]


def test_entropy_is_accurate_next_to_its_bounds():
    below, above = np.array([1e-200, 1.0]), np.array([1.0, 1e-200])
    np.testing.assert_allclose(Entropy().gradient(below, above), [-200 * np.log(10), 200 * np.log(10)])
    assert (Entropy().slopes(np.array([-460.0, 460.0])) > 0).all()
