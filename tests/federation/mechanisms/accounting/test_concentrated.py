import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.mechanisms.accounting import concentrated
from federation.mechanisms.counts.discrete_gaussian import exact_delta
from federation.mechanisms.noise import discrete_gaussian, gaussian


@settings(deadline=None)
@given(st.floats(1e-3, 20), st.floats(1e-12, 0.2))
def test_it_is_the_best_of_a_dense_grid_of_orders_and_never_better(rho, delta):
    alpha = 1 + np.exp(np.linspace(-12, 16, 20_001))
    grid = alpha * rho + (-np.log(delta * (alpha - 1)) + alpha * np.log1p(-1 / alpha)) / (alpha - 1)
    found = concentrated.epsilon(delta, rho)
    assert found == pytest.approx(max(grid.min(), 0.0), rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("delta", [5e-324, 1e-310, 0.5, 1 - 2**-53])
@pytest.mark.parametrize("rho", [5e-324, 1e-30, 1.0, 1e30, 1e300])
def test_the_smallest_delta_and_extreme_rho_lie_below_the_classic_conversion(delta, rho):
    found = concentrated.epsilon(delta, rho)
    assert 0 <= found <= (rho + 2 * math.sqrt(rho) * math.sqrt(-math.log(delta))) * (1 + 1e-12)
    assert found >= rho * (1 - 1e-12) or delta > 0.1 or rho < 1e-9


@settings(deadline=None)
@given(st.floats(0.05, 5), st.floats(1e-9, 0.1))
def test_it_is_between_the_exact_gaussian_and_the_classic_conversion(mu, delta):
    found = concentrated.epsilon(delta, mu**2 / 2)
    assert gaussian.epsilon(delta, mu) <= found * (1 + 1e-9) + 1e-12
    assert found <= mu**2 / 2 + 2 * math.sqrt(mu**2 / 2 * math.log(1 / delta)) + 1e-12


@pytest.mark.parametrize("sigma", [0.7, 1.0, 2.5, 8.0])
def test_coarse_discrete_gaussians_keep_it(sigma):
    for delta in (1e-2, 1e-6):
        epsilon = concentrated.epsilon(delta, 1 / sigma**2)  # two coordinates move by 1
        assert exact_delta(epsilon, sigma) <= delta


def test_the_bound_of_fine_grids_says_so_when_the_grid_is_too_coarse():
    assert discrete_gaussian.epsilon_bound(1e-9, 0.3, 8, 1) == math.inf
    assert discrete_gaussian.epsilon_bound(1e-6, 2.0, 2, 2**12) < concentrated.epsilon(1e-6, 2.0)


@pytest.mark.parametrize(("delta", "rho"), [(0.0, 1.0), (1.0, 1.0), (0.1, 0.0), (0.1, math.inf), (0.1, math.nan)])
def test_numbers_out_of_range_are_refused(delta, rho):
    with pytest.raises(InputError):
        concentrated.epsilon(delta, rho)
