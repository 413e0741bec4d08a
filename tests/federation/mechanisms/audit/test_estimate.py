"""The auditor itself: its bounds, its confidence on null data and at a known epsilon, its refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from federation.contract.errors import InputError
from federation.mechanisms.audit import estimate as module
from federation.mechanisms.audit.estimate import audit, delta_lower_bound, epsilon_lower_bound


def randomised_response(rng: np.random.Generator, epsilon: float, runs: int, side: int) -> np.ndarray:
    """Tells the true bit with odds e^epsilon : 1."""
    truth = rng.random(runs) < 1 / (1 + math.exp(-epsilon))
    return np.where(truth, side, 1 - side).astype(float)


@given(st.integers(0, 500), st.integers(0, 500), st.floats(0.5, 0.999))
@settings(derandomize=True, deadline=None, max_examples=100)
def test_probabilities_have_clopper_pearson_bounds(likely: int, unlikely: int, confidence: float) -> None:
    ours = module._probabilities(np.array(likely), np.array(unlikely), 500, 500, confidence)
    low = stats.binomtest(likely, 500).proportion_ci(confidence).low  # two-sided: half the error in each tail
    high = stats.binomtest(unlikely, 500).proportion_ci(confidence).high
    assert [float(bound) for bound in ours] == pytest.approx([low, high], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("confidence", "most"), [(0.95, 20), (0.5, 350)])
def test_false_alarms_on_null_data_are_rarer_than_promised(confidence: float, most: int) -> None:
    """P = Q, 1000 audits. Two separate bounds make alarms much rarer than the promised 50 and 500.

    Choosing the event on the data that test it would give above 500 at confidence 0.5.
    """
    rng = np.random.default_rng(0)
    alarms = sum(
        epsilon_lower_bound(rng.normal(size=400), rng.normal(size=400), confidence=confidence)[0] > 0
        for _ in range(1000)
    )
    assert alarms <= most


def test_the_bound_exceeds_a_true_epsilon_as_rarely_as_promised() -> None:
    rng, epsilon = np.random.default_rng(1), 1.0
    alarms = sum(
        epsilon_lower_bound(
            randomised_response(rng, epsilon, 1000, 1),
            randomised_response(rng, epsilon, 1000, 0),
            confidence=0.9,
        )[0]
        > epsilon
        for _ in range(1000)
    )
    # 100 +- 28 (three standard deviations) would be exact; Clopper-Pearson is conservative.
    assert alarms <= 128


def test_power_at_a_known_epsilon() -> None:
    rng = np.random.default_rng(2)
    result = audit(
        lambda n: randomised_response(rng, 2.0, n, 1),
        lambda n: randomised_response(rng, 2.0, n, 0),
        lambda outputs: outputs,
        epsilon=1.5,
        runs=50_000,
    )
    assert 1.8 < result.lower_bound <= 2.0
    assert not result.passed
    assert (result.runs, result.confidence, result.claimed) == (50_000, 0.99, 1.5)
    assert ">= 1" in result.event or "<= 0" in result.event


def test_delta_is_subtracted() -> None:
    # Q never shows what P shows with probability 0.02: no finite epsilon at delta 0, nothing at delta 0.05.
    rng = np.random.default_rng(3)
    p, q = (rng.random(50_000) < 0.02).astype(float), np.zeros(50_000)
    assert epsilon_lower_bound(p, q)[0] > 3
    assert epsilon_lower_bound(p, q, delta=0.05)[0] == 0


def test_both_directions_are_searched() -> None:
    rng = np.random.default_rng(4)
    p, q = rng.normal(size=20_000), rng.normal(1.0, size=20_000)
    forward, backward = epsilon_lower_bound(p, q), epsilon_lower_bound(q, p)
    assert forward[0] == backward[0] > 1
    assert forward[1] != backward[1]


@pytest.mark.parametrize("bad", [np.zeros(3), np.zeros((10, 2)), np.array([0.0, 1.0, math.nan, 2.0]), np.zeros(0)])
def test_unusable_samples_are_refused(bad: np.ndarray) -> None:
    with pytest.raises(InputError, match="a sample must hold"):
        epsilon_lower_bound(bad, np.zeros(10))


@pytest.mark.parametrize("arguments", [{"confidence": 1.0}, {"confidence": 0.0}, {"delta": 1.0}, {"delta": -0.1}])
def test_impossible_confidence_and_delta_are_refused(arguments: dict) -> None:
    with pytest.raises(InputError, match=r"(delta|confidence) must lie"):
        epsilon_lower_bound(np.zeros(10), np.zeros(10), **arguments)


def test_power_at_a_known_delta() -> None:
    rng = np.random.default_rng(5)
    p, q = rng.normal(1.0, size=200_000), rng.normal(size=200_000)
    exact = stats.norm.cdf(0.0) - math.exp(0.5) * stats.norm.cdf(-1.0)  # of N(1, 1) and N(0, 1) at epsilon 0.5
    bound, event = delta_lower_bound(p, q, epsilon=0.5)
    assert 0.9 * exact < bound <= exact
    assert "likelier under P" in event or "likelier under Q" in event


def test_rare_events_that_never_occur_elsewhere_are_found() -> None:
    rng = np.random.default_rng(6)
    p, q = (rng.random(200_000) < 2e-3).astype(float), np.zeros(200_000)
    assert 1e-3 < delta_lower_bound(p, q, epsilon=1.0)[0] <= 2e-3
    assert delta_lower_bound(q, p, epsilon=1.0)[0] == delta_lower_bound(p, q, epsilon=1.0)[0]


def test_the_bound_exceeds_a_true_delta_as_rarely_as_promised() -> None:
    rng = np.random.default_rng(7)
    truth = 0.6 - math.exp(0.2) * 0.4  # randomised response that tells the bit six times in ten
    alarms = sum(
        delta_lower_bound(
            (rng.random(500) < 0.6).astype(float), (rng.random(500) < 0.4).astype(float), epsilon=0.2, confidence=0.9
        )[0]
        > truth
        for _ in range(400)
    )
    assert alarms <= 58  # 40 + 3 standard deviations


@pytest.mark.parametrize("arguments", [{"epsilon": -1.0}, {"epsilon": math.inf}, {"epsilon": 1.0, "confidence": 1.0}])
def test_impossible_epsilons_are_refused(arguments: dict) -> None:
    with pytest.raises(InputError, match=r"(epsilon|confidence) must"):
        delta_lower_bound(np.zeros(10), np.zeros(10), **arguments)
