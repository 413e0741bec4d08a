"""The bag classifiers on Gaussian classes, where the best classifier and its error are known."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from support.mixtures import Mixtures, skewed

from aggregator.learners.class_ratios.bag_classifier import BagClassifier, BagClassifierEM
from federation.contract.errors import InputError

KINDS = [BagClassifier, BagClassifierEM]
pytestmark = pytest.mark.filterwarnings("ignore:bag_classifier_em takes")


def l1(found, ratios):
    return float(np.abs(found - ratios).sum())


def shifted(classes):
    """Ratios far from those of any bag, to the corner included."""
    falling = 2.0 ** -np.arange(classes)
    return [falling / falling.sum(), np.eye(classes)[-1], np.full(classes, 1 / classes)]


@pytest.fixture(scope="module")
def three():
    """Three classes, fitted bags and a fresh generator."""
    world, rng = Mixtures(3), np.random.default_rng(0)
    shares = np.concatenate([skewed(3, 0.1), skewed(3, 0.2)])
    return world, world.bags(shares, 150, rng), shares


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 5])
def test_shifted_sets_get_their_ratios(kind, classes):
    world, rng = Mixtures(classes, distance=2.5, columns=8), np.random.default_rng(classes)
    shares = np.concatenate([skewed(classes, 0.3 / classes)] * 2)
    model = kind().fit(world.bags(shares, 1500, rng), shares)
    for ratios in shifted(classes):
        rows = world.rows(ratios, 3000, rng)
        # what the classifier that knows the classes gets wrong, and the same again for learning them from bags
        assert l1(model.predict(rows), ratios) < 0.08


def test_matched_scores_lose_little_to_those_of_the_best_classifier():
    world, rng = Mixtures(2, distance=1.5), np.random.default_rng(5)
    shares, errors, best = skewed(2, 0.1), [], []
    for _ in range(15):
        bags = world.bags(shares, 600, rng)
        model = BagClassifier().fit(bags, shares)
        known = np.stack([world.posteriors(bag, np.array([0.5, 0.5])).mean(axis=0) for bag in bags], axis=1)
        matched = known @ np.linalg.inv(shares.T)
        ratios = np.array([0.8, 0.2])
        rows = world.rows(ratios, 600, rng)
        errors.append(l1(model.predict(rows), ratios))
        found = np.linalg.solve(matched, world.posteriors(rows, np.array([0.5, 0.5])).mean(axis=0))
        best.append(l1(found, ratios))
    assert np.mean(errors) < 1.3 * np.mean(best) + 0.005


def test_errors_fall_with_the_number_of_rows():
    world, shares, ratios = Mixtures(3, distance=1.5), skewed(3, 0.1), np.array([0.7, 0.2, 0.1])
    errors = {}
    for size in (50, 1600):
        rng = np.random.default_rng(6)
        trials = [BagClassifier().fit(world.bags(shares, size, rng), shares) for _ in range(4)]
        errors[size] = np.mean([l1(model.predict(world.rows(ratios, size, rng)), ratios) for model in trials])
    assert errors[1600] < errors[50] / 3


def test_the_mean_scores_of_bags_are_mixtures_of_those_of_the_classes(three):
    world, bags, shares = three
    model = BagClassifier().fit(bags, shares)
    assert model.class_scores_.sum(axis=0) == pytest.approx(1)
    sets = [world.rows(np.eye(3)[y], 5000, np.random.default_rng(y)) for y in range(3)]
    pure = np.stack([model.embed(rows) for rows in sets], axis=1)
    assert np.abs(model.class_scores_ - pure).max() < 0.05


def test_an_embedding_is_the_mean_over_the_rows(three):
    world, bags, shares = three
    model = BagClassifier().fit(bags, shares)
    rows = world.rows(np.full(3, 1 / 3), 700, np.random.default_rng(1))
    halves = [model.embed(part) for part in (rows[:200], rows[200:])]
    assert model.embed(rows) == pytest.approx((200 * halves[0] + 500 * halves[1]) / 700)
    assert model.embed(rows).sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", KINDS)
def test_noisy_proportions_of_many_small_bags(kind):
    world, rng = Mixtures(2, distance=2.0), np.random.default_rng(8)
    a = rng.choice([0.1, 0.9], 400)
    shares = np.rint(30 * np.stack([1 - a, a], axis=1)) / 30
    bags = world.bags(shares, 30, rng)
    errors = rng.normal(scale=0.26, size=shares.shape)
    noisy = shares + errors - errors.mean(axis=1, keepdims=True)
    noise = np.tile(0.26**2 * (np.eye(2) - 0.5), (400, 1, 1))
    assert noisy.min() < -0.2
    model = kind().fit(bags, noisy, noise)
    mean = np.mean(
        [l1(model.predict(world.rows(np.array([1 - t, t]), 3000, rng)), [1 - t, t]) for t in (0.1, 0.5, 0.9)]
    )
    assert mean < 0.06


@pytest.mark.parametrize("kind", KINDS)
def test_random_features_tell_classes_apart_that_no_line_does(kind):
    rng = np.random.default_rng(3)

    def rows(share, size):
        radius = np.where(np.arange(size) < round(share * size), 3.0, 1.0)
        angle = rng.uniform(0, 2 * np.pi, size)
        return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.2 * rng.normal(size=(size, 2))

    shares = np.array([[0.2, 0.8], [0.8, 0.2]])
    bags = [rows(share, 400) for share in shares[:, 0]]
    ringed = kind(features=64, bandwidth=4.0).fit(bags, shares)
    straight = kind().fit(bags, shares)
    target = rows(0.05, 1000)
    error = l1(ringed.predict(target), [0.05, 0.95])
    assert error < 0.04
    assert l1(straight.predict(target), [0.05, 0.95]) > 2 * error


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32), classes=st.integers(2, 4))
@settings(max_examples=12, deadline=None)
def test_every_estimate_is_on_the_simplex_and_units_and_names_do_not_matter(kind, seed, classes):
    rng = np.random.default_rng(seed)
    world = Mixtures(classes, distance=rng.uniform(0, 3), seed=seed % 100)
    shares = np.concatenate([np.eye(classes), rng.dirichlet(np.ones(classes), 2)])
    bags = [world.rows(p, int(n), rng) for p, n in zip(shares, rng.integers(3, 40, len(shares)), strict=True)]
    rows = world.rows(rng.dirichlet(np.ones(classes)), 50, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = kind(regularisation=0.01).fit(bags, shares).predict(rows)
        units = kind(regularisation=0.01).fit([7 * bag - 3 for bag in bags], shares).predict(7 * rows - 3)
        names = kind(regularisation=0.01).fit(bags, shares[:, ::-1]).predict(rows)
    assert found.shape == (classes,)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    assert units == pytest.approx(found, abs=0.02)
    assert names[::-1] == pytest.approx(found, abs=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_seeds_give_equal_fits_and_others_others(kind, three):
    world, bags, shares = three
    rows = world.rows(np.full(3, 1 / 3), 200, np.random.default_rng(1))
    first, second, other = (kind(features=32, seed=seed).fit(bags, shares) for seed in (1, 1, 2))
    assert np.array_equal(first.predict(rows), second.predict(rows))
    assert first.embedding_key() == second.embedding_key() != other.embedding_key()
    assert not np.array_equal(first.weights_, other.weights_)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("features", [None, 16])
def test_what_is_written_down_is_all_that_it_knows(kind, features, three):
    world, bags, shares = three
    model = kind(features=features).fit(bags, shares)
    description, arrays = model.to_arrays()
    again = kind.from_arrays(json.loads(json.dumps(description)), arrays)
    rows = world.rows(np.full(3, 1 / 3), 200, np.random.default_rng(1))
    assert np.array_equal(again.predict(rows), model.predict(rows))
    assert again.embedding_key() == model.embedding_key()
    assert again.get_params() == model.get_params()
    assert description["estimator"] == kind.name


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_a_scikit_learn_estimator(kind, three):
    world, bags, shares = three
    model = kind(folds=3).fit(bags, shares)
    copy = clone(model)
    assert copy.get_params()["folds"] == 3
    rows = world.rows(np.full(3, 1 / 3), 20, np.random.default_rng(1))
    for ask in (copy.predict, copy.embed, lambda _: copy.embedding_key()):
        with pytest.raises(NotFittedError):
            ask(rows)
    assert copy.set_params(folds=2).fit(bags, shares).weights_.shape[0] == 2


def test_matched_scores_need_a_fit(three):
    with pytest.raises(NotFittedError):
        BagClassifier().estimate(np.array([0.5, 0.5]))


def test_single_rows_are_bags():
    world, rng = Mixtures(2, distance=4.0), np.random.default_rng(0)
    shares = np.eye(2)[rng.integers(0, 2, 200)]
    model = BagClassifier().fit(world.bags(shares, 1, rng), shares)
    assert l1(model.predict(world.rows(np.array([0.25, 0.75]), 400, rng)), [0.25, 0.75]) < 0.05


def test_probabilities_taken_for_true_come_with_a_warning_and_a_check(three):
    _, bags, shares = three
    with pytest.warns(UserWarning, match="takes its classifier's probabilities for true"):
        model = BagClassifierEM().fit(bags, shares)
    assert 0 < model.held_out_error_ < 0.2


def test_proportions_that_the_rows_contradict_show_in_the_check():
    world, rng = Mixtures(2, distance=2.5), np.random.default_rng(4)
    true = np.array([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.1, 0.9]])
    wrong = np.array([[0.9, 0.1], [0.1, 0.9], [0.3, 0.7], [0.7, 0.3]])
    bags = world.bags(true, 400, rng)
    right, misled = (BagClassifierEM().fit(bags, shares).held_out_error_ for shares in (true, wrong))
    assert misled > 5 * right


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"regularisation": 0.0}, "regularisation must be"),
        ({"regularisation": "strong"}, "regularisation must be"),
        ({"regularisation": np.nan}, "regularisation must be"),
        ({"folds": 1}, "folds must be an integer from 2"),
        ({"folds": 2.5}, "folds must be an integer from 2"),
        ({"features": 7}, "features must be an even number"),
        ({"features": 0}, "features must be an integer from 2"),
        ({"features": 8, "bandwidth": -1.0}, "bandwidth must be"),
        ({"seed": -1}, "seed must be an integer"),
    ],
)
def test_parameters_that_cannot_be_used_are_refused(changes, message, three):
    _, bags, shares = three
    with pytest.raises(InputError, match=message):
        BagClassifier(**changes).fit(bags, shares)


def test_bags_and_sets_that_cannot_be_used_are_refused(three):
    _, bags, shares = three
    with pytest.raises(InputError, match="rank 2"):
        BagClassifier().fit(bags[:3], np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]]))
    with pytest.raises(InputError, match="must differ"):
        BagClassifier().fit([np.ones((5, 2))] * 6, shares)
    with pytest.raises(InputError, match="can be squared"):
        BagClassifier().fit([1e200 * bag for bag in bags], shares)
    model = BagClassifier().fit(bags, shares)
    for rows, message in [
        (np.ones((4, 3)), "6 columns"),
        (np.ones((0, 6)), "empty"),
        (np.full((4, 6), np.nan), "finite"),
        (np.ones(6), "two axes"),
    ]:
        with pytest.raises(InputError, match=message):
            model.predict(rows)
