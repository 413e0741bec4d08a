"""Certificates against minimisers that are known exactly: risks built around them, however the rows depend."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.learners.linear_odd.catalogue import loss
from aggregator.learners.linear_odd.interior_point import _certificate, _on_kinks, _Point
from aggregator.learners.linear_odd.minimiser import minimise_linear_odd
from aggregator.learners.linear_odd.newton import minimise_quadratic, minimise_smooth
from aggregator.learners.linear_odd.problem import Problem
from federation.contract.errors import FederationError

KINKED = ("rho", "perceptron", "double_hinge")
SMOOTH = ("logistic", "square", "matsushita")
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
@settings(derandomize=True, deadline=None, max_examples=300)
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
@settings(derandomize=True, deadline=None, max_examples=600)
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


EVEN_SLOPES = {
    "logistic": lambda x: mpmath.tanh(x / 2) / 2,
    "square": lambda x: 2 * x,
    "matsushita": lambda x: x / mpmath.sqrt(1 + x**2),
}


@pytest.mark.parametrize(("name", "tolerance"), [("square", None), *((n, t) for n in SMOOTH[::2] for t in (0.5, 0.0))])
def test_smooth_certificates_hold_far_away_and_where_rounding_decides(name, tolerance):
    """One row, against many digits; slopes far below 1 too, of which double precision keeps few digits."""
    found, even_slope, random = loss(name), EVEN_SLOPES[name], np.random.default_rng(0)
    for _ in range(80):
        row, lam = random.normal(), 10.0 ** random.integers(-4, 2)
        pull = random.normal() * 10.0 ** random.integers(-8, 2)
        problem = Problem(np.array([[row]]), np.ones(1), np.array([[pull]]), lam)
        if name == "square":
            [[weight]], [distance] = minimise_quadratic(problem, 2.0)
        else:
            [[weight]], [distance] = minimise_smooth(problem, found, tolerance)
        with mpmath.workdps(50):
            x = mpmath.mpf(row)
            least = mpmath.findroot(lambda w, x=x, b=pull, lam=lam: even_slope(w * x) * x - b + 2 * lam * w, weight)
            assert abs(least - weight) <= distance


def test_square_without_regularisation_is_certified_by_its_least_curvature():
    """Two rows with a condition number of 10^3, which enters squared."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        (a, b), (c, d) = rows = np.array([[1.0, 0.0], [1.0, 1e-3]]) + random.uniform(-1e-4, 1e-4, (2, 2))
        moment = random.uniform(0.5, 1.0, 2)
        found = minimise_linear_odd(loss("square"), rows, moment, 0.0, tolerance=1e-3)
        a, b, c, d, e, f = map(Fraction, (a, b, c, d, *moment))
        p, q, r = a * a + c * c, a * b + c * d, b * b + d * d
        least = [2 * (e * r - f * q) / (p * r - q * q), 2 * (f * p - e * q) / (p * r - q * q)]
        v, w = map(Fraction, found.weights)
        off = math.hypot(v - least[0], w - least[1])
        gradient = math.hypot(p * v + q * w - 2 * e, q * v + r * w - 2 * f)
        assert off <= gradient / np.linalg.eigvalsh(rows.T @ rows)[0] <= found.distance


@pytest.mark.parametrize("name", ["linear", "unhinged", *KINKED])
def test_without_rows_that_count_certificates_cover_the_rounding_of_a_quotient(name):
    for seed in range(20):
        moment, lam = np.random.default_rng(seed).uniform(0.1, 1.0, 2)
        found = minimise_linear_odd(loss(name), [[0.0]], [moment], lam)
        exact = Fraction(loss(name).slope) / 2 * Fraction(moment) / (2 * Fraction(lam))
        assert abs(exact - Fraction(found.weights[0])) <= Fraction(float(found.distance))


@pytest.mark.parametrize("name", KINKED)
def test_rows_that_are_held_twice_weaken_no_certificate(name):
    random = np.random.default_rng(0)
    rows, moment = np.repeat(random.normal(size=(40, 4)), 2, axis=0), random.normal(size=4)
    assert minimise_linear_odd(loss(name), rows, moment, 1e-2, tolerance=1e-8).distance < 1e-7


@pytest.mark.parametrize("name", ["linear", *SMOOTH, *KINKED])
def test_a_regularisation_that_rounding_loses_is_refused(name):
    with np.errstate(all="ignore"), pytest.raises(FederationError, match="scale the rows"):
        minimise_linear_odd(loss(name), np.full((3, 2), 1e9), [1.0, 1.0], 1e-9 if name != "linear" else 1e-310)


def test_one_of_several_that_misses_the_tolerance_is_enough_to_refuse():
    """The first is exact; rounding allows the second no more than 16 last places of its own size."""
    with pytest.raises(FederationError, match="tolerance 1e-15"):
        minimise_linear_odd(loss("linear"), [[1.0]], [[0.0], [1000.0]], 0.5, tolerance=1e-15)
