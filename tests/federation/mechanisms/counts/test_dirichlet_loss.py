"""Deltas of scaled Dirichlet neighbours against many digits and brute force, their limits, and monotonicity."""

import math
from itertools import permutations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.exact_losses import beta_divergence

from federation.contract.errors import InputError
from federation.contract.randomness import generator
from federation.mechanisms.counts.dirichlet_loss import (
    beta_tail,
    delta_eq9,
    delta_eq9_limit,
    delta_exact,
    delta_exact_limit,
    exceeds_eq9,
    log_threshold,
)

counts, sigmas, epsilons = st.integers(2, 5000), st.floats(1e-6, 50), st.floats(0, 5)


def precise(epsilon: float, a: float, b: float, sigma: float) -> tuple[float, float, float]:
    """ln T, Eq. 9 and exact delta from gamma and incomplete beta functions of 60 digits."""
    with mpmath.workdps(60):
        e, a, b, s = (mpmath.mpf(x) for x in (epsilon, a, b, sigma))
        log_t = sum(sign * mpmath.loggamma(z) for sign, z in ((1, s * a), (-1, s * (a - 1)), (1, s * b)))
        log_t = (log_t - mpmath.loggamma(s * (b + 1)) + e) / s
        small = 1 / (1 + mpmath.exp(abs(log_t)))

        def tail(p: mpmath.mpf, q: mpmath.mpf) -> mpmath.mpf:
            if log_t > 0:
                return mpmath.betainc(q, p, 0, small, regularized=True)
            return 1 - mpmath.betainc(p, q, 0, small, regularized=True)

        here = tail(s * a, s * b)
        return float(log_t), float(here), float(here - mpmath.exp(e) * tail(s * (a - 1), s * (b + 1)))


CASES = [
    (0.05, 51, 50, 0.79),
    (0.05, 50, 800, 0.5),
    (0.05, 800, 50, 0.5),
    (0.05, 5, 10, 0.001),  # ln T < -37: 1/(1+T) rounds to 1
    (0.05, 25, 25, 1e-4),  # 1/(1+T) is below the smallest double
    (1.0, 15, 14, 0.24),
    (1.0, 21, 20, 0.472),
    (0.0, 30, 30, 0.3),
    (0.01, 10, 100, 0.2),
    (5.0, 3, 2, 40.0),
    (3.0, 1000, 2, 1e-7),
    (0.001, 2, 100_000, 0.01),
    (0.01, 200_000, 2, 0.001),
    (0.1, 2, 2, 1e-12),
]


@pytest.mark.parametrize(("epsilon", "a", "b", "sigma"), CASES)
def test_deltas_equal_their_formulas_in_many_digits(epsilon: float, a: int, b: int, sigma: float) -> None:
    log_t, eq9, exact = precise(epsilon, a, b, sigma)
    assert float(log_threshold(epsilon, a, b, sigma)) == pytest.approx(log_t, rel=1e-12, abs=1e-12)
    assert float(delta_eq9(epsilon, a, b, sigma)) == pytest.approx(eq9, rel=1e-9, abs=1e-13)
    assert float(delta_exact(epsilon, a, b, sigma)) == pytest.approx(exact, rel=1e-9, abs=1e-13)


def test_deltas_at_random_arguments_and_broadcast_as_in_many_digits() -> None:
    rng = generator(1, "dirichlet loss")
    a, b = np.ceil(10 ** rng.uniform(0.31, 2.5, (2, 40)))
    sigma, epsilon = 10 ** rng.uniform(-5, 1, 40), 10 ** rng.uniform(-3, 0.7, 40)
    expected = np.array([precise(*row) for row in zip(epsilon, a, b, sigma, strict=True)])
    np.testing.assert_allclose(delta_eq9(epsilon, a, b, sigma), expected[:, 1], rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(delta_exact(epsilon, a, b, sigma), expected[:, 2], rtol=1e-9, atol=1e-13)
    table = delta_exact(0.1, a[:, None], b[None, :], 0.3)
    assert table.shape == (40, 40)
    assert table[3, 5] == delta_exact(0.1, a[3], b[5], 0.3)


@pytest.mark.parametrize(
    ("epsilon", "a", "b", "sigma"),
    [CASES[0], *(pytest.param(*CASES[k], marks=pytest.mark.slow) for k in (1, 2, 5, 6, 7, 8))],
)
def test_exact_delta_equals_the_hockey_stick_integral(epsilon: float, a: int, b: int, sigma: float) -> None:
    """On a fine grid: no threshold, no incomplete beta function."""
    brute = beta_divergence(epsilon, sigma * np.array([a, b]), sigma * np.array([a - 1, b + 1]))
    assert float(delta_exact(epsilon, a, b, sigma)) == pytest.approx(brute, abs=1e-9)


def test_published_figures() -> None:
    assert float(delta_eq9(0.05, 25, 25, 1e-4)) == pytest.approx(0.1491, abs=5e-5)
    assert float(delta_exact(0.05, 25, 25, 1e-4)) == pytest.approx(0.005735, abs=5e-7)
    assert float(delta_exact(0.05, 5, 10, 0.001)) == pytest.approx(0.0617, abs=5e-5)
    np.testing.assert_allclose(delta_exact(0.05, [50, 800], [800, 50], 0.5), [0.0213, 0.0220], atol=6e-5)
    np.testing.assert_allclose(delta_eq9(0.01, 10, 100, [0.02, 0.2, 0.8]), [0.601, 0.554, 0.570], atol=6e-4)
    # Eq. 9 is not monotone in the counts.
    grid = np.arange(2, 60)
    assert (np.diff(delta_eq9(0.05, grid[:, None], grid[None, :], 0.1), axis=1) > 1e-3).any()
    # The threshold of the worst pair is exactly epsilon over sigma.
    assert float(log_threshold(0.05, 51, 50, 0.79)) == 0.05 / 0.79
    assert log_threshold([0.05, 0.05], [51, 60], 50, 0.79)[0] == pytest.approx(0.05 / 0.79, rel=1e-15)


@pytest.mark.parametrize("x", [3.0, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("sigma", [1e-6, 1e-3, 0.5, 30.0])
def test_gamma_differences_keep_their_digits(x: float, sigma: float) -> None:
    with mpmath.workdps(60):
        s, a, b = mpmath.mpf(sigma), mpmath.mpf(x), mpmath.mpf(2 * x)
        lost = mpmath.loggamma(s * a) - mpmath.loggamma(s * (a - 1))
        gained = mpmath.loggamma(s * (b + 1)) - mpmath.loggamma(s * b)
        expected = float((lost - gained) / s)
    assert float(log_threshold(0, x, 2 * x, sigma)) == pytest.approx(expected, rel=1e-12)


def test_limits_as_sigma_vanishes() -> None:
    for epsilon, a, b in [(0.05, 25, 25), (0.05, 8, 7), (0.05, 5, 100), (1.0, 3, 2), (0.01, 2, 50), (0.1, 50, 2)]:
        tiny = 1e-13
        assert float(delta_eq9(epsilon, a, b, tiny)) == pytest.approx(float(delta_eq9_limit(epsilon, a, b)), rel=1e-9)
        exact = float(delta_exact(epsilon, a, b, tiny))
        assert exact == pytest.approx(float(delta_exact_limit(epsilon, a, b)), rel=1e-9)
    for epsilon, m in [(0.05, 7), (1.0, 11)]:
        assert float(delta_exact_limit(epsilon, m + 1, m)) == pytest.approx(math.exp(-epsilon * m) / (2 * m + 1))


@pytest.mark.parametrize(("function", "limit"), [(delta_eq9, delta_eq9_limit), (delta_exact, delta_exact_limit)])
def test_an_empty_class_in_either_neighbour_gives_one(function, limit) -> None:
    np.testing.assert_array_equal(function(0.5, [1, 1, 7], [9, 0, 0], 0.3), 1.0)
    np.testing.assert_array_equal(limit(0.5, [1, 7], [9, 0]), 1.0)
    assert float(log_threshold(0.5, 1, 9, 0.3)) == -math.inf
    assert exceeds_eq9(1.0, [1, 1, 9, 9], [0, 5, 0, 90], 0.1, 0.9).tolist() == [True, True, True, False]
    assert not exceeds_eq9(1.0, 1, 0, 0.1, 1.0)


@given(epsilons, counts, counts, sigmas, st.floats(0, 3), st.integers(1, 1000))
def test_exact_delta_falls_with_epsilon_and_counts_and_stays_below_eq9(epsilon, a, b, sigma, later, more) -> None:
    here, more_a, more_b = delta_exact(epsilon, [a, a + more, a], [b, b, b + more], sigma)
    for less in (more_a, more_b, delta_exact(epsilon + later, a, b, sigma)):
        assert 0 <= less <= here + 1e-12
    assert here <= delta_eq9(epsilon, a, b, sigma) + 1e-12 <= 1 + 2e-12


@given(st.floats(0.01, 5), st.integers(1, 200), st.lists(st.integers(1, 3000), min_size=2, max_size=6))
def test_the_pair_just_above_the_floor_is_the_worst_of_all_ordered_pairs(epsilon, floor, above) -> None:
    a, b = np.array([*permutations((floor + extra for extra in above), 2)]).T
    worst = float(delta_exact(epsilon, floor + 1, floor, 0.4))
    assert (delta_exact(epsilon, a, b, 0.4) <= worst + 1e-12).all()
    assert (delta_exact(epsilon, b + 1, a - 1, 0.4) <= worst + 1e-12).all()  # the way back


@given(st.sampled_from([0.05, 1.0, 5.0, 700.0]), st.floats(-9, 8), st.integers(0, 2**32))
def test_deltas_above_a_level_are_those_above_it(epsilon: float, log_sigma: float, seed: int) -> None:
    """Also at the deltas themselves, which are not above, and next to them."""
    rng = np.random.default_rng(seed)
    a, b = np.floor(10 ** rng.uniform(0, 7, (2, 8)))
    sigma = math.exp(log_sigma)
    deltas = delta_eq9(epsilon, a[:, None], b, sigma)
    for level in (1e-300, *deltas.ravel()[::19].tolist(), 0.5):
        for near in (math.nextafter(level, 0), level, math.nextafter(level, 1)):
            if near > 0:
                np.testing.assert_array_equal(exceeds_eq9(epsilon, a[:, None], b, sigma, near), deltas > near)


def test_beta_tail_in_all_regimes_is_a_probability_that_falls() -> None:
    odds = np.concatenate([-np.geomspace(1e4, 1e-3, 60), np.geomspace(1e-3, 1e4, 60)])
    for p, q in [(0.01, 0.02), (1e-5, 3.0), (40.0, 2.0), (3000.0, 5000.0)]:
        tail = beta_tail(odds, np.full_like(odds, p), np.full_like(odds, q))
        assert ((tail >= 0) & (tail <= 1)).all()
        assert (np.diff(tail) <= 1e-15).all()
    for sign in (1, -1):  # where the single term takes over
        near, far = beta_tail(sign * np.array([600.0, 600.0 + 1e-9]), np.full(2, 0.01), np.full(2, 0.01))
        assert far == pytest.approx(near, rel=1e-9)


@pytest.mark.parametrize(
    "arguments",
    [(-0.1, 5, 5, 1), (0.1, 0, 5, 1), (0.1, 5, -1, 1), (0.1, 5, 5, 0), (math.nan, 5, 5, 1), (0.1, math.inf, 5, 1)],
)
@pytest.mark.parametrize("function", [log_threshold, delta_eq9, delta_exact])
def test_arguments_out_of_range_are_refused(function, arguments: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match=r"epsilon.*0"):
        function(*arguments)


@pytest.mark.parametrize("epsilon", [650.0, 720.0, 5000.0])
def test_an_epsilon_whose_exponential_is_no_double_keeps_its_delta(epsilon: float) -> None:
    a, b, sigma = 3, 2, epsilon / 6
    with mpmath.workdps(60):
        x, s = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon) / sigma)), mpmath.mpf(sigma)
        here = mpmath.betainc(s * b, s * a, 0, x, regularized=True)
        there = mpmath.betainc(s * (b + 1), s * (a - 1), 0, x, regularized=True)
        expected = float(here - mpmath.exp(epsilon) * there)
    assert float(delta_exact(epsilon, a, b, sigma)) == pytest.approx(expected, rel=1e-9)
    assert float(delta_exact_limit(epsilon, a, b)) < 1e-300
