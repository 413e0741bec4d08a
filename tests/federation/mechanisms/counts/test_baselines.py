"""The loose calibrations and the Laplace prior of the literature."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.calibration import LaplacePrior, published_gaussian, published_laplace
from federation.mechanisms.counts.exact_laws import discrete_gaussian_delta as exact_delta


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 0.3])
def test_laplace_noise_has_scale_two_over_epsilon(epsilon: float) -> None:
    mechanism = published_laplace(4, epsilon)
    assert float(mechanism.scale) == pytest.approx(2 / epsilon, rel=1e-5)
    assert mechanism.scale * Fraction(epsilon) >= 2
    assert (mechanism.delta, mechanism.delta_at(epsilon)) == (0, 0)
    assert mechanism.delta_at(0.9 * epsilon) > 0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 0.05), (1.0, 1e-6), (0.5, 1e-4)])
def test_the_classic_gaussian_claims_what_it_gives(epsilon: float, delta: float) -> None:
    mechanism = published_gaussian(5, epsilon, delta)
    sigma = math.sqrt(2 * math.log(1.25 / delta)) * math.sqrt(2) / epsilon
    assert sigma <= float(mechanism.scale) <= sigma * (1 + 1e-5)
    # The pair's delta from the sum over w in high precision.
    with mpmath.workdps(30):
        s2 = mpmath.mpf(float(mechanism.scale)) ** 2
        last = math.ceil(1 - epsilon * float(s2)) - 1
        terms = (
            mpmath.exp(-mpmath.mpf(w * w) / (4 * s2)) * (1 - mpmath.exp(epsilon - (1 - w) / s2))
            for w in range(last, last - int(20 * sigma), -1)
        )
        expected = mpmath.fsum(terms) / (2 * mpmath.sqrt(mpmath.pi * s2))
    assert mechanism.delta == pytest.approx(float(expected), rel=1e-9)
    assert mechanism.delta < 0.1 * delta


def test_the_classic_gaussian_does_not_hide_where_its_theorem_fails() -> None:
    mechanism = published_gaussian(5, 20.0, 1e-6)
    assert mechanism.delta == exact_delta(20.0, float(mechanism.scale)) > 1e-6


def test_the_prior_is_as_private_as_its_counts() -> None:
    noise = published_laplace(3, 0.5)
    prior = LaplacePrior(noise)
    assert (prior.epsilon, prior.delta, prior.classes) == (0.5, 0.0, 3)
    assert prior.delta_at(0.2) == noise.delta_at(0.2) > 0
    promised = prior.guarantee(Unit.PERSON)
    assert (promised.mechanism, promised.unit, promised.delta) == ("laplace_prior", Unit.PERSON, 0)
    assert promised.parameters == prior.parameters
    assert promised.assumptions == noise.guarantee().assumptions
    with pytest.raises(InputError, match="adjacency"):
        prior.guarantee(adjacency=Adjacency.ADD_REMOVE)


def test_the_prior_draws_around_its_noisy_counts() -> None:
    prior = LaplacePrior(published_laplace(3, 20.0))  # hardly any noise: a draw from Dir(counts)
    counts = np.array([10, 30, 60])
    released = prior.release(counts, NoiseBits(1, "prior"), 100_000)
    assert (released >= 0).all()
    np.testing.assert_allclose(released.sum(axis=1), 100, rtol=1e-12)
    share = counts / 100
    np.testing.assert_allclose(released.mean(axis=0), counts, atol=0.06)
    expected = (np.diag(share) - np.outer(share, share)) * 100**2 / 101
    np.testing.assert_allclose(np.cov(released.T), expected, atol=0.5)


def test_the_prior_survives_empty_classes() -> None:
    prior = LaplacePrior(published_laplace(4, 0.01))
    released = prior.release(np.array([0, 0, 0, 3]), NoiseBits(1, "empty"), 2000)
    assert np.isfinite(released).all()
    np.testing.assert_allclose(released.sum(axis=1), 3, rtol=1e-12)


@pytest.mark.parametrize("records", [20, 50, 500])
def test_the_covariance_of_the_prior_is_that_of_its_releases(records: int) -> None:
    prior = LaplacePrior(published_laplace(4, 0.2))
    released, told = (
        prior.release(np.full(4, records), NoiseBits(9, "covariance"), 50_000),
        prior.covariance(4 * records),
    )
    np.testing.assert_allclose(np.cov(released.T), told, atol=0.02 * told[0, 0])


@pytest.mark.parametrize("epsilon", [100.0, 1e4])
def test_the_classic_gaussian_is_refused_where_it_hides_nothing(epsilon: float) -> None:
    assert published_gaussian(3, 50.0, 1e-5).delta > 0.9
    with pytest.raises(InputError, match="hides nothing at epsilon"):
        published_gaussian(3, epsilon, 1e-5)
