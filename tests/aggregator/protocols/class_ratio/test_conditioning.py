"""Diagnostics against numpy's singular values and the spec's own arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from support.mixtures import Mixtures, skewed

from aggregator.learners.class_ratios.class_means import ClassMeans, EnergyMeans
from aggregator.learners.class_ratios.kernel_means import MMD
from aggregator.protocols.class_ratio.options import conditioning, published_bound, separation
from federation.contract.errors import InputError

WORLD = Mixtures(3)


def test_conditioning_is_that_of_the_proportions():
    found = conditioning(skewed(3, 0.1))
    assert found == {"smallest singular value": pytest.approx(0.7), "condition number": pytest.approx(1 / 0.7)}
    assert conditioning(skewed(3, 0.1)[:2]) == {"smallest singular value": 0.0, "condition number": math.inf}
    assert conditioning(np.full((4, 2), 0.5))["smallest singular value"] < 1e-9


def test_separation_is_that_of_class_means_about_their_centre():
    shares = np.concatenate([skewed(3, 0.1)] * 2)
    bags = WORLD.bags(shares, 50, np.random.default_rng(0))
    estimator = ClassMeans("linear", debiased=False).fit(bags, shares)
    means = np.linalg.lstsq(shares, np.stack([bag.mean(axis=0) for bag in bags]), rcond=None)[0]
    values = np.linalg.svd(means - means.mean(axis=0), compute_uv=False)
    found = separation(estimator)
    assert found["smallest singular value"] == pytest.approx(values[1])
    assert found["condition number"] == pytest.approx(values[0] / values[1])


def test_classes_that_look_the_same_are_not_separated():
    shares, rng = skewed(2, 0.1), np.random.default_rng(1)
    bags = [rng.normal(size=(200, 3)) for _ in shares]
    apart = Mixtures(2).bags(shares, 200, rng)
    for estimator in (ClassMeans("linear"), EnergyMeans()):
        same = separation(estimator.fit(bags, shares))["smallest singular value"]
        assert same < 0.3 * separation(estimator.fit(apart, shares))["smallest singular value"]


def test_the_bound_is_the_corrected_theorem():
    shares = skewed(3, 0.1)
    bags = WORLD.bags(shares, 100, np.random.default_rng(2))
    estimator = MMD("linear").fit(bags, shares)
    found = published_bound(estimator, target_size=400, failure=0.1)
    matrix = np.stack([bag.mean(axis=0) for bag in bags])
    smallest = np.linalg.svd(matrix, compute_uv=False)[-1]

    def confidence(rows):
        return 2 / math.sqrt(rows) + math.sqrt(math.log(2 * (2 * 3 + 1) / 0.1) / (2 * rows))

    of_bags = math.sqrt(3 * confidence(100) ** 2)
    q = np.linalg.norm(shares, 2) / smallest
    assert found.smallest == pytest.approx(smallest)
    assert found.q == pytest.approx(q)
    assert found.bound == pytest.approx(of_bags / smallest + q * (of_bags / smallest + confidence(400)))
    larger = published_bound(MMD("linear").fit([np.repeat(bag, 100, axis=0) for bag in bags], shares), 40_000, 0.1)
    assert larger.bound == pytest.approx(found.bound / 10)


def test_with_more_bags_than_classes_the_bound_is_infinite():
    shares = np.concatenate([skewed(3, 0.1)] * 2)
    found = published_bound(MMD("linear").fit(WORLD.bags(shares, 30, np.random.default_rng(3)), shares), 100)
    assert found.bound == found.q == math.inf
    assert found.smallest == 0


def test_they_need_fitted_estimators_and_sensible_numbers():
    with pytest.raises(NotFittedError):
        separation(ClassMeans())
    with pytest.raises(NotFittedError):
        published_bound(MMD(), 10)
    fitted = MMD("linear").fit(WORLD.bags(skewed(3, 0.1), 30, np.random.default_rng(4)), skewed(3, 0.1))
    for size, failure in ((0, 0.05), (10, 0.0), (10, 1.0)):
        with pytest.raises(InputError, match="target_size must be"):
            published_bound(fitted, size, failure)
