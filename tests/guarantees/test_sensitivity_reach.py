"""The bounds that use the public rows: never exceeded by any votes on them, reached where rows allow it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.mechanisms.accounting import sensitivity
from federation.numerics.erm import minimise
from federation.numerics.rows import contrasts

TOLERANCE = 1e-11


def random_rows(rng, n, d):
    """Rows of norm at most 1, some much shorter than others, often of deficient rank."""
    rows = rng.normal(size=(n, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) / rng.random((n, 1)) ** rng.integers(0, 4)
    if d > 1 and rng.integers(2):
        rows[:, -1] = rows[:, 0] / 2
    return rows / max(1.0, np.linalg.norm(rows, axis=1).max())


def minimiser(rows, shares, lam):
    mu = shares.T @ rows / len(rows)
    return minimise(rows, mu[1] if shares.shape[1] == 2 else mu, lam, gradient_tolerance=TOLERANCE).weights


@settings(derandomize=True)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 9), d=st.integers(1, 4))
def test_no_signs_move_the_mean_of_the_rows_beyond_their_reach(seed, n, d):
    rows = random_rows(np.random.default_rng(seed), n, d)
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=n)))  # the extreme points of |s_i| <= 1
    farthest = np.linalg.norm(signs @ rows, axis=1).max() / n
    reach = sensitivity.reach(rows)
    assert farthest <= reach
    assert reach <= np.linalg.norm(rows, axis=1).mean() * (1 + 1e-9)
    assert reach <= np.linalg.norm(rows, 2) / math.sqrt(n) * (1 + 1e-9)


@settings(derandomize=True)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 8), d=st.integers(1, 4), classes=st.integers(2, 4))
def test_no_coefficients_move_the_class_means_beyond_their_norm_times_the_reach(seed, n, d, classes):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, n, d)
    coefficients = rng.normal(size=(n, classes))
    coefficients /= np.linalg.norm(coefficients, axis=1, keepdims=True)
    for _ in range(5):  # ascent: the best unit coefficients for the direction that the sum has now
        moved = np.linalg.norm(coefficients.T @ rows) / n
        assert moved <= sensitivity.reach(rows)
        pull = rows @ (coefficients.T @ rows).T
        coefficients = pull / np.maximum(np.linalg.norm(pull, axis=1, keepdims=True), 1e-300)


@pytest.mark.parametrize(
    "rows",
    [
        np.ones((5, 1)),
        np.array([[1.0, 1.0], [1.0, -1.0]]) / math.sqrt(2),  # the operator norm is the smaller bound
        np.array([[1.0], [0.1], [0.1]]),  # the mean of the norms is
    ],
)
def test_the_reach_is_attained(rows):
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=len(rows))))
    farthest = np.linalg.norm(signs @ rows, axis=1).max() / len(rows)
    assert farthest == pytest.approx(sensitivity.reach(rows), rel=1e-9)


@settings(derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    classes=st.integers(2, 3),
    lam=st.sampled_from([1e-3, 0.1, 10.0]),
    rule=st.sampled_from([sensitivity.soft_vote, sensitivity.majority_vote]),
)
def test_no_neighbouring_votes_exceed_the_bound_of_these_rows(seed, classes, lam, rule):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, int(rng.integers(1, 7)), int(rng.integers(1, 4)))
    parties = int(rng.integers(1, 4))
    votes = rng.integers(0, classes, (parties, len(rows)))
    changed = votes.copy()
    changed[0] = (changed[0] + rng.integers(1, classes, len(rows))) % classes
    shares = [np.eye(classes)[v].mean(axis=0) for v in (votes, changed)]
    if rule is sensitivity.majority_vote:
        shares = [np.eye(classes)[share.argmax(axis=1)] for share in shares]
    moved = np.linalg.norm(minimiser(rows, shares[0], lam) - minimiser(rows, shares[1], lam))
    bound = rule("public_features", regularisation=lam, parties=parties, classes=classes, reach=sensitivity.reach(rows))
    assert moved - sensitivity.solver_slack(TOLERANCE, lam) <= bound


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("parties", [1, 50])
def test_the_bound_of_these_rows_is_reached_under_strong_regularisation(classes, parties):
    rows = np.vstack([np.eye(3)] * 2)  # reach 1/sqrt(3)
    lam = 100.0
    before = np.zeros((parties, 6), dtype=int)
    after = before.copy()
    after[0] = 1
    moved = np.linalg.norm(
        minimiser(rows, np.eye(classes)[before].mean(axis=0), lam)
        - minimiser(rows, np.eye(classes)[after].mean(axis=0), lam)
    )
    arguments = {"regularisation": lam, "parties": parties, "classes": classes}
    bound = sensitivity.soft_vote("public_features", reach=sensitivity.reach(rows), **arguments)
    assert bound == pytest.approx(sensitivity.soft_vote("tight", **arguments) / math.sqrt(3), rel=1e-9)
    assert 0.99 * bound <= moved <= bound


def test_it_is_the_smallest_of_the_proven_bounds():
    for lam, reach, classes in itertools.product((1e-4, 1e-1, 10.0), (0.1, 1.0), (2, 5)):
        for rule, parties in itertools.product((sensitivity.soft_vote, sensitivity.majority_vote), (1, 1000)):
            arguments = {"regularisation": lam, "parties": parties, "classes": classes}
            found = rule("public_features", reach=reach, **arguments)
            smallest = min(reach * rule("tight", **arguments), rule("diameter", **arguments))
            assert found == pytest.approx(smallest, rel=1e-12)


@settings(derandomize=True)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), d=st.integers(1, 5), classes=st.integers(2, 4))
def test_statistics_in_any_coordinates_move_by_at_most_their_sensitivity(seed, n, d, classes):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) * np.exp(rng.normal(size=(n, 1)) + rng.normal(size=d))
    parties = int(rng.integers(1, 6))
    votes, changed = rng.integers(0, classes, (2, n))
    difference = contrasts(classes).T @ (np.eye(classes)[votes] - np.eye(classes)[changed]).T @ rows / n / parties
    assert np.linalg.norm(difference) <= sensitivity.statistic(parties, sensitivity.reach(rows))


@pytest.mark.parametrize("classes", [2, 4])
def test_all_vote_shares_together_move_by_their_sensitivity(classes):
    votes = np.zeros((7, 30), dtype=int)
    changed = votes.copy()
    changed[0] = 1
    moved = np.linalg.norm(np.eye(classes)[votes].mean(axis=0) - np.eye(classes)[changed].mean(axis=0))
    assert moved == pytest.approx(sensitivity.vote_shares(7, 30), rel=1e-12)


@pytest.mark.parametrize(
    ("rule", "arguments", "match"),
    [
        (sensitivity.soft_vote, {"form": "public_features"}, "reach"),
        (sensitivity.majority_vote, {"form": "public_features", "reach": 1.0, "auxiliary_rows": 3}, None),
        (sensitivity.soft_vote, {"form": "public_features", "reach": 0.0}, "reach"),
        (sensitivity.soft_vote, {"form": "tight", "auxiliary_rows": 0}, None),
    ],
)
def test_forms_without_what_they_need_are_refused(rule, arguments, match):
    with pytest.raises(InputError, match=match):
        rule(**{"regularisation": 0.1, "parties": 3, "classes": 2, **arguments})


def test_other_refusals():
    with pytest.raises(InputError, match="reach"):
        sensitivity.statistic(3, math.nan)
    with pytest.raises(InputError, match="rows"):
        sensitivity.vote_shares(3, 0)
    with pytest.raises(InputError, match="parties"):
        sensitivity.vote_shares(0, 3)
