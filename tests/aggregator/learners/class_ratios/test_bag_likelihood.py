"""The transition's identities, the risk's gradient, its minimiser where that is known, and calibration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad
from sklearn.linear_model import LogisticRegression
from support.mixtures import Mixtures, skewed

from aggregator.learners.class_ratios.bag_likelihood import (
    Transition,
    calibration,
    fitted_weights,
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
