"""Newton steps from far away, and multipliers that cancel."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csc_array

from aggregator.learners.error_marginals.fits import BoundedFit, Entropy, Quadratic, ascend


def draw(seed, penalty, strength, noise=0.1):
    random = np.random.default_rng(seed)
    system = random.choice([-1.0, 0.0, 1.0], (12, 50), p=[0.2, 0.6, 0.2])
    weights = random.exponential(size=50) / 50
    target = system @ (weights * random.random(50)) + noise * random.normal(size=12)
    return BoundedFit(csc_array(system), target, strength, weights, penalty)


@pytest.mark.parametrize("penalty", [Quadratic(0.5, high=1.0), Quadratic(1.0), Entropy()])
@pytest.mark.parametrize("strength", [1e-2, 1.0, 1e6])
def test_steps_end_at_the_same_point_from_anywhere(penalty, strength):
    for seed in range(3):
        fit = draw(seed, penalty, strength)
        here = ascend(fit, np.zeros(12), 50)
        far = ascend(fit, 100 * np.random.default_rng(seed).normal(size=12), 100)
        assert max(here.residual, far.residual) <= 1e-13 * fit.scale
        np.testing.assert_allclose(penalty.unknowns(here.arguments), penalty.unknowns(far.arguments), atol=1e-10)


def test_no_steps_report_the_residual_of_the_start():
    fit = draw(0, Entropy(), 0.1)
    start = np.arange(12.0)
    found = ascend(fit, start, 0)
    np.testing.assert_allclose(found.arguments, fit.system.T @ start, atol=1e-13)
    assert found.residual == pytest.approx(
        np.linalg.norm(fit.residual(start, Entropy().unknowns(fit.system.T @ start)))
    )


def test_arguments_are_accurate_where_large_multipliers_cancel():
    """Two equal equations with targets that differ: their multipliers are near plus and minus 0.5 / rho."""
    weights, strength = np.array([0.25, 0.75]), 1e-9
    system = csc_array(np.array([[1.0, 1.0], [1.0, 1.0]]))
    fit = BoundedFit(system, np.array([0.9, -0.1]), strength, weights, Quadratic(0.5, high=1.0))
    found = ascend(fit, np.zeros(2), 50)
    # Both unknowns are y with 2 y - 0.8 + rho (y - 1/2) = 0.
    expected = (0.8 + strength / 2) / (2 + strength)
    np.testing.assert_allclose(fit.penalty.unknowns(found.arguments), expected, atol=1e-14)
