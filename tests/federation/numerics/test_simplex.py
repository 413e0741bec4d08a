"""Points of the simplex against enumerated faces, scipy's general minimiser, and the conditions of optimality."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize, nnls
from support.refusals import refused

from federation.numerics import simplex
from federation.numerics.simplex import gap, least_squares, project

VALUES = st.floats(-1e6, 1e6, allow_subnormal=False)
SCALES = st.sampled_from([1e-150, 1e-6, 1.0, 1e6, 1e150])


def by_bisection(values: np.ndarray) -> np.ndarray:
    """The projection as max(v - t, 0), its threshold t found by halving."""
    low, high = values.max() - 1.0, values.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(values - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(values - low, 0)


def by_faces(quadratic: np.ndarray, linear: np.ndarray) -> float:
    """The least objective of a definite problem: over every face, the stationary point if it lies inside."""
    best = np.inf
    for size in range(1, len(linear) + 1):
        for face in itertools.combinations(range(len(linear)), size):
            f = list(face)
            system = np.block([[quadratic[np.ix_(f, f)], np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            z = np.linalg.solve(system, np.append(linear[f], 1.0))[:size]
            if (z >= -1e-12).all():
                best = min(best, z @ quadratic[np.ix_(f, f)] @ z - 2 * linear[f] @ z)
    return best


def value(quadratic, linear, rho):
    return np.einsum("...i,...ij,...j->...", rho, quadratic, rho) - 2 * np.einsum("...i,...i->...", linear, rho)


def definite(rng, count, classes, rank):
    factor = rng.normal(size=(count, rank, classes))
    return factor.transpose(0, 2, 1) @ factor


@given(arrays(np.float64, (3, 5), elements=VALUES), st.integers(0, 2**32 - 1))
def test_projection_is_the_thresholded_point_and_closer_than_any_other(values, seed):
    found = project(values)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-14)
    for own, point in zip(values, found, strict=True):
        np.testing.assert_allclose(point, by_bisection(own), atol=1e-9)
        np.testing.assert_allclose(project(own[:1]), [1.0])
    others = np.random.default_rng(seed).dirichlet(np.ones(5), size=3)
    # <v - p, x - p> <= 0 for every x of a convex set characterises the projection p.
    products = np.einsum("nc,nc->n", values - found, others - found)
    assert (products <= 1e-9 * (1 + np.abs(values).max())).all()


def test_projection_keeps_the_simplex_and_ignores_constants():
    points = np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 6))
    np.testing.assert_allclose(project(points), points, atol=1e-15)
    np.testing.assert_allclose(project(points + 1000.0), points, atol=1e-12)
    assert project(np.array([7.0])) == [1.0]
    np.testing.assert_array_equal(project(np.array([1e308, -1e308, 1e308])), [0.5, 0, 0.5])
    np.testing.assert_array_equal(project(np.array([0.0, 1e300])), [0, 1])


@pytest.mark.parametrize(
    ("quadratic", "linear", "what"),
    [
        *((np.eye(size), linear, None) for size, linear in ((3, np.zeros(2)), (0, np.zeros(0)), (2, 1.0))),
        (np.ones((2, 3, 3)), np.zeros((4, 3)), None),
        (np.array([[1.0, np.nan], [0.0, 1.0]]), np.zeros(2), "quadratic"),
        *((np.eye(2), linear, "linear") for linear in ([np.inf, 0.0], ["a", "b"])),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), np.zeros(2), None),
        (np.stack([np.eye(2), -np.eye(2)]), np.zeros(2), r"1.*-1"),
    ],
)
def test_other_problems_and_what_is_no_vector_are_refused(quadratic, linear, what):
    refused(what, least_squares, quadratic, linear)
    for values in (np.empty((3, 0)), 1.0, [np.nan, 0.0], [np.inf, 0.0], ["a", "b"]):
        refused("values", project, values)


@pytest.mark.parametrize("classes", [2, 3, 4, pytest.param(6, marks=pytest.mark.slow)])
def test_least_squares_is_the_best_of_all_faces(classes, rng):
    quadratic = definite(rng, 30, classes, 2 * classes)
    for scale in (0.1, 1.0, 10.0):
        linear = scale * rng.normal(size=(30, classes))
        found = least_squares(quadratic, linear)
        best = [by_faces(q, t) for q, t in zip(quadratic, linear, strict=True)]
        np.testing.assert_allclose(value(quadratic, linear, found), best, atol=1e-12 * classes * scale * 30)


def test_least_squares_agrees_with_non_negative_least_squares_and_a_general_minimiser(rng):
    # A heavy extra row sum(rho) = 1 turns scipy's NNLS into the same problem, to the square of its weight.
    for classes in (3, 10, 40):
        factor, target = rng.normal(size=(60, classes)), rng.normal(size=60)
        oracle, _ = nnls(np.vstack([factor, np.full(classes, 1e5)]), np.append(target, 1e5))
        np.testing.assert_allclose(least_squares(factor.T @ factor, factor.T @ target), oracle, atol=1e-6)
    factor, target = rng.normal(size=(8, 5)), rng.normal(size=8)
    quadratic, linear = factor.T @ factor, factor.T @ target
    oracle = minimize(
        lambda rho: value(quadratic, linear, rho),
        np.full(5, 0.2),
        jac=lambda rho: 2 * (quadratic @ rho - linear),
        bounds=[(0, 1)] * 5,
        constraints={"type": "eq", "fun": lambda rho: rho.sum() - 1, "jac": lambda rho: np.ones(5)},
        method="SLSQP",
        options={"ftol": 1e-15},
    )
    np.testing.assert_allclose(least_squares(quadratic, linear), oracle.x, atol=1e-6)


@given(
    st.integers(1, 12), st.integers(0, 14), st.integers(0, 2**32 - 1), SCALES, st.sampled_from([0.0, 1e-6, 1.0, 1e3])
)
def test_every_answer_meets_the_optimality_conditions(classes, rank, seed, scale, pull):
    rng = np.random.default_rng(seed)
    quadratic = definite(rng, 4, classes, rank).round(1)  # rounding makes ties
    quadratic = quadratic if np.linalg.eigvalsh(quadratic).min() > -1e-12 else definite(rng, 4, classes, rank)
    linear = pull * rng.normal(size=(4, classes)).round(1)
    found = least_squares(scale * quadratic, scale * linear)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-14)
    range_ = max(1.0, np.abs(quadratic).max(), np.abs(linear).max())
    assert (gap(quadratic, linear, found) <= 1e-9 * range_).all()


def test_gap_bounds_the_distance_from_the_minimum_and_vanishes_there(rng):
    quadratic, linear = definite(rng, 1, 5, 8)[0], rng.normal(size=5)
    best = least_squares(quadratic, linear)
    assert gap(quadratic, linear, best) < 1e-12
    others = rng.dirichlet(np.ones(5), size=200)
    excess = value(quadratic, linear, others) - value(quadratic, linear, best)
    assert (excess > 0).all()
    assert (gap(quadratic, linear, others) >= excess - 1e-12).all()
    # What is constant on the simplex does not matter.
    shift = rng.normal(size=5)
    moved = quadratic + shift[:, None] + shift[None, :] - 50.0  # indefinite, but not on vectors that sum to zero
    np.testing.assert_allclose(least_squares(moved, linear + shift + 3.0), best, atol=1e-11)


def test_where_several_points_are_minimal_the_one_nearest_to_the_centre_is_found():
    np.testing.assert_array_equal(least_squares(np.zeros((3, 3)), np.zeros(3)), np.full(3, 1 / 3))
    np.testing.assert_array_equal(least_squares(np.ones((3, 3)), np.full(3, 7.0)), np.full(3, 1 / 3))
    np.testing.assert_allclose(least_squares(np.zeros((3, 3)), [1.0, 1.0, 0.0]), [0.5, 0.5, 0], atol=1e-12)
    # Two classes with the same features: only their sum is known.
    means = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    found = least_squares(means.T @ means, means.T @ [0.6, 0.4])
    np.testing.assert_allclose(found, [0.3, 0.3, 0.4], atol=1e-6)
    np.testing.assert_allclose(means @ found, [0.6, 0.4], atol=1e-12)


def test_a_hundred_classes_of_which_most_are_absent(rng):
    factor = rng.normal(size=(300, 100))
    truth = np.zeros((20, 100))
    truth[:, :7] = rng.dirichlet(np.ones(7), size=20)
    np.testing.assert_allclose(least_squares(factor.T @ factor, truth @ factor.T @ factor), truth, atol=1e-10)


def test_rounds_that_start_where_the_last_one_ended_reach_what_is_far_along_a_flat_direction(monkeypatch):
    """In three of them. Rounds that all stay near the centre come as close, but not as soon."""
    steep, flat, truth = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0], [0.6, 0.3, 0.1]])
    quadratic = np.outer(steep, steep) + 1e-6 * np.outer(flat, flat)
    monkeypatch.setattr(simplex, "_ROUNDS", 3)
    np.testing.assert_allclose(least_squares(quadratic, quadratic @ truth), truth, atol=1e-5)


def test_batches_broadcast_and_do_not_change_a_bit(rng):
    quadratic, linear = definite(rng, 5, 4, 4), rng.normal(size=(7, 5, 4))
    together = least_squares(quadratic, linear)
    assert together.shape == (7, 5, 4)
    for i, j in itertools.product(range(7), range(5)):
        np.testing.assert_array_equal(least_squares(quadratic[j], linear[i, j]), together[i, j])
    assert least_squares(quadratic, np.empty((0, 5, 4))).shape == (0, 5, 4)
