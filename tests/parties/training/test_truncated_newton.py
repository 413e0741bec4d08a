"""The batched Newton method: what its precision, its packing and its limits may and may not change."""

from __future__ import annotations

import numpy as np
import pytest

from federation.numerics.label_losses import Logistic, Softmax
from parties.training import batched as truncated_newton
from parties.training.batched import minimise_many


def problem(classes, parties=20, n=12, d=5, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(parties, n, d)) * rng.uniform(0.1, 3, parties)[:, None, None]
    members = (rng.integers(0, classes, (parties, 1, n)) == np.arange(classes)[:, None]).astype(float)
    return rows, members[:, 1:] if classes == 2 else members, Logistic() if classes == 2 else Softmax()


def gradient_norms(rows, members, link, regularisation, weights):
    residuals = link.probabilities(weights @ rows.transpose(0, 2, 1)) - members
    return np.linalg.norm(residuals @ rows / rows.shape[1] + regularisation * weights, axis=(1, 2))


def solve(rows, members, link, regularisation=1e-4, target=1e-10):
    counts, targets = np.full(len(rows), rows.shape[1]), np.full(len(rows), target)
    return minimise_many(rows, members, counts, link, regularisation, targets)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("single_steps", [0, 2, 20])
def test_either_precision_reaches_the_minimiser(classes, single_steps, monkeypatch):
    monkeypatch.setattr(truncated_newton, "_SINGLE_STEPS", single_steps)
    rows, members, link = problem(classes)
    assert gradient_norms(rows, members, link, 1e-4, solve(rows, members, link)).max() < 2e-10


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_packing_changes_no_bit(classes, share, monkeypatch):
    rows, members, link = problem(classes)
    expected = solve(rows, members, link)
    monkeypatch.setattr(truncated_newton, "LIVE_SHARE", share)
    np.testing.assert_array_equal(solve(rows, members, link), expected)


def test_double_precision_takes_over_where_single_precision_stalls(monkeypatch):
    rows, members, link = problem(4, n=30, d=10)
    rows[:, :, 0] = 1e5
    weights = solve(rows, members, link, 1e-4, 1e-6)
    assert gradient_norms(rows, members, link, 1e-4, weights).max() < 2e-6
    monkeypatch.setattr(truncated_newton, "_SINGLE_STEPS", truncated_newton.NEWTON_STEPS)
    weights = solve(rows, members, link, 1e-4, 1e-6)
    assert gradient_norms(rows, members, link, 1e-4, weights).max() > 1e-5


def test_rows_of_zeros_change_nothing():
    rows, members, link = problem(3)
    expected = solve(rows, members, link)
    filled = np.concatenate([rows, np.zeros((20, 3, 5))], axis=1)
    longer = np.concatenate([members, np.zeros((20, 3, 3))], axis=2)
    found = minimise_many(filled, longer, np.full(20, 12), link, 1e-4, np.full(20, 1e-10))
    np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("n", [3, 12, 30])
def test_inner_products_give_the_same_minimisers(classes, n):
    """Against scikit-learn in `test_batched`."""
    rows, members, link = problem(classes, n=n, d=40)
    products = rows @ rows.transpose(0, 2, 1)
    counts, targets = np.full(len(rows), n), np.full(len(rows), 1e-10)
    found = minimise_many(products, members, counts, link, 1e-3, targets, gram=True) @ rows
    assert gradient_norms(rows, members, link, 1e-3, found).max() < 2e-10
    np.testing.assert_allclose(found, solve(rows, members, link, 1e-3), atol=1e-6)


def test_parties_that_cannot_finish_are_returned_and_hold_nobody_up(monkeypatch):
    rows, members, link = problem(2)
    expected = solve(rows, members, link)
    rows[3] = np.nan
    found = solve(rows, members, link)
    others = np.arange(20) != 3
    np.testing.assert_array_equal(found[others], expected[others])
    monkeypatch.setattr(truncated_newton, "NEWTON_STEPS", 2)
    unfinished = solve(*problem(2))
    assert np.isfinite(unfinished).all()
    assert gradient_norms(*problem(2), 1e-4, unfinished).max() > 1e-10


@pytest.mark.parametrize(("weight", "direction"), [(0.0, 1.0), (0.0, 0.01), (30.0, -1e4), (-5.0, 1e3)])
def test_the_search_ends_where_the_slope_has_halved(weight, direction):
    """On one separable row: full, much too short and much too long Newton steps."""
    link, lam, one = Logistic(), 1e-3, np.ones((1, 1, 1))
    problem = truncated_newton._Problem(link, lam, gram=False)
    scores = weight * one
    batch = truncated_newton._Batch(
        *(np.zeros(1, dtype=int), one, one * (direction > 0), np.ones(1), np.zeros(1), weight * one, scores),
        *(link.probabilities(scores) - (direction > 0), np.ones(1), np.ones(1, dtype=bool)),
    )

    def slope_at(length):
        moved = (weight + length * direction) * one
        return (direction * (link.probabilities(moved) - (direction > 0) + lam * moved)).item()

    gradient = batch.residuals + lam * batch.weights
    moved = truncated_newton._moved(batch, problem, gradient, direction * one)
    assert 0 < abs(slope_at((moved.weights.item() - weight) / direction)) <= abs(slope_at(0)) / 2
    assert moved.scores.item() == pytest.approx(moved.weights.item(), rel=1e-15)
    assert moved.residuals.item() == (link.probabilities(moved.scores) - (direction > 0)).item()
