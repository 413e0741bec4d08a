"""Label ranges so narrow, wide or far from zero that what is computed of them leaves the doubles."""

from __future__ import annotations

import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.bag_sums.accounting import width
from federation.mechanisms.bag_sums.label_sums import laplace_sums
from federation.mechanisms.labels.bins import optimal_bins

LARGEST = (-1e100, 1e100)
NARROWEST = (0.0, 1e-100)


@pytest.mark.parametrize("label_range", [(0.0, 9e-101), (1.0, 1.0), (2.0, 1.0), (-1.1e100, 0.0), (1e300, 1.1e300)])
def test_ranges_whose_squares_leave_the_doubles_are_refused(label_range):
    with pytest.raises(InputError, match="label_range must be two numbers up to 1e\\+100"):
        width(label_range)


@pytest.mark.parametrize("label_range", [LARGEST, NARROWEST])
def test_the_most_extreme_ranges_are_computed_with_like_any_other(label_range):
    low, high = label_range
    assert width(label_range) == high - low
    labels, weights = np.array([[low, high, high]]), np.ones((1, 3))
    noisy, plain = (
        laplace_sums(given, weights, ends, 3, NoiseBits(1, "a test", 0))
        for given, ends in ((labels, label_range), (np.array([[0.0, 1.0, 1.0]]), (0.0, 1.0)))
    )
    np.testing.assert_allclose((noisy - 3 * low) / (high - low), plain, rtol=1e-12)
    shares, prior = np.linspace(0, 1, 9), np.full(9, 1 / 9)
    for epsilon in (0.1, 1.0, 30.0):
        found, known = (optimal_bins(points, prior, epsilon) for points in (low + (high - low) * shares, shares))
        losses = [bins.loss / (high - low) ** 2 for bins in found]
        np.testing.assert_allclose(losses, [bins.loss for bins in known], rtol=1e-9, atol=1e-15)
