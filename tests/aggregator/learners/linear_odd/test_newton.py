"""Certificates of risks with a smooth even part, against minimisers to many digits."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from aggregator.learners.linear_odd.interior_point import Problem
from aggregator.learners.linear_odd.losses import loss
from aggregator.learners.linear_odd.minimiser import minimise_linear_odd, minimise_quadratic, minimise_smooth

SMOOTH = ("logistic", "square", "matsushita")

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
