"""Minimisers against independent solvers, their certificates, and their refusals.

Certificates of risks with a smooth even part, against minimisers to many digits.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from support.generators import MIXED

from aggregator.learners.linear_odd.interior_point import Problem
from aggregator.learners.linear_odd.losses import SymmetricProper, loss
from aggregator.learners.linear_odd.minimiser import minimise_linear_odd, minimise_quadratic, minimise_smooth
from federation.contract.errors import FederationError, InputError

NAMES = ("logistic", "square", "matsushita", "rho", "linear", "unhinged", "perceptron", "double_hinge")
KINKED = ("rho", "perceptron", "double_hinge")
SMOOTH = ("logistic", "square", "matsushita")


def instance(seed, n=60, d=5):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    labels = np.where(rows @ rng.normal(size=d) + rng.normal(size=n) > 0, 1, -1)
    return rows, labels, labels @ rows / n


def risk(found, rows, moment, lam, w):
    return found.even(rows @ w).mean() - found.slope / 2 * w @ moment + lam * w @ w


@pytest.mark.parametrize("lam", [1e-4, 1e-2, 1.0])
def test_logistic_agrees_with_scikit_learn(lam):
    rows, labels, mu = instance(0)
    options = {"fit_intercept": False, "tol": 1e-13, "max_iter": 10_000, "solver": "newton-cholesky"}
    model = LogisticRegression(C=1 / (2 * lam * 60), **options).fit(rows, labels)
    found = minimise_linear_odd(loss("logistic"), rows, mu, lam, tolerance=1e-9)
    np.testing.assert_allclose(found.weights, model.coef_[0], atol=1e-8)
    weights = np.random.default_rng(2).integers(0, 4, 60).astype(float)
    model = LogisticRegression(C=1 / (2 * lam * weights.sum()), **options).fit(rows, labels, sample_weight=weights)
    moment = weights * labels @ rows / weights.sum()
    found = minimise_linear_odd(loss("logistic"), rows, moment, lam, tolerance=1e-9, weights=weights)
    np.testing.assert_allclose(found.weights, model.coef_[0], atol=1e-8)
    repeated = np.repeat(rows, weights.astype(int), axis=0)
    found = minimise_linear_odd(loss("logistic"), repeated, moment, lam, tolerance=1e-9)
    np.testing.assert_allclose(found.weights, model.coef_[0], atol=1e-8)


@pytest.mark.parametrize("lam", [0.0, 1e-3, 1.0])
def test_square_is_ridge_regression(lam):
    rows, labels, mu = instance(3)
    expected = np.linalg.solve(rows.T @ rows / 60 + lam * np.eye(5), rows.T @ labels / 60)
    found = minimise_linear_odd(loss("square"), rows, mu, lam, tolerance=1e-10)
    np.testing.assert_allclose(found.weights, expected, atol=1e-11)
    assert np.linalg.norm(found.weights - expected) <= found.distance + 1e-15


@pytest.mark.parametrize("name", ["linear", "unhinged"])
def test_linear_losses_follow_the_mean_operator(name):
    rows, _, mu = instance(4)
    np.testing.assert_allclose(minimise_linear_odd(loss(name), rows, mu, 0.3).weights, 2 * mu / 1.2, rtol=1e-15)


@pytest.mark.parametrize("found", [loss("matsushita"), SymmetricProper(MIXED)], ids=["matsushita", "mixed"])
def test_smooth_losses_agree_with_a_general_minimiser(found):
    rows, _, mu = instance(5)
    mu = mu + 0.2
    reference = minimize(
        lambda w: risk(found, rows, mu, 0.01, w),
        np.zeros(5),
        jac=lambda w: found.even_slope(rows @ w) @ rows / 60 - found.slope / 2 * mu + 0.02 * w,
        method="BFGS",
        options={"gtol": 1e-10},
    )
    np.testing.assert_allclose(minimise_linear_odd(found, rows, mu, 0.01).weights, reference.x, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_many_mean_operators_are_minimised_as_one_by_one(name, monkeypatch):
    monkeypatch.setattr("aggregator.learners.linear_odd.minimiser._TILE_ENTRIES", 180)  # three at a time
    rows, _, mu = instance(6)
    moments = mu + np.random.default_rng(6).normal(size=(7, 5)) * np.array([0, 0.01, 0.1, 0.3, 1, 3, 10])[:, None]
    many = minimise_linear_odd(loss(name), rows, moments, 0.01)
    assert many.weights.shape == (7, 5)
    assert many.distance.shape == (7,)
    for weights, distance, moment in zip(many.weights, many.distance, moments, strict=True):
        one = minimise_linear_odd(loss(name), rows, moment, 0.01)
        assert one.distance.shape == ()
        assert np.linalg.norm(weights - one.weights) <= distance + one.distance


@given(
    st.sampled_from(NAMES),
    st.integers(0, 10**6),
    st.integers(1, 30),
    st.integers(1, 6),
    st.sampled_from([1e-3, 1e-1, 10.0]),
    st.sampled_from([0.0, 0.1, 10.0]),
)
def test_no_weights_have_a_smaller_risk_and_the_certificate_holds(name, seed, n, d, lam, noise):
    """By strong convexity no risk is below risk(w*) + lam |v - w*|²; weights near w* have nearly its risk."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) if seed % 2 else rng.integers(-1, 2, size=(n, d)).astype(float)
    moment = rng.choice([-1, 1], n) @ rows / n + noise * rng.normal(size=d)
    found = loss(name)
    loose = minimise_linear_odd(found, rows, moment, lam, tolerance=1e-2)
    tight = minimise_linear_odd(found, rows, moment, lam)
    assert tight.distance <= 1e-4 * max(1, np.linalg.norm(tight.weights))
    assert np.linalg.norm(loose.weights - tight.weights) <= loose.distance + tight.distance
    distance, least = float(tight.distance), risk(found, rows, moment, lam, tight.weights)
    steepness = 10 * (1 + lam + np.linalg.norm(moment) + (rows**2).mean()) * (1 + np.linalg.norm(tight.weights))
    for scale in (1e-3, 0.1, 1.0):
        step = scale * rng.normal(size=d)
        excess = risk(found, rows, moment, lam, tight.weights + step) - least
        grown = lam * max(0.0, np.linalg.norm(step) - distance) ** 2
        assert excess >= grown - steepness * (distance + 1e-12)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "square"])
def test_regularisation_must_be_positive(name):
    rows, _, mu = instance(7)
    for lam in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match=r"regularisation.*0"):
            minimise_linear_odd(loss(name), rows, mu, lam)


def test_square_without_regularisation_needs_full_rank_and_is_certified_by_its_least_curvature():
    rows, _, mu = instance(8)
    with pytest.raises(InputError, match="rank"):
        minimise_linear_odd(loss("square"), np.column_stack([rows, rows[:, 0]]), np.append(mu, mu[0]), 0.0)
    with pytest.raises(InputError, match="regularisation"):
        minimise_linear_odd(loss("square"), rows, mu, -1e-3)
    for name in ("logistic", "square", "double_hinge"):
        with pytest.raises(FederationError, match="1e-16"):
            minimise_linear_odd(loss(name), rows, mu, 1e-4, tolerance=1e-16)
    # Two rows with a condition number of 10^3, which enters squared.
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


@pytest.mark.parametrize(("changes", "message"), [
    ({"rows": np.ones(5)}, "rows"), ({"rows": np.empty((0, 5))}, "rows"), ({"rows": np.full((3, 5), np.nan)}, "rows"),
    ({"rows": [["a"] * 5]}, "rows"), ({"moment": np.ones(4)}, "moment"), ({"moment": np.ones((0, 5))}, "moment"),
    ({"moment": np.full(5, np.inf)}, "moment"), ({"tolerance": 0.0}, "tolerance"), ({"weights": np.ones(3)}, "weights"),
    ({"weights": np.full(60, -1.0)}, "weights"), ({"weights": np.zeros(60)}, "weights"),
    ({"loss": "logistic"}, r"loss.*SymmetricProper"),
])  # fmt: skip
def test_bad_arguments_are_refused(changes, message):
    rows, _, mu = instance(10)
    arguments = {"loss": loss("logistic"), "rows": rows, "moment": mu, "regularisation": 0.1} | changes
    with pytest.raises(InputError, match=message):
        minimise_linear_odd(**arguments)


@pytest.mark.parametrize("name", ["linear", "unhinged", *KINKED])
def test_without_rows_that_count_certificates_cover_the_rounding_of_a_quotient(name):
    for seed in range(20):
        moment, lam = np.random.default_rng(seed).uniform(0.1, 1.0, 2)
        found = minimise_linear_odd(loss(name), [[0.0]], [moment], lam)
        exact = Fraction(loss(name).slope) / 2 * Fraction(moment) / (2 * Fraction(lam))
        assert abs(exact - Fraction(found.weights[0])) <= Fraction(float(found.distance))


@pytest.mark.parametrize("name", ["linear", *SMOOTH, *KINKED])
def test_a_regularisation_that_rounding_loses_is_refused_and_one_of_several_is_enough(name):
    with np.errstate(all="ignore"), pytest.raises(FederationError):
        minimise_linear_odd(loss(name), np.full((3, 2), 1e9), [1.0, 1.0], 1e-9 if name != "linear" else 1e-310)
    # The first is exact; rounding allows the second no more than 16 last places of its own size.
    with pytest.raises(FederationError, match="1e-15"):
        minimise_linear_odd(loss("linear"), [[1.0]], [[0.0], [1000.0]], 0.5, tolerance=1e-15)


EVEN_SLOPES = {
    "logistic": lambda x: mpmath.tanh(x / 2) / 2,
    "square": lambda x: 2 * x,
    "matsushita": lambda x: x / mpmath.sqrt(1 + x**2),
}


@pytest.mark.parametrize(("name", "tolerance"), [("square", None), *((n, t) for n in SMOOTH[::2] for t in (0.5, 0.0))])
def test_smooth_certificates_hold_far_away_and_where_rounding_decides(name, tolerance):
    """One row, against many digits; slopes far below 1 too, of which double precision keeps few digits."""
    found, even_slope, random = loss(name), EVEN_SLOPES[name], np.random.default_rng(0)
    for _ in range(40):
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
