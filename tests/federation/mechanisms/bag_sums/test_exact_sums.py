"""Exact sums of rounded labels, their noise, and label ranges at which doubles end."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.bag_sums import exact_sums
from federation.mechanisms.bag_sums.calibration import width
from federation.mechanisms.bag_sums.exact_sums import laplace_sums
from federation.mechanisms.labels.randomised_response import optimal_bins
from federation.mechanisms.noise import gaussian


@pytest.mark.parametrize("label_range", [(-1e100, 1e100), (0.0, 1e-100)])
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


@given(st.integers(0, 2**32), st.integers(1, 40), st.floats(1e-3, 1e3))
@settings(derandomize=True)
def test_sums_are_the_exact_ones_rounded_once(seed: int, size: int, spread: float) -> None:
    """A changed label moves the sum by the weight times the range; sums of doubles would add their own errors."""
    rng = np.random.default_rng(seed)
    places = rng.integers(0, exact_sums.LABEL_STEPS + 1, (3, size)).astype(float)
    weights = spread * rng.normal(size=(3, size)) * 10.0 ** rng.integers(-6, 3, (3, size))
    for found, terms, w in zip(exact_sums._exact_sums(places, weights), places, weights, strict=True):
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(terms.tolist(), w.tolist(), strict=True))
        assert found == float(exact)


def test_two_sums_lie_no_further_apart_on_the_grid_of_the_noise_than_is_charged(monkeypatch):
    """Where sums have as many digits as doubles hold, more than half a step is lost: the division rounds, too."""
    monkeypatch.setattr(
        exact_sums.discrete, "sample_discrete_gaussian", lambda bits, scale, size: np.zeros(size, np.int64)
    )
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(4000, 4))
    labels = (weights > 0).astype(float)  # and the lowest label elsewhere: sums are the largest that there are
    grid = np.abs(weights).sum(axis=1) / exact_sums._MOST_STEPS
    sums = exact_sums.gaussian_sums(labels, weights, (0.0, 1.0), np.full(len(weights), 1e-9), NoiseBits(1, "a test"))
    lost = [
        Fraction(round(found / step)) - sum(map(Fraction, one)) / Fraction(step)
        for found, step, one in zip(
            sums.tolist(), grid.tolist(), np.where(labels > 0, weights, 0.0).tolist(), strict=True
        )
    ]
    assert 1 < max(lost) - min(lost) <= exact_sums.CHARGE * exact_sums.NOISE_STEPS


def test_labels_are_rounded_alone_and_stay_in_the_range() -> None:
    """Whatever the range, its ends are the first and the last place: no sensitivity is added."""
    for low, high in ((0.1, 0.7), (-3.3, 1e9), (1e-9, 1.1e-9), (5.0, 57.0)):
        labels = np.array([[low, high, np.nextafter(low, high), np.nextafter(high, low)]])
        places, _ = exact_sums._checked(labels, np.ones((1, 4)), (low, high))
        np.testing.assert_array_equal(places, [[0, exact_sums.LABEL_STEPS, 0, exact_sums.LABEL_STEPS]])


@pytest.mark.parametrize("epsilon", [0.0, 1e-14, 9e-13, 1e-12, 1e-3, 1.0, 5.0])
@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_the_law_of_the_noise_costs_a_little_more_than_the_continuous_one(epsilon, mu):
    """A factor e^{1e-12} of the probabilities: e^s d(epsilon - s) covers it, and is 2 s more at most around 0."""
    exact = float(gaussian.delta(epsilon, mu))
    charged = exact_sums.charged(lambda at: float(gaussian.delta(at, mu)), epsilon)
    slack = 1e-12
    assert charged >= np.exp(slack) * float(gaussian.delta(max(epsilon - slack, 0.0), mu))
    assert exact < charged <= exact * (1 + 2e-9) + 3 * slack


def test_a_scale_of_zero_adds_no_noise_to_its_bag_alone_and_noise_too_fine_for_doubles_becomes_wider() -> None:
    labels, weights = np.array([[0.25, 0.5, 1.0]] * 4), np.array([[0.5, -1.0, 2.0]] * 4)
    scales = np.array([0.0, 1.0, 0.0, 1e-3])
    found = exact_sums.gaussian_sums(labels, weights, (0.0, 1.0), scales, NoiseBits(1, "x"))
    assert (found == 1.625).tolist() == [True, False, True, False]
    labels, weights, scales = np.full((1000, 2), 0.5), np.tile([1e-12, 1.0], (1000, 1)), np.full(1000, 1e-12)
    error = exact_sums.gaussian_sums(labels, weights, (0.0, 1.0), scales, NoiseBits(1, "x")) - weights @ [0.5, 0.5]
    assert 1e-9 < error.std() < 1e-6


@pytest.mark.parametrize("made", ["gaussian", "laplace"])
def test_several_releases_have_the_bits_of_one_after_another(made):
    rng, together, alone = np.random.default_rng(5), NoiseBits(1, "releases"), NoiseBits(1, "releases")
    labels, weights = rng.random((2, 3, 4, 5)), rng.choice([-1.0, 1.0], (2, 3, 4, 5))
    scales = rng.integers(0, 3, (2, 3, 4)).astype(float)  # some sums without noise

    def release(labels, weights, scales, bits):
        if made == "laplace":
            return laplace_sums(labels, weights, (0.0, 1.0), 1000, bits)
        return exact_sums.gaussian_sums(labels, weights, (0.0, 1.0), scales, bits)

    found = release(labels, weights, scales, together)
    expected = [release(labels[i], weights[i], scales[i], alone) for i in np.ndindex(2, 3)]
    np.testing.assert_array_equal(found.reshape(6, 4), expected)
    np.testing.assert_array_equal(together.words(1), alone.words(1))


@pytest.mark.parametrize(
    ("labels", "weights", "told"),
    [
        # A weight of two would move the sum by twice what is charged.
        *((np.zeros((1, 2)), np.array([[1.0, weight]]), r"weights.*-1.*1") for weight in (2.0, 0.5, 0.0)),
        # Labels and weights are of the same bags.
        *((np.zeros(shape), np.ones(other), None) for shape, other in ((3, 3), ((2, 3), (3, 2)), ((2, 3), 3))),
    ],
)
def test_laplace_noise_is_refused_for_weights_other_than_signs_of_the_same_bags(labels, weights, told) -> None:
    with pytest.raises(InputError, match=told):
        laplace_sums(labels, weights, (0.0, 1.0), 3, NoiseBits(1, "a test"))


def test_the_largest_weights_are_those_that_are_allowed() -> None:
    labels, largest = np.ones((1, 2)), np.array([[2.0**20, -(2.0**20)]])
    bits, scales = NoiseBits(1, "a test"), np.zeros(1)
    assert exact_sums.gaussian_sums(labels, largest, (0.0, 1.0), scales, bits) == 0
    with pytest.raises(InputError, match="weights"):
        exact_sums.gaussian_sums(labels, np.nextafter(largest, np.inf), (0.0, 1.0), scales, bits)
