"""What estimators share: exact mixtures, shifted sets, storage, and which rows stand for all.

The bandwidth that held-out bags choose, and the groups that are held out. Ridge regression of bags' proportions on
their means: left-out errors against brute force, and what is learned. The published estimator against its formulas,
written down naively.
"""

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.spatial.distance import cdist, pdist
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from support.examples import examples
from support.mixtures import Mixtures, skewed
from support.refusals import refused

from aggregator.learners.class_ratios.bag_classifier import BagClassifier, BagClassifierEM
from aggregator.learners.class_ratios.catalogue import load
from aggregator.learners.class_ratios.class_means import ClassMeans, EnergyMeans, WhitenedMeans
from aggregator.learners.class_ratios.kernel_means import (
    CANDIDATES,
    MMD,
    DistributionRegression,
    ridge_regression,
    selected_bandwidth,
    thinned,
    two_groups,
)
from aggregator.learners.class_ratios.proportion_svm import ProportionSVM
from federation.contract.errors import InputError
from federation.numerics import simplex

pytestmark = pytest.mark.filterwarnings("ignore:bag_classifier_em takes")

EVERY = [
    MMD(bandwidth=1.0),
    MMD("fourier", 1.0, features=64),
    MMD("linear"),
    ClassMeans(features=64),
    ClassMeans("exact"),
    ClassMeans("nystrom", features=32),
    ClassMeans("linear"),
    WhitenedMeans(features=64),
    WhitenedMeans("nystrom", features=32),
    WhitenedMeans("linear"),
    EnergyMeans(),
]
OTHERS = [  # of other kinds, which are stored in the same way
    *(kind(features=features) for kind in (BagClassifier, BagClassifierEM) for features in (None, 16)),
    ProportionSVM(restarts=2),
    ProportionSVM(features=16, restarts=2),
    MMD("fourier", "auto", features=16),
]
DEBIASED = [estimator for estimator in EVERY if "debiased" in estimator.get_params()]
WORLD, SHARES = Mixtures(3), np.concatenate([skewed(3, 0.1), skewed(3, 0.2)])


def named(estimator):
    return f"{estimator.name}-{estimator.get_params().get('kernel', estimator.get_params().get('features'))}"


def repeated(counts):
    """Rows that are exactly so often (C,) the same eight rows of each class."""
    rng = np.random.default_rng(1)
    rows = [mean + rng.normal(size=(8, 6)) for mean in WORLD.means]
    return np.concatenate([np.tile(one, (count, 1)) for one, count in zip(rows, counts, strict=True)])


@pytest.fixture(scope="module")
def bags():
    return WORLD.bags(SHARES, 60, np.random.default_rng(0))


@pytest.mark.parametrize("estimator", [MMD(bandwidth=1.0), MMD("fourier", 1.0), MMD("linear"), *DEBIASED], ids=named)
@pytest.mark.parametrize("ratios", [(2, 5, 3), (0, 1, 9), (0, 0, 10), (4, 4, 2)])
def test_sets_whose_mean_is_a_mixture_of_those_of_the_bags_are_recovered(estimator, ratios):
    """Whole classes come in the same proportions, so that means of bags are those of populations."""
    estimator = clone(estimator)
    if "debiased" in estimator.get_params():
        estimator.set_params(debiased=False)  # there is no sampling error to correct
    counts = np.array([[8, 1, 1], [1, 8, 1], [1, 1, 8], [4, 4, 2]])
    estimator.fit([repeated(row) for row in counts], counts / 10)
    assert estimator.predict(repeated(ratios)) == pytest.approx(np.array(ratios) / 10, abs=1e-5)


@pytest.mark.parametrize("estimator", [one for one in EVERY if named(one) != "mmd-linear"], ids=named)
def test_shifted_sets_are_estimated_well(estimator, bags):
    fitted = clone(estimator).fit(bags, SHARES)
    rng = np.random.default_rng(5)
    errors = [
        np.abs(fitted.predict(WORLD.rows(ratios, 400, rng)) - ratios).sum()
        for ratios in ([0.6, 0.3, 0.1], [0.05, 0.05, 0.9], [0.3, 0.7, 0.0])
    ]
    # two standard deviations of a set's own sampling, with the best classifier, are about .1
    assert np.mean(errors) < 0.25
    assert all(np.isfinite(errors))


@pytest.mark.parametrize("estimator", [*EVERY, *OTHERS], ids=named)
def test_they_are_scikit_learn_estimators_refuse_unusable_rows_and_predict_the_same_when_stored(estimator, bags):
    fresh = clone(estimator)
    assert fresh.get_params() == estimator.get_params()
    rows = bags[0]
    unfitted = [fresh.predict, fresh.embed, lambda _: fresh.embedding_key()]
    for ask in [*unfitted, lambda _: fresh.estimate(np.zeros(3))] if estimator in EVERY else unfitted:
        with pytest.raises(NotFittedError):
            ask(rows)
    refused(r"2.*3", fresh.fit, bags[:2], SHARES[:2])
    refused("3", fresh.fit, [*bags[:3], bags[3][:0], *bags[4:]], SHARES)
    assert fresh.fit(bags, SHARES) is fresh
    found = fresh.predict(rows)
    assert found.shape == (3,)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    if estimator in EVERY:
        assert fresh.n_features_in_ == 6
        assert np.array_equal(found, fresh.estimate(fresh.embed(rows)))
    refused("6", fresh.predict, rows[:, :5])
    refused("finite", fresh.predict, np.where(rows > 2, np.nan, rows))
    description, arrays = fresh.to_arrays()
    loaded = load(json.loads(json.dumps(description)), {name: array.copy() for name, array in arrays.items()})
    assert type(loaded) is type(fresh)
    assert loaded.get_params() == fresh.get_params()
    assert np.array_equal(loaded.predict(rows), found)
    assert loaded.embedding_key() == fresh.embedding_key()
    assert loaded.to_arrays()[0] == description


@settings(derandomize=True, max_examples=examples(8))
@given(st.integers(0, 2**32))
@pytest.mark.parametrize(
    "estimator",
    [MMD(bandwidth=1.0), ClassMeans(features=32), ClassMeans("exact"), WhitenedMeans(features=32), EnergyMeans()],
    ids=named,
)
def test_neither_the_order_of_bags_nor_that_of_classes_matters(estimator, seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(10, 40, len(SHARES))
    drawn = [WORLD.rows(p, n, rng) for p, n in zip(SHARES, sizes, strict=True)]
    order, relabelled = rng.permutation(len(drawn)), rng.permutation(3)
    rows = WORLD.rows(rng.dirichlet(np.ones(3)), 40, rng)
    noise = rng.uniform(0, 0.01) * rng.uniform(0.5, 2, (len(drawn), 1, 1)) * (np.eye(3) - 1 / 3)
    before = clone(estimator).fit(drawn, SHARES, noise).predict(rows)
    again = clone(estimator).fit([drawn[i] for i in order], SHARES[order][:, relabelled], noise[order])
    assert again.predict(rows) == pytest.approx(before[relabelled], abs=2e-5)


def test_equal_kernels_share_their_embeddings(bags):
    whitened, plain = (kind(features=32).fit(bags, SHARES) for kind in (WhitenedMeans, ClassMeans))
    other_seed = ClassMeans(features=32, seed=1).fit(bags, SHARES)
    assert whitened.embedding_key() == plain.embedding_key() != other_seed.embedding_key()
    assert np.array_equal(whitened.embed(bags[0]), plain.embed(bags[0]))
    assert not np.allclose(other_seed.embed(bags[0]), plain.embed(bags[0]))


@pytest.mark.parametrize(("estimator", "message"), [
    (ClassMeans("gauss"), r"kernel.*class_means.*gauss"), (WhitenedMeans("exact"), "kernel"),
    (MMD("energy"), "energy"), (ClassMeans(bandwidth=0.0), None), (ClassMeans(bandwidth=True), None),
    (MMD(bandwidth="median"), None), (ClassMeans(features=0), r"features.*1"), (ClassMeans(features=7), "even"),
    (WhitenedMeans(seed=None), "seed"), (WhitenedMeans(ridge=0.0), "ridge"), (WhitenedMeans(ridge=np.nan), "ridge"),
    (DistributionRegression("exact"), r"kernel.*exact"),
])  # fmt: skip
def test_parameters_are_checked_when_fitting(estimator, message, bags):
    refused(message, estimator.fit, bags, SHARES)


def test_single_rows_need_a_form_that_does_not_debias():
    rng = np.random.default_rng(4)
    single = WORLD.bags(np.tile(np.eye(3), (20, 1)), 1, rng)
    shares = np.tile(np.eye(3), (20, 1))
    for estimator, message in (
        (ClassMeans("exact"), "0"),
        (EnergyMeans(), "0"),
        (ClassMeans(features=32), None),
        (WhitenedMeans(features=32), None),
        (WhitenedMeans(features=32, debiased=False), None),
    ):
        refused(message, estimator.fit, single, shares)
    for estimator in (ClassMeans("exact", debiased=False), EnergyMeans(debiased=False), ClassMeans(debiased=False)):
        ratios = np.array([0.5, 0.3, 0.2])
        assert np.abs(estimator.fit(single, shares).predict(WORLD.rows(ratios, 400, rng)) - ratios).sum() < 0.3
    # one bag of two rows is enough for pooled covariances
    pair = [*single, WORLD.rows([0.5, 0.5, 0.0], 2, rng)]
    ClassMeans(features=32).fit(pair, np.vstack([shares, [0.5, 0.5, 0.0]]))


@settings(derandomize=True)
@given(st.lists(st.integers(1, 40_000), min_size=1, max_size=12))
def test_few_rows_are_all_kept_and_many_are_thinned_evenly(sizes):
    bags = [np.arange(size)[:, None] for size in sizes]
    found = thinned(bags)
    assert len(found) == len(bags)
    total = sum(map(len, found))
    if sum(sizes) <= 20_000:
        assert total == sum(sizes)
    else:
        assert 10_000 <= total <= 40_000
    for bag, kept in zip(bags, found, strict=True):
        steps = np.diff(kept[:, 0])
        assert kept[0, 0] == bag[0, 0]
        assert len(set(steps)) <= 1
        assert abs(len(kept) / total - len(bag) / sum(sizes)) < 0.01


def test_many_examples_take_memory_in_proportion_and_of_very_many_small_bags_some_are_kept_whole():
    assert [len(bag) for bag in thinned([np.zeros((5, 1))] * 30_000)] == [5] * 1000
    rows = np.random.default_rng(2).normal(size=(8000, 3))
    tracemalloc.start()
    found = ridge_regression(rows - rows.mean(axis=0), rows[:, :2])
    assert tracemalloc.get_traced_memory()[1] < 2**23  # a number for each pair of examples would take 2^29
    tracemalloc.stop()
    np.testing.assert_allclose(found.slope, np.eye(3)[:, :2], atol=1e-3)


@settings(derandomize=True)
@given(st.integers(2, 5), st.integers(0, 6), st.integers(0, 2**32))
def test_groups_are_disjoint_and_identify_all_classes_in_any_order(classes, further, seed):
    rng = np.random.default_rng(seed)
    shares = np.concatenate([skewed(classes, 0.02)] * 2 + [rng.dirichlet(np.ones(classes), further)])
    shares = rng.permutation(shares)
    first, second = two_groups(shares)
    assert not set(first) & set(second)
    for group in (first, second):
        assert len(group) == classes
        assert np.linalg.cond(shares[group]) < 1e3


@pytest.mark.parametrize("shares", [
    skewed(3, 0.1), np.concatenate([skewed(3, 0.1), skewed(3, 0.1)[:2]]),
    np.vstack([skewed(2, 0.1), [[0.9, 0.1]] * 3]),
])  # fmt: skip
def test_without_two_groups_there_is_none(shares):
    assert two_groups(shares) is None
    bags = Mixtures(shares.shape[1]).bags(shares, 20, np.random.default_rng(0))
    assert selected_bandwidth(MMD("fourier", features=16), bags, shares, None) == 1.0


def test_noisy_proportions_are_compared_on_the_simplex_and_projected():
    shares = np.concatenate([np.eye(2)] * 2) + np.outer([0.1, -0.1, -0.2, 0.2], [1, -1])
    noise = np.tile(0.01 * (np.eye(2) - 0.5), (4, 1, 1))
    bags = Mixtures(2).bags(np.concatenate([np.eye(2)] * 2), 30, np.random.default_rng(3))
    assert selected_bandwidth(MMD("fourier", features=16), bags, shares, noise) in CANDIDATES
    released = np.array([[1.2, -0.1, -0.1], [0.0, 0.7, 0.3], [-0.2, 0.1, 1.1]])
    bags = WORLD.bags(np.eye(3), 30, np.random.default_rng(7))
    known = np.tile(0.04 * (np.eye(3) - 1 / 3), (3, 1, 1))
    one = MMD("linear").fit(bags, released, known)
    other = MMD("linear").fit(bags, simplex.project(released))
    assert one.operator_ == pytest.approx(other.operator_)


@pytest.mark.parametrize("estimator", [MMD("exact"), MMD("fourier", features=32), ClassMeans(features=32)])
def test_the_selected_bandwidth_predicts_held_out_bags_best_in_both_roles(estimator):
    world, shares = Mixtures(2, columns=3), np.concatenate([skewed(2, 0.1)] * 2)
    bags = world.bags(shares, 40, np.random.default_rng(1))

    def error(bandwidth):
        total = 0.0
        for train, held_out in (((0, 1), (2, 3)), ((2, 3), (0, 1))):
            fitted = clone(estimator).set_params(bandwidth=bandwidth)
            fitted.fit([bags[i] for i in train], shares[list(train)])
            total += sum(np.abs(fitted.predict(bags[i]) - shares[i]).sum() for i in held_out)
        return total

    errors = [error(candidate) for candidate in CANDIDATES]
    fitted = clone(estimator).set_params(bandwidth="auto").fit(bags, shares)
    assert errors[CANDIDATES.index(fitted.bandwidth_)] == pytest.approx(min(errors), abs=1e-9)
    assert fitted.get_params()["bandwidth"] == "auto"


@pytest.mark.slow
def test_a_structure_of_small_scale_is_found():
    """Two classes that differ in parity only: wide kernels see nothing."""
    rng = np.random.default_rng(2)

    def bag(ones, size=400):
        parity = np.repeat([0, 1], [size - ones, ones])
        return (2 * rng.integers(0, 4, size) + parity + 0.1 * rng.normal(size=size))[:, None]

    shares = np.array([[0.1, 0.9], [0.9, 0.1]] * 2)
    bags = [bag(round(400 * share)) for share in shares[:, 1]]
    fitted = MMD("exact", "auto").fit(bags, shares)
    assert fitted.bandwidth_ >= 4
    found = fitted.predict(bag(200))
    assert found == pytest.approx([0.5, 0.5], abs=0.1)


@given(st.integers(0, 2**32 - 1), st.integers(3, 9), st.integers(1, 6))
def test_left_out_errors_are_those_of_fits_without_the_example(seed, examples, columns):
    random = np.random.default_rng(seed)
    rows, targets = random.normal(size=(examples, columns)), random.normal(size=(examples, 2))
    centred = rows - rows.mean(axis=0)
    found = ridge_regression(centred, targets)
    for out in range(examples):
        kept = np.arange(examples) != out
        centre, mean = rows[kept].mean(axis=0), targets[kept].mean(axis=0)
        gram = (rows[kept] - centre).T @ (rows[kept] - centre) + found.ridge * np.eye(columns)
        slope = np.linalg.solve(gram, (rows[kept] - centre).T @ (targets[kept] - mean))
        residual = targets[out] - mean - (rows[out] - centre) @ slope
        np.testing.assert_allclose(found.left_out[out], residual, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("columns", [3, 20])
def test_the_slope_is_that_of_an_independent_solver_and_the_ridge_follows_the_noise(columns):
    random = np.random.default_rng(0)
    rows, targets = random.normal(size=(8, columns)), random.normal(size=(8, 2))
    centred = rows - rows.mean(axis=0)
    found = ridge_regression(centred, targets)
    other = KernelRidge(alpha=found.ridge).fit(centred, targets - targets.mean(axis=0))
    np.testing.assert_allclose(found.slope, centred.T @ other.dual_coef_, rtol=1e-6)
    rows = random.normal(size=(30, 4))
    rows -= rows.mean(axis=0)
    slope = random.normal(size=(4, 1))
    exact, noise = ridge_regression(rows, rows @ slope), random.normal(size=(30, 1))
    assert exact.ridge == pytest.approx(1e-4 * np.linalg.eigvalsh(rows @ rows.T)[-1])
    assert ridge_regression(rows, noise).ridge > 100 * exact.ridge
    equal = ridge_regression(np.zeros((4, 2)), np.arange(4.0)[:, None])  # equal examples say nothing
    np.testing.assert_array_equal(equal.slope, 0.0)
    np.testing.assert_allclose(equal.left_out[0], 0.0 - np.mean([1, 2, 3]))


RANDOM = np.random.default_rng(2)
MANY_SHARES = RANDOM.dirichlet(np.ones(3), 30)
BAGS = [WORLD.rows(shares, 80, RANDOM) for shares in MANY_SHARES]


@pytest.mark.parametrize("kernel", DistributionRegression.kernels)
def test_ratios_of_a_set_are_found_from_many_bags(kernel):
    estimator = DistributionRegression(kernel).fit(BAGS, MANY_SHARES)
    truth = np.array([0.6, 0.3, 0.1])
    found = estimator.predict(WORLD.rows(truth, 400, np.random.default_rng(3)))
    assert np.abs(found - truth).sum() < 0.15
    assert found.sum() == pytest.approx(1)
    again = DistributionRegression.from_arrays(*estimator.to_arrays())
    np.testing.assert_array_equal(again.predict(BAGS[0]), estimator.predict(BAGS[0]))


def test_means_teach_what_their_rows_do_and_what_drifts_with_every_bag_is_looked_past():
    """Bags are moved along a direction of their own, further than classes are apart; a linear map can ignore it."""
    random = np.random.default_rng(4)
    away = np.linalg.svd(WORLD.means)[2][-1]  # at right angles to all class means
    moved = [bag + 20 * random.normal() * away for bag in BAGS]
    estimator = DistributionRegression("linear").fit(moved, MANY_SHARES)
    truth = np.array([0.1, 0.2, 0.7])
    rows = WORLD.rows(truth, 400, random) + 30 * away
    assert np.abs(estimator.predict(rows) - truth).sum() < 0.2
    whole = DistributionRegression("linear").fit(BAGS, MANY_SHARES)
    means = np.stack([bag.mean(axis=0) for bag in BAGS])
    known = DistributionRegression("linear").fit_means(means, np.full(30, 80), MANY_SHARES, covariance=np.eye(6))
    np.testing.assert_allclose(known.predict(BAGS[3]), whole.predict(BAGS[3]), rtol=1e-9)
    some = whole.learned_from(means[:10], MANY_SHARES[:10])
    fresh = DistributionRegression("linear").fit(BAGS[:10], MANY_SHARES[:10])
    np.testing.assert_allclose(some.predict(BAGS[20]), fresh.predict(BAGS[20]), rtol=1e-9)
    assert whole.predict(BAGS[20]) != pytest.approx(some.predict(BAGS[20]))  # the whole one is as it was
    with pytest.raises(InputError, match=r"fit_means.*linear"):
        DistributionRegression().fit_means(np.eye(3), np.ones(3), np.eye(3))


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


@pytest.mark.slow
def test_with_more_bags_than_classes_it_follows_sampling_errors_that_class_means_average():
    rng = np.random.default_rng(6)
    shares = np.concatenate([skewed(3, 0.1)] * 10)
    ratios, errors = np.array([0.6, 0.3, 0.1]), {"mmd": [], "class_means": []}
    for _ in range(4):
        bags = WORLD.bags(shares, 10, rng)
        rows = WORLD.rows(ratios, 200, rng)
        for estimator in (MMD("fourier", 1.0), ClassMeans("fourier", 1.0)):
            errors[estimator.name].append(np.abs(estimator.fit(bags, shares).predict(rows) - ratios).sum())
    assert np.mean(errors["class_means"]) < 0.8 * np.mean(errors["mmd"])
