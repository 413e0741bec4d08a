"""Bags, proportions and noise that cannot be used are refused in one sentence that says what is wrong.

Data frames with other columns than an estimator was fitted with are refused, as scikit-learn refuses them.
"""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

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
from aggregator.learners.inputs.validation import (
    checked,
    checked_covariance,
    checked_means,
    checked_proportions,
    checked_set,
)
from federation.contract.errors import InputError

BAGS = [np.zeros((3, 2)), np.ones((4, 2)), np.ones((1, 2))]
SHARES = np.array([[0.1, 0.9], [0.9, 0.1], [0.5, 0.5]])
CENTRED = np.array([[0.5, -0.5], [-0.5, 0.5]])


def test_what_can_be_used_comes_back_as_doubles():
    bags, shares, noise = checked([bag.astype("f4") for bag in BAGS], SHARES.tolist(), np.tile(CENTRED, (3, 1, 1)))
    assert {bag.dtype for bag in bags} == {shares.dtype, noise.dtype} == {np.dtype("f8")}
    assert checked(BAGS, SHARES)[2] is None


@pytest.mark.parametrize(
    ("bags", "message"),
    [
        ([], "bags"),
        ([BAGS[0], np.zeros((0, 2)), BAGS[2]], "1"),
        ([BAGS[0], np.zeros((2, 3)), BAGS[2]], r"1.*3.*0.*2"),
        ([BAGS[0], np.full((2, 2), np.nan), BAGS[2]], "1"),
        ([BAGS[0], np.zeros(4), BAGS[2]], r"1.*4"),
        ([BAGS[0], csr_array(BAGS[1]), BAGS[2]], "1"),
        ([BAGS[0], BAGS[1] + 1j, BAGS[2]], "1"),
        (None, "bags"),
        ((bag for bag in BAGS), "bags"),
        ([BAGS[0], np.array([["a", "b"]]), BAGS[2]], "1"),
    ],
)
def test_bags_that_are_no_tables_of_numbers_are_refused(bags, message):
    with pytest.raises(InputError, match=message):
        checked(bags, SHARES)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        (SHARES[:2], "3"),
        (np.ones((3, 1)), "2"),
        (SHARES * 30, None),
        (np.array([[-0.1, 1.1], [0.9, 0.1], [0.5, 0.5]]), r"0.*-0\.1.*1\.1"),
        (SHARES * np.nan, "proportions"),
    ],
)
def test_proportions_off_the_simplex_are_refused(shares, message):
    with pytest.raises(InputError, match=message):
        checked_proportions(shares, None, 3)


def test_noisy_proportions_may_leave_the_simplex_but_not_its_plane():
    noise = np.tile(CENTRED, (3, 1, 1))
    away = SHARES + np.outer([-0.5, 0, 0.7], [1, -1])
    assert checked_proportions(away, noise, 3)[0] == pytest.approx(away)
    with pytest.raises(InputError, match="1"):
        checked_proportions(away + 0.1, noise, 3)


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (CENTRED, None),
        (np.tile(np.eye(2), (3, 1, 1)), "0"),
        (np.tile(-CENTRED, (3, 1, 1)), None),
        (np.tile([[1.0, -1.0], [1.0, -1.0]], (3, 1, 1)), None),
        (np.full((3, 2, 2), np.inf), "noise"),
    ],
)
def test_noise_must_hold_covariances_of_proportions(noise, message):
    with pytest.raises(InputError, match=message):
        checked_proportions(SHARES, noise, 3)


def test_too_few_different_bags_are_refused_with_the_classes_that_they_confuse():
    with pytest.raises(InputError, match=r"1.*1.*0.*1"):
        checked_proportions(np.tile([0.3, 0.7], (5, 1)), None, 5)
    # classes 0 and 2 always come in the same proportion, class 1 does not
    shares = np.array([[0.1, 0.7, 0.2], [0.3, 0.1, 0.6], [0.2, 0.4, 0.4]])
    with pytest.raises(InputError, match=r"2.*3.*0.*2"):
        checked_proportions(shares, None, 3)
    # a class that no bag has
    with pytest.raises(InputError, match="2"):
        checked_proportions(np.array([[0.1, 0.9, 0.0], [0.9, 0.1, 0.0], [0.5, 0.5, 0.0]]), None, 3)


@settings(derandomize=True)
@given(st.integers(2, 6), st.integers(1, 12), st.integers(0, 2**32))
def test_classes_are_identified_exactly_when_the_rank_is_full(classes, bags, seed):
    rng = np.random.default_rng(seed)
    distinct = rng.dirichlet(np.ones(classes), rng.integers(1, classes + 1))
    shares = distinct[rng.integers(0, len(distinct), bags)]
    full = np.linalg.matrix_rank(shares, tol=1e-7) == classes
    try:
        checked_proportions(shares, None, bags)
    except InputError:
        assert not full
    else:
        assert full


def test_many_bags_take_memory_in_proportion():
    shares = np.random.default_rng(0).dirichlet(np.ones(2), 8000)
    tracemalloc.start()
    checked_proportions(shares, None, len(shares))
    assert tracemalloc.get_traced_memory()[1] < 2**23  # a number for each pair of bags would take 2^29
    tracemalloc.stop()


@pytest.mark.parametrize("rows", [np.zeros((0, 3)), np.zeros((2, 4)), np.zeros(3), np.float64(1)])
def test_sets_must_look_like_the_bags(rows):
    with pytest.raises(InputError, match="3"):
        checked_set(rows, 3)


def test_means_need_sizes_and_variances():
    found, sizes, noise = checked_means(SHARES, [1, 2, 3], 0.5)
    assert noise == pytest.approx(np.full(3, 0.5))
    assert found.shape == (3, 2)
    assert sizes.dtype == np.float64
    for sizes, noise in (([1, 2], 0.0), ([0, 2, 3], 0.0), ([1, 2, 3], -1.0), ([1, 2, 3], [1.0, 2.0])):
        with pytest.raises(InputError):
            checked_means(SHARES, sizes, noise)


def test_covariances_must_be_covariances():
    assert checked_covariance(CENTRED, 2, 2) == pytest.approx(CENTRED)
    for wrong, rows, message in (
        (np.eye(3), None, None),
        (-np.eye(2), None, None),
        (np.eye(2), 2, "covariance_rows"),
    ):
        with pytest.raises(InputError, match=message):
            checked_covariance(wrong, 2, rows)


SHARES_FEATURE_NAMES = np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1], [0.6, 0.4]])
NAMES = ["height", "width", "depth"]
MEANS = {"kernel": "linear"}


def frame(rows, names=NAMES):
    return pyarrow.table({name: rows[:, NAMES.index(name)] for name in names})


@pytest.fixture
def feature_names_bags(rng):
    labels = [np.arange(40) >= 40 * share for share in SHARES_FEATURE_NAMES[:, 0]]
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
def test_reordered_columns_are_refused_and_arrays_and_frames_are_alike(estimator, feature_names_bags):
    with warnings.catch_warnings(action="ignore"):
        plain = estimator.fit(feature_names_bags, SHARES_FEATURE_NAMES).predict(feature_names_bags[0])
        assert not hasattr(estimator, "feature_names_in_")
        fitted = estimator.fit([frame(bag) for bag in feature_names_bags], SHARES_FEATURE_NAMES)
    assert fitted.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(fitted.predict(frame(feature_names_bags[0])), plain)
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        fitted.predict(frame(feature_names_bags[0], NAMES[::-1]))
    with pytest.raises(ValueError, match="now missing:\n- depth"):
        fitted.predict(frame(feature_names_bags[0], NAMES[:2]))
    with pytest.raises(ValueError, match="must be in the same order"):
        estimator.fit(
            [frame(feature_names_bags[0]), *(frame(bag, NAMES[::-1]) for bag in feature_names_bags[1:])],
            SHARES_FEATURE_NAMES,
        )


@pytest.mark.parametrize("estimator", [ClassMeans(debiased=False, **MEANS), DistributionRegression(**MEANS)])
def test_means_of_bags_have_names_too(estimator, feature_names_bags):
    means = np.stack([bag.mean(axis=0) for bag in feature_names_bags])
    fitted = estimator.fit_means(frame(means), np.full(4, 40), SHARES_FEATURE_NAMES)
    assert fitted.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match="same order"):
        fitted.predict(frame(feature_names_bags[0], NAMES[::-1]))
    assert not hasattr(estimator.fit_means(means, np.full(4, 40), SHARES_FEATURE_NAMES), "feature_names_in_")


def test_rows_of_a_network_have_names_too(feature_names_bags):
    rows = np.concatenate(feature_names_bags)
    network = BagNetwork((0.0, 1.0), hidden=(4,), epochs=2).fit_labels(frame(rows), rows[:, 0] > 1)
    assert network.predict(frame(rows)).shape == (160,)
    with pytest.raises(ValueError, match="same order"):
        network.predict(frame(rows, NAMES[::-1]))


def test_intervals_look_at_names_too(feature_names_bags):
    fitted = ClassMeans(**MEANS).fit([frame(bag) for bag in feature_names_bags], SHARES_FEATURE_NAMES)
    wanted = ratio_intervals(ClassMeans(**MEANS).fit(feature_names_bags, SHARES_FEATURE_NAMES), feature_names_bags[0])
    np.testing.assert_array_equal(ratio_intervals(fitted, frame(feature_names_bags[0])), wanted)
    with pytest.raises(ValueError, match="same order"):
        ratio_intervals(fitted, frame(feature_names_bags[0], NAMES[::-1]))
