"""Bins and strengths from public numbers, against published bins and simulated noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.learners.error_marginals.learner import (
    bins_per_feature,
    importance_strength,
    label_strength,
    published_bins,
)


@pytest.mark.parametrize(
    ("rows", "features", "scale", "bins"),
    [(700, 22, 44, 3), (700, 22, 66, 2), (5000, 10, 30, 20), (2500, 2, 4, 30), (40, 3, 1e9, 2), (5000, 9, 30, 29)],
)
def test_four_deviations_of_laplace_noise_are_a_bin(rows, features, scale, bins):
    assert published_bins(rows, features, 2**0.5 * scale) == bins


def test_without_noise_there_are_as_many_bins_as_there_may_be():
    for rule in (bins_per_feature, published_bins):
        assert [rule(10, d, 0.0) for d in (2, 9, 10, 25)] == [30, 30, 20, 20]


@given(st.integers(10, 100_000), st.integers(1, 200), st.floats(0.01, 1e4))
def test_bins_are_those_beside_the_greatest_ratio_of_signal_to_noise(rows, features, deviation):
    noise, most = deviation**2 / rows, published_bins(rows, features, deviation)
    roots = np.roots([noise, 0.0, -12 * noise, -1.6])  # where the derivative of the ratio by q vanishes
    best = min(max(float(roots[np.isreal(roots)].real.max()), 2.0), most)
    chosen = bins_per_feature(rows, features, deviation)
    assert 2 <= chosen <= most
    assert abs(chosen - best) < 1


@pytest.mark.parametrize(("rows", "deviation"), [(4000, 60.0), (2500, 5.7), (5000, 2.0), (20_000, 1.0)])
def test_bins_tell_most_of_errors_that_rise_and_fall(rows, deviation):
    tent = np.abs(np.linspace(-1, 1, rows)) - 0.5

    def told(count):
        bins = np.array_split(tent, count)
        return sum(part.sum() ** 2 / (deviation**2 + 0.2 * len(part)) for part in bins)

    best = max(range(2, 21), key=told)
    assert abs(bins_per_feature(rows, 10, deviation) - best) <= 1


def test_the_label_strength_is_half_the_squared_error_of_an_answer():
    rng, rows, features, bins, share, deviation = np.random.default_rng(0), 400, 3, 5, 0.276, 6.0
    assert share * (1 - share) == pytest.approx(0.2, rel=1e-2)
    cells = features * bins
    errors = rng.binomial(rows // bins, share, (20_000, cells)) + rng.normal(0, deviation, (20_000, cells))
    squared = np.square((errors - share * rows / bins) / rows).sum(axis=1).mean()
    assert label_strength(rows, cells, features, deviation) == pytest.approx(squared / 2, rel=0.02)


def test_weights_are_held_the_more_the_noisier_their_marginals():
    quiet, loud = (importance_strength(1000, 30, 3, 500, deviation) for deviation in (0.0, 10.0))
    assert loud - quiet == pytest.approx(500 / 4 * 30 * (10 / 1000) ** 2)
    assert importance_strength(2000, 30, 3, 500, 0.0) == pytest.approx(quiet / 2)
