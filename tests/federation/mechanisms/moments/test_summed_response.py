"""Randomised response of labels in a sum: its law and variance against closed forms, and its threshold."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.sums import row_sums as calibrated_moments
from federation.mechanisms.sums import row_sums as summed_response
from federation.mechanisms.sums.row_sums import ANY
from federation.mechanisms.sums.row_sums import calibrate_summed_response as calibrate


@given(st.floats(1e-6, 60.0))
def test_labels_are_unbiased_with_the_least_variance(epsilon):
    found = calibrate(epsilon)
    assert found.reach == pytest.approx(1 / math.tanh(epsilon / 2), rel=1e-7)
    assert found.label_variance == pytest.approx(1 / math.sinh(epsilon / 2) ** 2, rel=1e-6, abs=1e-18)


@pytest.mark.parametrize("at_once", [7, 2**22])
def test_sums_have_the_mean_and_the_covariance_that_is_said(monkeypatch, at_once):
    monkeypatch.setattr(summed_response, "_AT_ONCE", at_once)
    rows, signs, draws = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, -1.0]]), np.array([1.0, -1.0, -1.0]), 20_000
    found = calibrate(1.5)
    sums = found.release(rows, signs, NoiseBits(1, "sums"), draws)
    scale = found.label_variance * rows.T @ rows
    assert sums.shape == (draws, 2)
    assert np.abs(sums.mean(axis=0) - signs @ rows).max() < 5 * math.sqrt(scale.max() / draws)
    np.testing.assert_allclose(np.cov(sums.T), scale, atol=0.06 * scale.max())
    np.testing.assert_array_equal(sums, np.rint(sums * 2.0**25) / 2.0**25)


def test_one_label_of_one_row_is_flipped_as_often_as_epsilon_says():
    draws, epsilon = 100_000, 0.7
    found = calibrate(epsilon)
    sums = found.release(np.ones((1, 1)), np.array([-1.0]), NoiseBits(2, "flips"), draws)[:, 0]
    np.testing.assert_allclose(np.abs(sums), found.reach, rtol=1e-6)
    flipped = (sums > 0).mean()
    assert flipped == pytest.approx(1 / (1 + math.exp(epsilon)), abs=5 * math.sqrt(0.25 / draws))


@pytest.mark.parametrize("dimension", [3, 31, 110])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_noise_on_the_sum_is_less_from_so_many_rows_on(dimension, epsilon):
    sums = calibrated_moments.calibrate_row_sums("auto", dimension=dimension, epsilon=epsilon, delta=1e-6, rows=1000)
    response = calibrate(epsilon)
    least = response.rows_for(sums)
    assert (least - 1) * response.label_variance < dimension * sums.variance() <= least * response.label_variance


def test_labels_that_are_hardly_ever_flipped_are_better_than_any_noise():
    sums = calibrated_moments.calibrate_row_sums("pure", dimension=3, epsilon=100.0, rows=10)
    assert 10**15 < calibrate(1000.0).rows_for(sums) < ANY
    assert calibrate(1.0).rows_for(sums, weight=1e6) == 1  # where errors of responses count for nothing but harm


def test_it_is_pure_and_protects_labels_only():
    found = calibrate(0.5)
    promised = found.guarantee(Unit.LABEL, Adjacency.REPLACE, ())
    assert (promised.epsilon, promised.delta, promised.mechanism) == (0.5, 0.0, "label_one_bit")
    with pytest.raises(InputError, match="unit must be label"):
        found.guarantee(Unit.ROW, Adjacency.REPLACE, ())
    with pytest.raises(InputError, match="epsilon must be at least"):
        calibrate(1e-9)
    with pytest.raises(InputError, match="labels must lie in label_range"):
        found.release(np.ones((1, 1)), np.array([2.0]), NoiseBits(1, "x"))


@pytest.mark.parametrize("count", [1, 3, 10])
def test_no_sum_of_responses_is_longer_than_its_reach_and_long_ones_are_rare(count):
    """All answers of few rows, by their probabilities, whatever the labels."""
    mechanism = calibrate(1.5)
    rows = np.random.default_rng(count).normal(size=(count, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=count)))
    sums = mechanism.reach * signs @ rows
    kept = (1 + 1 / mechanism.reach) / 2
    for beyond in (1e-6, 0.5):
        entry, norm = mechanism.reaches(np.array([float(count)]), 3, beyond)
        out = (np.abs(sums) > entry + 1e-9).any(axis=1) | (np.linalg.norm(sums, axis=1) > norm + 1e-9)
        assert (kept ** (signs == 1).sum(axis=1) * (1 - kept) ** (signs == -1).sum(axis=1))[out].sum() <= beyond


def test_sums_of_many_responses_stay_within_a_reach_that_is_less_than_the_longest_sum():
    mechanism, count = calibrate(1.0), 2000
    rows = np.tile([1.0, 0.0], (count, 1))  # of all rows the sums of equal ones are longest
    sums = mechanism.release(rows, np.ones(count), NoiseBits(1, "reaches"), 300)
    entry, norm = mechanism.reaches(np.array([float(count)]), 2, 0.1)
    assert (np.linalg.norm(sums, axis=1) > norm).mean() <= 0.05
    assert count < norm < 0.65 * count * mechanism.reach
    assert entry < 0.65 * count * mechanism.reach
