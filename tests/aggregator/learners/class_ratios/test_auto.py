"""The estimator that looks for drift: today's answer without it, none worse than the mean of bags with it.

Estimators that are fitted to some of the bags: the same as fitting them oneself. Folds of bags, what is said of bags
left out, and weights by it.
"""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, nnls
from support.mixtures import Mixtures

from aggregator.learners.class_ratios.auto import (
    AutoRatios,
    Candidate,
    Evidence,
    folds,
    left_out,
    left_out_of_all,
    mean_error,
    of_means,
    of_rows,
    stacked,
)
from aggregator.learners.class_ratios.bag_classifier import BagClassifier
from aggregator.learners.class_ratios.catalogue import MEAN, load, verdict
from aggregator.learners.class_ratios.class_means import ClassMeans, WhitenedMeans
from aggregator.learners.class_ratios.kernel_means import DistributionRegression
from federation.contract.errors import InputError

WORLD = Mixtures(3, distance=3.0)
SET = WORLD.rows(np.array([0.6, 0.3, 0.1]), 300, np.random.default_rng(9))


def bags_of(count, drift, seed=0, size=80, away=None):
    """Bags in drawn ratios, each moved by `drift` in a direction of its own, or along one; their exact proportions."""
    random = np.random.default_rng(seed)
    shares = np.array(
        [np.bincount(random.choice(3, size, p=random.dirichlet(np.ones(3))), minlength=3) for _ in range(count)]
    )
    moves = drift * (random.normal(size=(count, 6)) if away is None else random.normal(size=(count, 1)) * away)
    return [WORLD.rows(n / size, size, random) + move for n, move in zip(shares, moves, strict=True)], shares / size


@pytest.mark.slow
def test_bags_that_differ_in_their_ratios_alone_keep_the_answer_of_the_bag_classifier_bit_for_bit():
    for seed in range(3):
        bags, shares = bags_of(7, drift=0.0, seed=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = AutoRatios(seed=seed).fit(bags, shares)
        assert found.weights_ == {"bag_classifier": 1.0}
        assert found.warning_ is None
        own = BagClassifier(seed=seed).fit(bags, shares)
        np.testing.assert_array_equal(found.predict(SET), own.predict(SET))
        assert verdict(found.diagnostics_) == "ratios alone"
        assert found.diagnostics_["drift_p_value"] >= 0.01
        assert found.diagnostics_["error_bag_classifier"] < found.diagnostics_["error_mean_of_bags"]


@pytest.mark.slow
def test_noisy_proportions_keep_the_bag_classifier_and_bags_with_nothing_in_common_their_mean():
    random, (bags, shares) = np.random.default_rng(1), bags_of(12, drift=0.0)
    centring = np.eye(3) - 1 / 3
    noise = np.tile(0.15**2 * centring, (12, 1, 1))
    noisy = shares + 0.15 * random.normal(size=shares.shape) @ centring
    found = AutoRatios().fit(bags, noisy, noise)
    assert found.weights_ == {"bag_classifier": 1.0}
    np.testing.assert_array_equal(found.predict(SET), BagClassifier().fit(bags, noisy, noise).predict(SET))
    assert found.diagnostics_["noise_floor"] == pytest.approx(3 * np.sqrt(2 / np.pi) * 0.15 * np.sqrt(2 / 3))
    bags, shares = bags_of(6, drift=30.0, seed=1)
    with pytest.warns(UserWarning, match="in more than their ratios, and nothing predicts them better than the mean"):
        found = AutoRatios().fit(bags, shares)
    assert found.weights_ == {MEAN: 1.0}
    np.testing.assert_array_equal(found.predict(SET), found.mean_)
    np.testing.assert_allclose(found.mean_, shares.mean(axis=0))
    assert verdict(found.diagnostics_) == "nothing better than the mean"


@pytest.mark.slow
def test_what_bags_have_in_common_is_found_beside_their_drift():
    """They are far from each other in a direction that says nothing of classes; the bag classifier is lost in it."""
    away = np.linalg.svd(WORLD.means)[2][-1]
    bags, shares = bags_of(20, drift=10.0, away=away)
    with pytest.warns(UserWarning, match="in more than their ratios, so estimators are mixed"):
        found = AutoRatios().fit(bags, shares)
    told = found.diagnostics_
    assert told["drift_p_value"] < 0.01
    assert told["error_auto"] < 0.8 * min(told["error_bag_classifier"], told["error_mean_of_bags"])
    assert sum(found.weights_.values()) == pytest.approx(1)
    assert {name for name in told if name.startswith("error_")} == {
        "error_bag_classifier", "error_mean_of_bags", "error_whitened", "error_regression", "error_regression_fourier",
        "error_auto",
    }  # fmt: skip
    mixed = sum(found.weights_.get(name, 0) * one.predict(SET) for name, one in found._members.items())
    np.testing.assert_allclose(found.predict(SET), mixed + found.weights_.get(MEAN, 0.0) * found.mean_)
    assert found.predict(SET).sum() == pytest.approx(1)
    again = load(*found.to_arrays())
    json.dumps(again.to_arrays()[0])
    np.testing.assert_array_equal(again.predict(SET), found.predict(SET))
    assert again.embedding_key() == found.embedding_key()
    assert again.diagnostics_ == found.diagnostics_


@pytest.mark.parametrize(
    "shares",
    [
        np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]),  # as many bags as classes
        np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.4, 0.3, 0.3], [0.5, 0.5, 0.0]])[[0, 1, 2]],
    ],
)
def test_too_few_bags_cannot_be_checked(shares):
    bags = WORLD.bags(shares, 100, np.random.default_rng(2))
    with pytest.warns(UserWarning, match="cannot be checked with 3 bags; give at least two more"):
        found = AutoRatios().fit(bags, shares)
    np.testing.assert_array_equal(found.predict(SET), BagClassifier().fit(bags, shares).predict(SET))
    assert verdict(found.diagnostics_) == "unchecked"
    assert "drift_p_value" not in found.diagnostics_


def test_a_class_of_one_bag_alone_leaves_the_others_to_be_checked_unless_every_fold_takes_one_away():
    """Without that bag nothing can be fitted, so nothing is said of it."""
    shares = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.3, 0.2, 0.5], [0.6, 0.4, 0.0], [0.4, 0.6, 0.0]])
    bags = WORLD.bags(shares, 100, np.random.default_rng(3))
    found = AutoRatios().fit(bags, shares)
    assert found.weights_ == {"bag_classifier": 1.0}
    rest = shares[[0, 1, 3, 4]]
    means = [np.delete(shares, bag, axis=0).mean(axis=0) for bag in (0, 1, 3, 4)]
    expected = np.abs(rest - means).sum(axis=1).mean()
    assert found.diagnostics_["error_mean_of_bags"] == pytest.approx(expected)
    shares = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0]])
    bags = WORLD.bags(shares, 60, np.random.default_rng(4))
    with pytest.warns(UserWarning, match="cannot be checked"):
        found = AutoRatios().fit(bags, shares, groups=["a", "b", "b", "a"])
    assert found.weights_ == {"bag_classifier": 1.0}
    assert "drift_p_value" in found.diagnostics_  # the test needs no fold


def test_one_bag_and_equal_bags_are_refused_and_single_rows_are_checked_by_what_is_left_out_alone():
    for shares in (np.array([[0.5, 0.5]]), np.full((4, 2), 0.5)):
        bags = [np.random.default_rng(bag).normal(size=(20, 2)) for bag in range(len(shares))]
        with pytest.raises(InputError, match=r"1.*2.*2"):
            AutoRatios().fit(bags, shares)
    random = np.random.default_rng(7)
    bags = [WORLD.rows(np.eye(3)[label], 1, random) for label in (0, 1, 2, 0, 1, 2)]
    with warnings.catch_warnings(action="ignore"):
        found = AutoRatios().fit(bags, np.eye(3)[[0, 1, 2, 0, 1, 2]])
    assert "drift_p_value" not in found.diagnostics_
    assert f"error_{MEAN}" in found.diagnostics_


def test_bags_of_equal_rows_in_different_ratios_drift_if_anything_and_evidence_is_that_of_its_bags():
    """The rows say nothing of the ratios; what estimators make of rounding errors is mixed with a warning."""
    rows = np.random.default_rng(5).normal(size=(60, 3))
    shares = np.array([[0.1, 0.9], [0.3, 0.7], [0.5, 0.5], [0.7, 0.3], [0.9, 0.1]])
    with pytest.warns(UserWarning, match="predicts the ratios of these bags no better than the mean"):
        found = AutoRatios().fit([rows] * 5, shares)
    predicted = found.predict(rows)
    assert predicted.min() >= 0
    assert predicted.sum() == pytest.approx(1)
    evidence = Evidence(np.array([10.0, 30.0]), np.array([[1.2, -0.2], [0.0, 1.0]]), None)
    np.testing.assert_allclose(evidence.mean, [0.3, 0.7])
    assert evidence.noise_floor == 0
    some = EVIDENCE.of(KEPT)
    np.testing.assert_array_equal(some.proportions, SHARES[KEPT])
    assert some.noise.shape == (3, 2, 2)
    assert some.noise_floor == pytest.approx(2 * np.sqrt(2 / np.pi) * 0.1)


@pytest.mark.slow
def test_bags_of_a_person_are_left_out_together():
    """Each of two persons has pure bags of one look: known from its other bags, not from the other person's."""
    random = np.random.default_rng(6)
    bags, shares = bags_of(5, drift=15.0, seed=6)
    twice = [half for bag in bags for half in np.split(random.permutation(bag), 2)]
    groups, doubled = np.repeat(np.arange(5), 2), np.repeat(shares, 2, axis=0)
    with warnings.catch_warnings(action="ignore"):
        alone, together = (AutoRatios().fit(twice, doubled, groups=g) for g in (None, groups))
    assert together.diagnostics_["error_regression"] > 2 * alone.diagnostics_["error_regression"]
    with pytest.raises(InputError, match=r"groups.*10"):
        AutoRatios().fit(twice, doubled, groups=groups[:5])


def test_means_without_rows_are_whitened_where_they_do_not_drift():
    for drift in (0.0, 30.0):
        bags, shares = bags_of(9, drift)
        means, sizes = np.stack([bag.mean(axis=0) for bag in bags]), np.full(9, 80)
        covariance = np.mean([np.cov(bag, rowvar=False) for bag in bags], axis=0)
        known = {"covariance": covariance, "covariance_rows": 9 * 79}
        with warnings.catch_warnings(action="ignore"):
            found = AutoRatios().fit_means(means, sizes, shares, **known)
        own = WhitenedMeans("linear").fit_means(means, sizes, shares, **known)
        if drift:
            assert found.diagnostics_["drift_p_value"] < 1e-6
            assert found.weights_ == {MEAN: 1.0}
        else:
            assert found.weights_ == {"whitened": 1.0}
            np.testing.assert_array_equal(found.predict(SET), own.predict(SET))
    with pytest.raises(InputError, match="covariance"):
        AutoRatios().fit_means(means, sizes, shares, covariance=-covariance)
    with pytest.raises(InputError):
        AutoRatios().fit_means(means, sizes, shares)


WORLD_CANDIDATES, RANDOM = Mixtures(2), np.random.default_rng(0)
SHARES = np.array([[0.1, 0.9], [0.3, 0.7], [0.6, 0.4], [0.9, 0.1], [0.5, 0.5]])
BAGS = [WORLD_CANDIDATES.rows(shares, 60, RANDOM) for shares in SHARES]
EVIDENCE = Evidence(np.full(5, 60.0), SHARES, np.tile([[0.01, -0.01], [-0.01, 0.01]], (5, 1, 1)))
KEPT, LEFT = np.array([0, 1, 3]), 2


@pytest.mark.parametrize("own", [WhitenedMeans(seed=4), DistributionRegression("linear", seed=4)])
def test_a_candidate_of_rows_is_its_estimator_on_the_bags_kept(own):
    candidates = of_rows(BAGS, EVIDENCE, 4)
    assert list(candidates) == ["bag_classifier", "whitened", "regression", "regression_fourier"]
    candidate, some, left = candidates[own.name], EVIDENCE.of(KEPT), BAGS[LEFT]
    fitted, own = candidate.fit(KEPT), own.fit([BAGS[bag] for bag in KEPT], some.proportions, some.noise)
    np.testing.assert_allclose(candidate.estimate(fitted, np.array([LEFT]))[0], own.predict(left), rtol=1e-9)
    np.testing.assert_allclose(fitted.predict(left), own.predict(left), rtol=1e-9)
    np.testing.assert_array_equal(load(*fitted.to_arrays()).predict(left), fitted.predict(left))


def test_the_classifier_looks_for_its_regularisation_once_and_the_regression_keeps_the_features_of_all_bags():
    candidate = of_rows(BAGS, EVIDENCE, 4)["bag_classifier"]
    whole = BagClassifier(seed=4).fit(BAGS, SHARES, EVIDENCE.noise)
    np.testing.assert_array_equal(candidate.fit(np.arange(5)).predict(BAGS[LEFT]), whole.predict(BAGS[LEFT]))
    some = EVIDENCE.of(KEPT)
    own = BagClassifier(whole.regularisation_, seed=4).fit([BAGS[bag] for bag in KEPT], some.proportions, some.noise)
    np.testing.assert_array_equal(candidate.fit(KEPT).predict(BAGS[LEFT]), own.predict(BAGS[LEFT]))
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


@given(st.lists(st.integers(0, 20), min_size=1, max_size=40), st.integers(0, 100))
def test_every_bag_is_in_one_fold_with_all_of_its_group(groups, seed):
    parts = folds(np.array([f"name {group}" for group in groups]), seed)
    assert sorted(np.concatenate(parts)) == list(range(len(groups)))
    names = [{groups[bag] for bag in part} for part in parts]
    distinct = len(set(groups))
    assert sum(map(len, names)) == distinct  # no group is in two of them
    assert len(parts) == (distinct if distinct <= 8 else 6)
    assert max(map(len, names)) - min(map(len, names)) <= 1


def test_no_bag_is_seen_by_the_fit_that_is_asked_about_it_and_what_cannot_be_fitted_says_nothing():
    seen: list[tuple[list[int], list[int]]] = []

    def estimate(fitted, some):
        seen.append((list(fitted), some.tolist()))
        return np.tile(np.eye(2)[0], (len(some), 1))

    candidate = Candidate(lambda kept: kept, estimate)
    found = left_out_of_all(candidate, [np.array([0, 3]), np.array([1]), np.array([2])], 4)
    assert found.shape == (4, 2)
    assert seen == [([1, 2], [0, 3]), ([0, 2, 3], [1]), ([0, 1, 3], [2])]

    def fit(kept):
        if 0 not in kept:
            raise InputError("classes cannot be told apart")
        return kept

    candidate = Candidate(fit, lambda fitted, some: np.full((len(some), 2), 0.5))
    assert left_out(candidate, np.array([0]), 3) is None
    assert left_out(candidate, np.array([1, 2]), 3).shape == (2, 2)
    assert left_out_of_all(candidate, [np.array([0]), np.array([1, 2])], 3) is None
    # Errors are sums of absolute differences.
    assert mean_error(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[0.7, 0.3], [1.2, -0.2]])) == pytest.approx(0.4)


def objective(weights, estimates, truth, pull):
    mixed = np.tensordot(weights, estimates, 1)
    apart = weights - np.eye(len(weights))[0]
    return np.sum((truth - mixed) ** 2) + pull * apart @ apart * np.sum((truth - estimates[0]) ** 2)


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.sampled_from([0.0, 0.1, 10.0]))
def test_weights_are_those_of_independent_solvers(seed, count, pull):
    random = np.random.default_rng(seed)
    truth = random.dirichlet(np.ones(3), 9)
    estimates = random.dirichlet(np.ones(3), (count, 9))
    found = stacked({str(k): one for k, one in enumerate(estimates)}, truth, "0", pull)
    weights = np.array(list(found.values()))
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    # Least squares without negative weights, in which one row of large weight says that they sum to 1.
    large = 1e4
    strength = np.sqrt(pull * np.sum((truth - estimates[0]) ** 2))
    rows = np.vstack([estimates.reshape(count, -1).T, strength * np.eye(count), np.full(count, large)])
    right = np.concatenate([truth.ravel(), strength * np.eye(count)[0], [large]])
    np.testing.assert_allclose(weights, nnls(rows, right)[0], atol=3e-3)  # of which a thousandth may be dropped
    other = minimize(
        objective, np.full(count, 1 / count), (estimates, truth, pull), bounds=[(0, 1)] * count, method="SLSQP",
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1}, options={"ftol": 1e-12},
    )  # fmt: skip
    assert objective(weights, estimates, truth, pull) <= other.fun * (1 + 1e-4) + 1e-9


def test_what_is_right_gets_all_weight_unless_it_is_pulled_to_the_leading_one():
    truth = np.array([[0.2, 0.8], [0.6, 0.4], [0.9, 0.1]])
    estimates = {"wrong": truth[::-1], "right": truth}
    assert stacked(estimates, truth, "wrong", 0.0) == {"wrong": 0.0, "right": 1.0}
    assert stacked(estimates, truth, "wrong", 1e6)["wrong"] == pytest.approx(1, abs=1e-3)
    assert stacked({"a": truth, "b": truth}, truth, "a", 0.1) == {"a": pytest.approx(0.5), "b": pytest.approx(0.5)}
