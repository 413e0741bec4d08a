"""Audits of Dirichlet label counts: the published mechanism and twins fall; honest parties stand in `test_audits`."""

from __future__ import annotations

import numpy as np
import pytest

from federation.contract.randomness import NoiseBits
from federation.mechanisms.audits import audit
from federation.mechanisms.counts.calibration import published_release, sigma_for_counts, true_delta
from federation.mechanisms.counts.dirichlet import calibrate_floor

RUNS = 100_000
CONFIDENCE = 0.999
EPSILON, DELTA, LEAST = 1.0, 0.01, 20


def audited(sample_p, sample_q, statistic, epsilon=EPSILON, delta=DELTA, runs=RUNS):
    """The audit of two samplers (bits, runs) -> (runs, C)."""
    first, second = (NoiseBits(11, f"Dirichlet audit {side}") for side in (0, 1))
    return audit(
        lambda n: sample_p(first, n),
        lambda n: sample_q(second, n),
        statistic,
        epsilon=epsilon,
        delta=delta,
        runs=runs,
        confidence=CONFIDENCE,
    )


def log_odds(shares):
    """Increasing in the likelihood ratio of neighbours that share one sigma."""
    return np.log(np.maximum(shares[:, 0], 1e-12)) - np.log(np.maximum(shares[:, 1], 1e-12))


def test_a_floor_above_the_counts_promises_nothing():
    mechanism = calibrate_floor(2, EPSILON, DELTA, LEAST)
    result = audited(
        lambda bits, n: mechanism.release(np.array([3, 97]), bits, n),
        lambda bits, n: mechanism.release(np.array([2, 98]), bits, n),
        log_odds,
    )
    assert not result.passed


def test_a_visible_refusal_below_the_floor_is_refuted():
    """A twin that checks the counts: its neighbours differ in whether there is an answer at all."""
    mechanism = calibrate_floor(2, EPSILON, DELTA, LEAST)

    def refusing(counts):
        released = mechanism.release
        return lambda bits, n: released(counts, bits, n) if counts.min() >= LEAST else np.full((n, 2), -1.0)

    result = audited(refusing(np.array([20, 80])), refusing(np.array([19, 81])), lambda x: x[:, 0])
    assert result.lower_bound > 5


def own_sigma_ratio(here, there, epsilon, delta):
    """The log likelihood ratio of two Dirichlet laws with a sigma of their own each, up to a constant."""
    laws = [sigma_for_counts(eta, epsilon, delta) * eta for eta in (here, there)]
    return lambda released: np.log(np.maximum(released, 1e-9)) @ (laws[0] - laws[1])


@pytest.mark.parametrize(
    ("here", "there", "epsilon", "delta"),
    [((13, 987), (14, 986), 1.0, 1e-6), ((41, 959), (42, 958), 0.05, 0.05), ((14, 986), (15, 985), 1.0, 1e-6)],
)
def test_sigma_from_the_counts_is_refuted(here, there, epsilon, delta):
    """The published mechanism is the broken twin: its true delta is up to 239,000 times the claimed one."""
    here, there = np.array(here), np.array(there)
    result = audited(
        lambda bits, n: published_release(here, epsilon, delta, bits, n),
        lambda bits, n: published_release(there, epsilon, delta, bits, n),
        own_sigma_ratio(here, there, epsilon, delta),
        epsilon,
        delta,
    )
    assert not result.passed
    assert true_delta(here, there, epsilon, delta).value > 2 * delta


def test_the_fall_back_of_the_published_mechanism_shows_where_no_sigma_exists():
    here, there = np.array([41, 959]), np.array([40, 960])
    result = audited(
        lambda bits, n: published_release(here, 0.05, 0.05, bits, n),
        lambda bits, n: published_release(there, 0.05, 0.05, bits, n),
        lambda released: released[:, 0],
        0.05,
        0.05,
        runs=40_000,
    )
    assert not result.passed
    assert true_delta(here, there, 0.05, 0.05).value == 1
