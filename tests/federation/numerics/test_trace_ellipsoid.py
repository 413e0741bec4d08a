"""The ellipsoid of least trace: closed forms, an independent solver, certificates, and rows that do not fit at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from federation.mechanisms.labels import shaped_gaussian as trace_ellipsoid
from federation.mechanisms.labels.shaped_gaussian import smallest_trace


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


def test_one_row_needs_noise_along_itself_only():
    rows = np.array([[3.0, 4.0]])
    found = smallest_trace(lambda: iter([rows]), np.eye(2), 1e-6)
    assert found.trace == pytest.approx(25, rel=5e-3)  # what keeps C regular costs a little
    assert longest(found, rows) <= 1 + 1e-9


def test_orthogonal_rows_need_a_trace_of_the_sum_of_lengths_squared():
    """Min sum c_j with a_j²/c_j <= 1 and no help from correlations: C = diag(a²), trace sum a²."""
    lengths = np.array([1.0, 2.0, 5.0])
    assert solve(np.diag(lengths)).trace == pytest.approx(np.square(lengths).sum(), rel=1e-3)


@settings(max_examples=25, deadline=None)
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
    monkeypatch.setattr(trace_ellipsoid, "_ALL", 100)
    few = solve(rows, 1e-3, block=170)
    assert few.trace == pytest.approx(whole.trace, rel=2e-3)
    assert few.trace <= few.lower_bound * 1.005
    assert longest(few, rows) == pytest.approx(1, rel=1e-9)


def test_rotating_and_scaling_rows_rotates_and_scales_the_solution():
    random = np.random.default_rng(6)
    rows = random.standard_t(3, (60, 4))
    turn = np.linalg.qr(random.standard_normal((4, 4)))[0]
    assert solve(3 * rows @ turn).trace == pytest.approx(9 * solve(rows).trace, rel=3e-4)
