"""Products of bounded fits against dense matrices, penalties against their conjugates, and nearly singular systems."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csc_array

from aggregator.learners.error_marginals import fits as bounded_fits
from aggregator.learners.error_marginals.fits import BoundedFit, Entropy, Quadratic, definite_solver


def draw(equations, rows, penalty=Entropy()):  # noqa: B008
    random = np.random.default_rng(equations)
    system = csc_array(random.choice([-1.0, 0.0, 1.0], (equations, rows), p=[0.1, 0.8, 0.1]))
    weights = random.exponential(size=rows) * (random.random(rows) < 0.8)
    return BoundedFit(system, random.normal(size=equations), 0.3, weights, penalty)


@pytest.mark.parametrize("equations", [5, 300])
def test_grams_are_those_of_dense_matrices(equations, monkeypatch):
    monkeypatch.setattr(bounded_fits, "_ENTRIES", 40)
    fit = draw(equations, 60)
    curvatures = np.random.default_rng(0).random(60)
    dense = fit.system.toarray()
    expected = (dense * (fit.weights * curvatures)) @ dense.T
    np.testing.assert_allclose(fit.gram(curvatures), expected, atol=1e-14)
    monkeypatch.setattr(bounded_fits, "_DENSE", 1e9 if equations > 8 * fit.longest else 0)
    np.testing.assert_allclose(fit.gram(curvatures), expected, atol=1e-14)
    np.testing.assert_array_equal(fit.gram(np.zeros(60)), 0)


@pytest.mark.parametrize("penalty", [Entropy(), Quadratic(1.0)])
def test_the_residual_is_the_gradient_of_the_dual(penalty):
    fit = draw(5, 30, penalty)
    multipliers, width = np.random.default_rng(1).normal(size=5), 1e-6

    def dual(m):
        t = fit.system.T @ m
        y = penalty.unknowns(t)
        value = (
            (y - 1) ** 2 / 2 if isinstance(penalty, Quadratic) else np.log(2) + y * np.log(y) + (1 - y) * np.log1p(-y)
        )
        return fit.strength * m @ m / 2 - fit.target @ m + fit.weights @ (t * y - value)

    expected = [(dual(multipliers + e) - dual(multipliers - e)) / (2 * width) for e in width * np.eye(5)]
    found = fit.residual(multipliers, penalty.unknowns(fit.columns @ multipliers))
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_unknowns_of_weight_0_are_left_out():
    fit = draw(5, 30)
    part = fit.of_positive_weight()
    assert 0 < len(part.weights) < 30
    np.testing.assert_array_equal(part.system.toarray(), fit.system.toarray()[:, fit.weights > 0])
    assert part.scale == pytest.approx(fit.scale)
    assert part.of_positive_weight() is part


def test_definite_systems_are_solved_and_singular_ones_nearly():
    factor = np.random.default_rng(2).normal(size=(6, 4))
    solution = definite_solver(factor @ factor.T, 0.5)(np.arange(6.0))
    np.testing.assert_allclose(factor @ (factor.T @ solution) + 0.5 * solution, np.arange(6.0), atol=1e-12)
    vector = factor @ np.ones(4)
    solution = definite_solver(factor @ factor.T, 1e-300)(vector)
    np.testing.assert_allclose(factor @ (factor.T @ solution), vector, rtol=1e-6)
    for endless in (np.full((2, 2), np.inf), np.array([[1.0, np.nan], [np.nan, 1.0]])):
        assert np.isnan(definite_solver(endless, 1.0)(np.ones(2))).all()


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
