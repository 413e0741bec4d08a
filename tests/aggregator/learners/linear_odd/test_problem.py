"""The risk as its minimisers see it: gradients and Hessians by finite differences, and bounds on rounding."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.learners.linear_odd.interior_point import Problem, lengths, rounding


def even(x):
    return np.hypot(1, x)


def even_slope(x):
    return x / np.hypot(1, x)


def even_curvature(x):
    return np.hypot(1, x) ** -3.0


def problem(seed, rows=12, columns=3, pulls=2, lam=0.3):
    random = np.random.default_rng(seed)
    shares = random.uniform(0.1, 1, rows)
    return Problem(
        random.normal(size=(rows, columns)), shares / shares.sum(), random.normal(size=(pulls, columns)), lam
    )


def risk(given, weights, pull):
    return given.shares @ even(given.rows @ weights) - pull @ weights + given.regularisation * weights @ weights


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 20), st.integers(1, 5), st.floats(0, 10))
def test_gradients_are_those_of_finite_differences(seed, rows, columns, lam):
    given_ = problem(seed, rows, columns, lam=lam)
    weights = np.random.default_rng(seed + 1).normal(size=(2, columns))
    found = given_.gradients(weights, even_slope(given_.scores(weights)), given_.pulls)
    for k in range(2):
        for j, step in enumerate(1e-5 * np.eye(columns)):
            above, below = (risk(given_, weights[k] + sign * step, given_.pulls[k]) for sign in (1, -1))
            assert found[k, j] == pytest.approx((above - below) / 2e-5, abs=1e-6)


def test_the_hessian_is_the_slope_of_the_gradient():
    given_, weights, step = problem(1), np.array([[0.4, -1.0, 2.0]]), 1e-6
    found = given_.hessian(even_curvature(given_.scores(weights))[0])
    for j in range(3):
        moved = [weights + sign * step * np.eye(3)[j] for sign in (1, -1)]
        above, below = (given_.gradients(w, even_slope(given_.scores(w)), given_.pulls[:1])[0] for w in moved)
        np.testing.assert_allclose(found[j], (above - below) / (2 * step), atol=1e-7)


def test_scores_and_pulls_of_many_weights_are_those_one_by_one():
    given_, weights = problem(2), np.random.default_rng(2).normal(size=(5, 4, 3))
    scores = given_.scores(weights)
    assert scores.shape == (5, 4, 12)
    np.testing.assert_allclose(scores[3, 1], given_.rows @ weights[3, 1])
    np.testing.assert_allclose(given_.pulled(scores)[3, 1], (scores[3, 1] * given_.shares) @ given_.rows)
    np.testing.assert_allclose(given_.row_norms, np.linalg.norm(given_.rows, axis=1))


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from([1e-8, 1.0, 1e8]))
def test_gradients_of_quadratics_are_no_further_from_exact_ones_than_is_said(seed, scale):
    """For the even part x², whose slopes 2x and gradients are rational."""
    given_ = problem(seed, rows=6, columns=2)
    weights = scale * np.random.default_rng(seed + 1).normal(size=(2, 2))
    slopes = 2 * given_.scores(weights)
    found = given_.gradients(weights, slopes, given_.pulls)
    allowed = given_.gradient_rounding(weights, slopes, given_.pulls, 2.0)
    rows = [[Fraction(x) for x in row] for row in given_.rows.tolist()]
    shares = [Fraction(x) for x in given_.shares.tolist()]
    lam = Fraction(given_.regularisation)
    for k in range(2):
        w, b = ([Fraction(x) for x in vector[k].tolist()] for vector in (weights, given_.pulls))
        scores = [row[0] * w[0] + row[1] * w[1] for row in rows]
        exact = [
            sum(s * 2 * score * row[j] for s, score, row in zip(shares, scores, rows, strict=True))
            - b[j]
            + 2 * lam * w[j]
            for j in range(2)
        ]
        off = sum((Fraction(x) - y) ** 2 for x, y in zip(found[k].tolist(), exact, strict=True))
        assert off <= Fraction(float(allowed[k])) ** 2
    assert (allowed <= 1e-12 * (1 + scale) * 100).all()


def test_lengths_are_euclidean_and_rounding_grows_with_what_is_added():
    np.testing.assert_array_equal(lengths(np.array([[3.0, 4.0], [0.0, 0.0]])), [5.0, 0.0])
    assert rounding(0.0) == 0
    assert 2**-52 < rounding(1.0) < 1e-14
    assert rounding(8.0) == 8 * rounding(1.0)
