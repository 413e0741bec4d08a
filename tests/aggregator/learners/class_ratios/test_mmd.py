"""The published estimator against its formulas, written down naively."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist, pdist
from support.mixtures import Mixtures, skewed

from aggregator.learners.class_ratios.class_means import ClassMeans
from aggregator.learners.class_ratios.kernel_means import MMD
from federation.numerics import simplex

WORLD = Mixtures(3)


def naive(bags, shares, rows, gamma):
    """Proj(P'alpha) with alpha from minimising |sum alpha_i phi_i - phi_U|^2 numerically, over all pairs of rows."""

    def mean(x, y):
        return np.exp(-gamma * cdist(x, y, "sqeuclidean")).mean()

    gram = np.array([[mean(one, other) for other in bags] for one in bags])
    cross = np.array([mean(one, rows) for one in bags])
    alpha = minimize(
        lambda a: a @ gram @ a - 2 * cross @ a,
        np.zeros(len(bags)),
        jac=lambda a: 2 * (gram @ a - cross),
        method="trust-exact",
        hess=lambda a: 2 * gram,
        options={"gtol": 1e-12},
    ).x
    return simplex.project(shares.T @ alpha)


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("bandwidth", [0.5, 1.0, 2.0])
def test_it_is_the_published_formula(copies, bandwidth):
    rng = np.random.default_rng(copies)
    shares = np.concatenate([skewed(3, 0.1)] * copies)
    bags = WORLD.bags(shares, 40, rng)
    rows = WORLD.rows([0.2, 0.2, 0.6], 50, rng)
    gamma = bandwidth / np.median(pdist(np.concatenate(bags), "sqeuclidean"))
    found = MMD("exact", bandwidth).fit(bags, shares).predict(rows)
    assert found == pytest.approx(naive(bags, shares, rows, gamma), abs=1e-4)


def test_it_equals_class_means_for_as_many_bags_as_classes_inside_the_simplex():
    """Both are exact there when the set's mean is a mixture of the bags' means, sampling errors and all."""
    rng = np.random.default_rng(5)
    shares = skewed(3, 0.1)
    bags = WORLD.bags(shares, 30, rng)
    mixture = np.concatenate([bags[0], bags[0], bags[1], bags[2]])
    for kernel in ("exact", "fourier", "linear"):
        published = MMD(kernel, 1.0).fit(bags, shares)
        ours = ClassMeans(kernel, 1.0, debiased=False).fit(bags, shares)
        expected = (2 * shares[0] + shares[1] + shares[2]) / 4
        assert published.predict(mixture) == pytest.approx(expected, abs=1e-6)
        assert ours.predict(mixture) == pytest.approx(expected, abs=1e-6)


def test_with_more_bags_than_classes_it_follows_sampling_errors_that_class_means_average():
    rng = np.random.default_rng(6)
    shares = np.concatenate([skewed(3, 0.1)] * 10)
    ratios, errors = np.array([0.6, 0.3, 0.1]), {"mmd": [], "class_means": []}
    for _ in range(8):
        bags = WORLD.bags(shares, 10, rng)
        rows = WORLD.rows(ratios, 200, rng)
        for estimator in (MMD("fourier", 1.0), ClassMeans("fourier", 1.0)):
            errors[estimator.name].append(np.abs(estimator.fit(bags, shares).predict(rows) - ratios).sum())
    assert np.mean(errors["class_means"]) < 0.8 * np.mean(errors["mmd"])


def test_noisy_proportions_are_projected():
    released = np.array([[1.2, -0.1, -0.1], [0.0, 0.7, 0.3], [-0.2, 0.1, 1.1]])
    bags = WORLD.bags(np.eye(3), 30, np.random.default_rng(7))
    known = np.tile(0.04 * (np.eye(3) - 1 / 3), (3, 1, 1))
    one = MMD("linear").fit(bags, released, known)
    other = MMD("linear").fit(bags, simplex.project(released))
    assert one.operator_ == pytest.approx(other.operator_)
