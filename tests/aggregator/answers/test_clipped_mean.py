import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.answers.average_sensitivity import clipped_mean
from aggregator.answers.vector_answers import ClippedMean


def mean_of(vectors, parties, **options):
    mean = ClippedMean(vectors.shape[1], parties=parties, **options)
    mean.add(vectors)
    return mean


def vectors(seed, parties=20, dimension=7, spread=3.0):
    random = np.random.default_rng(seed)
    return random.normal(size=(parties, dimension)) * np.exp(random.normal(scale=spread, size=(parties, 1)))


@settings(derandomize=True, deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), norm=st.floats(1e-6, 1e6), normalised=st.booleans())
def test_it_is_the_mean_of_the_vectors_cut_to_the_ball(seed, norm, normalised):
    given_ = vectors(seed)
    lengths = np.linalg.norm(given_, axis=1, keepdims=True)
    factor = norm / lengths if normalised else np.minimum(1, norm / lengths)
    expected = (given_ * factor).sum(axis=0) / 30  # ten of thirty parties are missing and count as zero
    found = mean_of(given_, 30, norm=norm, normalised=normalised).value()
    np.testing.assert_allclose(found, expected, atol=1e-13 * norm)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), pieces=st.integers(1, 6), normalised=st.booleans())
def test_the_order_of_arrival_changes_no_bit(seed, pieces, normalised):
    given_ = vectors(seed)
    order = np.random.default_rng(seed).permutation(len(given_))
    piecewise = ClippedMean(7, 1.5, 20, normalised=normalised)
    for part in np.array_split(order, pieces):
        piecewise.add(given_[part])
    whole = mean_of(given_, 20, norm=1.5, normalised=normalised)
    assert piecewise.value().tobytes() == whole.value().tobytes()


def adversaries(random, dimension, norm):
    """Vectors that a hostile party may send, and their opposites."""
    direction = random.normal(size=dimension)
    direction /= np.linalg.norm(direction)
    tiny, huge = np.nextafter(0.0, 1.0), np.finfo(float).max
    spikes = np.zeros(dimension)
    spikes[random.integers(dimension)] = huge
    yield from (norm * direction, 1e3 * norm * direction, tiny * np.sign(direction), spikes, huge * np.sign(direction))
    yield np.full(dimension, np.nextafter(norm / np.sqrt(dimension), np.inf))
    yield np.zeros(dimension)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize(("parties", "dimension"), [(1, 1), (5, 3), (1000, 50), (10**6, 2), (3, 4000)])
def test_no_vector_moves_the_mean_further_than_the_sensitivity_and_opposite_ones_do(parties, dimension, normalised):
    random = np.random.default_rng(parties + dimension)
    norm, furthest = 2.5, 0.0
    others = random.normal(size=(min(parties, 50) - 1, dimension))
    candidates = [sign * v for v in adversaries(random, dimension, norm) for sign in (1, -1)]
    values = [mean_of(np.vstack([others, [v]]), parties, norm=norm, normalised=normalised).value() for v in candidates]
    sensitivity = ClippedMean(dimension, norm, parties, normalised=normalised).sensitivity
    for a in values:
        for b in values:
            furthest = max(furthest, float(np.linalg.norm(a - b)))
    assert furthest <= sensitivity
    assert furthest == pytest.approx(2 * norm / parties, rel=1e-9)
    assert sensitivity == pytest.approx(2 * norm / parties, rel=1e-8)


@pytest.mark.parametrize("norm", [1e-308, 1e-3, 1e300])
@pytest.mark.parametrize("normalised", [False, True])
def test_no_number_is_too_large_or_too_small_to_be_cut(norm, normalised):
    for size in (5e-324, 1e-200, 1.0, 1e200, np.finfo(float).max):
        value = mean_of(np.full((1, 4), size), 1, norm=norm, normalised=normalised).value()
        expected = norm / 2 if normalised else min(size, norm / 2)
        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-15 * norm)


def test_a_zero_vector_stays_zero_also_when_others_are_scaled_up():
    mean = mean_of(np.array([[0.0, 0.0], [1e-300, 0.0]]), 2, norm=1.0, normalised=True)
    np.testing.assert_array_equal(mean.value(), [0.5, 0.0])


def test_a_full_house_of_equal_vectors_does_not_overflow():
    mean = ClippedMean(1, 1.0, 2**20)
    for _ in range(16):
        mean.add(np.ones((2**16, 1)))
    assert mean.value() == pytest.approx(1.0, rel=1e-12)


def test_rounding_exceeds_the_exact_sensitivity_and_is_charged():
    """Distances in exact arithmetic of means in which one party turns its vector round."""
    random = np.random.default_rng(0)
    longest = Fraction(0)
    for _ in range(400):
        dimension, parties, norm = int(random.integers(1, 6)), int(random.integers(1, 4)), float(random.uniform(0.5, 4))
        own, others = random.normal(size=dimension), random.normal(size=(parties - 1, dimension))
        means = [mean_of(np.vstack([others, sign * own]), parties, norm=norm, normalised=True) for sign in (1, -1)]
        first, second = (list(map(Fraction, mean.value().tolist())) for mean in means)
        squared = sum((a - b) ** 2 for a, b in zip(first, second, strict=True))
        assert squared <= Fraction(means[0].sensitivity) ** 2
        longest = max(longest, squared / Fraction(math.nextafter(clipped_mean(norm, parties), math.inf)) ** 2)
    assert longest > 1
