"""The delta between two Dirichlet laws: exact for two classes against quadrature, sampled for more."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.mechanisms.counts.dirichlet import divergence
from federation.mechanisms.counts.dirichlet_loss import delta_exact


def brute(epsilon: float, p: np.ndarray, q: np.ndarray) -> float:
    """∫ max(0, f - e^epsilon f') over log odds, on a grid that reaches both laws' tails."""
    centres = [np.log(law[0] / law[1]) for law in (p, q)]
    reach = 40 / min(p.min(), q.min(), 1.0)
    t = np.linspace(min(centres) - reach, max(centres) + reach, 4_000_001)
    logs = [
        -law[0] * np.logaddexp(0, -t)
        - law[1] * np.logaddexp(0, t)
        - float(mpmath.loggamma(law[0]) + mpmath.loggamma(law[1]) - mpmath.loggamma(law.sum()))
        for law in (p, q)
    ]
    excess = np.maximum(0, np.exp(logs[0]) - np.exp(epsilon + logs[1]))
    return float(excess.sum() * (t[1] - t[0]))


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 1.0, 4.0])
@pytest.mark.parametrize(
    ("p", "q"),
    [
        ((5.0, 5.0), (4.0, 6.0)),  # the loss rises
        ((20.0, 300.0), (10.0, 150.0)),  # it rises and falls: the first law is narrower
        ((10.0, 150.0), (20.0, 300.0)),  # it falls and rises: two intervals
        ((3.0, 3.0), (3.0, 5.0)),  # it is flat at one end
        ((0.6, 0.7), (0.7, 0.6)),
        ((7.0, 9.0), (7.0, 9.0)),
    ],
)
def test_two_classes_equal_the_integral(epsilon: float, p: tuple[float, ...], q: tuple[float, ...]) -> None:
    measured = divergence(epsilon, np.array(p), np.array(q))
    assert measured.standard_error == 0
    assert measured.value == pytest.approx(brute(epsilon, np.array(p), np.array(q)), abs=1e-9)


@given(st.floats(0, 3), st.integers(2, 300), st.integers(1, 300), st.floats(0.01, 3))
def test_with_one_sigma_it_is_the_exact_delta_of_the_pair(epsilon: float, a: int, b: int, sigma: float) -> None:
    here, there = sigma * np.array([a, b]), sigma * np.array([a - 1, b + 1])
    expected = float(delta_exact(epsilon, a, b, sigma))
    assert divergence(epsilon, here, there).value == pytest.approx(expected, abs=1e-9)


@given(st.floats(0, 3), *[st.floats(0.05, 500) for _ in range(4)])
def test_total_variation_has_no_direction_and_delta_stays_below_it(
    epsilon: float, a: float, b: float, c: float, d: float
) -> None:
    p, q = np.array([a, b]), np.array([c, d])
    assert divergence(0, p, q).value == pytest.approx(divergence(0, q, p).value, abs=1e-9)
    assert divergence(epsilon, p, q).value <= divergence(0, p, q).value + 1e-12


def test_more_classes_are_sampled_around_the_exact_value() -> None:
    """A third class with the same parameter leaves the delta of the pair as it is."""
    sigma, epsilon = 0.4, 0.3
    here, there = sigma * np.array([21, 20, 35]), sigma * np.array([20, 21, 35])
    measured = divergence(epsilon, here, there)
    assert 0 < measured.standard_error < 5e-4
    assert abs(measured.value - float(delta_exact(epsilon, 21, 20, sigma))) < 4 * measured.standard_error
    assert divergence(epsilon, here, there, runs=1000, seed=2) != divergence(epsilon, here, there, runs=1000, seed=3)


def test_more_classes_with_different_totals_agree_with_another_sampler() -> None:
    p, q = np.array([6.0, 4.0, 10.0]), np.array([5.0, 6.0, 10.0])
    measured = divergence(0.1, p, q)
    reference = np.random.default_rng(5).dirichlet(p, 400_000)
    shape = [float(sum(mpmath.loggamma(x) for x in law) - mpmath.loggamma(law.sum())) for law in (p, q)]
    loss = np.log(reference) @ (p - q) + shape[1] - shape[0]
    excess = np.maximum(0, -np.expm1(0.1 - loss))
    assert abs(measured.value - excess.mean()) < 4 * measured.standard_error + 4 * excess.std() / np.sqrt(4e5)


@pytest.mark.parametrize(
    ("epsilon", "p", "q"),
    [
        (-1, (1, 2), (1, 2)),
        (1, (1, 2), (1, 2, 3)),
        (1, (0, 2), (1, 2)),
        (1, (1, 2), (0, 2)),
        (1, (1,), (2,)),
        (1, (1, 2), (1, -2)),
    ],
)
def test_other_arguments_are_refused(epsilon: float, p: tuple[float, ...], q: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="Dirichlet parameters must be two equally long"):
        divergence(epsilon, np.array(p, float), np.array(q, float))
