"""Estimators that are fitted to some of the bags: the same as fitting them oneself."""

from __future__ import annotations

import numpy as np
import pytest
from support.mixtures import Mixtures

from aggregator.learners.class_ratios.auto import Evidence, member, of_means, of_rows
from aggregator.learners.class_ratios.bag_classifier import BagClassifier
from aggregator.learners.class_ratios.class_means import ClassMeans, WhitenedMeans
from aggregator.learners.class_ratios.kernel_means import DistributionRegression

WORLD, RANDOM = Mixtures(2), np.random.default_rng(0)
SHARES = np.array([[0.1, 0.9], [0.3, 0.7], [0.6, 0.4], [0.9, 0.1], [0.5, 0.5]])
BAGS = [WORLD.rows(shares, 60, RANDOM) for shares in SHARES]
EVIDENCE = Evidence(np.full(5, 60.0), SHARES, np.tile([[0.01, -0.01], [-0.01, 0.01]], (5, 1, 1)))
KEPT, LEFT = np.array([0, 1, 3]), 2


def test_evidence_of_some_bags_is_theirs():
    evidence = Evidence(np.array([10.0, 30.0]), np.array([[1.2, -0.2], [0.0, 1.0]]), None)
    np.testing.assert_allclose(evidence.mean, [0.3, 0.7])
    assert evidence.noise_floor == 0
    some = EVIDENCE.of(KEPT)
    np.testing.assert_array_equal(some.proportions, SHARES[KEPT])
    assert some.noise.shape == (3, 2, 2)
    assert some.noise_floor == pytest.approx(2 * np.sqrt(2 / np.pi) * 0.1)


@pytest.mark.parametrize(
    ("name", "estimator"),
    [
        ("whitened", WhitenedMeans(seed=4)),
        ("regression", DistributionRegression("linear", seed=4)),
    ],
)
def test_a_candidate_of_rows_is_its_estimator_on_the_bags_kept(name, estimator):
    candidates = of_rows(BAGS, EVIDENCE, 4)
    assert list(candidates) == ["bag_classifier", "whitened", "regression", "regression_fourier"]
    fitted = candidates[name].fit(KEPT)
    some = EVIDENCE.of(KEPT)
    own = estimator.fit([BAGS[bag] for bag in KEPT], some.proportions, some.noise)
    np.testing.assert_allclose(
        candidates[name].estimate(fitted, np.array([LEFT]))[0], own.predict(BAGS[LEFT]), rtol=1e-9
    )
    np.testing.assert_allclose(fitted.predict(BAGS[LEFT]), own.predict(BAGS[LEFT]), rtol=1e-9)
    again = member(*fitted.to_arrays())
    np.testing.assert_array_equal(again.predict(BAGS[LEFT]), fitted.predict(BAGS[LEFT]))


def test_the_classifier_looks_for_its_regularisation_once():
    candidate = of_rows(BAGS, EVIDENCE, 4)["bag_classifier"]
    whole = BagClassifier(seed=4).fit(BAGS, SHARES, EVIDENCE.noise)
    np.testing.assert_array_equal(candidate.fit(np.arange(5)).predict(BAGS[LEFT]), whole.predict(BAGS[LEFT]))
    some = EVIDENCE.of(KEPT)
    own = BagClassifier(whole.regularisation_, seed=4).fit([BAGS[bag] for bag in KEPT], some.proportions, some.noise)
    np.testing.assert_array_equal(candidate.fit(KEPT).predict(BAGS[LEFT]), own.predict(BAGS[LEFT]))


def test_the_regression_on_random_features_keeps_those_of_all_bags():
    candidate = of_rows(BAGS, EVIDENCE, 4)["regression_fourier"]
    whole = DistributionRegression("fourier", seed=4).fit(BAGS, SHARES)
    np.testing.assert_array_equal(candidate.fit(np.arange(5)).predict(BAGS[1]), whole.predict(BAGS[1]))
    assert candidate.fit(KEPT).embedding_key() == whole.embedding_key()


def test_candidates_of_means_know_what_is_known_of_their_noise():
    means, variance = np.stack([bag.mean(axis=0) for bag in BAGS]), np.array([0.0, 0.1, 0.2, 0.3, 0.4])
    known = {"covariance": np.eye(6), "mean_noise": variance, "covariance_rows": 200}
    candidates = of_means(means, EVIDENCE, 0, **known)
    assert list(candidates) == ["whitened", "class_means", "regression"]
    some = {**known, "mean_noise": variance[KEPT]}
    for kind in (WhitenedMeans, ClassMeans):
        own = kind("linear").fit_means(means[KEPT], *EVIDENCE.of(KEPT), **some)
        candidate = candidates[kind.name]
        found = candidate.estimate(candidate.fit(KEPT), np.array([LEFT]))[0]
        np.testing.assert_allclose(found, own.estimate(means[LEFT]), rtol=1e-9)
    regression = candidates["regression"]
    fresh = DistributionRegression("linear").fit_means(means[KEPT], *EVIDENCE.of(KEPT))
    found = regression.estimate(regression.fit(KEPT), np.array([LEFT]))[0]
    np.testing.assert_allclose(found, fresh.estimate(means[LEFT]), rtol=1e-9)
