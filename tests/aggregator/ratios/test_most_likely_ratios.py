"""Maximum-likelihood ratios against general-purpose solvers, their certificate, and their rise round by round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from support.mixtures import Mixtures

from aggregator.learners.class_ratios import bag_likelihood
from aggregator.learners.class_ratios.bag_likelihood import most_likely_ratios


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
