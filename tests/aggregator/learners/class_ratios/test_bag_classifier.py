"""The bag classifiers on Gaussian classes, where the best classifier and its error are known.

Bag likelihoods: transitions, the risk and its minimiser, folds and the regularisation, and most likely ratios. Rows as
linear classifiers take them: centred, of unit mean square, and nothing lost between bags and sets.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad, minimize
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from support.examples import examples
from support.mixtures import Mixtures, l1, skewed

from aggregator.learners.class_ratios.bag_classifier import (
    BagClassifier,
    BagClassifierEM,
    ScaledRows,
    Transition,
    calibration,
    cross_fit,
    dealt,
    fitted_weights,
    most_likely_ratios,
    posteriors,
    recalibrated,
    risk,
    surprise,
)
from federation.contract.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore:bag_classifier_em takes")

KINDS = [BagClassifier, BagClassifierEM]


@pytest.fixture(scope="module")
def three():
    """Three classes, fitted bags and a fresh generator."""
    world, rng = Mixtures(3), np.random.default_rng(0)
    shares = np.concatenate([skewed(3, 0.1), skewed(3, 0.2)])
    return world, world.bags(shares, 150, rng), shares


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 5])
def test_shifted_sets_get_their_ratios(kind, classes):
    world, rng = Mixtures(classes, distance=2.5, columns=8), np.random.default_rng(classes)
    shares = np.concatenate([skewed(classes, 0.3 / classes)] * 2)
    model = kind().fit(world.bags(shares, 1500, rng), shares)
    falling = 2.0 ** -np.arange(classes)
    for ratios in (falling / falling.sum(), np.eye(classes)[-1], np.full(classes, 1 / classes)):  # far from any bag's
        rows = world.rows(ratios, 3000, rng)
        # what the classifier that knows the classes gets wrong, and the same again for learning them from bags
        assert l1(model.predict(rows), ratios) < 0.08


@pytest.mark.slow
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


@pytest.mark.slow
def test_errors_fall_with_the_number_of_rows():
    world, shares, ratios = Mixtures(3, distance=1.5), skewed(3, 0.1), np.array([0.7, 0.2, 0.1])
    errors = {}
    for size in (50, 1600):
        rng = np.random.default_rng(6)
        trials = [BagClassifier().fit(world.bags(shares, size, rng), shares) for _ in range(4)]
        errors[size] = np.mean([l1(model.predict(world.rows(ratios, size, rng)), ratios) for model in trials])
    assert errors[1600] < errors[50] / 3


@pytest.mark.slow
def test_embeddings_and_class_scores_are_means_and_probabilities_taken_for_true_are_warned_of(three):
    world, bags, shares = three
    model = BagClassifier().fit(bags, shares)
    assert model.class_scores_.sum(axis=0) == pytest.approx(1)
    sets = [world.rows(np.eye(3)[y], 5000, np.random.default_rng(y)) for y in range(3)]
    pure = np.stack([model.embed(rows) for rows in sets], axis=1)
    assert np.abs(model.class_scores_ - pure).max() < 0.05
    rows = world.rows(np.full(3, 1 / 3), 700, np.random.default_rng(1))
    halves = [model.embed(part) for part in (rows[:200], rows[200:])]
    assert model.embed(rows) == pytest.approx((200 * halves[0] + 500 * halves[1]) / 700)
    assert model.embed(rows).sum() == pytest.approx(1)
    _, bags, shares = three
    with pytest.warns(UserWarning, match="takes its classifier's probabilities for true"):
        model = BagClassifierEM().fit(bags, shares)
    assert 0 < model.held_out_error_ < 0.2
    world, rng = Mixtures(2, distance=2.5), np.random.default_rng(4)
    true = np.array([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.1, 0.9]])
    wrong = np.array([[0.9, 0.1], [0.1, 0.9], [0.3, 0.7], [0.7, 0.3]])
    bags = world.bags(true, 400, rng)
    right, misled = (BagClassifierEM().fit(bags, shares).held_out_error_ for shares in (true, wrong))
    assert misled > 5 * right


@pytest.mark.slow
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


@pytest.mark.slow
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
@settings(max_examples=examples(6))
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_equal_seeds_give_equal_fits_and_others_others(kind, three):
    world, bags, shares = three
    rows = world.rows(np.full(3, 1 / 3), 200, np.random.default_rng(1))
    first, second, other = (kind(features=16, seed=seed).fit(bags, shares) for seed in (1, 1, 2))
    assert np.array_equal(first.predict(rows), second.predict(rows))
    assert first.embedding_key() == second.embedding_key() != other.embedding_key()
    assert not np.array_equal(first.weights_, other.weights_)


@pytest.mark.parametrize("kind", KINDS)
def test_there_are_as_many_classifiers_as_folds(kind, three):
    _, bags, shares = three
    assert kind(folds=2).fit(bags, shares).weights_.shape[0] == 2
    with pytest.raises(NotFittedError):
        BagClassifier().estimate(np.array([0.5, 0.5]))


def test_single_rows_are_bags_and_without_weights_every_row_has_the_priors():
    world, rng = Mixtures(2, distance=4.0), np.random.default_rng(0)
    shares = np.eye(2)[rng.integers(0, 2, 200)]
    model = BagClassifier().fit(world.bags(shares, 1, rng), shares)
    assert l1(model.predict(world.rows(np.array([0.25, 0.75]), 400, rng)), [0.25, 0.75]) < 0.05
    transition, likelihoods, rows, _ = problem(3, 4, seed=0)
    found = posteriors(np.zeros((3, rows.shape[1] + 1)), rows, transition.priors)
    assert found == pytest.approx(np.broadcast_to(transition.priors, found.shape))
    shares = (found * likelihoods).sum(axis=1)
    assert surprise(found, likelihoods)[0] == pytest.approx(-np.log(shares).mean())
    assert found @ transition.matrix.T == pytest.approx(np.broadcast_to(transition.matrix @ transition.priors, (60, 4)))


@pytest.mark.parametrize(("changes", "message"), [
    ({"regularisation": 0.0}, "regularisation"), ({"regularisation": "strong"}, "regularisation"),
    ({"regularisation": np.nan}, "regularisation"), ({"folds": 1}, r"folds.*2"), ({"folds": 2.5}, r"folds.*2"),
    ({"features": 7}, "features"), ({"features": 0}, r"features.*2"),
    ({"features": 8, "bandwidth": -1.0}, "bandwidth"), ({"seed": -1}, "seed"),
])  # fmt: skip
def test_parameters_that_cannot_be_used_are_refused(changes, message, three):
    _, bags, shares = three
    with pytest.raises(InputError, match=message):
        BagClassifier(**changes).fit(bags, shares)


def problem(classes, bags, seed, rows=60, columns=4):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 50, bags)
    transition = Transition.of(rng.dirichlet(np.ones(classes), bags), sizes)
    likelihoods = transition.matrix[rng.integers(0, bags, rows)]
    return transition, likelihoods, rng.normal(size=(rows, columns)), rng


@given(st.integers(2, 6), st.integers(1, 8), st.integers(0, 2**32))
def test_the_transition_is_bayes_rule(classes, bags, seed):
    rng = np.random.default_rng(seed)
    sizes, shares = rng.integers(1, 100, bags), rng.dirichlet(np.full(classes, 0.3), bags)
    found = Transition.of(shares, sizes)
    assert found.matrix.sum(axis=0) == pytest.approx(1)
    assert found.matrix @ found.priors == pytest.approx(sizes / sizes.sum())
    assert found.priors == pytest.approx(sizes @ shares / sizes.sum(), abs=1e-5)
    back = found.matrix * found.priors
    assert back / back.sum(axis=1, keepdims=True) == pytest.approx(shares, abs=1e-5)
    # Proportions off the simplex are projected, and no class is impossible.
    found = Transition.of(np.array([[1.2, -0.2], [0.4, 0.6]]), np.array([10, 10]))
    assert (found.matrix > 0).all()
    assert found.priors == pytest.approx([0.7, 0.3], abs=1e-5)


@pytest.mark.parametrize(("classes", "bags"), [(2, 2), (2, 5), (5, 5), (5, 3)])
def test_the_gradient_is_that_of_the_risk(classes, bags):
    transition, likelihoods, rows, rng = problem(classes, bags, seed=classes * bags)
    shape = (classes, rows.shape[1] + 1)

    def at(flat):
        return risk(flat.reshape(shape), rows, likelihoods, transition.priors, 0.01)

    for scale in (0.0, 1.0, 5.0):
        point = scale * rng.normal(size=shape).ravel()
        assert check_grad(lambda w: at(w)[0], lambda w: at(w)[1].ravel(), point, epsilon=1e-6) < 1e-5


@pytest.mark.parametrize("classes", [2, 3])
def test_with_pure_bags_it_is_logistic_regression(classes):
    rng, lam = np.random.default_rng(3), 0.02
    labels = np.repeat(np.arange(classes), 50)
    rows = rng.normal(size=(len(labels), 4)) + labels[:, None] * [1.0, 0.5, 0.0, -0.5]
    transition = Transition.of(np.eye(classes), np.full(classes, 50))
    found = fitted_weights(rows, transition.matrix[labels], transition.priors, lam, np.zeros((classes, 5)))
    # its penalty is |W|^2/2 to a summed loss, halved for two classes, whose two weights are w/2 and -w/2
    strength = len(labels) * lam * rows.shape[1] / (2 if classes == 2 else 1)
    oracle = LogisticRegression(C=1 / strength, tol=1e-10, max_iter=1000).fit(rows, labels)
    assert posteriors(found, rows, transition.priors) == pytest.approx(oracle.predict_proba(rows), abs=2e-4)


@pytest.mark.parametrize("classes", [2, 5])
def test_with_many_rows_it_finds_the_best_classifier(classes):
    world, rng = Mixtures(classes), np.random.default_rng(1)
    shares = skewed(classes, 0.4 / classes)
    bags = world.bags(shares, 8000, rng)
    transition = Transition.of(shares, np.full(classes, 8000))
    rows, numbers = np.concatenate(bags), np.repeat(np.arange(classes), 8000)
    start = np.zeros((classes, rows.shape[1] + 1))
    weights = fitted_weights(rows, transition.matrix[numbers], transition.priors, 1e-6, start)
    fresh = world.rows(transition.priors, 2000, rng)
    found, best = posteriors(weights, fresh, transition.priors), world.posteriors(fresh, transition.priors)
    assert np.abs(found - best).mean() < 0.02


@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_calibration_undoes_a_known_distortion(temperature):
    world, rng = Mixtures(3), np.random.default_rng(2)
    shares = skewed(3, 0.1)
    transition = Transition.of(shares, np.full(3, 10_000))
    rows, numbers = np.concatenate(world.bags(shares, 10_000, rng)), np.repeat(np.arange(3), 10_000)
    right = world.posteriors(rows, transition.priors)
    wrong = recalibrated(right, np.array([temperature, 0.5, 0.0, -0.5]))
    likelihoods = transition.matrix[numbers]
    found = calibration(wrong, likelihoods)
    assert found[0] == pytest.approx(1 / temperature, rel=0.08)
    assert np.abs(recalibrated(wrong, found) - right).mean() < 0.01
    assert surprise(recalibrated(wrong, found), likelihoods)[0] <= surprise(right, likelihoods)[0]


def test_sure_posteriors_stay_finite_and_right_ones_give_the_ratios_of_a_shifted_set():
    sure = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert np.isfinite(recalibrated(sure, np.array([2.0, 0.1, -0.1]))).all()
    value, residuals = surprise(sure, Transition.of(np.eye(2), np.array([1, 1])).matrix[[1, 0]])
    assert np.isfinite(value)
    assert np.isfinite(residuals).all()
    world, rng = Mixtures(3), np.random.default_rng(0)
    priors, ratios = np.array([0.2, 0.5, 0.3]), np.array([0.6, 0.1, 0.3])
    rows = world.rows(ratios, 20_000, rng)
    assert most_likely_ratios(world.posteriors(rows, priors), priors) == pytest.approx(ratios, abs=0.02)
    assert most_likely_ratios(np.eye(3)[[0, 0, 1, 2]], np.array([0.2, 0.3, 0.5])) == pytest.approx([0.5, 0.25, 0.25])
    priors = np.array([0.3, 0.7])
    assert most_likely_ratios(np.tile(priors, (5, 1)), priors) == pytest.approx(priors)


@pytest.fixture(scope="module")
def world():
    """Scaled rows of three bags, their bags, the transition, and four parts."""
    shares, sizes = skewed(3, 0.1), np.array([90, 60, 70])
    mixtures, rng = Mixtures(3), np.random.default_rng(0)
    rows = np.concatenate([mixtures.rows(p, n, rng) for p, n in zip(shares, sizes, strict=True)])
    parts = dealt(sizes, 4, rng)
    return rows / rows.std(), np.repeat(np.arange(3), sizes), Transition.of(shares, sizes), parts


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(2, 6), st.integers(0, 2**32))
def test_folds_are_random_and_equal_in_every_bag_and_over_all(sizes, folds, seed):
    found = dealt(np.array(sizes), folds, np.random.default_rng(seed))
    for part in (found, *np.split(found, np.cumsum(sizes)[:-1])):
        counts = np.bincount(part, minlength=folds)
        assert counts.sum() == len(part)
        assert counts.max() - counts.min() <= 1
    first, second = (dealt(np.array([40, 40]), 4, np.random.default_rng(seed)) for seed in (0, 1))
    assert (first != second).mean() > 0.5


@pytest.mark.parametrize("regularisation", [None, 0.01])
def test_a_row_changes_only_the_classifiers_that_may_see_it(world, regularisation):
    rows, bags, transition, parts = world
    changed = rows.copy()
    changed[parts == 2] += np.random.default_rng(1).normal(size=(int((parts == 2).sum()), rows.shape[1]))
    first = cross_fit(rows, bags, transition, regularisation, parts)
    second = cross_fit(changed, bags, transition, first.regularisation, parts)
    again = cross_fit(rows, bags, transition, first.regularisation, parts)
    assert np.array_equal(second.weights[2], again.weights[2])
    assert not np.allclose(second.weights[1], again.weights[1])


def test_held_out_posteriors_are_those_without_the_row_and_choose_the_regularisation(world):
    rows, bags, transition, parts = world
    found = cross_fit(rows, bags, transition, 0.01, parts)
    likelihoods, start = transition.matrix[bags], np.zeros((3, rows.shape[1] + 1))
    for part in range(4):
        out = parts == part
        alone = fitted_weights(rows[~out], likelihoods[~out], transition.priors, 0.01, start)
        assert found.held_out[out] == pytest.approx(posteriors(alone, rows[out], transition.priors))
    rows, bags, transition, parts = world
    chosen = cross_fit(rows, bags, transition, None, parts)
    likelihoods = transition.matrix[bags]
    least = surprise(chosen.held_out, likelihoods)[0]
    for other in (1.0, 1e-6):
        assert least < surprise(cross_fit(rows, bags, transition, other, parts).held_out, likelihoods)[0]
    assert least < surprise(np.tile(transition.priors, (len(rows), 1)), likelihoods)[0]


def likelihood(rho, posteriors, priors):
    return float(np.log(posteriors @ (rho / priors)).mean())


def drawn(classes, rows, seed):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(classes, 0.5), rows), rng.dirichlet(np.full(classes, 3.0))


@given(st.integers(2, 6), st.integers(1, 40), st.integers(0, 2**32))
def test_they_are_certified_maximisers(classes, rows, seed):
    posteriors, priors = drawn(classes, rows, seed)
    found = most_likely_ratios(posteriors, priors)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    densities = posteriors / priors
    assert (densities / (densities @ found)[:, None]).mean(axis=0).max() <= 1 + 1e-5


@pytest.mark.parametrize("classes", [2, 5])
def test_they_agree_with_a_constrained_solver(classes):
    posteriors, priors = drawn(classes, 300, seed=4)
    found = most_likely_ratios(posteriors, priors)
    solver = minimize(
        lambda rho: -likelihood(np.maximum(rho, 1e-12), posteriors, priors),
        priors,
        method="SLSQP",
        bounds=[(0, 1)] * classes,
        constraints={"type": "eq", "fun": lambda rho: rho.sum() - 1},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert likelihood(found, posteriors, priors) >= -solver.fun - (1e-7 if classes == 2 else 1e-6)
    assert found == pytest.approx(solver.x, abs=1e-3 if classes == 2 else 5e-3)


@dataclass(eq=False, repr=False)
class Means(ScaledRows):
    """Knows of a set the mean of its scaled rows."""

    name = "means"

    features: int | None = None
    bandwidth: float = 1.0
    seed: int = 0

    def _fit(self, bags, proportions, noise):
        self.learned = self._fit_rows(bags, self.bandwidth)

    def embed(self, rows):
        return np.concatenate(list(self._tiles(rows))).mean(axis=0)

    def scaled(self, rows):
        return np.concatenate(list(self._tiles(rows)))


def bags_of(seed=0, shift=0.0, factor=1.0):
    random = np.random.default_rng(seed)
    return [factor * (random.normal(size=(size, 3)) + np.array([i, 0, 0])) + shift for i, size in enumerate((300, 40))]


def fitted(bags, **options):
    return Means(**options).fit(bags, np.eye(2))


@pytest.mark.parametrize("features", [None, 64])
def test_rows_of_the_bags_are_centred_and_of_unit_mean_square_so_that_a_shift_and_a_factor_change_nothing(features):
    """Random features are turned by a shift, which linear classifiers do not see."""
    bags = bags_of()
    found = fitted(bags, features=features)
    assert found.learned.shape == (340, features or 3)
    np.testing.assert_allclose(found.learned.mean(axis=0), 0, atol=1e-12)
    assert np.mean(found.learned**2) == pytest.approx(1)
    np.testing.assert_allclose(np.concatenate([found.scaled(bag) for bag in bags]), found.learned, atol=1e-12)
    usual, moved = (fitted(bags_of(1, *how), features=features) for how in ((), (50.0, 3.0)))
    np.testing.assert_allclose(moved.learned @ moved.learned.T, usual.learned @ usual.learned.T, atol=1e-9)


def test_columns_keep_their_relative_scales_and_equal_and_stored_fits_have_equal_keys():
    bags = [bag * [1.0, 10.0, 1.0] for bag in bags_of(2)]
    spread = fitted(bags).learned.std(axis=0)
    expected = np.concatenate(bags).std(axis=0)
    np.testing.assert_allclose(spread / spread[0], expected / expected[0])
    keys = [
        fitted(bags_of(seed), features=features, bandwidth=bandwidth).embedding_key()
        for seed, features, bandwidth in ((0, 8, 1.0), (0, 8, 1.0), (1, 8, 1.0), (0, None, 1.0), (0, 8, 2.0))
    ]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4
    found = fitted(bags_of(), features=8)
    again = Means.from_arrays(*found.to_arrays())
    np.testing.assert_array_equal(again.scaled(bags_of(5)[0]), found.scaled(bags_of(5)[0]))
    assert again.embedding_key() == found.embedding_key()


def test_bags_that_cannot_be_scaled_are_refused():
    for bags, words in (
        ([np.ones((3, 2)), np.ones((4, 2))], "0"),
        ([np.full((2, 2), 1e200), np.full((2, 2), -1e200)], None),
    ):
        with pytest.raises(InputError, match=words):
            fitted(bags)
