"""Weighted label sums with noise on every sum: its law, its composition, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from support.weighted_bags import RANGE, K, M

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.bag_sums import weighted_sums as repaired
from federation.mechanisms.bag_sums.calibration import smallest_tau
from federation.mechanisms.bag_sums.design import mean_delta_chi


def test_noise_of_the_repaired_sums(drawn) -> None:
    labels, weights, _ = drawn
    mechanism = repaired.repaired_bag_sums(2 * M * K, M, K, tau=5.0, label_range=RANGE, epsilon=1.0)
    error = mechanism.release(labels, weights, NoiseBits(1, "test")) - (weights * labels).sum(axis=1)
    assert stats.kstest(error / 5, "norm").pvalue > 1e-3


def test_impossible_repairs_are_refused() -> None:
    for delta in (0.0, 1.0, 1.5):
        with pytest.raises(InputError, match="delta must lie strictly between 0 and 1"):
            repaired.calibrate(640, 5, 64, label_range=RANGE, epsilon=1.0, delta=delta)
    for epsilon in (-0.1, math.nan, math.inf):
        with pytest.raises(InputError, match="epsilon must be a finite number"):
            repaired.repaired_bag_sums(640, 5, 64, tau=1.0, label_range=RANGE, epsilon=epsilon)
    with pytest.raises(InputError, match="tau must be a positive finite number"):
        repaired.repaired_bag_sums(640, 5, 64, tau=0.0, label_range=RANGE, epsilon=1.0)
    with pytest.raises(InputError, match="11 bags of 64 need 704 records"):
        repaired.calibrate(640, 11, 64, label_range=RANGE, epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 1e-13, 0.3, 1.0, 4.0])
def test_the_claim_charges_a_little_for_its_grid(epsilon: float) -> None:
    fixed = repaired.repaired_bag_sums(640, 10, 64, tau=8.0, label_range=RANGE, epsilon=1.0)
    exact = mean_delta_chi(epsilon, 0.5)
    assert exact < fixed.delta_at(epsilon) < exact * (1 + 1e-4)


def test_calibrated_mechanisms_reach_their_claim_with_hardly_more_noise_than_ideal() -> None:
    fixed = repaired.calibrate(640, 10, 64, label_range=RANGE, epsilon=1.0, delta=1e-6)
    assert 1e-6 * (1 - 1e-6) < fixed.delta_at(1.0) <= 1e-6
    assert fixed.tau == pytest.approx(smallest_tau(1.0, 1e-6, label_range=RANGE), rel=1e-5)
    rarely = repaired.calibrate(6400, 10, 64, label_range=RANGE, epsilon=1.0, delta=1e-6)
    assert rarely.tau == pytest.approx(smallest_tau(1.0, 1e-5, label_range=RANGE), rel=1e-5)
    assert repaired.calibrate(6400, 1, 64, label_range=RANGE, epsilon=1.0, delta=0.5).delta_at(1.0) <= 0.5


def test_releases_compose() -> None:
    fixed = repaired.repaired_bag_sums(640, 10, 64, tau=20.0, label_range=RANGE, epsilon=1.0)
    assert fixed.composed_delta(1.0, 1) == fixed.delta_at(1.0)
    assert fixed.composed_delta(1.0, 5) == pytest.approx(mean_delta_chi(1.0, 0.2, 5), rel=1e-4)
    half = repaired.repaired_bag_sums(1280, 10, 64, tau=20.0, label_range=RANGE, epsilon=1.0)
    times = np.arange(1, 6)
    expected = sum(stats.binom(5, 0.5).pmf(t) * mean_delta_chi(1.0, 0.2, int(t)) for t in times)
    assert half.composed_delta(1.0, 5) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("releases", [0, -1, 1.5, True])
def test_impossible_numbers_of_releases_are_refused(releases: float) -> None:
    mechanism = repaired.repaired_bag_sums(640, 10, 64, tau=8.0, label_range=RANGE, epsilon=1.0)
    with pytest.raises(InputError, match="releases must be an integer of at least 1"):
        mechanism.composed_delta(1.0, releases)


def test_more_bags_than_are_charged_are_refused(drawn) -> None:
    labels, weights, _ = drawn
    mechanism = repaired.repaired_bag_sums(2 * M * K, M - 1, K, tau=1.0, label_range=RANGE, epsilon=1.0)
    with pytest.raises(InputError, match="bags by size, got"):
        mechanism.release(labels, weights, NoiseBits(1, "x"))


def test_infinite_weights_are_refused(drawn) -> None:
    labels, weights, _ = drawn
    mechanism = repaired.repaired_bag_sums(2 * M * K, M, K, tau=1.0, label_range=RANGE, epsilon=1.0)
    infinite = np.where(np.arange(K) == 0, math.inf, weights)
    with pytest.raises(InputError, match="weights must be numbers between"):
        mechanism.release(labels, infinite, NoiseBits(1, "x"))
