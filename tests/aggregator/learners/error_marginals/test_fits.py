"""Weights and labels against scipy's bounded solvers, exact rational conditions of optimality, and closed forms.

Products of bounded fits against dense matrices, penalties against their conjugates, and nearly singular systems. Newton
steps from far away, and multipliers that cancel. Interior points against the exact solution that Newton's method finds,
and strengths at which it does not settle.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, lsq_linear, nnls, root
from scipy.sparse import csc_array, csr_array, vstack
from scipy.special import expit, logit

from aggregator.learners.error_marginals import fits as bounded_fits
from aggregator.learners.error_marginals.fits import (
    BoundedFit,
    Entropy,
    Quadratic,
    ascend,
    box_labels,
    definite_solver,
    entropy_labels,
    importance_weights,
    multipliers,
)
from federation.contract.errors import FederationError, InputError
from federation.numerics.binning import Bins

STRENGTHS = (1e-9, 1e-6, 1e-3, 0.1, 1e3, 1e9)
SEEDS = st.integers(0, 2**32 - 1)


def marginals(seed, rows, features=3, most=4, noise=0.05):
    """Indicators R, weights w and marginals p = R w + noise that weights may be unable to meet."""
    random = np.random.default_rng(seed)
    values = random.normal(size=(rows, features)).round(1)
    indicators = Bins.fit(values, most).indicators(values)
    weights = random.exponential(size=rows)
    weights /= weights.sum()
    return indicators, weights, indicators @ weights + noise * random.normal(size=indicators.shape[0])


def signed(seed, rows, hypotheses=2, noise=0.05, **shape):
    """The system M of some hypotheses, weights w and a target b of noisy errors."""
    indicators, weights, _ = marginals(seed, rows, **shape)
    random = np.random.default_rng(seed + 1)
    signs = random.choice([-1.0, 1.0], (hypotheses, rows))
    system = vstack([indicators.multiply(sign) for sign in signs]).tocsr()
    labels = random.integers(0, 2, rows)
    return system, weights, system @ (weights * labels) + noise * random.normal(size=system.shape[0])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("strength", [1e-3, 0.1, 10.0, 1e4, 1e9])
def test_weights_are_those_of_nonnegative_least_squares(seed, strength):
    indicators, _, target = marginals(seed, 120, 5, 6)
    found = importance_weights(indicators, target, strength)
    root_strength = np.sqrt(2 * strength)
    matrix = np.vstack([indicators.toarray(), root_strength * np.eye(120)])
    expected = nnls(matrix, np.append(target, np.full(120, root_strength / 120)), maxiter=12_000)[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    assert strength > 1 or 0 < (found == 0).sum() < 120


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("strength", [1e-3, 0.1, 10.0, 1e9])
def test_box_labels_are_those_of_bounded_least_squares(seed, strength):
    system, weights, target = signed(seed, 80)
    found = box_labels(system, target, strength, weights)
    roots = np.sqrt(strength * weights)
    matrix = np.vstack([system.toarray() * weights, np.diag(roots)])
    expected = lsq_linear(matrix, np.append(target, roots / 2), (0, 1), method="bvls", tol=1e-15).x
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    assert strength > 0.01 or 0 < np.isin(found, (0, 1)).sum() < 80


@pytest.mark.parametrize("strength", [1e-2, 0.1, 10.0])
def test_entropy_labels_are_the_root_of_their_equations(strength):
    system, weights, target = signed(4, 40)
    matrix = system.toarray()

    def equations(scores):
        return strength * scores - matrix.T @ (target - matrix @ (weights * expit(scores)))

    independent = root(equations, np.zeros(40), tol=1e-14)
    np.testing.assert_allclose(entropy_labels(system, target, strength, weights), expit(independent.x), atol=1e-10)


def exact_box(matrix, target, strength, weights, guess):
    """Box labels in rational numbers on the face of [0, 1]^n on which `guess` lies; checks that they are optimal."""
    rows = len(weights)
    a = [[Fraction(int(v)) for v in row] for row in matrix]
    b, w, rho = [Fraction(v) for v in target.tolist()], [Fraction(v) for v in weights.tolist()], Fraction(strength)
    y = [Fraction(round(v)) if v in (0, 1) else None for v in guess.tolist()]
    free = [i for i in range(rows) if y[i] is None]
    rest = [bk - sum(ak[i] * w[i] * y[i] for i in range(rows) if y[i] is not None) for ak, bk in zip(a, b, strict=True)]
    lines = [
        [sum(ak[i] * ak[j] for ak in a) * w[j] + (rho if i == j else 0) for j in free]
        + [rho / 2 + sum(ak[i] * rk for ak, rk in zip(a, rest, strict=True))]
        for i in free
    ]
    for pivot in range(len(free)):  # rho > 0 keeps pivots positive
        lines[pivot] = [v / lines[pivot][pivot] for v in lines[pivot]]
        for other in range(len(free)):
            if other != pivot:
                factor = lines[other][pivot]
                lines[other] = [v - factor * u for v, u in zip(lines[other], lines[pivot], strict=True)]
    for i, line in zip(free, lines, strict=True):
        y[i] = line[-1]
    residual = [bk - sum(ak[i] * w[i] * y[i] for i in range(rows)) for ak, bk in zip(a, b, strict=True)]
    for i in range(rows):
        gradient = rho * (y[i] - Fraction(1, 2)) - sum(ak[i] * rk for ak, rk in zip(a, residual, strict=True))
        assert 0 <= y[i] <= 1
        assert gradient == 0 or (gradient > 0 and y[i] == 0) or (gradient < 0 and y[i] == 1)
    return np.array([float(v) for v in y])


@pytest.mark.parametrize(("strength", "noise", "seed"), list(product([1e-9, 1e-6, 1e-3], [0.0, 0.1], range(3))))
def test_tiny_strengths_are_exact_in_rational_arithmetic(strength, noise, seed):
    system, weights, target = signed(seed, 14, features=2, most=3, noise=noise)
    found = box_labels(system, target, strength, weights)
    exact = exact_box(system.toarray(), target, strength, weights, found)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-9)


def assert_optimal(slope, found, low, high, rounding):
    """Karush-Kuhn-Tucker conditions: the slope of the objective is 0 inside the bounds and points out of them."""
    assert np.abs(slope[(found > low) & (found < high)]).max(initial=0) <= rounding
    assert slope[found <= low].min(initial=0) >= -rounding
    assert slope[found >= high].max(initial=0) <= rounding


@given(SEEDS, st.integers(1, 40), st.sampled_from(STRENGTHS), st.sampled_from([0.0, 0.01, 1.0]))
def test_labels_are_optimal(seed, rows, strength, noise):
    system, weights, target = signed(seed, rows, noise=noise)
    rounding = 1e-9 * (1 + np.abs(target).max() + strength)
    for fit, gradient, margin in ((box_labels, lambda y: y - 0.5, 0.0), (entropy_labels, logit, 1e-6)):
        found = fit(system, target, strength, weights)
        assert 0 <= found.min() <= found.max() <= 1
        # The gradient of the entropy close to a bound is infinite up to rounding: there, that of the margin is a bound.
        penalty = gradient(np.clip(found, margin, 1 - margin))
        slope = strength * penalty - system.T @ (target - system @ (weights * found))
        assert_optimal(slope, found, margin, 1 - margin, rounding)


@given(SEEDS, st.integers(1, 40), st.sampled_from(STRENGTHS), st.sampled_from([0.0, 0.01, 1.0]))
def test_weights_are_optimal(seed, rows, strength, noise):
    indicators, _, target = marginals(seed, rows, noise=noise)
    found = importance_weights(indicators, target, strength)
    slope = 2 * strength * (found - 1 / rows) - indicators.T @ (target - indicators @ found)
    assert found.min() >= 0
    assert_optimal(slope, found, 0, np.inf, 1e-9 * (1 + np.abs(target).max() + strength / rows))


@pytest.mark.slow
@given(SEEDS, st.integers(2, 40), st.sampled_from([1e-4, 0.1, 1e3]))
def test_solutions_follow_rows_units_and_names_of_classes(seed, rows, strength):
    system, weights, target = signed(seed, rows)
    order = np.random.default_rng(seed).permutation(rows)
    for fit in (box_labels, entropy_labels):
        found = fit(system, target, strength, weights)

        def assert_equal(other, expected):
            np.testing.assert_allclose(other, expected, atol=1e-9)

        assert_equal(fit(system[:, order], target, strength, weights[order]), found[order])
        assert_equal(fit(system, 1e6 * target, 1e6 * strength, 1e6 * weights), found)
        assert_equal(fit(system, system @ weights - target, strength, weights), 1 - found)
        repeated, halves = system[:, np.arange(rows).repeat(2)], weights.repeat(2) / 2
        assert_equal(fit(repeated, target, strength, halves), found.repeat(2))
    indicators, _, target = marginals(seed, rows)
    found = importance_weights(indicators, target, strength)
    np.testing.assert_allclose(importance_weights(indicators[:, order], target, strength), found[order], atol=1e-12)


@pytest.mark.parametrize("fit", [box_labels, entropy_labels])
@pytest.mark.parametrize("strength", [1e-9, 1e-3, 1.0])
def test_a_repeated_hypothesis_counts_as_half_the_strength(fit, strength):
    system, weights, target = signed(7, 60, hypotheses=1)
    twice = fit(vstack([system, system]), np.tile(target, 2), 2 * strength, weights)
    np.testing.assert_allclose(twice, fit(system, target, strength, weights), atol=1e-9)


def test_small_strengths_meet_the_marginals_large_ones_the_prior_and_single_bins_spread_evenly():
    system, weights, target = signed(8, 300, noise=0.0)
    indicators, _, marginal = marginals(8, 300, noise=0.0)
    for fit in (box_labels, entropy_labels):
        np.testing.assert_allclose(system @ (weights * fit(system, target, 1e-9, weights)), target, atol=1e-8)
        np.testing.assert_allclose(fit(system, target, 1e12, weights), 0.5, atol=1e-11)
    np.testing.assert_allclose(indicators @ importance_weights(indicators, marginal, 1e-9), marginal, atol=1e-8)
    np.testing.assert_allclose(importance_weights(indicators, marginal, 1e12), 1 / 300, atol=1e-11)
    indicators = csr_array(np.ones((3, 8)))  # three features of one bin each
    found = importance_weights(indicators, np.array([0.5, 1.0, 0.3]), 2.0)
    np.testing.assert_allclose(found, (1.8 + 2 * 2.0 / 8) / (3 * 8 + 2 * 2.0), atol=1e-14)
    np.testing.assert_array_equal(importance_weights(indicators, np.full(3, -1.0), 1e-3), 0)
    assert importance_weights(indicators, np.zeros(3), 1e-3).max() < 1e-4
    system, weights, target = signed(10, 40)
    weights[::3] = 0
    kept = weights > 0
    for fit, strength in product((box_labels, entropy_labels), (1e-9, 1e-2, 1.0)):
        found = fit(system, target, strength, weights)
        np.testing.assert_allclose(found[kept], fit(system[:, kept], target, strength, weights[kept]), atol=1e-9)
    for fit, strength in product((box_labels, entropy_labels), (1e-2, 1.0)):
        found, little = fit(system, target, strength, weights), np.where(kept, weights, 1e-13)
        np.testing.assert_allclose(found, fit(system, target, strength, little), atol=1e-8)


@pytest.mark.parametrize("share", [-3.0, 0.0, 0.2, 1.0, 40.0])
@pytest.mark.parametrize("strength", [1e-9, 0.5, 1e6])
def test_one_row_in_one_bin_has_a_closed_form(share, strength):
    one = np.ones((1, 1))
    expected = max(0.0, (share + 2 * strength) / (1 + 2 * strength))
    assert importance_weights(one, np.array([share]), strength)[0] == pytest.approx(expected, abs=1e-12)
    weight = 0.25
    expected = np.clip((share + strength / 2) / (weight + strength), 0, 1)
    assert box_labels(one, np.array([share]), strength, np.array([weight]))[0] == pytest.approx(expected, abs=1e-12)
    score = brentq(lambda t: strength * t - share + weight * expit(t), -1e12, 1e12, xtol=1e-14, rtol=1e-15)
    found = entropy_labels(one, np.array([share]), strength, np.array([weight]))[0]
    assert found == pytest.approx(expit(score), abs=1e-12)


ONE, TWO = np.ones((1, 2)), np.ones(2)


@pytest.mark.parametrize(("system", "target", "strength", "weights", "said"), [
    *((ONE, np.ones(1), strength, TWO, "strength") for strength in (0.0, -1.0, np.nan, np.inf, "1")),
    (ONE, np.ones(2), 1.0, TWO, "shape"), (ONE, np.ones((1, 1)), 1.0, TWO, "shape"),
    (ONE, np.array([np.nan]), 1.0, TWO, "finite"), (ONE, np.array(["a"]), 1.0, TWO, "numbers"),
    (ONE, np.ones(1), 1.0, np.zeros(2), "0"), (ONE, np.ones(1), 1.0, np.array([1.0, -1e-9]), "0"),
    (ONE, np.ones(1), 1.0, np.array([1.0, np.inf]), "finite"), (ONE, np.ones(1), 1.0, np.ones(3), "shape"),
    (np.ones((0, 2)), np.ones(0), 1.0, TWO, None), (np.ones((1, 0)), np.ones(1), 1.0, np.ones(0), None),
    (np.array([[1.0, np.nan]]), np.ones(1), 1.0, TWO, "finite"), (np.array([["a"]]), np.ones(1), 1.0, TWO, "numbers"),
])  # fmt: skip
def test_arguments_that_make_no_problem_are_refused(system, target, strength, weights, said):
    for fit in (box_labels, entropy_labels):
        with pytest.raises(InputError, match=said):
            fit(system, target, strength, weights)
    if weights is TWO or not weights.size:
        with pytest.raises(InputError, match=said):
            importance_weights(system, target, strength)


def test_what_rounding_keeps_from_its_certificate_is_an_error():
    for fit in (box_labels, entropy_labels):
        with pytest.raises(FederationError):
            fit(1e200 * ONE, np.full(1, 1.9e200), 1.0, TWO)


def draw(equations, rows, penalty=Entropy()):  # noqa: B008
    random = np.random.default_rng(equations)
    system = csc_array(random.choice([-1.0, 0.0, 1.0], (equations, rows), p=[0.1, 0.8, 0.1]))
    weights = random.exponential(size=rows) * (random.random(rows) < 0.8)
    return BoundedFit(system, random.normal(size=equations), 0.3, weights, penalty)


@pytest.mark.parametrize("equations", [5, 300])
def test_grams_are_those_of_dense_matrices(equations, monkeypatch):
    monkeypatch.setattr(bounded_fits, "_ENTRIES", 40)
    fit = draw(equations, 60)
    curvatures = np.random.default_rng(0).random(60)
    dense = fit.system.toarray()
    expected = (dense * (fit.weights * curvatures)) @ dense.T
    np.testing.assert_allclose(fit.gram(curvatures), expected, atol=1e-14)
    monkeypatch.setattr(bounded_fits, "_DENSE", 1e9 if equations > 8 * fit.longest else 0)
    np.testing.assert_allclose(fit.gram(curvatures), expected, atol=1e-14)
    np.testing.assert_array_equal(fit.gram(np.zeros(60)), 0)


@pytest.mark.parametrize("penalty", [Entropy(), Quadratic(1.0)])
def test_the_residual_is_the_gradient_of_the_dual(penalty):
    fit = draw(5, 30, penalty)
    multipliers, width = np.random.default_rng(1).normal(size=5), 1e-6

    def dual(m):
        t = fit.system.T @ m
        y = penalty.unknowns(t)
        value = (
            (y - 1) ** 2 / 2 if isinstance(penalty, Quadratic) else np.log(2) + y * np.log(y) + (1 - y) * np.log1p(-y)
        )
        return fit.strength * m @ m / 2 - fit.target @ m + fit.weights @ (t * y - value)

    expected = [(dual(multipliers + e) - dual(multipliers - e)) / (2 * width) for e in width * np.eye(5)]
    found = fit.residual(multipliers, penalty.unknowns(fit.columns @ multipliers))
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_multipliers_of_weight_0_are_left_out_and_singular_systems_nearly_solved():
    fit = draw(5, 30)
    part = fit.of_positive_weight()
    assert 0 < len(part.weights) < 30
    np.testing.assert_array_equal(part.system.toarray(), fit.system.toarray()[:, fit.weights > 0])
    assert part.scale == pytest.approx(fit.scale)
    assert part.of_positive_weight() is part
    factor = np.random.default_rng(2).normal(size=(6, 4))
    solution = definite_solver(factor @ factor.T, 0.5)(np.arange(6.0))
    np.testing.assert_allclose(factor @ (factor.T @ solution) + 0.5 * solution, np.arange(6.0), atol=1e-12)
    vector = factor @ np.ones(4)
    solution = definite_solver(factor @ factor.T, 1e-300)(vector)
    np.testing.assert_allclose(factor @ (factor.T @ solution), vector, rtol=1e-6)
    for endless in (np.full((2, 2), np.inf), np.array([[1.0, np.nan], [np.nan, 1.0]])):
        assert np.isnan(definite_solver(endless, 1.0)(np.ones(2))).all()
    below, above = np.array([1e-200, 1.0]), np.array([1.0, 1e-200])
    np.testing.assert_allclose(Entropy().gradient(below, above), [-200 * np.log(10), 200 * np.log(10)])
    assert (Entropy().slopes(np.array([-460.0, 460.0])) > 0).all()


@pytest.mark.parametrize("penalty", [Quadratic(0.5, high=1.0), Quadratic(1.0), Quadratic(-2.0, -3.0, 5.0), Entropy()])
def test_the_conjugate_slope_inverts_the_gradient_and_slopes_and_curvatures_are_their_derivatives(penalty):
    arguments, width = np.linspace(-0.45, 0.45, 13), 1e-6
    found = penalty.unknowns(arguments)
    np.testing.assert_allclose(penalty.gradient(found - penalty.low, penalty.high - found), arguments, atol=1e-14)
    assert penalty.unknowns(np.zeros(1)) == penalty.centre
    rise = (penalty.unknowns(arguments + width) - penalty.unknowns(arguments - width)) / (2 * width)
    np.testing.assert_allclose(penalty.slopes(arguments), rise, rtol=1e-8)
    curvature = penalty.curvature(found - penalty.low, penalty.high - found)
    np.testing.assert_allclose(curvature * penalty.slopes(arguments), 1, rtol=1e-12)
    found = penalty.unknowns(np.array([-1e9, -50.0, 50.0, 1e9]))
    assert penalty.low <= found.min() < found.max() <= penalty.high
    assert penalty.slopes(np.array([-1e9, 1e9])).tolist() == [0, np.isinf(penalty.high)]


def dual_newton_draw(seed, penalty, strength, noise=0.1):
    random = np.random.default_rng(seed)
    system = random.choice([-1.0, 0.0, 1.0], (12, 50), p=[0.2, 0.6, 0.2])
    weights = random.exponential(size=50) / 50
    target = system @ (weights * random.random(50)) + noise * random.normal(size=12)
    return BoundedFit(csc_array(system), target, strength, weights, penalty)


@pytest.mark.parametrize("penalty", [Quadratic(0.5, high=1.0), Quadratic(1.0), Entropy()])
@pytest.mark.parametrize("strength", [1e-2, 1.0, 1e6])
def test_steps_end_at_the_same_point_from_anywhere(penalty, strength):
    for seed in range(3):
        fit = dual_newton_draw(seed, penalty, strength)
        here = ascend(fit, np.zeros(12), 50)
        far = ascend(fit, 100 * np.random.default_rng(seed).normal(size=12), 100)
        assert max(here.residual, far.residual) <= 1e-13 * fit.scale
        np.testing.assert_allclose(penalty.unknowns(here.arguments), penalty.unknowns(far.arguments), atol=1e-10)


def test_newton_steps_tell_what_they_did_not_settle():
    fit = dual_newton_draw(0, Entropy(), 0.1)
    start = np.arange(12.0)
    found = ascend(fit, start, 0)
    np.testing.assert_allclose(found.arguments, fit.system.T @ start, atol=1e-13)
    assert found.residual == pytest.approx(
        np.linalg.norm(fit.residual(start, Entropy().unknowns(fit.system.T @ start)))
    )
    # Two equal equations with targets that differ: their multipliers are near plus and minus 0.5 / rho.
    weights, strength = np.array([0.25, 0.75]), 1e-9
    system = csc_array(np.array([[1.0, 1.0], [1.0, 1.0]]))
    fit = BoundedFit(system, np.array([0.9, -0.1]), strength, weights, Quadratic(0.5, high=1.0))
    found = ascend(fit, np.zeros(2), 50)
    # Both unknowns are y with 2 y - 0.8 + rho (y - 1/2) = 0.
    expected = (0.8 + strength / 2) / (2 + strength)
    np.testing.assert_allclose(fit.penalty.unknowns(found.arguments), expected, atol=1e-14)
    fits = [interior_point_draw(seed, Quadratic(0.5, high=1.0), 1e-9) for seed in range(4)]
    assert max(ascend(fit, np.zeros(10), 15).residual / fit.scale for fit in fits) > 1e-6


BOUNDED = [Quadratic(0.5, high=1.0), Quadratic(1.0), Entropy()]


def interior_point_draw(seed, penalty, strength, rows=80):
    """A target that no unknowns meet, with equations of which the last repeats the first."""
    random = np.random.default_rng(seed)
    system = random.choice([-1.0, 1.0], (10, rows))
    system[-1] = system[0]
    weights = random.exponential(size=rows) / rows
    target = system @ (weights * random.random(rows)) + 0.3 * random.normal(size=10)
    return BoundedFit(csc_array(system), target, strength, weights, penalty)


@pytest.mark.parametrize("penalty", BOUNDED)
@pytest.mark.parametrize("strength", [1e-2, 1.0, 100.0])
def test_multipliers_are_close_to_those_of_the_minimum(penalty, strength):
    fit = interior_point_draw(1, penalty, strength)
    exact = ascend(fit, np.zeros(10), 100)
    assert exact.residual <= 1e-13 * fit.scale
    found = penalty.unknowns(fit.columns @ multipliers(fit))
    np.testing.assert_allclose(found, penalty.unknowns(exact.arguments), atol=1e-4)


@pytest.mark.parametrize("penalty", BOUNDED)
@pytest.mark.parametrize("strength", [1e-6, 1e-9])
def test_newton_steps_from_them_settle_at_tiny_strengths(penalty, strength):
    for seed in range(4):
        fit = interior_point_draw(seed, penalty, strength)
        assert ascend(fit, multipliers(fit), 20).residual <= 1e-12 * fit.scale
