"""Lemma 4, its better form and its publishable form: known figures, their order, and that they hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.comparison import frobenius_bound, public_bound, published_bound
from federation.mechanisms.counts.dirichlet import calibrate_floor, calibrate_shifted

SKEWED = np.array([[0.05, 0.05, 0.05, 0.05, 0.8]]).T


def test_known_figures() -> None:
    assert published_bound(SKEWED, 0.785, 1000, 0.05) == pytest.approx(0.319, abs=5e-4)
    assert frobenius_bound(SKEWED, 0.785, 1000, 0.05) == pytest.approx(0.094, abs=5e-4)


@given(arrays(float, (3, 4), elements=st.floats(0.01, 1)), st.floats(0.01, 5), st.floats(0.01, 0.5))
def test_the_better_bound_is_smaller_by_the_root_of_the_entries(weights: np.ndarray, sigma: float, zeta: float) -> None:
    proportions = weights / weights.sum(axis=0)
    sizes = np.array([10, 200, 3000, 1000])
    loose = published_bound(proportions, sigma, sizes, zeta)
    assert frobenius_bound(proportions, sigma, sizes, zeta) <= loose / math.sqrt(12) * (1 + 1e-12)


def test_the_better_bound_is_the_public_one_at_equal_counts() -> None:
    mechanism = calibrate_floor(4, 0.5, 1e-3, 40)
    sizes = np.array([400, 1000])
    uniform = np.full((4, 2), 0.25)
    assert public_bound(mechanism, sizes, 0.05) == pytest.approx(
        frobenius_bound(uniform, mechanism.sigma, sizes, 0.05), rel=1e-12
    )


@given(arrays(float, (4, 2), elements=st.floats(0.01, 1)), st.floats(0.01, 0.5))
def test_the_public_bound_covers_all_proportions(weights: np.ndarray, zeta: float) -> None:
    mechanism = calibrate_floor(4, 0.5, 1e-3, 40)
    sizes = np.array([400, 1000])
    public = public_bound(mechanism, sizes, zeta)
    private = frobenius_bound(weights / weights.sum(axis=0), mechanism.sigma, sizes, zeta)
    quarter = math.sqrt(sum(4 * 0.25 / (mechanism.sigma * size + 1) for size in sizes) / zeta)
    assert private <= public * (1 + 1e-12) < quarter


@pytest.mark.parametrize("mechanism", [calibrate_floor(3, 0.5, 1e-2, 20), calibrate_shifted(3, 0.5, 1e-2, 20)])
def test_releases_stay_within_the_public_bound_as_often_as_it_says(mechanism) -> None:
    counts = [np.array([20, 30, 50]), np.array([100, 100, 100])]
    errors = [
        mechanism.release(eta, NoiseBits(1, "lemma", k), 4000) / eta.sum() - eta / eta.sum()
        for k, eta in enumerate(counts)
    ]
    norms = np.sqrt(sum(np.square(error).sum(axis=1) for error in errors))
    sizes = np.array([eta.sum() for eta in counts])
    for zeta in (0.05, 0.2, 0.5):
        assert np.mean(norms > public_bound(mechanism, sizes, zeta)) <= zeta
    second_moment = public_bound(mechanism, sizes, 0.5) ** 2 * 0.5
    assert 0.8 * second_moment < np.mean(norms**2) <= 1.05 * second_moment  # Markov's premise is nearly attained


@pytest.mark.parametrize(
    ("proportions", "sigma", "size", "zeta", "message"),
    [
        (SKEWED * 1.1, 1.0, 100, 0.1, "proportions must"),
        (-SKEWED, 1.0, 100, 0.1, "proportions must"),
        (SKEWED.ravel(), 1.0, 100, 0.1, "proportions must"),
        (SKEWED, 0.0, 100, 0.1, "sigmas must"),
        (SKEWED, 1.0, 0, 0.1, "sizes of bags"),
        (SKEWED, 1.0, 100, 0.0, "zeta must"),
        (SKEWED, 1.0, 100, 1.0, "zeta must"),
    ],
)
@pytest.mark.parametrize("bound", [published_bound, frobenius_bound])
def test_other_arguments_are_refused(bound, proportions, sigma, size, zeta, message) -> None:
    with pytest.raises(InputError, match=message):
        bound(proportions, sigma, size, zeta)


def test_bags_of_one_record_have_a_bound_too() -> None:
    """Two shares from Dir(sigma p) have the variance p (1 - p) / (sigma + 1) each."""
    expected = math.sqrt(2 * 0.8 * 0.2 / (3.0 + 1) / 0.9)
    assert frobenius_bound(np.array([[0.8], [0.2]]), 3.0, 1, 0.9) == pytest.approx(expected)


def test_other_public_arguments_are_refused() -> None:
    mechanism = calibrate_floor(3, 0.5, 1e-2, 20)
    with pytest.raises(InputError, match="sizes of bags"):
        public_bound(mechanism, np.array([100, 0]), 0.1)
    with pytest.raises(InputError, match="zeta must"):
        public_bound(mechanism, np.array([100]), 1.5)
