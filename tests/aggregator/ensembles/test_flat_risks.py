"""Votes that leave a weakly regularised risk flat: how far they move its minimiser, by an independent solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from aggregator.ensembles.worst_case import FlatRisk, flat_risk, flat_votes
from federation.features.feature_map import FeatureMap
from federation.mechanisms.accounting.sensitivity import radius
from federation.queries.votes import Training, VotesQuestion


def asked(flat: FlatRisk) -> VotesQuestion:
    """For the votes on all its rows."""
    return VotesQuestion(Training(FeatureMap(2, ()), 2, {"name": "logistic", "parameters": {}}, 0), flat.rows)


def shares(votes):
    """The part of the parties that votes for the second class, (N,)."""
    return votes.mean(axis=0)


def moved(flat: FlatRisk, lam: float) -> float:
    """The distance of both minimisers as a part of 1/(M lam), by Newton's method of another library."""
    pair = flat_votes(flat, 1000)
    found = []
    for there in (False, True):
        alpha = shares(pair.sent(there, asked(flat))["votes"])

        def risk(w, alpha=alpha):
            scores = pair.public @ w
            return np.mean(np.logaddexp(0, scores) - alpha * scores) + lam / 2 * w @ w

        def gradient(w, alpha=alpha):
            return pair.public.T @ (1 / (1 + np.exp(-pair.public @ w)) - alpha) / len(alpha) + lam * w

        def hessian(w):
            slope = 1 / (2 + 2 * np.cosh(pair.public @ w))
            return (pair.public.T * slope) @ pair.public / len(slope) + lam * np.eye(2)

        start = np.array([0.0, flat.norm])
        solved = minimize(risk, start, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-13})
        found.append(solved.x)
    return float(np.linalg.norm(found[0] - found[1]) * flat.parties * lam)


@pytest.mark.parametrize(("lam", "least"), [(1e-3, 0.35), (1e-4, 0.65), (1e-6, 0.9)])
def test_one_party_moves_the_minimiser_as_far_as_is_said(lam: float, least: float) -> None:
    flat = flat_risk(lam)
    assert flat is not None
    assert flat.attained > least
    assert moved(flat, lam) == pytest.approx(flat.attained, rel=0.02)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(log_lam=st.floats(-8.0, -2.0))
def test_rows_are_no_longer_than_1_and_the_minimiser_no_longer_than_any(log_lam: float) -> None:
    lam = 10.0**log_lam
    flat = flat_risk(lam)
    if flat is None:
        assert log_lam > -2.5
        return
    norms = np.linalg.norm(flat.rows, axis=1)
    assert norms[:-1] == pytest.approx(1)
    assert norms[-1] <= 1
    assert len(norms) == 2 * flat.copies + 1
    assert flat.norm <= radius(lam, 2)
    assert 0 < flat.attained < 1
    assert flat.score < flat.norm


def test_one_row_is_better_for_strong_regularisation() -> None:
    assert flat_risk(1.0) is None
    assert flat_risk(100.0) is None


def test_one_party_changes_its_votes() -> None:
    flat = flat_risk(1e-4)
    assert flat is not None
    here, there = (flat_votes(flat, 1).sent(side, asked(flat))["votes"] for side in (False, True))
    assert here.shape == (flat.parties, len(flat.rows))
    np.testing.assert_array_equal(here[1:], there[1:])
    assert (here[0] != there[0]).tolist() == [True] * (len(flat.rows) - 1) + [False]
