"""The exact delta of several noisy integers against convolutions, joint laws and privacy loss distributions."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.mechanisms.counts.exact_laws import discrete_gaussian_delta as exact_delta
from federation.mechanisms.marginals import noise as moved
from federation.mechanisms.marginals.noise import SMOOTH_SIGMA, gaussian_delta, laplace_delta
from federation.mechanisms.noise import discrete as discrete_laplace
from federation.mechanisms.noise import gaussian
from federation.mechanisms.noise.discrete import delta_bound, delta_one_coordinate


def convolved(epsilon: float, cells: int, sigma: float) -> float:
    """From the law of the sum, one cell at a time."""
    k = np.arange(-int(40 * sigma) - 5, int(40 * sigma) + 6)
    one = np.exp(-0.5 * np.square(k / sigma))
    law = one = one / one.sum()
    for _ in range(cells - 1):
        law = np.convolve(law, one)
    s = np.arange(len(law)) - len(law) // 2
    return float(law @ np.maximum(0.0, -np.expm1(epsilon - (cells - 2 * s) / (2 * sigma**2))))


@pytest.mark.parametrize(
    ("cells", "sigma"), [(1, 0.4), (3, 0.5), (7, 0.9), (5, 1.7), (5, 2.49), (5, 2.5), (2, 4.0), (12, 7.3)]
)
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0, 8.0])
def test_it_is_that_of_the_convolution(cells: int, sigma: float, epsilon: float) -> None:
    assert gaussian_delta(epsilon, cells, sigma) == pytest.approx(convolved(epsilon, cells, sigma), rel=1e-10)


def test_two_integers_and_one() -> None:
    assert gaussian_delta(1.0, 2, 3.25) == pytest.approx(exact_delta(1.0, 3.25), rel=1e-10)
    assert gaussian_delta(0.2, 1, 6.0) == pytest.approx(delta_one_coordinate(0.2, 1, 6), rel=1e-10)


@pytest.mark.parametrize(("cells", "sigma"), [(4, 2.0), (44, 24.7)])
def test_a_privacy_loss_distribution_is_a_little_above(cells: int, sigma: float) -> None:
    interval = 1e-4 / cells
    one = pld.from_discrete_gaussian_mechanism(sigma, value_discretization_interval=interval)
    whole = one.self_compose(cells)
    for epsilon in (0.5, 1.0, 2.0):
        theirs = whole.get_delta_for_epsilon(epsilon)
        assert gaussian_delta(epsilon, cells, sigma) <= theirs * (1 + 1e-9)
        assert gaussian_delta(epsilon - 1e-4, cells, sigma) >= theirs * (1 - 1e-6) - 1e-12


def test_the_sum_meets_the_bound_where_that_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    sigma = 4100 / 44**0.5
    values = [gaussian_delta(epsilon, 44, sigma) for epsilon in (0.001, 0.03, 0.1)]
    monkeypatch.setattr(moved, "_MAX_SUM_TAU", 1e5)
    summed = [gaussian_delta(epsilon, 44, sigma) for epsilon in (0.001, 0.03, 0.1)]
    np.testing.assert_allclose(values, summed, rtol=5e-4)
    assert np.all(np.array(values) >= summed)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.integers(1, 200), st.floats(SMOOTH_SIGMA, 60), st.floats(0, 4))
def test_it_lies_between_the_continuous_law_and_the_bound_for_all_cells(cells: int, sigma: float, at: float) -> None:
    """Rounded continuous noise is more private than the continuous one by no more than the grid can tell."""
    mu = cells**0.5 / sigma
    epsilon = at * mu
    exact = gaussian_delta(epsilon, cells, sigma)
    assert exact <= delta_bound(epsilon, mu, 1, moved.grid_scale(cells, sigma)) * (1 + 1e-9)
    step = 0.5 / sigma**2  # half the spacing of the losses
    assert float(gaussian.delta(epsilon + step, mu)) * (1 - 2e-2) <= exact
    assert gaussian_delta(epsilon + 0.1 * mu, cells, sigma) <= exact


@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.0])
def test_the_deviation_of_coarse_noise(sigma: float) -> None:
    k = np.arange(-80, 81)
    mass = np.exp(-0.5 * np.square(k / sigma))
    assert moved.deviation(sigma) == pytest.approx((k**2 @ mass / mass.sum()) ** 0.5, rel=1e-12)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3, 2), Fraction(7)])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.9])
def test_laplace_it_is_that_of_the_joint_law(scale: Fraction, epsilon: float) -> None:
    reach = int(40 * scale)
    k = np.arange(-reach, reach + 1)
    q = np.exp(-1 / float(scale))
    here, there = ((1 - q) / (1 + q) * q ** np.abs(k - moved) for moved in (0, 1))
    sides = [
        (here[k <= 0].sum(), there[k <= 0].sum()),
        (here[k > 0].sum(), there[k > 0].sum()),
    ]  # where the loss is one
    expected = sum(
        max(0.0, np.prod([p for p, _ in cell]) - np.exp(epsilon) * np.prod([p for _, p in cell]))
        for cell in product(sides, repeat=3)
    )
    assert laplace_delta(epsilon, 3, scale) == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_laplace_one_integer() -> None:
    assert laplace_delta(0.1, 1, Fraction(4)) == pytest.approx(discrete_laplace.delta(0.1, 1, 4), rel=1e-10)


def test_laplace_a_privacy_loss_distribution_agrees() -> None:
    """The loss of one cell is +1/t or -1/t, a multiple of its interval, so nothing is rounded."""
    one = pld.from_discrete_laplace_mechanism(1 / 44, value_discretization_interval=1 / 44)
    whole = one.self_compose(44)
    for epsilon in (2 / 44, 10 / 44, 30 / 44):
        assert laplace_delta(epsilon, 44, Fraction(44)) == pytest.approx(whole.get_delta_for_epsilon(epsilon), rel=1e-6)


@pytest.mark.parametrize(("cells", "scale"), [(1, Fraction(1, 3)), (44, Fraction(44)), (7, Fraction(7, 3))])
def test_laplace_nothing_is_left_from_the_largest_loss_on(cells: int, scale: Fraction) -> None:
    largest = float(cells / scale)
    assert laplace_delta(largest, cells, scale) == 0.0
    assert laplace_delta(2 * largest, cells, scale) == 0.0
    assert laplace_delta(0.99 * largest, cells, scale) > 0
