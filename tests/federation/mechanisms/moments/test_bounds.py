"""Quantiles of the noise's norm against simulation; the published Laplace bound fails, and more so with dimension."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.sums.row_sums import calibrate_row_sums as calibrate
from federation.mechanisms.sums.row_sums import noise_quantile, regularisation


def norms_of(noise, draws=20_000):
    released = noise.release(np.zeros(noise.additive.dimension), NoiseBits(4, "norms"), draws)
    return np.linalg.norm(released, axis=1)


@pytest.mark.parametrize("dimension", [1, 5, 20])
@pytest.mark.parametrize("kind", ["pure", "gaussian", "laplace"])
def test_quantiles_cover_as_often_as_they_say(kind, dimension):
    noise = calibrate(kind, dimension=dimension, epsilon=0.7, delta=1e-5, rows=10)
    norms = norms_of(noise)
    for probability in (0.5, 0.95):
        covered = np.mean(norms <= noise_quantile(noise, probability))
        assert covered > probability - 0.015
        if kind != "laplace" or dimension == 1:
            assert covered < probability + 0.015


@pytest.mark.parametrize(("dimension", "failing"), [(2, 0.061), (10, 0.208), (22, 0.566), (50, 0.985)])
def test_the_published_norm_bound_of_laplace_noise_fails(dimension, failing):
    """Patrini et al. (2015, Theorem 10) at delta = .05: |b|_2 <= sigma log(d/delta)."""
    noise = calibrate("laplace", dimension=dimension, epsilon=1.0, rows=10)
    norms = norms_of(noise)
    published = float(noise.additive.parameters["scale"]) * np.log(dimension / 0.05)
    assert np.mean(norms > published) == pytest.approx(failing, abs=0.012)
    repaired = noise_quantile(noise, 0.95)
    assert repaired == pytest.approx(published * np.sqrt(dimension), rel=1e-4)
    assert np.mean(norms > repaired) < 0.05


def test_quantiles_are_those_of_the_sum_of_shares():
    for kind in ("pure", "gaussian", "laplace"):
        whole, shared = (
            noise_quantile(calibrate(kind, dimension=4, epsilon=1.0, delta=1e-5, rows=10, contributors=n), 0.9)
            for n in (0, 64)
        )
        assert whole <= shared <= whole * (1 + 1e-5)


@given(st.sampled_from(["pure", "gaussian", "laplace"]), st.integers(1, 300), st.floats(0.01, 1 - 1e-9))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_quantiles_grow_with_probability_and_noise(kind, dimension, probability):
    little, much = (
        calibrate(kind, dimension=dimension, epsilon=epsilon, delta=1e-6, rows=10) for epsilon in (2.0, 1.0)
    )
    assert noise_quantile(little, probability) < noise_quantile(much, probability)
    assert noise_quantile(much, probability / 2) < noise_quantile(much, probability)


@pytest.mark.parametrize("probability", [0.0, 1.0, -1.0, float("nan")])
def test_only_probabilities_are_taken(probability):
    with pytest.raises(InputError, match="probability must lie"):
        noise_quantile(calibrate("pure", dimension=2, epsilon=1.0, rows=1), probability)


def test_regularisation_is_half_the_expected_squared_norm_and_never_less_than_the_least():
    assert regularisation(0.0) == regularisation(1e-5) == 1e-4
    assert regularisation(0.5) == 0.25
