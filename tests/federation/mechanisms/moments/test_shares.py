"""Shares of noise: their sum has the law of the whole, and the lemma of rounded Gaussians holds to the last digit."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise.additive import calibrate, calibrate_laplace
from federation.mechanisms.sums import shares

WHOLE = {
    "l2_gamma": calibrate("pure", sensitivity=2.0, dimension=3, epsilon=1.0),
    "discrete_gaussian": calibrate("gaussian", sensitivity=2.0, dimension=3, epsilon=1.0, delta=1e-6),
    "discrete_laplace": calibrate_laplace(l1_sensitivity=3.0, dimension=3, epsilon=1.0),
}
LAWS = {
    "l2_gamma": lambda noise: (np.linalg.norm(noise, axis=1), stats.gamma(3).cdf),
    "discrete_gaussian": lambda noise: (noise[:, 1], stats.norm.cdf),
    "discrete_laplace": lambda noise: (noise[:, 2], stats.laplace.cdf),
}


@pytest.mark.parametrize("contributors", [1, 2, 9])
@pytest.mark.parametrize("name", WHOLE)
def test_shares_add_up_to_the_whole_and_fewer_do_not(name: str, contributors: int) -> None:
    whole = WHOLE[name]
    drawn = np.array([shares.draw(whole, contributors, NoiseBits(1, "shares", k), 20_000) for k in range(contributors)])
    assert np.array_equal(drawn, np.rint(drawn))
    scale = whole.parameters["scale"] / whole.step
    assert stats.kstest(*LAWS[name](drawn.sum(axis=0) / scale)).pvalue > 1e-3
    if contributors > 1:
        assert stats.kstest(*LAWS[name](drawn[1:].sum(axis=0) / scale)).pvalue < 1e-3
    for colluders in range(contributors // 3 + 1):  # whose shares are taken off the sum
        seen = drawn[colluders:].sum(axis=0).var() * whole.step**2
        expected = shares.variance(whole, contributors) * (1 - colluders / contributors)
        assert seen == pytest.approx(expected, rel=0.04)


def test_l2_gamma_shares_point_everywhere_alike() -> None:
    total = sum(shares.draw(WHOLE["l2_gamma"], 4, NoiseBits(2, "sphere", k), 30_000) for k in range(4))
    heights = total[:, 0] / np.linalg.norm(total, axis=1)
    assert stats.kstest(heights, stats.uniform(-1, 2).cdf).pvalue > 1e-3  # Archimedes


def normal(at: np.ndarray, variance: float) -> np.ndarray:
    return np.exp(-np.square(at) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def relative_gap(first: float, second: float, rounded: bool) -> float:
    """Largest |P[S = k] / density - 1| for two Gaussians of these variances, over 12 standard deviations."""
    grid = np.arange(-400, 401)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    nodes, weights = (nodes / 2, weights / 2) if rounded else (np.zeros(1), np.ones(1))
    laws = [normal(grid[:, None] - nodes, variance) @ weights for variance in (first, second)]
    reach = round(12 * math.sqrt(first + second))
    sums = np.convolve(*laws)[800 - reach : 800 + reach + 1]
    at = np.arange(-reach, reach + 1)
    both = (nodes[:, None] + nodes).ravel()
    density = normal(at[:, None] - both, first + second) @ np.outer(weights, weights).ravel()
    return float(np.abs(sums / density - 1).max())


@pytest.mark.parametrize("rounded", [True, False])
def test_sums_on_the_grid_have_the_density_of_the_sum(rounded: bool) -> None:
    """The proof's first two steps, tails included; a grid as coarse as the standard deviation breaks them."""
    assert relative_gap(16.0, 16.0, rounded) < 1e-12
    assert relative_gap(16.0, 400.0, rounded) < 1e-12
    assert relative_gap(0.2, 16.0, rounded) > 1e-3


@given(st.integers(2**16, 2**38), st.integers(1, 2**28))
@settings(derandomize=True, deadline=None, max_examples=200)
def test_gaussian_shares_have_no_less_than_their_part_and_hardly_more(sigma: int, contributors: int) -> None:
    scale = shares._gaussian_share_scale(sigma, contributors)
    assert 1 <= scale.numerator <= 2**40
    assert 1 <= contributors * scale**2 / sigma**2 < 1 + 2**-18


def test_so_many_parties_that_the_grid_is_coarse_are_refused_for_gaussian_shares_only() -> None:
    most = WHOLE["discrete_gaussian"].grid_scale ** 2 // 16
    shares.check(WHOLE["discrete_gaussian"], most)
    with pytest.raises(InputError, match=f"contributors must be at most {most} "):
        shares.check(WHOLE["discrete_gaussian"], most + 1)
    for name in ("l2_gamma", "discrete_laplace"):
        shares.check(WHOLE[name], shares.MOST)
        drawn = shares.draw(WHOLE[name], shares.MOST, NoiseBits(1, "tiny"), 300)
        assert drawn.shape == (300, 3)
        assert np.abs(drawn).max() < 40  # of 2^30 shares hardly any has more than the 16 steps² of variance
        assert name == "discrete_laplace" or drawn.std() == pytest.approx(math.sqrt(16 + 1 / 12), rel=0.1)


def test_the_added_variance_is_counted() -> None:
    whole = WHOLE["l2_gamma"]
    added = shares.variance(whole, 2**20) - whole.variance()
    assert added == pytest.approx(2**20 * (16 + 1 / 12) * whole.step**2, rel=1e-6)
    assert shares.variance(whole, 1024) / whole.variance() < 1 + 1e-5


def test_shares_of_a_whole_scale_are_exact_and_each_may_be_as_small_as_four_steps() -> None:
    whole = WHOLE["discrete_gaussian"]
    coarse = replace(whole, scale=16 * whole.step)
    assert [shares.variance(coarse, contributors) for contributors in (1, 4, 16)] == [coarse.variance()] * 3
    shares.check(coarse, 16)
    with pytest.raises(InputError, match="contributors must be at most 16 "):
        shares.check(coarse, 17)
