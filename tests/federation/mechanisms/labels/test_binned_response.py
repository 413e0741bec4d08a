"""Randomised response on bins: its law, moments by enumeration, bias as published and corrected, and bad priors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels import randomised_response as response
from federation.mechanisms.labels.mechanism import LabelRange
from federation.mechanisms.labels.randomised_response import calibrate, mean_errors, optimal_bins

RANGE = LabelRange(0.0, 7.0)
PRIOR = np.array([0.3, 0.2, 0.0, 0.1, 0.1, 0.05, 0.05, 0.2])
priors = st.lists(st.integers(0, 9), min_size=2, max_size=12).filter(lambda w: sum(x > 0 for x in w) > 1)


def law(mechanism, labels):
    """Probability of every value for every label, (labels, k), from the bins' boundaries."""
    k = len(mechanism.starts)
    spacing = mechanism.labels.width / (mechanism.points - 1)
    cuts = mechanism.labels.low + (np.array(mechanism.starts[1:]) - 0.5) * spacing
    true, other = response.probabilities(k, mechanism.redraw)
    own = (labels[:, None] > cuts).sum(axis=1)
    return np.where(np.arange(k) == own[:, None], true, other)


@settings(max_examples=40, deadline=None)
@given(weights=priors, epsilon=st.floats(0.2, 6), debiased=st.booleans())
def test_moments_equal_enumeration(weights, epsilon, debiased):
    prior = np.array(weights) / sum(weights)
    mechanism = calibrate(RANGE, epsilon, prior, debiased)
    labels = np.linspace(0.013, 6.987, 40)
    mass, values = law(mechanism, labels), np.array(mechanism.values)
    mean = mass @ values
    np.testing.assert_allclose(mechanism.bias(labels), mean - labels, atol=1e-9 * (1 + np.abs(values).max()))
    variance = (mass * np.square(values - mean[:, None])).sum(axis=1)
    np.testing.assert_allclose(mechanism.variance(labels), variance, atol=1e-9 * (1 + np.square(values).max()))
    assert mechanism.variance() >= variance.max() * (1 - 1e-9)
    assert mechanism.bias() >= np.abs(mean - labels).max() * (1 - 1e-9)
    everywhere = np.linspace(0, 7, 14_001)  # ends of bins among them, from both sides
    assert mechanism.bias() == pytest.approx(np.abs(law(mechanism, everywhere) @ values - everywhere).max(), abs=2e-3)


def test_as_published_the_mean_loss_is_the_least():
    mechanism = calibrate(RANGE, 2.0, PRIOR)
    found = optimal_bins(np.arange(8.0), PRIOR, 2.0)
    assert sum(mean_errors(mechanism, PRIOR)) == pytest.approx(min(bins.loss for bins in found), rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(weights=priors, epsilon=st.floats(0.2, 6))
def test_debiased_answers_have_the_labels_mean_and_slope_one(weights, epsilon):
    prior = np.array(weights) / sum(weights)
    mechanism = calibrate(RANGE, epsilon, prior, debiased=True)
    points = np.linspace(0, 7, len(prior))
    error = mechanism.bias(points)
    scale = 1 + np.abs(mechanism.values).max()
    assert prior @ error == pytest.approx(0, abs=1e-9 * scale)
    assert prior @ (error * (points - prior @ points)) == pytest.approx(0, abs=1e-8 * scale)


def test_published_answers_shrink():
    points = np.arange(8.0)
    mean = PRIOR @ points
    expected = calibrate(RANGE, 1.0, PRIOR).bias(points) + points
    slope = PRIOR @ ((expected - mean) * (points - mean)) / (PRIOR @ np.square(points - mean))
    assert slope < 0.5


def test_frequencies_follow_the_law():
    mechanism = calibrate(RANGE, 1.5, PRIOR, debiased=True)
    labels = np.repeat([0.2, 3.6, 6.9], 50_000)
    released = mechanism.release(labels, NoiseBits(5, "bins")).reshape(3, -1)
    mass = law(mechanism, labels[::50_000])
    for part, expected in zip(released, mass, strict=True):
        shares = [(part == value).mean() for value in mechanism.values]
        np.testing.assert_allclose(shares, expected, atol=4.5 * 0.5 / 50_000**0.5)


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_epsilon_is_attained_by_two_bins(epsilon):
    mechanism = calibrate(RANGE, epsilon, PRIOR, debiased=True)
    mass = law(mechanism, np.array([0.0, 7.0]))
    assert np.log(mass[0] / mass[1]).max() == pytest.approx(epsilon, abs=1e-9)
    expected = np.maximum(mass[0] - math.exp(0.3) * mass[1], 0).sum()
    assert mechanism.delta_at(0.3) == pytest.approx(expected, abs=1e-12)
    assert mechanism.delta_at(epsilon) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (np.array([1.0]), "2 to 512 weights"),
        (np.full(513, 1 / 513), "2 to 512 weights"),
        (np.full((2, 2), 0.25), "2 to 512 weights"),
        (np.array([0.5, 0.6]), "sum 1"),
        (np.array([1.5, -0.5]), "sum 1"),
        (np.array([0.5, math.nan]), "sum 1"),
    ],
)
def test_what_is_no_prior_is_refused(prior, message):
    with pytest.raises(InputError, match=message):
        calibrate(RANGE, 1.0, prior)


def test_weights_that_add_up_to_1_but_for_rounding_count_as_if_they_did():
    exact, rounded = (calibrate(RANGE, 1.0, PRIOR * total, debiased=True) for total in (1.0, 1 + 9e-7))
    np.testing.assert_allclose(rounded.values, exact.values, rtol=1e-12)


def test_as_many_points_as_are_allowed_serve():
    assert calibrate(RANGE, 1.0, np.full(512, 1 / 512)).points == 512


def test_answers_of_one_point_cannot_be_debiased():
    with pytest.raises(InputError, match="two points or more"):
        calibrate(RANGE, 1.0, np.array([0.0, 1.0, 0.0]), debiased=True)
    assert calibrate(RANGE, 1.0, np.array([0.0, 1.0, 0.0])).values == pytest.approx([3.5])
