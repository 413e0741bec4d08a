"""Weighted sums of noisy labels: what they compute, which noise they add, what they promise and refuse."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from support.weighted_bags import RANGE, K, M

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.accounting.composition import compose
from federation.mechanisms.bag_sums import noisy_labels
from federation.mechanisms.bag_sums.calibration import composed_delta, delta, smallest_sigma
from federation.mechanisms.bag_sums.design import BagDesign

PLAIN = BagDesign(2 * M * K, M, K, noisy=M * K)
SIGNS = BagDesign(2 * M * K, M, K, per_bag=2, weights="signs")


def test_noisy_labels_add_the_noise_of_their_weighted_sum(drawn) -> None:
    labels, weights, noisy = drawn
    mechanism = noisy_labels.noisy_bag_sums(PLAIN, sigma=2.0, label_range=RANGE, epsilon=1.0)
    released = mechanism.release(labels, weights, noisy, NoiseBits(1, "test"))
    error = released - (weights * labels).sum(axis=1)
    scale = 2.0 * np.sqrt((weights**2 * noisy).sum(axis=1))
    assert np.all(np.abs(error[scale == 0]) < 1e-5)
    assert (scale == 0).sum() > 10
    assert stats.kstest(error[scale > 0] / scale[scale > 0], "norm").pvalue > 1e-3


def test_equal_keys_give_equal_releases(drawn) -> None:
    labels, weights, noisy = drawn
    mechanism = noisy_labels.noisy_bag_sums(PLAIN, sigma=2.0, label_range=RANGE, epsilon=1.0)
    first, again, other = (mechanism.release(labels, weights, noisy, NoiseBits(seed, "x")) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


@pytest.mark.parametrize("epsilon", [0.0, 1e-13, 0.3, 1.0, 4.0])
def test_the_claim_charges_a_little_for_its_grid(epsilon: float) -> None:
    mechanism = noisy_labels.noisy_bag_sums(BagDesign(640, 10, 64, noisy=640), sigma=4.0, label_range=RANGE, epsilon=1)
    exact = delta(epsilon, mechanism.design, sigma=4.0, label_range=RANGE)
    assert exact < mechanism.delta_at(epsilon) < exact * (1 + 1e-4)


def test_calibrated_mechanisms_reach_their_claim_with_hardly_more_noise_than_ideal() -> None:
    for design in (PLAIN, SIGNS, BagDesign(6400, 100, 64, per_bag=8)):
        target = 1e-5 + 2 * design.noise_free
        mechanism = noisy_labels.calibrate(design, label_range=RANGE, epsilon=1.0, delta=target)
        assert target * (1 - 1e-6) < mechanism.delta_at(1.0) <= target == mechanism.delta
        ideal = smallest_sigma(1.0, target, design, label_range=RANGE)
        assert ideal < mechanism.sigma < ideal * (1 + 1e-5)


def test_releases_compose() -> None:
    mechanism = noisy_labels.calibrate(SIGNS, label_range=RANGE, epsilon=1.0, delta=1e-6)
    together = composed_delta(2.0, SIGNS, sigma=mechanism.sigma, label_range=RANGE, releases=4)
    assert mechanism.composed_delta(2.0, 4) == pytest.approx(together, rel=1e-3)
    epsilon, _ = compose([mechanism.guarantee()] * 4, 1e-5)
    # The ledger counts every label as if it were in a bag each time.
    surely = replace(SIGNS, records=SIGNS.bags * SIGNS.size)
    sure = composed_delta(epsilon, surely, sigma=mechanism.sigma, label_range=RANGE, releases=4)
    assert sure == pytest.approx(1e-5, rel=1e-3)


def test_a_mechanism_that_promises_nothing_cannot_be_guaranteed() -> None:
    nothing = noisy_labels.noisy_bag_sums(BagDesign(100, 50, 2, noisy=1), sigma=1e-3, label_range=RANGE, epsilon=1e-3)
    assert nothing.delta > 0.98
    reveals = replace(nothing, delta=1.0)
    with pytest.raises(InputError, match="delta must lie in"):
        reveals.guarantee()


def test_other_labels_weights_and_masks_are_refused(drawn) -> None:
    labels, weights, noisy = drawn
    plain = noisy_labels.noisy_bag_sums(PLAIN, sigma=2.0, label_range=RANGE, epsilon=1.0)
    bits = NoiseBits(1, "x")
    for value in (3.001, -1.001, math.nan, math.inf):
        wrong = labels.copy()
        wrong[5, 2] = value
        with pytest.raises(InputError, match="labels must be numbers from -1 to 3, the declared range"):
            plain.release(wrong, weights, noisy, bits)
    with pytest.raises(InputError, match="the mask of type bool"):
        plain.release(labels, weights, noisy.astype(float), bits)
    with pytest.raises(InputError, match=r"must be \(4000, 6\) each"):
        plain.release(labels[:5], weights[:5], noisy[:5], bits)
    with pytest.raises(InputError, match="at most 10 labels are noisy in this design"):
        replace(plain, design=replace(PLAIN, noisy=10)).release(labels, weights, noisy, bits)
    signs = noisy_labels.noisy_bag_sums(SIGNS, sigma=2.0, label_range=RANGE, epsilon=1.0)
    two = np.tile(np.arange(K) < 2, (M, 1))
    with pytest.raises(InputError, match="every bag must have 2 noisy labels"):
        signs.release(labels, np.sign(weights), noisy, bits)
    with pytest.raises(InputError, match="weights must be -1 or 1"):
        signs.release(labels, weights, two, bits)


def test_several_releases_have_the_bits_of_one_after_another(drawn) -> None:
    labels, weights, noisy = drawn
    mechanism = noisy_labels.noisy_bag_sums(PLAIN, sigma=2.0, label_range=RANGE, epsilon=1.0)
    bits, further = NoiseBits(1, "test"), np.stack([weights, -weights])
    one_by_one = [mechanism.release(labels, each, noisy, bits) for each in further]
    together = mechanism.release(np.stack([labels, labels]), further, noisy, NoiseBits(1, "test"))
    np.testing.assert_array_equal(together, one_by_one)


def test_as_many_labels_are_noisy_as_the_design_says(drawn) -> None:
    labels, weights, noisy = drawn
    exactly = noisy_labels.noisy_bag_sums(
        replace(PLAIN, noisy=int(noisy.sum())), sigma=2.0, label_range=RANGE, epsilon=1.0
    )
    assert exactly.release(labels, weights, noisy, NoiseBits(1, "test")).shape == (M,)


@pytest.mark.parametrize("epsilon", [-0.1, math.nan, math.inf])
def test_impossible_epsilons_are_refused(epsilon: float) -> None:
    with pytest.raises(InputError, match="epsilon must be a finite number"):
        noisy_labels.noisy_bag_sums(PLAIN, sigma=2.0, label_range=RANGE, epsilon=epsilon)
