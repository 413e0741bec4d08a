"""Folds of bags, what is said of bags left out, and weights by it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, nnls

from aggregator.learners.class_ratios.auto import Candidate, folds, left_out, left_out_of_all, mean_error, stacked
from federation.contract.errors import InputError


@given(st.lists(st.integers(0, 20), min_size=1, max_size=40), st.integers(0, 100))
def test_every_bag_is_in_one_fold_with_all_of_its_group(groups, seed):
    parts = folds(np.array(groups), seed)
    assert sorted(np.concatenate(parts)) == list(range(len(groups)))
    names = [{groups[bag] for bag in part} for part in parts]
    distinct = len(set(groups))
    assert sum(map(len, names)) == distinct  # no group is in two of them
    assert len(parts) == (distinct if distinct <= 8 else 6)
    assert max(map(len, names)) - min(map(len, names)) <= 1


def test_names_of_groups_may_be_words():
    parts = folds(np.array(["b", "a", "b"]), 0)
    assert sorted(part.tolist() for part in parts) == [[0, 2], [1]]


def test_no_bag_is_seen_by_the_fit_that_is_asked_about_it():
    seen: list[tuple[list[int], list[int]]] = []

    def estimate(fitted, some):
        seen.append((list(fitted), some.tolist()))
        return np.tile(np.eye(2)[0], (len(some), 1))

    candidate = Candidate(lambda kept: kept, estimate)
    found = left_out_of_all(candidate, [np.array([0, 3]), np.array([1]), np.array([2])], 4)
    assert found.shape == (4, 2)
    assert seen == [([1, 2], [0, 3]), ([0, 2, 3], [1]), ([0, 1, 3], [2])]


def test_what_cannot_be_fitted_to_the_rest_says_nothing():
    def fit(kept):
        if 0 not in kept:
            raise InputError("classes cannot be told apart")
        return kept

    candidate = Candidate(fit, lambda fitted, some: np.full((len(some), 2), 0.5))
    assert left_out(candidate, np.array([0]), 3) is None
    assert left_out(candidate, np.array([1, 2]), 3).shape == (2, 2)
    assert left_out_of_all(candidate, [np.array([0]), np.array([1, 2])], 3) is None


def test_errors_are_l1():
    assert mean_error(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[0.7, 0.3], [1.2, -0.2]])) == pytest.approx(0.4)


def objective(weights, estimates, truth, pull):
    mixed = np.tensordot(weights, estimates, 1)
    apart = weights - np.eye(len(weights))[0]
    return np.sum((truth - mixed) ** 2) + pull * apart @ apart * np.sum((truth - estimates[0]) ** 2)


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.sampled_from([0.0, 0.1, 10.0]))
def test_weights_are_those_of_independent_solvers(seed, count, pull):
    random = np.random.default_rng(seed)
    truth = random.dirichlet(np.ones(3), 9)
    estimates = random.dirichlet(np.ones(3), (count, 9))
    found = stacked({str(k): one for k, one in enumerate(estimates)}, truth, "0", pull)
    weights = np.array(list(found.values()))
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    # Least squares without negative weights, in which one row of large weight says that they sum to 1.
    large = 1e4
    strength = np.sqrt(pull * np.sum((truth - estimates[0]) ** 2))
    rows = np.vstack([estimates.reshape(count, -1).T, strength * np.eye(count), np.full(count, large)])
    right = np.concatenate([truth.ravel(), strength * np.eye(count)[0], [large]])
    np.testing.assert_allclose(weights, nnls(rows, right)[0], atol=3e-3)  # of which a thousandth may be dropped
    other = minimize(
        objective, np.full(count, 1 / count), (estimates, truth, pull), bounds=[(0, 1)] * count, method="SLSQP",
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1}, options={"ftol": 1e-12},
    )  # fmt: skip
    assert objective(weights, estimates, truth, pull) <= other.fun * (1 + 1e-4) + 1e-9


def test_what_is_right_gets_all_weight_unless_it_is_pulled_to_the_leading_one():
    truth = np.array([[0.2, 0.8], [0.6, 0.4], [0.9, 0.1]])
    estimates = {"wrong": truth[::-1], "right": truth}
    assert stacked(estimates, truth, "wrong", 0.0) == {"wrong": 0.0, "right": 1.0}
    assert stacked(estimates, truth, "wrong", 1e6)["wrong"] == pytest.approx(1, abs=1e-3)
    assert stacked({"a": truth, "b": truth}, truth, "a", 0.1) == {"a": pytest.approx(0.5), "b": pytest.approx(0.5)}
