"""The analytic Gaussian trade-off against 60-digit arithmetic, and its inverses."""

import math
from functools import reduce

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import every_third

from federation.contract.errors import InputError
from federation.mechanisms.noise import gaussian


def precise_delta(epsilon: float, mu: float) -> mpmath.mpf:
    """Balle and Wang 2018, Theorem 8, in enough digits for its cancellation."""
    with mpmath.workdps(400):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)

        def normal(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.erfc(-x / mpmath.sqrt(2)) / 2

        return normal(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * normal(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("mu", [1e-8, 1e-5, 1e-3, 0.03, 0.3, 0.4999, 0.5, 0.7, 1.0, 3.0, 10.0, 40.0])
@pytest.mark.parametrize("standard", every_third([-3.0, -0.5, 0.0, 0.1, 1.0, 4.0, 8.0, 20.0, 36.0]))
def test_delta_equals_high_precision_arithmetic(standard: float, mu: float) -> None:
    epsilon = mu * max(standard + mu / 2, 0.0)  # places the threshold at `standard` deviations, or at epsilon 0
    expected = precise_delta(epsilon, mu)
    assert float(gaussian.log_delta(epsilon, mu)) == pytest.approx(float(mpmath.log(expected)), abs=1e-9)
    assert float(gaussian.delta(epsilon, mu)) == pytest.approx(float(expected), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(("epsilon", "mu"), [(-1e-9, 0.2), (-0.5, 0.7), (-3.0, 2.0)])
def test_negative_epsilon_follows_the_same_formula_and_arrays_equal_scalars(epsilon: float, mu: float) -> None:
    assert float(gaussian.delta(epsilon, mu)) == pytest.approx(float(precise_delta(epsilon, mu)), rel=1e-12)
    epsilons, mus = np.linspace(0, 5, 7)[:, None], np.array([0.1, 0.5, 2.0])
    table = gaussian.delta(epsilons, mus)
    assert table.shape == (7, 3)
    for i, j in np.ndindex(table.shape):
        assert table[i, j] == gaussian.delta(epsilons[i, 0], mus[j])


@given(st.floats(1e-3, 50), st.floats(-250, -0.7))
@settings(derandomize=True)
def test_inverses_meet_delta_from_the_safe_side(epsilon: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    mu = gaussian.mu(epsilon, delta)
    assert gaussian.delta(epsilon, mu) <= delta * (1 + 1e-13 * abs(log_delta))
    assert gaussian.delta(epsilon, mu * (1 + 1e-9)) > delta * (1 - 1e-13)
    # A step of 1e-9 in mu may move a small epsilon by more than that: it lies between those of the two ends.
    assert gaussian.epsilon(delta, mu) <= epsilon * (1 + 1e-9)
    assert gaussian.epsilon(delta, mu * (1 + 1e-9)) >= epsilon * (1 - 1e-9)


def test_known_values() -> None:
    # dp-accounting brackets this one between 4.377178100 and 4.377128098.
    assert gaussian.epsilon(1e-5, 1.0) == pytest.approx(4.3771780957, abs=1e-9)
    assert gaussian.epsilon(1e-5, 10.0) == pytest.approx(91.817289625, abs=1e-8)
    assert gaussian.epsilon(0.5, 0.1) == 0.0
    # The textbook constant sqrt(2 ln(1.25/delta))/epsilon needs more noise.
    assert 1 / gaussian.mu(1.0, 1e-6) < math.sqrt(2 * math.log(1.25e6))


@given(st.lists(st.floats(1e-3, 2), min_size=1, max_size=5), st.floats(0, 5))
@settings(derandomize=True)
def test_delta_grows_with_mu_and_falls_with_epsilon(mus: list[float], epsilon: float) -> None:
    total = gaussian.compose(mus)
    assert gaussian.delta(epsilon, total) >= gaussian.delta(epsilon, max(mus)) * (1 - 1e-9)
    assert gaussian.delta(epsilon + 0.1, total) <= gaussian.delta(epsilon, total)


@pytest.mark.parametrize(
    ("function", "arguments", "told"),
    [
        *((gaussian.mu, (1.0, delta), r"delta.*0.*1") for delta in (0.0, 1.0, -0.1, math.nan)),
        *((gaussian.epsilon, (delta, 1.0), r"delta.*0.*1") for delta in (0.0, 1.0, -0.1, math.nan)),
        *((gaussian.mu, (epsilon, 1e-6), r"epsilon.*0") for epsilon in (-0.1, math.inf, math.nan)),
        *((gaussian.delta, (1.0, mu), "mu") for mu in (0.0, -1.0, math.inf, math.nan)),
        *((gaussian.epsilon, (1e-6, mu), "mu") for mu in (0.0, -1.0, math.inf, math.nan)),
    ],
)
def test_impossible_numbers_are_refused(function, arguments: tuple[float, float], told: str) -> None:
    with pytest.raises(InputError, match=told):
        function(*arguments)


@pytest.mark.slow
def test_twenty_releases_compose_as_dp_accounting_says():
    singles = [pld.from_gaussian_mechanism(1 / 0.3, value_discretization_interval=1e-4)] * 20
    theirs = reduce(pld.PrivacyLossDistribution.compose, singles).get_epsilon_for_delta(1e-6)
    # Pessimistic by its discretisation, never below the exact value.
    assert -1e-9 <= theirs - gaussian.epsilon(1e-6, gaussian.compose([0.3] * 20)) <= 2e-3
