"""Data frames with other columns than an estimator was fitted with are refused, as scikit-learn refuses them."""

import warnings

import numpy as np
import pyarrow
import pytest

from aggregator.learners import (
    AutoRatios,
    BagClassifier,
    BagNetwork,
    ClassMeans,
    DistributionRegression,
    EnergyMeans,
    ProportionClassifier,
    ProportionSVM,
    ratio_intervals,
)

SHARES = np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1], [0.6, 0.4]])
NAMES = ["height", "width", "depth"]
MEANS = {"kernel": "linear"}


def frame(rows, names=NAMES):
    return pyarrow.table({name: rows[:, NAMES.index(name)] for name in names})


@pytest.fixture
def bags(rng):
    labels = [np.arange(40) >= 40 * share for share in SHARES[:, 0]]
    return [np.column_stack([3.0 * y, -2.0 * y, 0.0 * y]) + rng.normal(size=(40, 3)) for y in labels]


@pytest.mark.parametrize(
    "estimator",
    [
        ProportionClassifier(),
        ProportionClassifier(method="laplacian"),
        BagClassifier(folds=2),
        ProportionSVM(),
        ClassMeans(features=16),
        EnergyMeans(),
        DistributionRegression(features=16),
        AutoRatios(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_reordered_columns_are_refused_and_arrays_and_frames_are_alike(estimator, bags):
    with warnings.catch_warnings(action="ignore"):
        plain = estimator.fit(bags, SHARES).predict(bags[0])
        assert not hasattr(estimator, "feature_names_in_")
        fitted = estimator.fit([frame(bag) for bag in bags], SHARES)
    assert fitted.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(fitted.predict(frame(bags[0])), plain)
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        fitted.predict(frame(bags[0], NAMES[::-1]))
    with pytest.raises(ValueError, match="now missing:\n- depth"):
        fitted.predict(frame(bags[0], NAMES[:2]))
    with pytest.raises(ValueError, match="must be in the same order"):
        estimator.fit([frame(bags[0]), *(frame(bag, NAMES[::-1]) for bag in bags[1:])], SHARES)


@pytest.mark.parametrize("estimator", [ClassMeans(debiased=False, **MEANS), DistributionRegression(**MEANS)])
def test_means_of_bags_have_names_too(estimator, bags):
    means = np.stack([bag.mean(axis=0) for bag in bags])
    fitted = estimator.fit_means(frame(means), np.full(4, 40), SHARES)
    assert fitted.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match="same order"):
        fitted.predict(frame(bags[0], NAMES[::-1]))
    assert not hasattr(estimator.fit_means(means, np.full(4, 40), SHARES), "feature_names_in_")


def test_rows_of_a_network_have_names_too(bags):
    rows = np.concatenate(bags)
    network = BagNetwork((0.0, 1.0), hidden=(4,), epochs=2).fit_labels(frame(rows), rows[:, 0] > 1)
    assert network.predict(frame(rows)).shape == (160,)
    with pytest.raises(ValueError, match="same order"):
        network.predict(frame(rows, NAMES[::-1]))


def test_intervals_look_at_names_too(bags):
    fitted = ClassMeans(**MEANS).fit([frame(bag) for bag in bags], SHARES)
    wanted = ratio_intervals(ClassMeans(**MEANS).fit(bags, SHARES), bags[0])
    np.testing.assert_array_equal(ratio_intervals(fitted, frame(bags[0])), wanted)
    with pytest.raises(ValueError, match="same order"):
        ratio_intervals(fitted, frame(bags[0], NAMES[::-1]))
