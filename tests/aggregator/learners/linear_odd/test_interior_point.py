"""Losses with kinks: their box-constrained duals, and certificates against minimisers that are known exactly.

The risk as its minimisers see it: gradients and Hessians by finite differences, and bounds on rounding.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, lsq_linear
from support.examples import examples

from aggregator.learners.linear_odd.interior_point import Problem, _certificate, _on_kinks, _Point, lengths, rounding
from aggregator.learners.linear_odd.losses import loss
from aggregator.learners.linear_odd.minimiser import minimise_linear_odd
from federation.contract.errors import FederationError

KINKED = ("rho", "perceptron", "double_hinge")
SHAPES = ("whole", "one column", "collinear", "equal rows", "wide", "zeros", "one row")


class Planted(NamedTuple):
    """A risk whose minimiser is `least`: every number is a small multiple of a power of two, so nothing is rounded."""

    rows: np.ndarray
    moment: np.ndarray
    lam: float
    kinks: tuple[tuple[float, float], ...]
    least: np.ndarray
    slopes: np.ndarray  # of the even part at `least`, (n, K): those of the dual's maximum

    @property
    def problem(self) -> Problem:
        found = loss("double_hinge" if len(self.kinks) > 1 else "rho")
        pull = found.slope / 2 * self.moment
        return Problem(self.rows, np.full(len(self.rows), 1 / len(self.rows)), pull[None], self.lam)


def dependent_rows(random: np.random.Generator, shape: str) -> np.ndarray:
    """Whole numbers; of full rank with luck only."""
    n, d = int(2 ** random.integers(0, 5)), int(random.integers(1, 5))
    n, d = {"wide": (min(n, 4), 8), "one row": (1, d)}.get(shape, (n, d))
    rows = random.integers(-2, 3, (n, d)).astype(float)
    if shape == "one column":
        rows[:] = rows[:, :1]
    if shape == "collinear":
        rows = np.outer(rows[:, 0], random.integers(-2, 3, d)).astype(float)
    if shape == "equal rows":
        rows[:] = rows[0]
    if shape == "zeros":
        rows[::2] = 0
    return rows


def planted(name: str, shape: str, seed: int, halvings: int, scale: float = 1.0) -> Planted:
    """b = 2 lam w* + mean_i sum_k u_ik x_i for weights w* and slopes u of the subdifferential there."""
    random = np.random.default_rng(seed)
    found, rows, lam = loss(name), dependent_rows(random, shape) * scale, 2.0**-halvings
    least = random.integers(-4, 5, rows.shape[1]) * random.integers(0, 2) / 4 / scale
    places, heights = np.array(found.kinks).T
    past = (rows @ least)[:, None] - places
    within = random.integers(-8, 9, past.shape) / 8
    slopes = heights * np.where(past == 0, within, np.sign(past))
    pull = 2 * lam * least + slopes.sum(axis=1) @ rows / len(rows)
    return Planted(rows, 2 * pull / found.slope, lam, found.kinks, least, slopes)


@given(
    st.sampled_from(KINKED),
    st.sampled_from(SHAPES),
    st.integers(0, 2**32),
    st.integers(0, 20),
    st.sampled_from([2.0**-10, 1.0, 2.0**10]),
)
@settings(derandomize=True, max_examples=examples(37))
def test_no_minimiser_is_further_than_its_certificate(name, shape, seed, halvings, scale):
    known = planted(name, shape, seed, halvings, scale)
    try:
        found = minimise_linear_odd(loss(name), known.rows, known.moment, known.lam)
    except FederationError:
        assert halvings > 12 or scale > 1
        return
    assert np.linalg.norm(found.weights - known.least) <= found.distance
    assert found.distance <= 1e-4 * max(1.0, np.linalg.norm(found.weights))


@given(st.sampled_from(KINKED), st.sampled_from(SHAPES), st.integers(0, 2**32), st.integers(-3, 12), st.integers(0, 40))
@settings(derandomize=True, max_examples=examples(75))
def test_every_point_on_the_way_is_certified_truly(name, shape, seed, halvings, near):
    """Not only those at which the steps end: weights and slopes at up to 2^-near of the minimiser's, on either side."""
    known = planted(name, shape, seed, halvings)
    random = np.random.default_rng(seed + 1)
    heights = np.array(known.kinks)[:, 1]
    off = 2.0**-near
    weights = known.least + off * random.choice([0.0, 0.25, 1.0]) * random.normal(size=known.least.shape)
    pushed = known.slopes - off * random.choice([0.0, 0.25, 1.0]) * random.uniform(-1, 1, known.slopes.shape) * heights
    slopes = np.clip(pushed, -heights, heights)
    past = (known.rows @ weights)[:, None] - np.array(known.kinks)[:, 0]
    point = _Point(weights, np.maximum(past, 0), np.maximum(-past, 0), heights - slopes, heights + slopes)
    best, distance = _certificate(known.problem, known.problem.pulls[0], np.array(known.kinks), point)
    assert np.linalg.norm(best - known.least) <= distance


def at_kink_1(problem: Problem, weights: np.ndarray, inner: np.ndarray) -> _Point:
    """A point for the double hinge, all rows beyond the kink at -1 and near that at 1 with these slopes."""
    slopes = np.column_stack([np.full(len(inner), 0.25), inner])
    past = problem.scores(weights)[:, None] - np.array([-1.0, 1.0])
    return _Point(weights, np.maximum(past, 0), np.maximum(-past, 0), 0.25 - slopes, 0.25 + slopes)


def test_rows_that_cannot_all_lie_on_their_kink_are_not_taken_to():
    """One column: a heavy row has its kink at 1/(1 + 2^-24), twenty others near 1, where the mean of the kinks is."""
    rows = 1 + np.append(2.0**-24, 2.0**-45 * np.arange(20))[:, None]
    shares, kinks = np.append(0.9, np.full(20, 0.005)), np.array(loss("double_hinge").kinks)
    slopes = np.full(21, 0.1)
    middle = rows[:, 0].sum() / (rows[:, 0] ** 2).sum()
    pull = 2 * middle + (shares * (0.25 + slopes)) @ rows  # so that the slopes agree with it
    problem = Problem(rows, shares, pull[None], 1.0)
    best, distance = _certificate(problem, pull, kinks, at_kink_1(problem, np.ones(1), slopes))
    least = 1 / rows[0]  # the heavy row has the slope (0.1 + 0.1 * 0.25) / 0.9 there, the others have -0.25
    assert abs(best - least) <= distance


@pytest.mark.parametrize("seed", [0, 1, 12, 13, 21, 25])
def test_weights_on_the_kinks_of_nearly_equal_rows_are_certified_to_their_conditioning(seed):
    """Two rows 2^-20 apart pin two weights, to which double precision comes within 1e-9; slopes that agree with those
    do not make them exact."""
    random, lam = np.random.default_rng(seed), 0.5
    angle = random.uniform(0, 2 * math.pi)
    along, across = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    rows = np.array([along, along + 2.0**-20 * (across + random.uniform(-1, 1) * along)])
    (a, b), (c, d) = [[Fraction(x) for x in row] for row in rows]
    least = [(d - b) / (a * d - b * c), (a - c) / (a * d - b * c)]  # both scores are 1
    kinks = np.array(loss("double_hinge").kinks)
    pull = np.array([float(2 * Fraction(lam) * w) for w in least]) + np.array([0.3, 0.25]) @ rows / 2
    problem = Problem(rows, np.full(2, 0.5), pull[None], lam)
    weights = np.array([float(w) for w in least])

    moved = _on_kinks(problem, kinks, at_kink_1(problem, weights, np.array([0.05, 0.0])))
    agreeing = 2 * np.linalg.solve(rows.T, pull - 2 * lam * moved.weights) - 0.25
    assert np.abs(agreeing).max() < 0.2
    best, distance = _certificate(problem, pull, kinks, at_kink_1(problem, weights, agreeing))
    off = math.sqrt(sum((Fraction(found) - w) ** 2 for found, w in zip(best, least, strict=True)))
    assert off <= distance < 1e-6


@pytest.mark.parametrize("name", KINKED)
def test_certificates_go_far_below_the_square_root_of_rounding_also_where_rows_are_held_twice(name):
    random = np.random.default_rng(0)
    rows, moment = np.repeat(random.normal(size=(40, 4)), 2, axis=0), random.normal(size=4)
    assert minimise_linear_odd(loss(name), rows, moment, 1e-2, tolerance=1e-8).distance < 1e-7
    rows, moment = instance(4, n=400)
    assert minimise_linear_odd(loss(name), rows, moment, 1e-2, tolerance=1e-9).distance < 1e-7


def instance(seed, n=40, d=4, noise=0.3):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    moment = np.sign(rows[:, 0] + rng.normal(size=n)) @ rows / n + noise * rng.normal(size=d)
    return rows, moment


@pytest.mark.parametrize(("name", "height"), [("rho", 1.0), ("perceptron", 0.5)])
@pytest.mark.parametrize("lam", [1e-4, 1e-2, 1.0])
def test_the_dual_is_bounded_least_squares(name, height, lam):
    rows, moment = instance(0)
    found = minimise_linear_odd(loss(name), rows, moment, lam)
    dual = lsq_linear(rows.T / 40, height * moment, (-height, height), method="bvls", tol=1e-15)
    expected = (height * moment - rows.T @ dual.x / 40) / (2 * lam)
    assert found.weights.any()
    np.testing.assert_allclose(found.weights, expected, atol=1e-6 * max(1, np.linalg.norm(expected)))


@pytest.mark.parametrize("lam", [1e-4, 1e-2, 1.0])
def test_double_hinge_is_optimal(lam):
    """Slopes within the even part's subdifferential balance the gradient (Karush, Kuhn and Tucker)."""
    rows, moment = instance(1)
    found = minimise_linear_odd(loss("double_hinge"), rows, moment, lam, tolerance=1e-7)
    margins = rows @ found.weights
    at = np.abs(np.abs(margins) - 1) < 1e-5
    inside, outside = (np.abs(margins) < 1) & ~at, (np.abs(margins) > 1) & ~at
    slopes = np.where(outside, np.sign(margins) / 2, 0.0)
    rest = moment / 2 - 2 * lam * found.weights - slopes @ rows / 40
    signs = np.sign(margins[at])
    balance = linprog(
        np.r_[np.zeros(at.sum()), 1.0],
        A_ub=np.vstack([np.c_[s * (rows[at] * signs[:, None]).T / 40, -np.ones(4)] for s in (1, -1)]),
        b_ub=np.r_[rest, -rest],
        bounds=[*[(0, 0.5)] * int(at.sum()), (0, None)],
    )
    assert inside.any() or outside.any()
    assert balance.fun < 1e-6


@pytest.mark.parametrize("name", ["rho", "perceptron"])
def test_labels_themselves_leave_losses_with_their_kink_at_zero_at_zero(name):
    """Their value is least at 0, so no weights have a smaller risk than 0 for a mean operator that labels give."""
    rows, _ = instance(2)
    labels = np.sign(rows[:, 0])
    found = minimise_linear_odd(loss(name), rows, labels @ rows / 40, 1e-4)
    assert not found.weights.any()
    assert found.distance < 1e-6


@pytest.mark.parametrize("name", ["rho", "perceptron", "double_hinge"])
def test_equal_rows_and_dependent_columns(name):
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 2, size=(50, 3)).astype(float)
    rows = np.column_stack([rows, rows[:, 0]])
    moment = np.array([0.9, -0.2, 0.1, 0.9])
    found = minimise_linear_odd(loss(name), rows, moment, 1e-2)
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    merged = minimise_linear_odd(loss(name), distinct, moment, 1e-2, weights=counts)
    assert np.linalg.norm(found.weights - merged.weights) <= found.distance + merged.distance
    np.testing.assert_allclose(found.weights[0], found.weights[3], atol=1e-6)


def even(x):
    return np.hypot(1, x)


def even_slope(x):
    return x / np.hypot(1, x)


def problem(seed, rows=12, columns=3, pulls=2, lam=0.3):
    random = np.random.default_rng(seed)
    shares = random.uniform(0.1, 1, rows)
    return Problem(
        random.normal(size=(rows, columns)), shares / shares.sum(), random.normal(size=(pulls, columns)), lam
    )


def risk(given, weights, pull):
    return given.shares @ even(given.rows @ weights) - pull @ weights + given.regularisation * weights @ weights


@given(st.integers(0, 2**32), st.integers(1, 20), st.integers(1, 5), st.floats(0, 10))
def test_gradients_and_hessians_are_those_of_finite_differences(seed, rows, columns, lam):
    given_ = problem(seed, rows, columns, lam=lam)
    weights = np.random.default_rng(seed + 1).normal(size=(2, columns))
    found = given_.gradients(weights, even_slope(given_.scores(weights)), given_.pulls)
    hessian = given_.hessian(np.hypot(1, given_.scores(weights)[0]) ** -3.0)
    for k in range(2):
        for j, step in enumerate(1e-5 * np.eye(columns)):
            moved = [weights + sign * step for sign in (1, -1)]
            above, below = (risk(given_, w[k], given_.pulls[k]) for w in moved)
            assert found[k, j] == pytest.approx((above - below) / 2e-5, abs=1e-6)
            above, below = (given_.gradients(w, even_slope(given_.scores(w)), given_.pulls)[0] for w in moved)
            np.testing.assert_allclose(hessian[j], (above - below) / 2e-5, atol=1e-7)


def test_scores_pulls_and_lengths_of_many_weights_are_those_one_by_one():
    given_, weights = problem(2), np.random.default_rng(2).normal(size=(5, 4, 3))
    scores = given_.scores(weights)
    assert scores.shape == (5, 4, 12)
    np.testing.assert_allclose(scores[3, 1], given_.rows @ weights[3, 1])
    np.testing.assert_allclose(given_.pulled(scores)[3, 1], (scores[3, 1] * given_.shares) @ given_.rows)
    np.testing.assert_allclose(given_.row_norms, np.linalg.norm(given_.rows, axis=1))
    np.testing.assert_array_equal(lengths(np.array([[3.0, 4.0], [0.0, 0.0]])), [5.0, 0.0])
    assert rounding(0.0) == 0
    assert 2**-52 < rounding(1.0) < 1e-14
    assert rounding(8.0) == 8 * rounding(1.0)


@given(st.integers(0, 2**32), st.sampled_from([1e-8, 1.0, 1e8]))
def test_gradients_of_quadratics_are_no_further_from_exact_ones_than_is_said(seed, scale):
    """For the even part x², whose slopes 2x and gradients are rational."""
    given_ = problem(seed, rows=6, columns=2)
    weights = scale * np.random.default_rng(seed + 1).normal(size=(2, 2))
    slopes = 2 * given_.scores(weights)
    found = given_.gradients(weights, slopes, given_.pulls)
    allowed = given_.gradient_rounding(weights, slopes, given_.pulls, 2.0)
    rows = [[Fraction(x) for x in row] for row in given_.rows.tolist()]
    shares = [Fraction(x) for x in given_.shares.tolist()]
    lam = Fraction(given_.regularisation)
    for k in range(2):
        w, b = ([Fraction(x) for x in vector[k].tolist()] for vector in (weights, given_.pulls))
        scores = [row[0] * w[0] + row[1] * w[1] for row in rows]
        exact = [
            sum(s * 2 * score * row[j] for s, score, row in zip(shares, scores, rows, strict=True))
            - b[j]
            + 2 * lam * w[j]
            for j in range(2)
        ]
        off = sum((Fraction(x) - y) ** 2 for x, y in zip(found[k].tolist(), exact, strict=True))
        assert off <= Fraction(float(allowed[k])) ** 2
    assert (allowed <= 1e-12 * (1 + scale) * 100).all()
