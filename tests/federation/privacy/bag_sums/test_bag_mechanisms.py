"""Mechanisms that release label sums: what they compute, which noise they add, what they promise and refuse."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.accounting.composition import compose
from federation.mechanisms.bag_sums import label_sums, laplace, noisy_labels, repaired
from federation.mechanisms.bag_sums.accounting import delta
from federation.mechanisms.bag_sums.calibrated_sums import smallest_sigma, smallest_tau
from federation.mechanisms.bag_sums.composition import composed_delta
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.bag_sums.weight_ratio import mean_delta_chi

RANGE = (-1.0, 3.0)
M, K = 4000, 6
PLAIN = BagDesign(2 * M * K, M, K, noisy=M * K)
SIGNS = BagDesign(2 * M * K, M, K, per_bag=2, weights="signs")


@pytest.fixture(scope="module")
def drawn() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels in the range, Gaussian weights and noisy places, (m, k) each."""
    rng = np.random.default_rng(3)
    return rng.uniform(*RANGE, (M, K)), rng.normal(size=(M, K)), rng.random((M, K)) < 0.5


def test_noisy_labels_add_the_noise_of_their_weighted_sum(drawn) -> None:
    labels, weights, noisy = drawn
    mechanism = noisy_labels.noisy_bag_sums(PLAIN, sigma=2.0, label_range=RANGE, epsilon=1.0)
    released = mechanism.release(labels, weights, noisy, NoiseBits(1, "test"))
    error = released - (weights * labels).sum(axis=1)
    scale = 2.0 * np.sqrt((weights**2 * noisy).sum(axis=1))
    assert np.all(np.abs(error[scale == 0]) < 1e-5)
    assert (scale == 0).sum() > 10
    assert stats.kstest(error[scale > 0] / scale[scale > 0], "norm").pvalue > 1e-3


def test_laplace_noise(drawn) -> None:
    labels, weights, _ = drawn
    mechanism = laplace.laplace_bag_sums(2 * M * K, M, K, label_range=RANGE, epsilon=0.5)
    error = mechanism.release(labels, np.sign(weights), NoiseBits(1, "test")) - (np.sign(weights) * labels).sum(axis=1)
    assert mechanism.scale == pytest.approx(8.0)
    assert stats.kstest(error / 8, "laplace").pvalue > 1e-3


def test_noise_of_the_repaired_sums(drawn) -> None:
    labels, weights, _ = drawn
    mechanism = repaired.repaired_bag_sums(2 * M * K, M, K, tau=5.0, label_range=RANGE, epsilon=1.0)
    error = mechanism.release(labels, weights, NoiseBits(1, "test")) - (weights * labels).sum(axis=1)
    assert stats.kstest(error / 5, "norm").pvalue > 1e-3


def test_equal_keys_give_equal_releases(drawn) -> None:
    labels, weights, noisy = drawn
    mechanism = noisy_labels.noisy_bag_sums(PLAIN, sigma=2.0, label_range=RANGE, epsilon=1.0)
    first, again, other = (mechanism.release(labels, weights, noisy, NoiseBits(seed, "x")) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


@given(st.integers(0, 2**32), st.integers(1, 40), st.floats(1e-3, 1e3))
@settings(derandomize=True, deadline=None, max_examples=40)
def test_sums_are_the_exact_ones_rounded_once(seed: int, size: int, spread: float) -> None:
    """A changed label moves the sum by the weight times the range; sums of doubles would add their own errors."""
    rng = np.random.default_rng(seed)
    places = rng.integers(0, label_sums.LABEL_STEPS + 1, (3, size)).astype(float)
    weights = spread * rng.normal(size=(3, size)) * 10.0 ** rng.integers(-6, 3, (3, size))
    for found, terms, w in zip(label_sums._exact_sums(places, weights), places, weights, strict=True):
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(terms.tolist(), w.tolist(), strict=True))
        assert found == float(exact)


def test_labels_are_rounded_alone_and_stay_in_the_range() -> None:
    """Whatever the range, its ends are the first and the last place: no sensitivity is added."""
    for low, high in ((0.1, 0.7), (-3.3, 1e9), (1e-9, 1.1e-9), (5.0, 57.0)):
        labels = np.array([[low, high, np.nextafter(low, high), np.nextafter(high, low)]])
        places, _ = label_sums._checked(labels, np.ones((1, 4)), (low, high))
        np.testing.assert_array_equal(places, [[0, label_sums.LABEL_STEPS, 0, label_sums.LABEL_STEPS]])


def test_noise_too_fine_for_doubles_becomes_wider() -> None:
    labels, weights = np.full((1000, 2), 0.5), np.tile([1e-12, 1.0], (1000, 1))
    scales = np.full(1000, 1e-12)
    error = label_sums.gaussian_sums(labels, weights, (0.0, 1.0), scales, NoiseBits(1, "x")) - weights @ [0.5, 0.5]
    assert 1e-9 < error.std() < 1e-6


@pytest.mark.parametrize("epsilon", [0.0, 1e-13, 0.3, 1.0, 4.0])
def test_the_claim_charges_a_little_for_its_grid(epsilon: float) -> None:
    mechanism = noisy_labels.noisy_bag_sums(BagDesign(640, 10, 64, noisy=640), sigma=4.0, label_range=RANGE, epsilon=1)
    exact = delta(epsilon, mechanism.design, sigma=4.0, label_range=RANGE)
    assert exact < mechanism.delta_at(epsilon) < exact * (1 + 1e-4)
    fixed = repaired.repaired_bag_sums(640, 10, 64, tau=8.0, label_range=RANGE, epsilon=1.0)
    exact = mean_delta_chi(epsilon, 0.5)
    assert exact < fixed.delta_at(epsilon) < exact * (1 + 1e-4)


def test_calibrated_mechanisms_reach_their_claim_with_hardly_more_noise_than_ideal() -> None:
    for design in (PLAIN, SIGNS, BagDesign(6400, 100, 64, per_bag=8)):
        target = 1e-5 + 2 * design.noise_free
        mechanism = noisy_labels.calibrate(design, label_range=RANGE, epsilon=1.0, delta=target)
        assert target * (1 - 1e-6) < mechanism.delta_at(1.0) <= target == mechanism.delta
        ideal = smallest_sigma(1.0, target, design, label_range=RANGE)
        assert ideal < mechanism.sigma < ideal * (1 + 1e-5)
    fixed = repaired.calibrate(640, 10, 64, label_range=RANGE, epsilon=1.0, delta=1e-6)
    assert 1e-6 * (1 - 1e-6) < fixed.delta_at(1.0) <= 1e-6
    assert fixed.tau == pytest.approx(smallest_tau(1.0, 1e-6, label_range=RANGE), rel=1e-5)
    rarely = repaired.calibrate(6400, 10, 64, label_range=RANGE, epsilon=1.0, delta=1e-6)
    assert rarely.tau == pytest.approx(smallest_tau(1.0, 1e-5, label_range=RANGE), rel=1e-5)
    assert repaired.calibrate(6400, 1, 64, label_range=RANGE, epsilon=1.0, delta=0.5).delta_at(1.0) <= 0.5


def test_laplace_is_pure() -> None:
    mechanism = laplace.laplace_bag_sums(640, 5, 64, label_range=RANGE, epsilon=0.7)
    assert (mechanism.delta_at(0.7), mechanism.guarantee().delta) == (0, 0)
    # P[loss > e] for the Laplace law: delta = 1 - exp((e - epsilon)/2), for the half of the records in bags.
    assert mechanism.delta_at(0.2) == pytest.approx(0.5 * -math.expm1(-0.25), rel=1e-5)


def test_releases_compose() -> None:
    mechanism = noisy_labels.calibrate(SIGNS, label_range=RANGE, epsilon=1.0, delta=1e-6)
    together = composed_delta(2.0, SIGNS, sigma=mechanism.sigma, label_range=RANGE, releases=4)
    assert mechanism.composed_delta(2.0, 4) == pytest.approx(together, rel=1e-3)
    epsilon, _ = compose([mechanism.guarantee()] * 4, 1e-5)
    # The ledger counts every label as if it were in a bag each time.
    surely = replace(SIGNS, records=SIGNS.bags * SIGNS.size)
    sure = composed_delta(epsilon, surely, sigma=mechanism.sigma, label_range=RANGE, releases=4)
    assert sure == pytest.approx(1e-5, rel=1e-3)
    fixed = repaired.repaired_bag_sums(640, 10, 64, tau=20.0, label_range=RANGE, epsilon=1.0)
    assert fixed.composed_delta(1.0, 1) == fixed.delta_at(1.0)
    assert fixed.composed_delta(1.0, 5) == pytest.approx(mean_delta_chi(1.0, 0.2, 5), rel=1e-4)
    half = repaired.repaired_bag_sums(1280, 10, 64, tau=20.0, label_range=RANGE, epsilon=1.0)
    times = np.arange(1, 6)
    expected = sum(stats.binom(5, 0.5).pmf(t) * mean_delta_chi(1.0, 0.2, int(t)) for t in times)
    assert half.composed_delta(1.0, 5) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    "mechanism",
    [
        noisy_labels.noisy_bag_sums(PLAIN, sigma=9.0, label_range=RANGE, epsilon=1.0),
        noisy_labels.calibrate(SIGNS, label_range=RANGE, epsilon=1.0, delta=1e-6),
        laplace.laplace_bag_sums(640, 5, 64, label_range=RANGE, epsilon=1.0),
        repaired.calibrate(640, 5, 64, label_range=RANGE, epsilon=1.0, delta=1e-6),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_guarantees_say_what_is_promised(mechanism) -> None:
    promised = mechanism.guarantee()
    assert (promised.epsilon, promised.delta) == (1.0, mechanism.delta)
    assert (promised.unit, promised.adjacency) == (Unit.LABEL, Adjacency.REPLACE)
    assert (promised.parameters["lowest_label"], promised.parameters["highest_label"]) == RANGE
    texts = " ".join(assumption.text for assumption in promised.assumptions)
    for premise in ("range is public", "key of the noise", "in at most one bag", "only labels are protected"):
        assert premise in texts
    assert ("real normal one" in texts) == (promised.parameters["weights"] == "gaussian")
    for unit, adjacency in ((Unit.ROW, Adjacency.REPLACE), (Unit.LABEL, Adjacency.ADD_REMOVE)):
        with pytest.raises(InputError, match="adjacency must be replace and unit must be label for"):
            mechanism.guarantee(unit, adjacency)


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
    infinite = np.where(np.arange(K) == 0, math.inf, weights)
    with pytest.raises(InputError, match="weights must be numbers between"):
        repaired.repaired_bag_sums(2 * M * K, M, K, tau=1.0, label_range=RANGE, epsilon=1.0).release(
            labels, infinite, bits
        )
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
    pure = laplace.laplace_bag_sums(2 * M * K, M, K, label_range=RANGE, epsilon=1.0)
    with pytest.raises(InputError, match="weights must be -1 or 1"):
        pure.release(labels, weights, bits)
    with pytest.raises(InputError, match="bags by size"):
        pure.release(labels[:5], weights[:5], bits)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a positive"),
        ({"epsilon": 1e-9}, "scale must be an integer from 1 to 2\\^40"),
        ({"label_range": (1.0, 0.0)}, "label_range must be"),
        ({"size": 65}, "5 bags of 65 need 325 records"),
    ],
)
def test_impossible_laplace_mechanisms_are_refused(arguments: dict, message: str) -> None:
    wanted = {"records": 320, "bags": 5, "size": 64, "label_range": RANGE, "epsilon": 1.0} | arguments
    with pytest.raises(InputError, match=message):
        laplace.laplace_bag_sums(**wanted)


def test_impossible_repairs_are_refused() -> None:
    with pytest.raises(InputError, match="delta must lie strictly between 0 and 1"):
        repaired.calibrate(640, 5, 64, label_range=RANGE, epsilon=1.0, delta=0.0)
    with pytest.raises(InputError, match="tau must be a positive finite number"):
        repaired.repaired_bag_sums(640, 5, 64, tau=0.0, label_range=RANGE, epsilon=1.0)
    with pytest.raises(InputError, match="11 bags of 64 need 704 records"):
        repaired.calibrate(640, 11, 64, label_range=RANGE, epsilon=1.0, delta=1e-6)
