"""What estimators from kernel means share: exact mixtures, shifted sets, storage, and which rows stand for all."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from support.mixtures import Mixtures, skewed

from aggregator.learners.class_ratios.catalogue import load
from aggregator.learners.class_ratios.class_means import ClassMeans, EnergyMeans, WhitenedMeans
from aggregator.learners.class_ratios.kernel_means import MMD, thinned
from federation.contract.errors import InputError

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
DEBIASED = [estimator for estimator in EVERY if "debiased" in estimator.get_params()]
WORLD, SHARES = Mixtures(3), np.concatenate([skewed(3, 0.1), skewed(3, 0.2)])


def named(estimator):
    return f"{estimator.name}-{estimator.kernel}"


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


@pytest.mark.parametrize("estimator", EVERY, ids=named)
def test_what_is_stored_predicts_the_same(estimator, bags):
    fitted = clone(estimator).fit(bags, SHARES)
    rows = WORLD.rows([0.2, 0.3, 0.5], 50, np.random.default_rng(2))
    description, arrays = fitted.to_arrays()
    loaded = load(json.loads(json.dumps(description)), {name: array.copy() for name, array in arrays.items()})
    assert type(loaded) is type(fitted)
    assert loaded.get_params() == fitted.get_params()
    assert np.array_equal(loaded.predict(rows), fitted.predict(rows))
    assert loaded.embedding_key() == fitted.embedding_key()
    assert loaded.to_arrays()[0] == description


def permuted(estimator, seed, bags, shares):
    """Predictions for a set, before and after bags and classes change their order."""
    rng = np.random.default_rng(seed)
    order, relabelled = rng.permutation(len(bags)), rng.permutation(shares.shape[1])
    rows = WORLD.rows(rng.dirichlet(np.ones(3)), 40, rng)
    noise = np.tile(rng.uniform(0, 0.01) * (np.eye(3) - 1 / 3), (len(bags), 1, 1))
    noise *= rng.uniform(0.5, 2, (len(bags), 1, 1))
    before = clone(estimator).fit(bags, shares, noise).predict(rows)
    again = clone(estimator).fit([bags[i] for i in order], shares[order][:, relabelled], noise[order])
    return before[relabelled], again.predict(rows)


@settings(derandomize=True, deadline=None, max_examples=8)
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
    before, after = permuted(estimator, seed, drawn, SHARES)
    assert after == pytest.approx(before, abs=2e-5)


def test_kernels_agree_where_features_are_many():
    rng = np.random.default_rng(3)
    drawn = WORLD.bags(SHARES, 100, rng)
    rows = WORLD.rows([0.5, 0.2, 0.3], 300, rng)
    for estimator in (ClassMeans, MMD):
        exact, fourier, nystrom = (
            estimator(kernel, 1.0, features=features).fit(drawn, SHARES).predict(rows)
            for kernel, features in (("exact", 1), ("fourier", 4096), ("nystrom", 600))
        )
        assert nystrom == pytest.approx(exact, abs=2e-3)  # every row is a landmark
        assert fourier == pytest.approx(exact, abs=0.03)


@pytest.mark.parametrize("estimator", EVERY, ids=named)
def test_they_are_scikit_learn_estimators(estimator, bags):
    fresh = clone(estimator)
    assert fresh.get_params() == estimator.get_params()
    rows = bags[0]
    with pytest.raises(NotFittedError):
        fresh.predict(rows)
    with pytest.raises(NotFittedError):
        fresh.estimate(np.zeros(3))
    assert fresh.fit(bags, SHARES) is fresh
    assert fresh.n_features_in_ == 6
    found = fresh.predict(rows)
    assert found.shape == (3,)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    assert np.array_equal(found, fresh.estimate(fresh.embed(rows)))
    with pytest.raises(InputError, match="6 columns"):
        fresh.predict(rows[:, :5])
    with pytest.raises(InputError, match="finite"):
        fresh.predict(np.where(rows > 2, np.nan, rows))


def test_equal_kernels_share_their_embeddings(bags):
    whitened, plain = (kind(features=32).fit(bags, SHARES) for kind in (WhitenedMeans, ClassMeans))
    other_seed = ClassMeans(features=32, seed=1).fit(bags, SHARES)
    assert whitened.embedding_key() == plain.embedding_key() != other_seed.embedding_key()
    assert np.array_equal(whitened.embed(bags[0]), plain.embed(bags[0]))
    assert not np.allclose(other_seed.embed(bags[0]), plain.embed(bags[0]))


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (ClassMeans("gauss"), "kernel must be one of exact, fourier, nystrom, linear for class_means, got 'gauss'"),
        (WhitenedMeans("exact"), "kernel must be one of fourier, nystrom, linear for whitened"),
        (MMD("energy"), "for mmd, got 'energy'"),
        (ClassMeans(bandwidth=0.0), "bandwidth, unless it is auto, must be a positive"),
        (ClassMeans(bandwidth=True), "bandwidth, unless it is auto, must be a positive"),
        (MMD(bandwidth="median"), "bandwidth, unless it is auto, must be a positive"),
        (ClassMeans(features=0), "features must be an integer from 1"),
        (ClassMeans(features=7), "even"),
        (WhitenedMeans(seed=None), "seed must be an integer"),
        (WhitenedMeans(ridge=0.0), "ridge must be a positive"),
        (WhitenedMeans(ridge=np.nan), "ridge must be a positive"),
    ],
)
def test_parameters_are_checked_when_fitting(estimator, message, bags):
    with pytest.raises(InputError, match=message):
        estimator.fit(bags, SHARES)


@pytest.mark.parametrize("estimator", EVERY, ids=named)
def test_unusable_bags_are_refused(estimator, bags):
    with pytest.raises(InputError, match="rank 2, but 3 classes"):
        clone(estimator).fit(bags[:2], SHARES[:2])
    with pytest.raises(InputError, match="bag 3 must have at least one row"):
        clone(estimator).fit([*bags[:3], bags[3][:0], *bags[4:]], SHARES)


def test_single_rows_need_a_form_that_does_not_debias():
    rng = np.random.default_rng(4)
    single = WORLD.bags(np.tile(np.eye(3), (20, 1)), 1, rng)
    shares = np.tile(np.eye(3), (20, 1))
    for estimator, message in (
        (ClassMeans("exact"), "bag 0 must have at least two rows"),
        (EnergyMeans(), "bag 0 must have at least two rows"),
        (ClassMeans(features=32), "some bag must have two rows"),
        (WhitenedMeans(features=32), "some bag must have two rows"),
        (WhitenedMeans(features=32, debiased=False), "some bag must have two rows"),
    ):
        with pytest.raises(InputError, match=message):
            estimator.fit(single, shares)
    for estimator in (ClassMeans("exact", debiased=False), EnergyMeans(debiased=False), ClassMeans(debiased=False)):
        ratios = np.array([0.5, 0.3, 0.2])
        assert np.abs(estimator.fit(single, shares).predict(WORLD.rows(ratios, 400, rng)) - ratios).sum() < 0.3
    # one bag of two rows is enough for pooled covariances
    pair = [*single, WORLD.rows([0.5, 0.5, 0.0], 2, rng)]
    ClassMeans(features=32).fit(pair, np.vstack([shares, [0.5, 0.5, 0.0]]))


@settings(derandomize=True, deadline=None, max_examples=40)
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


def test_of_very_many_small_bags_some_are_kept_whole():
    found = thinned([np.zeros((5, 1))] * 30_000)
    assert len(found) == 1000
    assert {len(bag) for bag in found} == {5}
