"""Odds against the best test of the worst mechanism, found by a linear program, and against Gaussian closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import norm

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.mechanisms.accounting.composition import GaussianCurve, Odds
from federation.mechanisms.noise import gaussian
from federation.mechanisms.noise.additive import calibrate

EPSILONS = st.floats(1e-3, 30)
DELTAS = st.floats(0, 0.5)
SHARES = st.floats(0, 1)


def worst_mechanism(epsilon, delta):
    """The laws of the four outcomes on either side (Kairouz, Oh, Viswanath 2015): no other leaves a better test."""
    high = (1 - delta) / (1 + math.exp(-epsilon))
    here = np.array([delta, high, 1 - delta - high, 0.0])
    return here, here[::-1]


def best_test(here, there, false_alarms):
    """The most detections of a randomised test with at most so many false alarms."""
    found = linprog(-there, A_ub=[here], b_ub=[false_alarms], bounds=(0, 1))
    return -found.fun


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.2])
@pytest.mark.parametrize("false_alarms", [0.0, 0.01, 0.05, 0.4, 0.9, 1.0])
def test_detections_are_those_of_the_best_test_of_the_worst_mechanism(epsilon, delta, false_alarms):
    wanted = best_test(*worst_mechanism(epsilon, delta), false_alarms)
    assert Odds(epsilon, delta).detections(false_alarms) == pytest.approx(wanted, abs=1e-9)


@given(EPSILONS, DELTAS)
def test_right_guesses_are_those_of_the_worst_mechanism(epsilon, delta):
    here, there = worst_mechanism(epsilon, delta)
    assert Odds(epsilon, delta).right_guesses() == pytest.approx(np.maximum(here, there).sum() / 2, abs=1e-12)


@given(st.floats(0.01, 4), st.floats(1e-9, 1 - 1e-9))
def test_gaussian_noise_has_the_closed_form(mu, false_alarms):
    epsilon = gaussian.epsilon(1e-6, mu)
    if epsilon <= 0:
        return
    odds = Odds(epsilon, 1e-6, GaussianCurve(mu))
    assert odds.detections(false_alarms) == pytest.approx(norm.sf(norm.isf(false_alarms) - mu), rel=1e-6, abs=1e-12)
    assert odds.right_guesses() == pytest.approx(norm.cdf(mu / 2), rel=1e-9)


@given(EPSILONS, DELTAS, SHARES, SHARES)
def test_more_privacy_is_never_worse_and_no_test_is_below_chance(epsilon, delta, false_alarms, prior):
    odds, worse = Odds(epsilon, delta), [Odds(2 * epsilon, delta), Odds(epsilon, delta + 0.1)]
    assert false_alarms - 1e-12 <= odds.detections(false_alarms) <= 1
    assert 0.5 <= odds.right_guesses() <= 1
    for other in worse:
        assert other.detections(false_alarms) >= odds.detections(false_alarms) - 1e-12
        assert other.right_guesses() >= odds.right_guesses() - 1e-12
    # A test is one way to guess: with equal odds it is right in half of its detections and of its silences.
    assert (odds.detections(false_alarms) + 1 - false_alarms) / 2 <= odds.right_guesses() + 1e-12
    believed = Odds(epsilon).belief(prior)
    assert prior - 1e-12 <= believed <= 1
    if 1e-6 < prior < 1 - 1e-6 and epsilon < 15:
        factor = believed / (1 - believed) / (prior / (1 - prior))
        assert factor == pytest.approx(math.exp(epsilon), rel=1e-6)


def test_the_extremes():
    assert Odds(1000.0).right_guesses() == Odds(1000.0).detections(0.01) == Odds(1000.0).belief(0.01) == 1
    assert Odds(1000.0).detections(0.0) == 0
    assert (Odds(1.0).belief(0.0), Odds(1.0).belief(1.0)) == (0, 1)
    assert (Odds(1000.0).belief(0.0), Odds(1000.0).belief(1.0)) == (0, 1)
    assert Odds(1e-300).detections(1e-12) == Odds(1e-300, 1e-12).detections(0.0) == 1e-12  # and not a little below
    curved = Odds(1.0, 1e-6, GaussianCurve(gaussian.mu(1.0, 1e-6)))
    assert curved.detections(0.0) == pytest.approx(0, abs=1e-12)
    assert curved.detections(1.0) == 1
    assert curved.belief(0.5) is None


def test_of_a_release_the_curve_is_used_with_the_slack_of_discrete_noise():
    noise = calibrate("gaussian", sensitivity=1.0, dimension=5, epsilon=1.0, delta=1e-6)
    odds = Odds.of(noise.guarantee(Unit.PARTY, Adjacency.REPLACE))
    ideal = Odds(1.0, 1e-6, GaussianCurve(odds.curve.mu))
    for false_alarms in (0.01, 0.05, 0.5):
        assert (
            ideal.detections(false_alarms) <= odds.detections(false_alarms) < Odds(1.0, 1e-6).detections(false_alarms)
        )
        assert odds.detections(false_alarms) == pytest.approx(ideal.detections(false_alarms), rel=1e-3)
    pure = Odds.of(Guarantee(1.0, 0.0, Unit.PARTY, Adjacency.REPLACE, "l2_gamma"))
    assert pure == Odds(1.0)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_only_guarantees_have_odds(epsilon):
    with pytest.raises(InputError, match="epsilon must be a positive finite number"):
        Odds(epsilon)
    with pytest.raises(InputError, match="delta must lie"):
        Odds(1.0, 1.0)


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan])
def test_shares_are_from_0_to_1(share):
    with pytest.raises(InputError, match="false_alarms must lie"):
        Odds(1.0).detections(share)
    with pytest.raises(InputError, match="prior must lie"):
        Odds(1.0).belief(share)
