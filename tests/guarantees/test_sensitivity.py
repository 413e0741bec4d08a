"""Bounds that use the public rows, and bounds for a party and an auxiliary row together (Hamm et al. 2016, Sec. 4.5).

They are never exceeded by any votes, and reached where rows allow it.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

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
    with pytest.raises(InputError, match="parties"):
        sensitivity.vote_shares(0, 30)


@pytest.mark.parametrize(
    ("rule", "arguments", "match"),
    [
        (sensitivity.soft_vote, {"form": "public_features"}, "reach"),
        (sensitivity.majority_vote, {"form": "public_features", "reach": 1.0, "auxiliary_rows": 3}, None),
    ],
)
def test_forms_without_what_they_need_are_refused(rule, arguments, match):
    with pytest.raises(InputError, match=match):
        rule(**{"regularisation": 0.1, "parties": 3, "classes": 2, **arguments})


FORMS = ("published", "tight", "diameter")
RULES = (sensitivity.soft_vote, sensitivity.majority_vote)


def shares_of(votes, classes, rule):
    shares = np.eye(classes)[votes].mean(axis=0)
    return shares if rule is sensitivity.soft_vote else np.eye(classes)[shares.argmax(axis=1)]


def test_published_values():
    """Hamm et al. 2016, Sec. 4.5, and the softmax versions with sqrt(2) and 2 sqrt(2) per row."""
    m, n, lam = 1000, 1352, 1e-2
    arguments = {"regularisation": lam, "parties": m, "auxiliary_rows": n}
    assert sensitivity.soft_vote("published", classes=2, **arguments) == pytest.approx(2 / (m * lam) * (n + m - 1) / n)
    assert sensitivity.majority_vote("published", classes=2, **arguments) == pytest.approx(2 / lam)
    soft = math.sqrt(2) / (m * lam) * (n - 1 + 2 * m) / n
    assert sensitivity.soft_vote("published", classes=6, **arguments) == pytest.approx(soft)
    assert sensitivity.soft_vote("tight", classes=6, **arguments) == pytest.approx(soft)
    vote = math.sqrt(2) / lam * (n + 1) / n
    assert sensitivity.majority_vote("published", classes=6, **arguments) == pytest.approx(vote)


def test_better_forms_are_never_larger_and_cover_the_party_alone():
    for rule, classes, lam, n in itertools.product(RULES, (2, 3, 6), (1e-4, 1e-1, 10.0), (1, 2, 1000)):
        arguments = {"regularisation": lam, "parties": 50, "classes": classes}
        found = [rule(form, auxiliary_rows=n, **arguments) for form in FORMS]
        alone = [rule(form, **arguments) for form in FORMS]
        assert found[0] >= found[1] >= found[2]
        assert all(both >= one * (1 - 1e-12) for both, one in zip(found, alone, strict=True))
    binary = sensitivity.majority_vote("tight", regularisation=0.1, parties=5, classes=2, auxiliary_rows=4)
    assert binary == sensitivity.majority_vote("tight", regularisation=0.1, parties=5, classes=2)  # 1/lam, any change


@settings(derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    classes=st.integers(2, 3),
    lam=st.sampled_from([1e-3, 1e-2, 0.1, 1.0, 100.0]),
    rule=st.sampled_from(RULES),
)
def test_no_neighbours_exceed_any_form(seed, classes, lam, rule):
    rng = np.random.default_rng(seed)
    n, d, parties = int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 6))
    rows = rng.normal(size=(n, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) / rng.choice([1.0, rng.random()])
    votes = rng.integers(0, classes, (parties, n))
    other_rows, changed = rows.copy(), votes.copy()
    changed[0] = (changed[0] + rng.integers(1, classes)) % classes
    changed[:, 0] = rng.integers(0, classes) if rng.integers(2) else votes[:, 0]
    turned = rng.normal(size=d)
    other_rows[0] = -rows[0] if rng.integers(2) else turned / np.linalg.norm(turned)
    moved = np.linalg.norm(
        minimiser(rows, shares_of(votes, classes, rule), lam)
        - minimiser(other_rows, shares_of(changed, classes, rule), lam)
    )
    for form in FORMS:
        bound = rule(form, regularisation=lam, parties=parties, classes=classes, auxiliary_rows=n)
        assert moved - sensitivity.solver_slack(TOLERANCE, lam) <= bound


@pytest.mark.parametrize(("lam", "length", "cosine"), [(0.1, 0.65, 0.4), (1e-2, 0.277, 0.4), (1e-3, 0.0767, 0.3)])
def test_the_rows_part_of_the_binary_soft_bound_is_reached(lam, length, cosine):
    """Many rows pull w along one axis; the changed one sits across it, and turns over to the other side."""
    n, parties = 1000, 10**9
    rows, alpha = np.tile([length, 0.0], (n, 1)), np.r_[0.0, np.ones(n - 1)]
    sine = math.sqrt(1 - cosine**2)
    rows[0] = cosine, sine
    turned = rows.copy()
    turned[0] = cosine, -sine
    shares = np.stack([1 - alpha, alpha], axis=1)
    moved = np.linalg.norm(minimiser(rows, shares, lam) - minimiser(turned, shares, lam))
    bound = sensitivity.soft_vote("tight", regularisation=lam, parties=parties, classes=2, auxiliary_rows=n)
    assert 0.97 * bound <= moved <= bound


@pytest.mark.parametrize("parties", [10, 1000])
def test_both_parts_of_the_binary_soft_bound_are_reached_under_strong_regularisation(parties):
    """One party turns all its votes, and one row turns round while everybody votes as before on it."""
    n, lam = 20, 1000.0
    rows, other_rows = np.ones((n, 1)), np.ones((n, 1))
    other_rows[0] = -1.0
    before = np.tile([0.5, 0.5], (n, 1))
    before[0] = 0.0, 1.0
    after = before + np.array([1.0, -1.0]) / parties
    after[0] = 0.0, 1.0
    moved = np.linalg.norm(minimiser(rows, before, lam) - minimiser(other_rows, after, lam))
    bound = sensitivity.soft_vote("tight", regularisation=lam, parties=parties, classes=2, auxiliary_rows=n)
    assert bound == pytest.approx(((n - 1) / parties + 1) / n / lam, rel=1e-3)
    assert 0.99 * bound <= moved <= bound


def test_the_rows_part_of_the_softmax_soft_bound_is_approached():
    """As lam falls, a row's gradient turns from sqrt(2) one way to sqrt(2) the other."""
    n, lam = 20_000, 1e-3
    weights = np.r_[1.0, np.full(4, (n - 1) / 4)] / n  # four kinds of rows stand for all that do not change
    length, cosine = 0.06, 0.3
    sine = math.sqrt(1 - cosine**2)
    labels = np.eye(3)[[1, 0, 0, 0, 0]]

    def solve(changed):
        rows = np.vstack([changed, np.tile([length, 0.0], (4, 1))])
        mu = (weights[:, None] * labels).T @ rows
        w = np.zeros((3, 2))
        for _ in range(200):  # Newton by hand, as rows carry weights
            p = np.exp(rows @ w.T)
            p /= p.sum(axis=1, keepdims=True)
            gradient = ((weights[:, None] * p).T @ rows - mu + lam * w).ravel()
            if np.linalg.norm(gradient) < 1e-12:
                break
            hessian = lam * np.eye(6)
            for weight, row, share in zip(weights, rows, p, strict=True):
                hessian += weight * np.kron(np.diag(share) - np.outer(share, share), np.outer(row, row))
            w = w - np.linalg.solve(hessian, gradient).reshape(3, 2)
        return w

    moved = np.linalg.norm(solve([cosine, sine]) - solve([cosine, -sine]))
    bound = sensitivity.soft_vote("tight", regularisation=lam, parties=10**9, classes=3, auxiliary_rows=n)
    assert 0.85 * bound <= moved <= bound


@settings(derandomize=True)
@given(seed=st.integers(0, 10**6), norm=st.floats(0, 100))
def test_no_two_rows_of_the_unit_ball_exceed_the_turn_of_a_row(seed, norm):
    rng = np.random.default_rng(seed)
    w = np.array([norm, 0.0, 0.0])
    x = rng.normal(size=(2, 40, 3)) * np.array([10.0 ** rng.integers(-3, 1), 1, 1])
    x *= rng.choice([1.0, rng.random()]) / np.linalg.norm(x, axis=2, keepdims=True)
    alpha = rng.choice([0.0, 1.0, rng.random()], size=(2, 40))
    gradients = (expit(x @ w) - alpha)[..., None] * x
    apart = np.linalg.norm(gradients[0][:, None] - gradients[1][None], axis=2)
    assert apart.max() <= sensitivity.row_turn(norm)


def test_the_turn_of_a_row_rises_from_one_to_two():
    turns = [sensitivity.row_turn(norm) for norm in np.geomspace(1e-3, 1e6, 40)]
    assert all(a <= b for a, b in itertools.pairwise(turns))
    assert sensitivity.row_turn(0.0) == pytest.approx(1.0, abs=1e-11)
    assert 1.999 < turns[-1] <= 2.0
