"""Shrinkage against conditioning of Gaussians in the space of weights, its limits, and what must not matter."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from aggregator.learners.shrinkage import Posterior, Shrinkage, shrink
from federation.contract.errors import InputError

RANGE = (2.0, 10.0)


def world(rng, rows=60, width=3, noise=4.0, constant=True):
    """Rows, a noisy sum of rows times labels, and the covariance of the noise."""
    columns = rng.normal(size=(rows, width)) * rng.uniform(0.5, 3.0, width)
    X = np.column_stack([columns, np.ones(rows)]) if constant else columns
    y = np.clip(5.0 + columns @ rng.normal(size=width) + rng.normal(size=rows), *RANGE)
    root = noise * rng.normal(size=(X.shape[1],) * 2)
    return X, X.T @ y + root @ rng.normal(size=X.shape[1]), root @ root.T


def shrunk(X, total, noise, label_range=RANGE, **options) -> Posterior:
    return shrink(X.T @ X, total, noise, ones=X.sum(axis=0), rows=len(X), label_range=label_range, **options)


def by_conditioning(X, total, noise, label_range, grid=25, constant_shares=(1.0,)):
    """The same posterior in the space of weights, from joint Gaussians of (weights, total); rows of full rank."""
    low, high = label_range
    n, gram, inverse = len(X), X.T @ X, np.linalg.inv(X.T @ X)
    hat = X @ inverse @ X.T  # fitted values live in its range
    one = hat @ np.ones(n)
    around = hat - np.outer(one, one) / n
    columns = X - np.outer(one, X.sum(axis=0)) / n
    norms = np.linalg.norm(columns, axis=0)
    scaled = columns[:, norms > 1e-6] / norms[norms > 1e-6]
    # Of fitted values f = X w; weights are (X'X)^{-1} X'f.
    families = [n * around / np.trace(around), n * (scaled @ scaled.T) / np.trace(scaled.T @ scaled)]
    mean = (low + high) / 2 * inverse @ X.sum(axis=0)
    found = []
    for share, family in product(constant_shares, families):
        for t in (high - low) ** 2 / 4 * np.geomspace(1e-4, 1, grid):
            fitted = share * (high - low) ** 2 / 12 * np.outer(one, one) + t * family
            prior = inverse @ X.T @ fitted @ X @ inverse
            evidence = gram @ prior @ gram + noise
            gain = prior @ gram @ np.linalg.inv(evidence)
            weight = np.log(t) + multivariate_normal.logpdf(total, gram @ mean, evidence)
            found.append((weight, mean + gain @ (total - gram @ mean), prior - gain @ gram @ prior))
    shares = np.exp([weight - max(one[0] for one in found) for weight, _, _ in found])
    shares /= shares.sum()
    means = np.array([mean for _, mean, _ in found])
    weights = shares @ means
    within = np.einsum("k,kde->de", shares, np.array([covariance for _, _, covariance in found]))
    return weights, within + np.einsum("k,kd,ke->de", shares, means - weights, means - weights)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("noise", [0.1, 4.0, 60.0])
def test_it_is_conditioning_of_gaussians(rng, noise, constant):
    X, total, covariance = world(rng, noise=noise, constant=constant)
    found = shrunk(X, total, covariance)
    weights, posterior = by_conditioning(X, total, covariance, RANGE)
    np.testing.assert_allclose(found.weights, weights, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.covariance, posterior, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("noise", [0.1, 60.0])
def test_the_evidence_chooses_how_far_the_constant_may_be_from_the_middle(rng, noise):
    X, total, covariance = world(rng, noise=noise)
    shares = (1.0, 0.1, 0.01)
    known = {"ones": X.sum(axis=0), "rows": len(X), "label_range": RANGE, "constant_shares": shares}
    prepared = Shrinkage(X.T @ X, covariance, **known)
    for one in (total, X.T @ np.full(len(X), 6.0), X.T @ np.full(len(X), 9.9)):
        weights, posterior = by_conditioning(X, one, covariance, RANGE, constant_shares=shares)
        found = prepared.posterior(one)
        np.testing.assert_allclose(found.weights, weights, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(found.covariance, posterior, rtol=1e-5, atol=1e-8)
    with pytest.raises(InputError, match="total"):
        prepared.posterior(total[1:])


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.floats(1e-2, 1e3), st.integers(2, 12))
def test_it_is_conditioning_for_any_world(seed, width, noise, grid):
    X, total, covariance = world(np.random.default_rng(seed), width=width, noise=noise)
    # Noise of full rank, as theirs is: else rows of the textbook formula are singular.
    covariance = covariance + noise**2 / 10 * np.eye(len(total))
    found = shrunk(X, total, covariance, grid=grid)
    weights, posterior = by_conditioning(X, total, covariance, RANGE, grid)
    scale = np.abs(weights).max()
    np.testing.assert_allclose(found.weights, weights, rtol=1e-5, atol=1e-6 * scale)
    np.testing.assert_allclose(found.covariance, posterior, rtol=1e-4, atol=1e-6 * np.abs(posterior).max())


def test_without_noise_it_is_least_squares_and_noise_brings_predictions_closer_to_the_middle(rng):
    X, total, noise = world(rng)
    exact = np.linalg.lstsq(X, np.linalg.pinv(X.T) @ total, rcond=None)[0]
    for found in (shrunk(X, total, 0.0 * noise), shrunk(X, total, 1e-18 * noise)):
        np.testing.assert_allclose(found.weights, exact, rtol=1e-6, atol=1e-8)
        assert np.abs(found.covariance).max() < 1e-10
    noise, inverse = 1e-6 * np.eye(X.shape[1]), np.linalg.inv(X.T @ X)
    np.testing.assert_allclose(shrunk(X, total, noise).covariance, inverse @ noise @ inverse, rtol=1e-4, atol=1e-12)
    X, total, noise = world(rng)
    reach = [np.mean((X @ shrunk(X, total, factor * noise).weights - 6.0) ** 2) for factor in (1, 1e2, 1e4, 1e6)]
    assert reach == sorted(reach, reverse=True)
    assert reach[-1] < 0.05 * reach[0]
    found = shrunk(X, total, 1e14 * noise + 1e14 * np.eye(len(total)))
    np.testing.assert_allclose(X @ found.weights, 6.0, atol=1e-3)
    variance = np.mean(np.diag(X @ found.covariance @ X.T))
    assert 64 / 12 < variance < 64 / 12 + 64 / 4  # of the prior: the constant's, and what is around it


@given(st.integers(0, 2**32 - 1), st.floats(-3, 3), st.floats(-1e3, 1e3))
def test_units_of_columns_and_labels_do_not_matter(seed, magnitude, shift):
    rng = np.random.default_rng(seed)
    X, total, noise = world(rng)
    plain = shrunk(X, total, noise)
    units = 10.0 ** rng.uniform(-abs(magnitude), abs(magnitude), X.shape[1])
    scaled = shrunk(X * units, total * units, noise * np.outer(units, units))
    np.testing.assert_allclose(scaled.weights * units, plain.weights, rtol=1e-5, atol=1e-7)
    factor = 10.0**magnitude
    ends = (RANGE[0] * factor + shift, RANGE[1] * factor + shift)
    moved = shrunk(X, total * factor + shift * X.sum(axis=0), noise * factor**2, ends)
    span = RANGE[1] * factor
    np.testing.assert_allclose(X @ moved.weights, X @ plain.weights * factor + shift, atol=1e-5 * span + 1e-7)
    np.testing.assert_allclose(moved.covariance, plain.covariance * factor**2, rtol=1e-4, atol=1e-7 * factor**2)


def test_where_columns_begin_and_how_they_are_turned_does_not_matter(rng):
    X, total, noise = world(rng)
    change = np.eye(X.shape[1])
    change[-1, :-1] = [5.0, -20.0, 100.0]  # columns plus so many times the constant
    moved = shrunk(X @ change, change.T @ total, change.T @ noise @ change)
    np.testing.assert_allclose(X @ change @ moved.weights, X @ shrunk(X, total, noise).weights, rtol=1e-6)
    # Both ways to spread variance are one there.
    X = np.linalg.qr(np.column_stack([np.ones(60), rng.normal(size=(60, 3))]))[0][:, [1, 2, 3, 0]] * 60**0.5
    total, root = X.T @ (5 + X[:, 0]), rng.normal(size=(4, 4))
    turn = np.eye(4)
    turn[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    plain, turned = shrunk(X, total, root @ root.T), shrunk(X @ turn, turn.T @ total, turn.T @ root @ root.T @ turn)
    np.testing.assert_allclose(turn @ turned.weights, plain.weights, rtol=1e-8)


def test_doubled_columns_change_no_prediction_and_nearly_dependent_ones_upset_nothing(rng):
    X, _, _ = world(rng)
    y = 5 + X[:, 0]
    doubled = np.column_stack([X, 2 * X[:, 0], np.zeros(len(X))])
    found = shrunk(doubled, doubled.T @ y, np.zeros((6, 6)))
    np.testing.assert_allclose(doubled @ found.weights, y, rtol=1e-8)
    assert found.weights[-1] == 0
    assert not found.covariance[-1].any()
    X, _, _ = world(rng)
    close = np.column_stack([X[:, 0] + 1e-5 * rng.normal(size=len(X)), X])
    y = np.clip(5 + X[:, 0], *RANGE)
    total = close.T @ y + rng.normal(size=5)
    found = shrunk(close, total, np.eye(5))
    least = np.linalg.solve(close.T @ close, total)
    assert np.isfinite(found.weights).all()
    assert np.abs(found.weights).max() < 0.05 * np.abs(least).max()
    assert np.mean((close @ found.weights - y) ** 2) < 0.1


def test_a_constant_alone_is_shrunk_by_the_variance_of_a_uniform_answer_and_rows_of_zeros_have_no_weight():
    X = np.ones((50, 1))
    variance, kept = 64 / 12, 64 / 12 / (64 / 12 + 2.0)
    found = shrunk(X, np.array([450.0]), np.array([[2.0 * 50**2]]))  # a mean of 9 with noise of variance 2
    np.testing.assert_allclose(found.weights, [6 + kept * 3], rtol=1e-9)
    np.testing.assert_allclose(found.covariance, [[variance * (1 - kept)]], rtol=1e-9)
    found = shrunk(np.zeros((5, 2)), np.zeros(2), np.eye(2))
    assert not found.weights.any()
    assert not found.covariance.any()


@pytest.mark.parametrize("ends", [(-1e100, 1e100), (0.0, 1e-100)])
def test_the_widest_and_the_narrowest_range(rng, ends):
    X = np.column_stack([rng.normal(size=(20, 2)), np.ones(20)])
    y = ends[0] + (ends[1] - ends[0]) * rng.uniform(size=20)
    found = shrunk(X, X.T @ y, ((ends[1] - ends[0]) * np.eye(3)) ** 2 / 1e6, ends)
    assert np.isfinite(found.weights).all()
    assert np.isfinite(found.covariance).all()
    least = np.linalg.lstsq(X, y, rcond=None)[0]
    np.testing.assert_allclose(found.weights, least, rtol=0.05, atol=0.01 * (ends[1] - ends[0]))


@pytest.mark.parametrize(("change", "message"), [
    ({"total": np.zeros(3)}, "total"), ({"noise": np.full((4, 4), np.nan)}, "noise"),
    ({"ones": np.zeros((4, 1))}, "ones"), ({"label_range": (1.0, 1.0)}, "label_range"), ({"rows": 0}, "rows"),
    ({"grid": 1}, "2"),
])  # fmt: skip
def test_bad_input_is_named(rng, change, message):
    X, total, noise = world(rng)
    given = {"gram": X.T @ X, "total": total, "noise": noise, "ones": X.sum(axis=0), "rows": 60, "label_range": RANGE}
    with pytest.raises(InputError, match=message):
        shrink(**{**given, **change})
