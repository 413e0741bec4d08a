"""Estimators from what is known of bags: proportions and their noise, and which parameters an estimator gets."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from support.mixtures import Mixtures, skewed
from support.ratio_choices import ESTIMATORS, KERNELS, MEANS, OF_MEANS

from aggregator.learners.class_ratios.class_means import ClassMeans, WhitenedMeans
from aggregator.learners.class_ratios.kernel_means import DistributionRegression
from aggregator.protocols.class_ratio.options import RatioOptions
from aggregator.protocols.class_ratio.session import CORRECTED_ESTIMATORS, Fitting, Labelled, least_rows
from aggregator.trial.feature_fitting import fit
from federation.features.feature_map import with_fourier

WORLD = Mixtures(3)
PROPORTIONS = skewed(3, 0.1)
BAGS = WORLD.bags(PROPORTIONS, 100, np.random.default_rng(1))
PUBLIC = np.random.default_rng(2).normal(size=(300, 6))
SIZES = np.full(3, 100.0)


def labelled(features=BAGS, **changes):
    counts = 100 * PROPORTIONS[None]
    return replace(Labelled(SIZES, counts, None, features, 0.0, np.arange(len(SIZES))), **changes)


def fitting(options, feature_map=None):
    return Fitting(options, feature_map or fit([], PUBLIC), PUBLIC, 5)


def test_bags_of_one_row_are_of_use_unless_their_rows_are_compared():
    exact = {"estimator": "class_means", "kernel": "exact"}
    assert least_rows(RatioOptions(**exact)) == least_rows(RatioOptions(estimator="energy")) == 2
    for estimator in set(ESTIMATORS) - {"energy"}:
        assert least_rows(RatioOptions(estimator=estimator)) == 1


def test_proportions_are_unbiased_and_may_leave_the_simplex():
    sizes, counts = np.array([10.0, 40.0]), np.array([[[12.0, -2.0], [10.0, 30.0]]])
    known = Labelled(sizes, counts, np.array([4 * np.eye(2), np.eye(2)]), [], 0.0, np.arange(2))
    np.testing.assert_array_equal(known.proportions(0), [[1.2, -0.2], [0.25, 0.75]])
    np.testing.assert_array_equal(known.noise(), [4 * np.eye(2) / 100, np.eye(2) / 1600])
    assert known.draws == 1
    assert labelled().noise() is None


def test_the_noise_is_told_beside_the_signal_only_where_there_is_some():
    exact = labelled().conditioning()
    assert "noise_to_signal" not in exact
    noisy = labelled(count_noise=np.tile(25 * np.eye(3), (3, 1, 1))).conditioning()
    # Three classes with a standard deviation of 5 in 100 rows.
    assert noisy["noise_to_signal"] == pytest.approx(np.sqrt(2 / np.pi) * 3 * 0.05 / 2)
    assert {name: noisy[name] for name in exact} == exact


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_gets_its_own_parameters_among_the_options(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what an estimator warns of stands in the options
        found = fitting(RatioOptions(estimator=estimator)).fit(labelled(), 0)
    assert found.name == estimator
    known = found.get_params()
    assert known.get("seed", 5) == 5
    if estimator in CORRECTED_ESTIMATORS:
        assert known["corrected"] is True
    if "bandwidth" in known and estimator in (*OF_MEANS, "mmd"):
        assert known["bandwidth"] == ("auto" if estimator == "mmd" else 1.0)


@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if kernel != "linear"])
def test_options_of_the_kernel_reach_the_estimator(kernel):
    numbers = {} if kernel == "exact" else {"dimensions": 16}
    options = RatioOptions(estimator="class_means", kernel=kernel, bandwidth=2.0, corrected=False, **numbers)
    known = fitting(options).fit(labelled(), 0).get_params()
    assert (known["kernel"], known["bandwidth"], known["corrected"]) == (kernel, 2.0, False)
    assert known["features"] == options.dimensions


@pytest.mark.parametrize(
    ("chosen", "known"), [({}, (None, 1.0)), ({"bandwidth": "auto", "dimensions": 8}, (8, "auto"))]
)
def test_the_proportion_svm_has_a_kernel_where_its_bandwidth_is_said(chosen, known):
    found = fitting(RatioOptions(estimator="proportion_svm", **chosen)).fit(labelled(), 0).get_params()
    assert (found["features"], found["bandwidth"]) == known


def test_the_linear_kernel_is_for_the_regression():
    found = fitting(RatioOptions(estimator="regression", kernel="linear")).fit(labelled(), 0)
    own = DistributionRegression("linear").fit(BAGS, PROPORTIONS)
    np.testing.assert_array_equal(found.predict(BAGS[0]), own.predict(BAGS[0]))


def test_bags_of_a_group_are_left_out_together():
    """Of six bags in three groups each class is in one group alone, without which nothing can be fitted."""
    shares = np.repeat(PROPORTIONS.round(), 2, axis=0)
    known = Labelled(
        np.full(6, 100.0),
        100 * shares[None],
        None,
        WORLD.bags(shares, 100, np.random.default_rng(3)),
        0.0,
        np.arange(6),
    )
    apart, together = (
        fitting(RatioOptions()).fit(replace(known, groups=g), 0) for g in (np.arange(6), np.arange(6) // 2)
    )
    assert "error_mean_of_bags" in apart.diagnostics_
    assert "error_mean_of_bags" not in together.diagnostics_


@pytest.mark.parametrize(("estimator", "kind"), [("whitened", WhitenedMeans), ("class_means", ClassMeans)])
def test_mean_embeddings_are_learned_from_draw_by_draw_or_once_for_all(estimator, kind):
    options = RatioOptions(**{**MEANS, "estimator": estimator, "dimensions": 32})
    feature_map = with_fourier(fit([], PUBLIC), 0.05, 32, 3)
    means = np.stack([feature_map.transform(bag).mean(axis=0) for bag in BAGS])
    counts = np.repeat(100 * PROPORTIONS[None], 2, axis=0)
    behind = fitting(options, feature_map)
    shared = labelled(means[None], counts=counts)
    own = labelled(np.stack([means, means[::-1]]), counts=counts)
    found = [behind.fit(one, draw) for one, draw in ((shared, 0), (shared, 1), (own, 0), (own, 1))]
    assert all(type(one) is kind and one.get_params()["kernel"] == "linear" for one in found)
    rows = feature_map.transform(WORLD.rows(np.array([0.6, 0.3, 0.1]), 400, np.random.default_rng(4)))
    first, second, third, fourth = (one.predict(rows) for one in found)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, third)
    assert (fourth != first).any()
    assert np.abs(first - [0.6, 0.3, 0.1]).sum() < 0.3
