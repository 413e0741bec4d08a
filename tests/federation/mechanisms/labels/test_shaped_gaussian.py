"""Noisy X'y: rows inside the shape, released sums with the stated covariance, exact charges, and what costs less.

The ellipsoid of least trace: closed forms, an independent solver, certificates, and rows that do not fit at once.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from support.examples import examples

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels import shaped_gaussian
from federation.mechanisms.labels.mechanism import LabelRange
from federation.mechanisms.labels.shaped_gaussian import calibrate, fit_shape, smallest_trace
from federation.mechanisms.noise import gaussian

RANGE = LabelRange(0.0, 2.0)
SHAPES = ("optimal", "whitened", "isotropic")


def table(n=400, seed=1):
    rows = np.random.default_rng(seed).standard_t(3, (n, 4)) * [1, 10, 0.1, 1]
    return np.column_stack([rows, np.ones(n)])


def mechanism_for(rows, shape="optimal", noise="gaussian", **others):
    arguments = {"rows": len(rows), "epsilon": 1.0, "delta": 1e-3, "labels": RANGE, **others}
    return calibrate(fit_shape(rows, shape), noise, **arguments)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_longest_row_has_length_one_sums_come_back_and_the_trace_is_what_least_squares_pays(shape):
    """n times the excess risk of (X'X)^{-1} (X'y + noise): tr (X'X)^{-1} cov."""
    rows = table()
    found, mechanism = fit_shape(rows, shape), mechanism_for(rows, shape)
    inside = rows @ found.transform
    assert np.linalg.norm(inside, axis=1).max() == pytest.approx(1, abs=1e-12)
    labels = np.random.default_rng(2).uniform(0, 2, len(rows))
    np.testing.assert_allclose(found.back @ (inside.T @ labels), rows.T @ labels, rtol=1e-8)
    paid = np.trace(np.linalg.solve(rows.T @ rows, mechanism.covariance()))
    assert mechanism.shape.trace * mechanism.variance() == pytest.approx(paid, rel=1e-8)
    assert mechanism.excess() == pytest.approx(paid / len(rows), rel=1e-8)


def test_the_optimal_shape_costs_least_and_no_less_than_the_bound():
    rows = table(3000)
    optimal, whitened, isotropic = (fit_shape(rows, shape).trace for shape in SHAPES)
    assert optimal < 0.8 * whitened
    assert optimal < isotropic / 2
    assert fit_shape(rows).lower_bound <= optimal <= 1.02 * fit_shape(rows).lower_bound
    assert optimal >= 5**2 / 3000  # tr C^{-1} <= n


@settings(max_examples=examples(20))
@given(seed=st.integers(0, 10**6), scales=st.lists(st.floats(1e-4, 1e4), min_size=5, max_size=5))
def test_units_of_columns_change_nothing(seed, scales):
    rows = table(60, seed)
    assert fit_shape(rows * scales).trace == pytest.approx(fit_shape(rows).trace, rel=0.02)


def test_doubled_and_empty_columns_change_nothing():
    rows = table()
    more = np.column_stack([rows, rows[:, :2], np.zeros(len(rows))])
    found, sums = fit_shape(more), more.sum(axis=0)
    assert found.transform.shape == (8, 5)
    assert found.trace == pytest.approx(fit_shape(rows).trace, rel=0.02)
    np.testing.assert_allclose(found.back @ (found.transform.T @ sums), sums, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("noise", ["gaussian", "pure"])
@pytest.mark.parametrize("shape", SHAPES)
def test_released_sums_have_the_stated_mean_and_covariance(shape, noise):
    rows = table(50)
    labels = np.random.default_rng(3).uniform(0, 2, 50)
    mechanism = mechanism_for(rows, shape, noise)
    released = mechanism.release(rows, labels, NoiseBits(1, f"{shape} {noise}"), 40_000)
    # In coordinates where the noise should be white:
    white = np.linalg.solve(np.linalg.cholesky(mechanism.covariance()), (released - labels @ rows).T)
    np.testing.assert_allclose(white.mean(axis=1), 0, atol=4.5 / 200)
    np.testing.assert_allclose(np.cov(white), np.eye(5), atol=0.05)


def test_one_column_takes_discrete_laplace():
    rows = np.linspace(0.1, 1, 20)[:, None]
    mechanism = mechanism_for(rows, "optimal", "pure")
    assert mechanism.name == "label_sums_discrete_laplace"
    assert mechanism.variance() == pytest.approx(2 * RANGE.width**2, rel=1e-3)
    released = mechanism.release(rows, np.ones(20), NoiseBits(1, "one"), 50_000)
    assert released.var() == pytest.approx(mechanism.covariance()[0, 0], rel=0.05)


def test_everything_is_charged():
    """At two million rows summation costs 1e-3 of the range; rounding to the grid is in the additive mechanism."""
    small, large = (
        calibrate(fit_shape(table(50)), "gaussian", rows=n, epsilon=1.0, delta=1e-6, labels=RANGE).additive
        for n in (50, 2_000_000)
    )
    assert 1 < small.sensitivity / RANGE.width < 1 + 2e-9
    assert 2e6**2 * 2.0**-53 < large.sensitivity / RANGE.width - 1 < 1e-3
    assert small.parameters["charged_sensitivity"] > small.sensitivity
    assert small.parameters["scale"] == pytest.approx(RANGE.width / gaussian.mu(1.0, 1e-6), rel=1e-3)


def test_one_label_moves_the_sum_by_the_sensitivity_at_most():
    rows = table()
    mechanism = mechanism_for(rows)
    labels = np.zeros(len(rows))
    worst = np.argmax(np.linalg.norm(rows @ mechanism.shape.transform, axis=1))
    other = np.where(np.arange(len(rows)) == worst, 2.0, labels)
    here, there = (mechanism.release(rows, y, NoiseBits(1, "same"), 1)[0] for y in (labels, other))
    distance = np.linalg.norm((there - here) @ mechanism.shape.transform)
    assert distance == pytest.approx(RANGE.width, rel=1e-3)
    assert distance <= mechanism.additive.parameters["charged_sensitivity"]


def test_rows_of_a_party_get_a_shape_of_their_own_in_the_coordinates_of_all():
    rows = table(1000)
    own, few = (fit_shape(rows[:count], moments=rows.T @ rows) for count in (80, 2))
    assert own.trace < fit_shape(rows).trace
    assert np.linalg.norm(rows[:80] @ own.transform, axis=1).max() <= 1 + 1e-12
    np.testing.assert_allclose(own.back @ (own.transform.T @ rows[:80].sum(axis=0)), rows[:80].sum(axis=0), rtol=1e-7)
    # A party with fewer rows than columns is shaped too.
    assert few.lower_bound <= few.trace <= 1.1 * few.lower_bound
    mechanism = calibrate(few, "gaussian", rows=2, epsilon=1.0, delta=1e-3, labels=RANGE)
    assert np.isfinite(mechanism.release(rows[:2], np.ones(2), NoiseBits(1, "few"))).all()


def test_blocks_do_not_change_the_result(monkeypatch):
    rows, labels = table().astype(np.float32), np.ones(400)
    mechanism = mechanism_for(rows)
    whole = mechanism.release(rows, labels, NoiseBits(1, "blocks"))
    monkeypatch.setattr(shaped_gaussian, "BLOCK", 33)
    assert mechanism_for(rows).shape.trace == pytest.approx(mechanism.shape.trace, rel=1e-6)
    np.testing.assert_allclose(mechanism.release(rows, labels, NoiseBits(1, "blocks")), whole, rtol=1e-6)


def test_the_guarantee_composes_and_says_what_is_protected():
    mechanism = mechanism_for(table())
    promised = mechanism.guarantee()
    assert (promised.unit, promised.adjacency) == (Unit.LABEL, Adjacency.REPLACE)
    assert (promised.epsilon, promised.delta) == (1.0, 1e-3)
    assert promised.mechanism == "label_sums_discrete_gaussian"
    assert promised.gaussian_mu == pytest.approx(gaussian.mu(1.0, 1e-3), rel=1e-4)
    assert Guarantee.from_dict(promised.to_dict()) == promised
    assert mechanism.delta_at(2.0) < 1e-3
    with pytest.raises(InputError, match="adjacency"):
        mechanism.guarantee(adjacency=Adjacency.ADD_REMOVE)


@pytest.mark.parametrize(
    ("rows", "shape", "message"),
    [
        (np.ones(3), "optimal", "shape"),
        (np.ones((0, 3)), "optimal", "shape"),
        (np.zeros((4, 3)), "optimal", None),
        (np.array([[1.0, math.nan]]), "optimal", "NaN"),
        (np.array([[1.0, math.inf]]), "optimal", "NaN"),
        (np.full((4, 3), 1e160), "optimal", None),
        (np.ones((3, 3)), "round", "shape"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_bad_rows_are_refused(rows, shape, message):
    with pytest.raises(InputError, match=message):
        fit_shape(rows, shape)


ROWS, LABELS = table(), np.ones(400)


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        (ROWS[:-1], LABELS[:-1], "rows"),
        (ROWS, LABELS[:-1], None),
        (1.001 * ROWS, LABELS, "some"),
        (ROWS, 3 * LABELS, None),
        (np.where(np.arange(400)[:, None] == 3, math.nan, ROWS), LABELS, "some"),
    ],
)
def test_releases_refuse_what_was_not_agreed(rows, labels, message):
    with pytest.raises(InputError, match=message):
        mechanism_for(ROWS).release(rows, labels, NoiseBits(1, "x"))


@pytest.mark.parametrize(
    ("noise", "rows", "epsilon", "message"),
    [("pure", 0, 1.0, "rows"), ("gaussian", 2**22, 1e12, None), ("pure", 2**22, 1e6, None)],
)
def test_sums_that_leave_the_grid_are_refused_before_any_label_is_read(noise, rows, epsilon, message):
    with pytest.raises(InputError, match=message):
        calibrate(fit_shape(ROWS), noise, rows=rows, epsilon=epsilon, delta=0.1, labels=RANGE)


def solve(rows, tolerance=1e-4, block=None):
    pieces = [rows] if block is None else [rows[i : i + block] for i in range(0, len(rows), block)]
    return smallest_trace(lambda: iter(pieces), rows.T @ rows, tolerance)


def longest(ellipsoid, rows):
    return np.square(np.linalg.solve(ellipsoid.factor, rows.T)).sum(axis=0).max()


def by_slsqp(rows):
    """The same problem over the Cholesky factor of C^{-1} by a general solver."""
    d = rows.shape[1]
    lower = np.tril_indices(d)

    def factor(x):
        matrix = np.zeros((d, d))
        matrix[lower] = x
        return matrix

    def trace(x):
        return np.square(np.linalg.inv(factor(x))).sum()

    start = np.eye(d) / np.sqrt(np.square(rows).sum(axis=1).max())
    room = {"type": "ineq", "fun": lambda x: 1 - np.square(rows @ factor(x)).sum(axis=1)}
    options = {"maxiter": 2000, "ftol": 1e-12}
    return minimize(trace, start[lower], constraints=[room], method="SLSQP", options=options).fun


@pytest.mark.parametrize(("n", "d", "seed"), [(6, 2, 0), (15, 3, 1), (30, 4, 2), (40, 3, 3)])
def test_no_other_solver_finds_less(n, d, seed):
    rows = np.random.default_rng(seed).standard_t(3, (n, d))
    found = solve(rows)
    other = by_slsqp(rows)
    assert found.trace == pytest.approx(other, rel=2e-4)
    assert found.lower_bound <= other * (1 + 1e-6)


def test_orthogonal_rows_need_a_trace_of_the_sum_of_lengths_squared():
    """Min sum c_j with a_j²/c_j <= 1 and no help from correlations: C = diag(a²), trace sum a²."""
    lengths = np.array([1.0, 2.0, 5.0])
    assert solve(np.diag(lengths)).trace == pytest.approx(np.square(lengths).sum(), rel=1e-3)
    rows = np.array([[3.0, 4.0]])  # one row needs noise along itself only
    found = smallest_trace(lambda: iter([rows]), np.eye(2), 1e-6)
    assert found.trace == pytest.approx(25, rel=5e-3)  # what keeps C regular costs a little
    assert longest(found, rows) <= 1 + 1e-9


@given(seed=st.integers(0, 10**6), n=st.integers(3, 200), d=st.integers(1, 6), tail=st.sampled_from([1.5, 3.0, 30.0]))
def test_every_row_is_inside_and_the_bounds_hold(seed, n, d, tail):
    rows = np.random.default_rng(seed).standard_t(tail, (max(n, d + 2), d))
    found = solve(rows, tolerance=1e-3)
    assert longest(found, rows) == pytest.approx(1, rel=1e-9)
    assert np.square(found.factor).sum() == pytest.approx(found.trace, rel=1e-9)
    assert found.lower_bound <= found.trace <= found.lower_bound * 1.01
    assert found.trace <= d * np.square(rows).sum(axis=1).max() * (1 + 1e-9)


def test_a_few_rows_stand_for_all_of_many(monkeypatch):
    rows = np.random.default_rng(5).standard_t(4, (3000, 5))
    whole = solve(rows, 1e-3)
    monkeypatch.setattr(shaped_gaussian, "_ALL", 100)
    few = solve(rows, 1e-3, block=170)
    assert few.trace == pytest.approx(whole.trace, rel=2e-3)
    assert few.trace <= few.lower_bound * 1.005
    assert longest(few, rows) == pytest.approx(1, rel=1e-9)


def test_rotating_and_scaling_rows_rotates_and_scales_the_solution():
    random = np.random.default_rng(6)
    rows = random.standard_t(3, (60, 4))
    turn = np.linalg.qr(random.standard_normal((4, 4)))[0]
    assert solve(3 * rows @ turn).trace == pytest.approx(9 * solve(rows).trace, rel=3e-4)
