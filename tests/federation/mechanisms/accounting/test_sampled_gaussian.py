"""Rounds of noise on rows drawn at random: against another accountant, closed forms, and a plain integral."""

from __future__ import annotations

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld
from scipy.integrate import quad
from scipy.stats import norm

from federation.contract.errors import InputError
from federation.mechanisms.accounting.sampled_gaussian import SampledGaussian
from federation.mechanisms.noise import gaussian

# noise, rate, rounds, rows, delta, and the epsilon that dp-accounting 0.6.0 finds (losses on a grid of 1e-4).
KNOWN = [
    (1.1, 0.01, 1000, 1, 1e-5, 1.5153702),
    (4.0, 0.1, 2000, 1, 1e-5, 5.1169544),
    (4.0, 0.1, 2000, 1, 1e-8, 6.7382306),
    (4.0, 0.1, 60, 2, 1e-6, 1.8505372),
]


@pytest.mark.parametrize(("noise", "rate", "rounds", "rows", "delta", "epsilon"), KNOWN)
def test_another_accountant_finds_the_same(noise, rate, rounds, rows, delta, epsilon):
    found = SampledGaussian(noise, rate, rounds, rows)
    assert found.delta(epsilon * (1 - 1e-5)) > delta > found.delta(epsilon * (1 + 1e-5))


def test_dp_accounting_itself_finds_the_same():
    accountant = pld.PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    event = dp_accounting.PoissonSampledDpEvent(0.2, dp_accounting.GaussianDpEvent(3.0))
    epsilon = accountant.compose(event, 50).get_epsilon(1e-6)
    assert SampledGaussian(3.0, 0.2, 50).epsilon(1e-6) == pytest.approx(epsilon, rel=1e-4)


def test_one_round_is_the_integral_of_what_one_law_exceeds_the_other_by():
    noise, rate, epsilon = 2.0, 0.3, 0.2

    def mixture(x):
        return (1 - rate) * norm.pdf(x, 0, noise) + rate * norm.pdf(x, 1, noise)

    def exceeds(one, other):
        return quad(lambda x: max(0.0, one(x) - math.exp(epsilon) * other(x)), -40, 40, limit=400)[0]

    def alone(x):
        return norm.pdf(x, 0, noise)

    truth = max(exceeds(mixture, alone), exceeds(alone, mixture))
    assert SampledGaussian(noise, rate, 1).delta(epsilon) == pytest.approx(truth, rel=1e-5)


def test_with_every_row_in_every_round_it_is_gaussian_noise():
    whole, nearly = SampledGaussian(5.0, 1.0, 9, rows=2), SampledGaussian(5.0, 1 - 1e-9, 9, rows=2)
    assert whole.epsilon(1e-6) == pytest.approx(gaussian.epsilon(1e-6, 2 * 3 / 5))
    assert nearly.delta(2.0) == pytest.approx(whole.delta(2.0), rel=1e-4)


def test_more_rounds_rows_and_rate_cost_more_and_more_noise_costs_less():
    def delta(noise=3.0, rate=0.1, rounds=20, rows=1):
        return SampledGaussian(noise, rate, rounds, rows).delta(0.5)

    assert min(delta(rate=0.2), delta(rounds=40), delta(rows=2)) > delta() > delta(noise=4.0)


def test_what_is_hardly_told_has_epsilon_0_and_what_is_told_to_anybody_none():
    assert SampledGaussian(100.0, 0.001, 1).epsilon(0.01) == 0.0
    assert np.isinf(SampledGaussian(1e-3, 0.5, 2).epsilon(1e-9))


@pytest.mark.parametrize(
    ("numbers", "message"),
    [((0.0, 0.1, 1), "noise"), ((1.0, 0.0, 1), "rate"), ((1.0, 1.5, 1), "rate"), ((1.0, 0.1, 0), "rounds")],
)
def test_numbers_out_of_range_are_refused(numbers, message):
    with pytest.raises(InputError, match=message):
        SampledGaussian(*numbers)
