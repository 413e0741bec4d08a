"""The batched Newton method: what its precision, its packing and its limits may and may not change."""

from __future__ import annotations

import numpy as np
import pytest

from federation.numerics import truncated_newton
from federation.numerics.coordinates import FeatureCoordinates, RowCoordinates
from federation.numerics.links import Logistic, Softmax
from federation.numerics.truncated_newton import minimise_many


def problem(classes, parties=20, n=12, d=5, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(parties, n, d)) * rng.uniform(0.1, 3, parties)[:, None, None]
    members = (rng.integers(0, classes, (parties, 1, n)) == np.arange(classes)[:, None]).astype(float)
    return rows, members[:, 1:] if classes == 2 else members, Logistic() if classes == 2 else Softmax()


def gradient_norms(rows, members, link, regularisation, weights):
    residuals = link.probabilities(weights @ rows.transpose(0, 2, 1)) - members
    return np.linalg.norm(residuals @ rows / rows.shape[1] + regularisation * weights, axis=(1, 2))


def solve(rows, members, link, regularisation=1e-4, target=1e-10, by_rows=False):
    coordinates = RowCoordinates(rows @ rows.transpose(0, 2, 1)) if by_rows else FeatureCoordinates(rows)
    counts, targets = np.full(len(rows), rows.shape[1]), np.full(len(rows), target)
    found = minimise_many(coordinates, link, members, counts, regularisation, targets)
    return found @ rows if by_rows else found


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize("single_steps", [0, 2, 20])
def test_every_precision_and_either_coordinates_reach_the_minimiser(classes, by_rows, single_steps, monkeypatch):
    monkeypatch.setattr(truncated_newton, "_SINGLE_STEPS", single_steps)
    rows, members, link = problem(classes)
    weights = solve(rows, members, link, by_rows=by_rows)
    assert gradient_norms(rows, members, link, 1e-4, weights).max() < 2e-10


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_packing_changes_no_bit(classes, share, monkeypatch):
    rows, members, link = problem(classes)
    expected = solve(rows, members, link)
    monkeypatch.setattr(truncated_newton, "_LIVE_SHARE", share)
    np.testing.assert_array_equal(solve(rows, members, link), expected)


def test_double_precision_takes_over_where_single_precision_stalls(monkeypatch):
    rows, members, link = problem(4, n=30, d=10)
    rows *= 10.0 ** np.linspace(-2, 2, 10)
    weights = solve(rows, members, link, 1e-2, 1e-8)
    assert gradient_norms(rows, members, link, 1e-2, weights).max() < 2e-8
    monkeypatch.setattr(truncated_newton, "_SINGLE_STEPS", truncated_newton._NEWTON_STEPS)
    weights = solve(rows, members, link, 1e-2, 1e-8)
    assert gradient_norms(rows, members, link, 1e-2, weights).max() > 2e-8


def test_rows_of_zeros_change_nothing():
    rows, members, link = problem(3)
    expected = solve(rows, members, link)
    filled = np.concatenate([rows, np.zeros((20, 3, 5))], axis=1)
    coordinates, targets = FeatureCoordinates(filled), np.full(20, 1e-10)
    longer = np.concatenate([members, np.zeros((20, 3, 3))], axis=2)
    found = minimise_many(coordinates, link, longer, np.full(20, 12), 1e-4, targets)
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_parties_that_cannot_finish_are_returned_and_hold_nobody_up(monkeypatch):
    rows, members, link = problem(2)
    expected = solve(rows, members, link)
    rows[3] = np.nan
    with np.errstate(all="ignore"):
        found = solve(rows, members, link)
    others = np.arange(20) != 3
    np.testing.assert_array_equal(found[others], expected[others])
    monkeypatch.setattr(truncated_newton, "_NEWTON_STEPS", 2)
    unfinished = solve(*problem(2))
    assert np.isfinite(unfinished).all()
    assert gradient_norms(*problem(2), 1e-4, unfinished).max() > 1e-10


def test_the_search_ends_where_the_slope_has_halved():
    """On one long separable row the Newton step is far too short, on a steep one far too long."""
    link = Logistic()
    for z, dz in ((0.0, 1.0), (30.0, -1e4)):
        scores, direction = np.array([[[z]]]), np.array([[[dz]]])
        member = np.array([[[1.0 if dz > 0 else 0.0]]])
        residuals = link.probabilities(scores) - member
        start = residuals[:, 0, 0] * dz
        zero = np.zeros(1)
        length = truncated_newton._search(
            link, scores, direction, member, residuals, np.ones(1), (start, zero, np.full(1, 1e-3)), np.array([True])
        )
        assert scores[0, 0, 0] == z + length[0] * dz
        slope = (link.probabilities(scores) - member)[0, 0, 0] * dz + length[0] * 1e-3
        assert abs(slope) <= abs(start[0]) / 2
