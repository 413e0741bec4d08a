"""The exact delta of several discrete Gaussian integers against convolutions and privacy loss distributions."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.mechanisms.counts.discrete_gaussian import exact_delta
from federation.mechanisms.marginals import gaussian_cells
from federation.mechanisms.marginals.gaussian_cells import SMOOTH_SIGMA, delta
from federation.mechanisms.noise import gaussian
from federation.mechanisms.noise.discrete_gaussian import delta_bound, delta_one_coordinate


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
    assert delta(epsilon, cells, sigma) == pytest.approx(convolved(epsilon, cells, sigma), rel=1e-10)


def test_two_integers_and_one() -> None:
    assert delta(1.0, 2, 3.25) == pytest.approx(exact_delta(1.0, 3.25), rel=1e-10)
    assert delta(0.2, 1, 6.0) == pytest.approx(delta_one_coordinate(0.2, 1, 6), rel=1e-10)


@pytest.mark.parametrize(("cells", "sigma"), [(4, 2.0), (44, 24.7)])
def test_a_privacy_loss_distribution_is_a_little_above(cells: int, sigma: float) -> None:
    interval = 1e-4 / cells
    one = pld.from_discrete_gaussian_mechanism(sigma, value_discretization_interval=interval)
    whole = one.self_compose(cells)
    for epsilon in (0.5, 1.0, 2.0):
        theirs = whole.get_delta_for_epsilon(epsilon)
        assert delta(epsilon, cells, sigma) <= theirs * (1 + 1e-9)
        assert delta(epsilon - 1e-4, cells, sigma) >= theirs * (1 - 1e-6) - 1e-12


def test_the_sum_meets_the_bound_where_that_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    sigma = 4100 / 44**0.5
    values = [delta(epsilon, 44, sigma) for epsilon in (0.001, 0.03, 0.1)]
    monkeypatch.setattr(gaussian_cells, "_MAX_SUM_TAU", 1e5)
    summed = [delta(epsilon, 44, sigma) for epsilon in (0.001, 0.03, 0.1)]
    np.testing.assert_allclose(values, summed, rtol=5e-4)
    assert np.all(np.array(values) >= summed)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.integers(1, 200), st.floats(SMOOTH_SIGMA, 60), st.floats(0, 4))
def test_it_lies_between_the_continuous_law_and_the_bound_for_all_cells(cells: int, sigma: float, at: float) -> None:
    """Rounded continuous noise is more private than the continuous one by no more than the grid can tell."""
    mu = cells**0.5 / sigma
    epsilon = at * mu
    exact = delta(epsilon, cells, sigma)
    assert exact <= delta_bound(epsilon, mu, 1, gaussian_cells.grid_scale(cells, sigma)) * (1 + 1e-9)
    step = 0.5 / sigma**2  # half the spacing of the losses
    assert float(gaussian.delta(epsilon + step, mu)) * (1 - 2e-2) <= exact
    assert delta(epsilon + 0.1 * mu, cells, sigma) <= exact


@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.0])
def test_the_deviation_of_coarse_noise(sigma: float) -> None:
    k = np.arange(-80, 81)
    mass = np.exp(-0.5 * np.square(k / sigma))
    assert gaussian_cells.deviation(sigma) == pytest.approx((k**2 @ mass / mass.sum()) ** 0.5, rel=1e-12)
