"""Losses with kinks: their box-constrained duals, rows on kinks, and certificates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog, lsq_linear

from aggregator.learners.linear_odd.catalogue import loss
from aggregator.learners.linear_odd.minimiser import minimise_linear_odd


def instance(seed, n=40, d=4, noise=0.3):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    moment = np.sign(rows[:, 0] + rng.normal(size=n)) @ rows / n + noise * rng.normal(size=d)
    return rows, moment


@pytest.mark.parametrize(("name", "height"), [("rho", 1.0), ("perceptron", 0.5)])
@pytest.mark.parametrize("lam", [1e-4, 1e-2, 1.0])
def test_the_dual_is_bounded_least_squares(name, height, lam):
    rows, moment = instance(0)
    found = minimise_linear_odd(loss(name), rows, moment, lam)
    dual = lsq_linear(rows.T / 40, height * moment, (-height, height), method="bvls", tol=1e-15)
    expected = (height * moment - rows.T @ dual.x / 40) / (2 * lam)
    assert found.weights.any()
    np.testing.assert_allclose(found.weights, expected, atol=1e-6 * max(1, np.linalg.norm(expected)))


@pytest.mark.parametrize("lam", [1e-4, 1e-2, 1.0])
def test_double_hinge_is_optimal(lam):
    """Slopes within the even part's subdifferential balance the gradient (Karush, Kuhn and Tucker)."""
    rows, moment = instance(1)
    found = minimise_linear_odd(loss("double_hinge"), rows, moment, lam, tolerance=1e-7)
    margins = rows @ found.weights
    at = np.abs(np.abs(margins) - 1) < 1e-5
    inside, outside = (np.abs(margins) < 1) & ~at, (np.abs(margins) > 1) & ~at
    slopes = np.where(outside, np.sign(margins) / 2, 0.0)
    rest = moment / 2 - 2 * lam * found.weights - slopes @ rows / 40
    signs = np.sign(margins[at])
    balance = linprog(
        np.r_[np.zeros(at.sum()), 1.0],
        A_ub=np.vstack([np.c_[s * (rows[at] * signs[:, None]).T / 40, -np.ones(4)] for s in (1, -1)]),
        b_ub=np.r_[rest, -rest],
        bounds=[*[(0, 0.5)] * int(at.sum()), (0, None)],
    )
    assert inside.any() or outside.any()
    assert balance.fun < 1e-6


@pytest.mark.parametrize("name", ["rho", "perceptron"])
def test_labels_themselves_leave_losses_with_their_kink_at_zero_at_zero(name):
    """Their value is least at 0, so no weights have a smaller risk than 0 for a mean operator that labels give."""
    rows, _ = instance(2)
    labels = np.sign(rows[:, 0])
    found = minimise_linear_odd(loss(name), rows, labels @ rows / 40, 1e-4)
    assert not found.weights.any()
    assert found.distance < 1e-6


@pytest.mark.parametrize("name", ["rho", "perceptron", "double_hinge"])
def test_equal_rows_and_dependent_columns(name):
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 2, size=(50, 3)).astype(float)
    rows = np.column_stack([rows, rows[:, 0]])
    moment = np.array([0.9, -0.2, 0.1, 0.9])
    found = minimise_linear_odd(loss(name), rows, moment, 1e-2)
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    merged = minimise_linear_odd(loss(name), distinct, moment, 1e-2, weights=counts)
    assert np.linalg.norm(found.weights - merged.weights) <= found.distance + merged.distance
    np.testing.assert_allclose(found.weights[0], found.weights[3], atol=1e-6)


def test_certificates_go_far_below_the_square_root_of_rounding():
    rows, moment = instance(4, n=400)
    for name in ("rho", "perceptron", "double_hinge"):
        assert minimise_linear_odd(loss(name), rows, moment, 1e-2, tolerance=1e-9).distance < 1e-7
