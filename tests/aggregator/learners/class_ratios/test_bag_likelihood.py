"""Bag likelihoods: transitions, the risk and its minimiser, folds and the regularisation, and most likely ratios."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad, minimize, minimize_scalar
from sklearn.linear_model import LogisticRegression
from support.mixtures import Mixtures, skewed

from aggregator.learners.class_ratios import bag_classifier as bag_likelihood
from aggregator.learners.class_ratios.bag_classifier import (
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


def problem(classes, bags, seed, rows=60, columns=4):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 50, bags)
    transition = Transition.of(rng.dirichlet(np.ones(classes), bags), sizes)
    likelihoods = transition.matrix[rng.integers(0, bags, rows)]
    return transition, likelihoods, rng.normal(size=(rows, columns)), rng


@given(st.integers(2, 6), st.integers(1, 8), st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_the_transition_is_bayes_rule(classes, bags, seed):
    rng = np.random.default_rng(seed)
    sizes, shares = rng.integers(1, 100, bags), rng.dirichlet(np.full(classes, 0.3), bags)
    found = Transition.of(shares, sizes)
    assert found.matrix.sum(axis=0) == pytest.approx(1)
    assert found.matrix @ found.priors == pytest.approx(sizes / sizes.sum())
    assert found.priors == pytest.approx(sizes @ shares / sizes.sum(), abs=1e-5)
    back = found.matrix * found.priors
    assert back / back.sum(axis=1, keepdims=True) == pytest.approx(shares, abs=1e-5)


def test_proportions_off_the_simplex_are_projected_and_no_class_is_impossible():
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


def test_without_weights_every_row_has_the_priors_and_bags_their_sizes():
    transition, likelihoods, rows, _ = problem(3, 4, seed=0)
    found = posteriors(np.zeros((3, rows.shape[1] + 1)), rows, transition.priors)
    assert found == pytest.approx(np.broadcast_to(transition.priors, found.shape))
    shares = (found * likelihoods).sum(axis=1)
    assert surprise(found, likelihoods)[0] == pytest.approx(-np.log(shares).mean())
    assert found @ transition.matrix.T == pytest.approx(np.broadcast_to(transition.matrix @ transition.priors, (60, 4)))


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


def test_sure_posteriors_stay_finite():
    sure = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert np.isfinite(recalibrated(sure, np.array([2.0, 0.1, -0.1]))).all()
    value, residuals = surprise(sure, Transition.of(np.eye(2), np.array([1, 1])).matrix[[1, 0]])
    assert np.isfinite(value)
    assert np.isfinite(residuals).all()


@pytest.fixture(scope="module")
def world():
    """Scaled rows of three bags, their bags, the transition, and four parts."""
    shares, sizes = skewed(3, 0.1), np.array([90, 60, 70])
    mixtures, rng = Mixtures(3), np.random.default_rng(0)
    rows = np.concatenate([mixtures.rows(p, n, rng) for p, n in zip(shares, sizes, strict=True)])
    parts = dealt(sizes, 4, rng)
    return rows / rows.std(), np.repeat(np.arange(3), sizes), Transition.of(shares, sizes), parts


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(2, 6), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_folds_are_equal_in_every_bag_and_over_all(sizes, folds, seed):
    found = dealt(np.array(sizes), folds, np.random.default_rng(seed))
    for part in (found, *np.split(found, np.cumsum(sizes)[:-1])):
        counts = np.bincount(part, minlength=folds)
        assert counts.sum() == len(part)
        assert counts.max() - counts.min() <= 1


def test_folds_are_random():
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


def test_held_out_posteriors_are_those_of_the_classifier_without_the_row(world):
    rows, bags, transition, parts = world
    found = cross_fit(rows, bags, transition, 0.01, parts)
    likelihoods, start = transition.matrix[bags], np.zeros((3, rows.shape[1] + 1))
    for part in range(4):
        out = parts == part
        alone = fitted_weights(rows[~out], likelihoods[~out], transition.priors, 0.01, start)
        assert found.held_out[out] == pytest.approx(posteriors(alone, rows[out], transition.priors))


def test_the_chosen_regularisation_surprises_less_than_stronger_and_weaker_ones(world):
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


def test_two_classes_agree_with_a_search_on_the_line():
    posteriors, priors = drawn(2, 200, seed=0)
    found = most_likely_ratios(posteriors, priors)
    line = minimize_scalar(
        lambda t: -likelihood(np.array([1 - t, t]), posteriors, priors),
        bounds=(0, 1),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert found[1] == pytest.approx(line.x, abs=1e-3)
    assert likelihood(found, posteriors, priors) >= -line.fun - 1e-7


@given(st.integers(2, 6), st.integers(1, 40), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_they_are_certified_maximisers(classes, rows, seed):
    posteriors, priors = drawn(classes, rows, seed)
    found = most_likely_ratios(posteriors, priors)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    densities = posteriors / priors
    assert (densities / (densities @ found)[:, None]).mean(axis=0).max() <= 1 + 1e-5


def test_five_classes_agree_with_a_constrained_solver():
    posteriors, priors = drawn(5, 300, seed=4)
    found = most_likely_ratios(posteriors, priors)
    solver = minimize(
        lambda rho: -likelihood(np.maximum(rho, 1e-12), posteriors, priors),
        priors,
        method="SLSQP",
        bounds=[(0, 1)] * 5,
        constraints={"type": "eq", "fun": lambda rho: rho.sum() - 1},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert likelihood(found, posteriors, priors) >= -solver.fun - 1e-6
    assert found == pytest.approx(solver.x, abs=5e-3)


def test_every_round_raises_the_likelihood(monkeypatch):
    posteriors, priors = drawn(4, 100, seed=1)
    values = []
    for rounds in range(0, 40):
        monkeypatch.setattr(bag_likelihood, "_ROUNDS", rounds)
        values.append(likelihood(most_likely_ratios(posteriors, priors), posteriors, priors))
    assert values[0] == pytest.approx(0, abs=1e-9)  # at the priors every row is as likely as it is
    assert (np.diff(values) > 0).all()


def test_right_posteriors_give_the_ratios_of_a_shifted_set():
    world, rng = Mixtures(3), np.random.default_rng(0)
    priors, ratios = np.array([0.2, 0.5, 0.3]), np.array([0.6, 0.1, 0.3])
    rows = world.rows(ratios, 20_000, rng)
    assert most_likely_ratios(world.posteriors(rows, priors), priors) == pytest.approx(ratios, abs=0.02)


def test_sure_posteriors_are_counted():
    assert most_likely_ratios(np.eye(3)[[0, 0, 1, 2]], np.array([0.2, 0.3, 0.5])) == pytest.approx([0.5, 0.25, 0.25])


def test_posteriors_that_say_nothing_leave_the_priors():
    priors = np.array([0.3, 0.7])
    assert most_likely_ratios(np.tile(priors, (5, 1)), priors) == pytest.approx(priors)
