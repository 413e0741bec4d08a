"""Bags, proportions and noise that cannot be used are refused in one sentence that says what is wrong.

Data frames with other columns than an estimator was fitted with are refused, as scikit-learn refuses them.
"""

import tracemalloc
import warnings

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from support.refusals import refused

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


def test_what_can_be_used_comes_back_as_doubles_and_proportions_may_leave_the_simplex_but_not_its_plane():
    bags, shares, noise = checked([bag.astype("f4") for bag in BAGS], SHARES.tolist(), np.tile(CENTRED, (3, 1, 1)))
    assert {bag.dtype for bag in bags} == {shares.dtype, noise.dtype} == {np.dtype("f8")}
    assert checked(BAGS, SHARES)[2] is None
    noise = np.tile(CENTRED, (3, 1, 1))
    away = SHARES + np.outer([-0.5, 0, 0.7], [1, -1])
    assert checked_proportions(away, noise, 3)[0] == pytest.approx(away)
    refused("1", checked_proportions, away + 0.1, noise, 3)
    shares = np.random.default_rng(0).dirichlet(np.ones(2), 8000)
    tracemalloc.start()
    checked_proportions(shares, None, len(shares))
    assert tracemalloc.get_traced_memory()[1] < 2**23  # a number for each pair of bags would take 2^29
    tracemalloc.stop()


@pytest.mark.parametrize(("bags", "message"), [
    ([], "bags"), ([BAGS[0], np.zeros((0, 2)), BAGS[2]], "1"), ([BAGS[0], np.zeros((2, 3)), BAGS[2]], r"1.*3.*0.*2"),
    ([BAGS[0], np.full((2, 2), np.nan), BAGS[2]], "1"), ([BAGS[0], np.zeros(4), BAGS[2]], r"1.*4"),
    ([BAGS[0], csr_array(BAGS[1]), BAGS[2]], "1"), ([BAGS[0], BAGS[1] + 1j, BAGS[2]], "1"), (None, "bags"),
    ((bag for bag in BAGS), "bags"), ([BAGS[0], np.array([["a", "b"]]), BAGS[2]], "1"),
])  # fmt: skip
def test_bags_that_are_no_tables_of_numbers_are_refused(bags, message):
    refused(message, checked, bags, SHARES)


@pytest.mark.parametrize(("shares", "noise", "message"), [
    (SHARES[:2], None, "3"), (np.ones((3, 1)), None, "2"), (SHARES * 30, None, None),
    (np.array([[-0.1, 1.1], [0.9, 0.1], [0.5, 0.5]]), None, r"0.*-0\.1.*1\.1"), (SHARES * np.nan, None, "proportions"),
    (SHARES, CENTRED, None), (SHARES, np.tile(np.eye(2), (3, 1, 1)), "0"), (SHARES, np.tile(-CENTRED, (3, 1, 1)), None),
    (SHARES, np.tile([[1.0, -1.0], [1.0, -1.0]], (3, 1, 1)), None), (SHARES, np.full((3, 2, 2), np.inf), "noise"),
])  # fmt: skip
def test_proportions_off_the_simplex_and_noise_that_is_no_covariance_are_refused(shares, noise, message):
    refused(message, checked_proportions, shares, noise, 3)


def test_too_few_different_bags_are_refused_with_the_classes_that_they_confuse():
    refused(r"1.*1.*0.*1", checked_proportions, np.tile([0.3, 0.7], (5, 1)), None, 5)
    # classes 0 and 2 always come in the same proportion, class 1 does not
    shares = np.array([[0.1, 0.7, 0.2], [0.3, 0.1, 0.6], [0.2, 0.4, 0.4]])
    refused(r"2.*3.*0.*2", checked_proportions, shares, None, 3)
    # a class that no bag has
    refused("2", checked_proportions, np.array([[0.1, 0.9, 0.0], [0.9, 0.1, 0.0], [0.5, 0.5, 0.0]]), None, 3)


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


def test_means_need_sizes_and_variances_and_covariances_must_be_covariances():
    found, sizes, noise = checked_means(SHARES, [1, 2, 3], 0.5)
    assert noise == pytest.approx(np.full(3, 0.5))
    assert found.shape == (3, 2)
    assert sizes.dtype == np.float64
    for sizes, noise in (([1, 2], 0.0), ([0, 2, 3], 0.0), ([1, 2, 3], -1.0), ([1, 2, 3], [1.0, 2.0])):
        refused(None, checked_means, SHARES, sizes, noise)
    assert checked_covariance(CENTRED, 2, 2) == pytest.approx(CENTRED)
    for wrong, rows, message in ((np.eye(3), None, None), (-np.eye(2), None, None), (np.eye(2), 2, "covariance_rows")):
        refused(message, checked_covariance, wrong, 2, rows)
    for rows in (np.zeros((0, 3)), np.zeros((2, 4)), np.zeros(3), np.float64(1)):  # sets must look like the bags
        refused("3", checked_set, rows, 3)


FOUR = np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1], [0.6, 0.4]])
NAMES = ["height", "width", "depth"]
MEANS = {"kernel": "linear"}


def frame(rows, names=NAMES):
    return pyarrow.table({name: rows[:, NAMES.index(name)] for name in names})


@pytest.fixture
def bags(rng):
    labels = [np.arange(40) >= 40 * share for share in FOUR[:, 0]]
    return [np.column_stack([3.0 * y, -2.0 * y, 0.0 * y]) + rng.normal(size=(40, 3)) for y in labels]


@pytest.mark.parametrize("estimator", [
    ProportionClassifier(), ProportionClassifier(method="laplacian"), BagClassifier(folds=2), ProportionSVM(),
    ClassMeans(features=16), EnergyMeans(), DistributionRegression(features=16), AutoRatios(),
], ids=lambda one: type(one).__name__)  # fmt: skip
def test_reordered_columns_are_refused_and_arrays_and_frames_are_alike(estimator, bags):
    with warnings.catch_warnings(action="ignore"):
        plain = estimator.fit(bags, FOUR).predict(bags[0])
        assert not hasattr(estimator, "feature_names_in_")
        fitted = estimator.fit([frame(bag) for bag in bags], FOUR)
    assert fitted.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(fitted.predict(frame(bags[0])), plain)
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        fitted.predict(frame(bags[0], NAMES[::-1]))
    with pytest.raises(ValueError, match="now missing:\n- depth"):
        fitted.predict(frame(bags[0], NAMES[:2]))
    with pytest.raises(ValueError, match="must be in the same order"):
        estimator.fit([frame(bags[0]), *(frame(bag, NAMES[::-1]) for bag in bags[1:])], FOUR)


@pytest.mark.parametrize("estimator", [ClassMeans(debiased=False, **MEANS), DistributionRegression(**MEANS)])
def test_means_of_bags_have_names_too(estimator, bags):
    means = np.stack([bag.mean(axis=0) for bag in bags])
    fitted = estimator.fit_means(frame(means), np.full(4, 40), FOUR)
    assert fitted.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match="same order"):
        fitted.predict(frame(bags[0], NAMES[::-1]))
    assert not hasattr(estimator.fit_means(means, np.full(4, 40), FOUR), "feature_names_in_")


def test_rows_of_a_network_and_sets_of_intervals_have_names_too(bags):
    rows = np.concatenate(bags)
    network = BagNetwork((0.0, 1.0), hidden=(4,), epochs=2).fit_labels(frame(rows), rows[:, 0] > 1)
    assert network.predict(frame(rows)).shape == (160,)
    with pytest.raises(ValueError, match="same order"):
        network.predict(frame(rows, NAMES[::-1]))
    fitted = ClassMeans(**MEANS).fit([frame(bag) for bag in bags], FOUR)
    wanted = ratio_intervals(ClassMeans(**MEANS).fit(bags, FOUR), bags[0])
    np.testing.assert_array_equal(ratio_intervals(fitted, frame(bags[0])), wanted)
    with pytest.raises(ValueError, match="same order"):
        ratio_intervals(fitted, frame(bags[0], NAMES[::-1]))
