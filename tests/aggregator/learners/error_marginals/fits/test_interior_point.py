"""Interior points against the exact solution that Newton's method finds, and strengths at which it does not settle."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csc_array

from aggregator.learners.error_marginals.fits import BoundedFit, Entropy, Quadratic, ascend, multipliers

PENALTIES = [Quadratic(0.5, high=1.0), Quadratic(1.0), Entropy()]


def draw(seed, penalty, strength, rows=80):
    """A target that no unknowns meet, with equations of which the last repeats the first."""
    random = np.random.default_rng(seed)
    system = random.choice([-1.0, 1.0], (10, rows))
    system[-1] = system[0]
    weights = random.exponential(size=rows) / rows
    target = system @ (weights * random.random(rows)) + 0.3 * random.normal(size=10)
    return BoundedFit(csc_array(system), target, strength, weights, penalty)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("strength", [1e-2, 1.0, 100.0])
def test_multipliers_are_close_to_those_of_the_minimum(penalty, strength):
    fit = draw(1, penalty, strength)
    exact = ascend(fit, np.zeros(10), 100)
    assert exact.residual <= 1e-13 * fit.scale
    found = penalty.unknowns(fit.columns @ multipliers(fit))
    np.testing.assert_allclose(found, penalty.unknowns(exact.arguments), atol=1e-4)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("strength", [1e-6, 1e-9])
def test_newton_steps_from_them_settle_at_tiny_strengths(penalty, strength):
    for seed in range(4):
        fit = draw(seed, penalty, strength)
        assert ascend(fit, multipliers(fit), 20).residual <= 1e-12 * fit.scale


def test_newton_steps_alone_do_not():
    fits = [draw(seed, Quadratic(0.5, high=1.0), 1e-9) for seed in range(4)]
    assert max(ascend(fit, np.zeros(10), 15).residual / fit.scale for fit in fits) > 1e-6
