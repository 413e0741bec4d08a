"""Values, parts and slopes of the losses against the formulas of Patrini et al. 2015, Table 1."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.learners.linear_odd.catalogue import loss

MARGINS = np.concatenate([-np.geomspace(1e-8, 1e8, 60), [0.0], np.geomspace(1e-8, 1e8, 60)])

# name: value, even part, a
TABLE = {
    "logistic": (lambda x: np.logaddexp(0, -x), lambda x: np.logaddexp(x / 2, -x / 2), 1),
    "square": (lambda x: (1 - x) ** 2, lambda x: 1 + x**2, 4),
    "matsushita": (
        lambda x: np.where(x > 0, 1 / (np.hypot(1, x) + np.abs(x)), np.hypot(1, x) - x),
        lambda x: np.hypot(1, x),
        2,
    ),
    "rho": (lambda x: 2 * np.maximum(-x, 0) + 1, lambda x: np.abs(x) + 1, 2),
    "linear": (lambda x: -x, lambda x: 0 * x, 2),
    "unhinged": (lambda x: 1 - x, lambda x: 0 * x + 1, 2),
    "perceptron": (lambda x: np.maximum(-x, 0), lambda x: np.abs(x) / 2, 1),
    "double_hinge": (
        lambda x: np.maximum(-x, np.maximum(0, 1 - x) / 2),
        lambda x: np.maximum(1, np.abs(x)) / 2,
        1,
    ),
}
UNBOUNDED_SLOPE = {"square"}


@pytest.mark.parametrize("name", TABLE)
def test_values_and_parts_are_those_of_the_table(name):
    value, even, slope = TABLE[name]
    found = loss(name)
    assert found.slope == slope
    assert found.bounded_slope == (name not in UNBOUNDED_SLOPE)
    np.testing.assert_allclose(found.value(MARGINS), value(MARGINS), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(found.even(MARGINS), even(MARGINS), rtol=1e-14)


@pytest.mark.parametrize("name", TABLE)
@given(st.floats(-1e8, 1e8))
def test_a_loss_is_its_even_part_plus_a_linear_odd_part(name, margin):
    found, x = loss(name), np.array([margin])
    scale = 1 + np.abs(found.value(x)) + np.abs(found.value(-x))
    assert np.abs(found.value(x) - found.value(-x) + found.slope * x) <= 1e-12 * scale
    assert np.abs(found.even(x) - found.slope / 2 * x - found.value(x)) <= 1e-12 * scale
    assert found.even(x) == found.even(-x)


@pytest.mark.parametrize("name", TABLE)
def test_the_mean_operator_is_sufficient(name):
    """Patrini et al. 2015, Theorem 3: the empirical risk from margins y <w, x>, and from mu."""
    rng = np.random.default_rng(1)
    rows, signs, weights = rng.normal(size=(40, 3)), rng.choice([-1, 1], 40), rng.normal(size=3)
    found = loss(name)
    mu = signs @ rows / 40
    direct = found.value(signs * (rows @ weights)).mean()
    assert abs(direct - (found.even(rows @ weights).mean() - found.slope / 2 * weights @ mu)) < 1e-12


@pytest.mark.parametrize("rho", [0.2, 3.0])
def test_rho_scales_the_slope(rho):
    found, x = loss("rho", rho=rho), np.linspace(-3, 3, 13)
    np.testing.assert_allclose(found.value(x), rho * np.abs(x) - rho * x + 1, atol=1e-15)
    assert found.slope == 2 * rho
