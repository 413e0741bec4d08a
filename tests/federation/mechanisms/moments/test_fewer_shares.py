"""Epsilon at a delta of fewer shares of L2-Gamma noise: beside the whole noise, other quadrature, and their order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import kv

from federation.mechanisms.noise import gaussian, l2_gamma
from federation.mechanisms.sums.shares import delta, epsilon


@pytest.mark.parametrize("dimension", [1, 2, 5, 50])
def test_all_shares_are_the_whole_noise(dimension: int) -> None:
    for at in (0.1, 0.5):
        known = l2_gamma.delta(at, sensitivity=1.0, dimension=dimension, scale=1.0)
        assert delta(at, 1.0, dimension, 1.0) == pytest.approx(known, rel=2e-3)
    assert epsilon(1e-9, 1.0, dimension, 1.0) <= 1.0 + 1e-4


@pytest.mark.parametrize("at", [0.3, 1.2])
@pytest.mark.parametrize("left", [0.45, 0.7, 0.9])
def test_two_dimensions_beside_sums_over_the_plane(left: float, at: float) -> None:
    order, step, moved = (3 * left - 2) / 2, 0.03, 1.0
    x, y = np.meshgrid(np.arange(-12, 13, step), np.arange(step / 2, 12, step))  # nowhere at a centre; one half

    def density(first: np.ndarray) -> np.ndarray:
        z = np.hypot(first, y)
        return z**order * kv(order, z)

    here, there = density(x), density(x - moved)
    found = np.maximum(here - math.exp(at) * there, 0).sum() / here.sum()
    assert delta(at, moved, 2, left) == pytest.approx(found, rel=0.03)


@pytest.mark.parametrize(
    ("dimension", "expected"), [(5, [0.986, 1.052, 1.196, 1.722, 7.34]), (50, [0.530, 0.545, 0.562, 0.601, 0.819])]
)
def test_known_figures(dimension: int, expected: list[float]) -> None:
    found = [epsilon(1e-6, 1.0, dimension, left) for left in (1.0, 0.95, 0.9, 0.8, 0.5)]
    assert found == pytest.approx(expected, abs=6e-4, rel=3e-4)


def test_many_dimensions_are_nearly_gaussian() -> None:
    """Of the deviation sqrt((D + 1) r) in each, as the length of the noise hardly varies."""
    for left in (0.9, 0.3):  # orders of either kind of expansion
        near = gaussian.epsilon(1e-6, 1 / math.sqrt(20_001 * left))
        assert epsilon(1e-6, 1.0, 20_000, left) == pytest.approx(near, rel=3e-3)


def test_more_shares_longer_moves_and_larger_deltas() -> None:
    assert epsilon(1e-6, 1.0, 3, 0.8) > epsilon(1e-6, 1.0, 3, 0.9) > epsilon(1e-6, 0.8, 3, 0.9)
    assert epsilon(1e-6, 1.0, 3, 0.9) > epsilon(1e-5, 1.0, 3, 0.9)
    assert epsilon(0.5, 0.1, 3, 0.9) == 0.0
