"""Optimal bins against a search over all bins, and their mean loss against the mechanism's own law."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from federation.mechanisms.labels.randomised_response import optimal_bins


def loss_of(starts, points, prior, epsilon):
    """The least mean loss of these bins, each value found by a one-dimensional search."""
    k, total, ends = len(starts), 0.0, [*starts[1:], len(points)]
    for start, end in zip(starts, ends, strict=True):
        weights = prior.copy()
        weights[start:end] *= math.exp(epsilon)
        found = minimize_scalar(lambda v, weights=weights: weights @ (v - points) ** 2, bounds=(-10, 10))
        total += found.fun
    return total / (math.exp(epsilon) + k - 1)


@settings(max_examples=25, deadline=None)
@given(
    weights=st.lists(st.integers(0, 9), min_size=2, max_size=6).filter(any),
    epsilon=st.floats(0.1, 6),
)
def test_no_other_bins_lose_less(weights, epsilon):
    prior = np.array(weights) / sum(weights)
    points = np.linspace(-1, 2, len(weights))
    found = optimal_bins(points, prior, epsilon)
    assert [len(bins.starts) for bins in found] == list(range(1, len(weights) + 1))
    for bins in found:
        others = itertools.combinations(range(1, len(weights)), len(bins.starts) - 1)
        best = min(loss_of((0, *starts), points, prior, epsilon) for starts in others)
        assert bins.loss == pytest.approx(best, rel=1e-6, abs=1e-9)
        assert loss_of(bins.starts, points, prior, epsilon) == pytest.approx(bins.loss, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_no_mechanism_at_all_loses_less(epsilon):
    """Ghazi et al. 2022, Theorem 1: a linear programme over all epsilon-private laws on a fine grid of outputs."""
    from scipy.optimize import linprog

    points, prior = np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.5, 0.1, 0.1, 0.3])
    best = min(optimal_bins(points, prior, epsilon), key=lambda bins: bins.loss)
    outputs = np.union1d(np.linspace(0, 3, 61), best.values)
    y, o = len(points), len(outputs)
    rows = []
    for a, b, j in itertools.product(range(y), range(y), range(o)):
        if a != b:
            row = np.zeros((y, o))
            row[a, j], row[b, j] = 1, -math.exp(epsilon)
            rows.append(row.ravel())
    cost = prior[:, None] * np.square(points[:, None] - outputs)
    sums = np.kron(np.eye(y), np.ones(o))
    programme = linprog(cost.ravel(), A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=sums, b_eq=np.ones(y))
    assert best.loss == pytest.approx(programme.fun, rel=1e-6)


def test_everything_is_one_bin_when_nothing_may_be_told_and_none_when_all_may():
    points, prior = np.linspace(0, 1, 8), np.full(8, 1 / 8)
    least, most = (min(optimal_bins(points, prior, epsilon), key=lambda bins: bins.loss) for epsilon in (1e-3, 40.0))
    assert len(least.starts) <= 2
    assert least.loss == pytest.approx(prior @ np.square(points - 0.5), rel=1e-3)
    assert most.starts == tuple(range(8))
    assert most.loss < 1e-12
