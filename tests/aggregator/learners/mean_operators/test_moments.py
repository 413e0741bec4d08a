"""Estimates of the mean operator from labels against averages over all noise, and all samples, of small worlds."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.learners.mean_operators.moments import (
    from_labels,
    from_noisy_labels,
    from_randomised_response,
    semi_supervised,
)
from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels import randomised_response as response

_RANDOM = np.random.default_rng(1)
ROWS = _RANDOM.normal(size=(7, 3)) + 1.0
LABELS = np.array([1, 0, 1, 1, 0, 1, 0])
MOMENT = (2.0 * LABELS - 1) @ ROWS / 7


def squared_error(moment: np.ndarray) -> float:
    return float(np.sum((moment - MOMENT) ** 2))


def test_all_labels_give_the_mean_operator_itself():
    for labels in (LABELS, LABELS.astype(bool), LABELS.astype(np.float64), LABELS.tolist()):
        found = from_labels(ROWS, labels)
        np.testing.assert_allclose(found.moment, MOMENT, rtol=1e-14)
        assert found.noise_variance == 0.0


@settings(derandomize=True, deadline=None, max_examples=20)
@given(st.floats(0, 0.6), st.floats(0, 0.6))
def test_noisy_labels_are_right_on_average_over_all_that_the_noise_can_do(p, q):
    if p + q > 0.9:
        p, q = p / 2, q / 2
    mean, variance, estimated = np.zeros(3), 0.0, 0.0
    for noisy in product((0, 1), repeat=7):
        flipped = np.array(noisy) != LABELS
        rates = np.where(LABELS == 1, p, q)
        probability = float(np.where(flipped, rates, 1 - rates).prod())
        found = from_noisy_labels(ROWS, np.array(noisy), p, q)
        mean += probability * found.moment
        variance += probability * squared_error(found.moment)
        estimated += probability * found.noise_variance
    np.testing.assert_allclose(mean, MOMENT, atol=1e-12 * (1 + variance))
    np.testing.assert_allclose(variance, estimated, rtol=0.02, atol=1e-12)  # truncation at 0 moves a few estimates


def test_asymmetric_flips_have_the_right_signs():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(200_000, 2)) + np.array([1.0, 0.0])
    labels = (rows[:, 1] + 0.3 * rng.normal(size=len(rows)) > 0.5).astype(int)
    flips = rng.random(len(rows)) < np.where(labels == 1, 0.4, 0.1)
    found = from_noisy_labels(rows, labels ^ flips, flipped_positive=0.4, flipped_negative=0.1)
    error = np.linalg.norm(found.moment - from_labels(rows, labels).moment)
    assert error < 3 * math.sqrt(found.noise_variance) < 0.03
    swapped = from_noisy_labels(rows, labels ^ flips, flipped_positive=0.1, flipped_negative=0.4)
    assert np.linalg.norm(swapped.moment - from_labels(rows, labels).moment) > 0.5


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_randomised_response_is_right_on_average_and_its_variance_is_exact(epsilon):
    flip = 1 / (1 + math.exp(epsilon))
    mean, variance = np.zeros(3), 0.0
    for noisy in product((0, 1), repeat=7):
        flips = int((np.array(noisy) != LABELS).sum())
        found = from_randomised_response(ROWS, np.array(noisy), epsilon)
        probability = flip**flips * (1 - flip) ** (7 - flips)
        mean += probability * found.moment
        variance += probability * squared_error(found.moment)
    np.testing.assert_allclose(mean, MOMENT, atol=1e-9)
    np.testing.assert_allclose(variance, found.noise_variance, rtol=1e-9)
    symmetric = from_noisy_labels(ROWS, LABELS, flip, flip)
    np.testing.assert_allclose(symmetric.moment, from_randomised_response(ROWS, LABELS, epsilon).moment, rtol=1e-9)
    np.testing.assert_allclose(symmetric.noise_variance, found.noise_variance, rtol=1e-9)


def test_answers_of_the_response_mechanism_are_understood():
    rng = np.random.default_rng(5)
    rows, labels = rng.normal(size=(50_000, 3)), rng.integers(0, 2, 50_000)
    rows[labels == 1] += 0.5
    answers = response.respond(labels, 2, response.calibrate_redraw(2, 0.7), NoiseBits(5, "test"))
    found = from_randomised_response(rows, answers, 0.7)
    error = np.linalg.norm(found.moment - from_labels(rows, labels).moment)
    assert error < 2.5 * math.sqrt(found.noise_variance)
    assert np.linalg.norm(from_labels(rows, answers).moment - from_labels(rows, labels).moment) > 2 * error


def test_unbiased_labels_beyond_1_are_not_clipped():
    found = from_randomised_response(np.ones((1, 1)), [1], 0.1)
    np.testing.assert_allclose(found.moment, 1 / math.tanh(0.05))


def test_labels_that_are_linear_in_the_rows_need_but_a_few():
    rng = np.random.default_rng(9)
    rows = np.column_stack([rng.choice([-1.0, 1.0], 500), rng.normal(size=(500, 2))])
    labels = (rows[:, 0] > 0).astype(int)
    found = semi_supervised(rows[:20], labels[:20], rows[20:], ridge=1e-9)
    np.testing.assert_allclose(found.moment, from_labels(rows, labels).moment, atol=1e-7)
    assert found.noise_variance < 1e-14


def test_a_stiff_ridge_ignores_the_other_rows():
    found = semi_supervised(ROWS[:4], LABELS[:4], ROWS[4:], ridge=1e9)
    np.testing.assert_allclose(found.moment, from_labels(ROWS[:4], LABELS[:4]).moment, atol=1e-7)


def test_all_labels_and_no_other_rows_are_exact():
    found = semi_supervised(ROWS, LABELS, ROWS[:0])
    np.testing.assert_allclose(found.moment, MOMENT, rtol=1e-13)
    assert found.noise_variance == 0.0


def test_other_rows_help_to_estimate_and_the_variance_says_how_much():
    rng = np.random.default_rng(7)
    rows = np.column_stack([rng.normal(size=(2000, 3)) + np.array([1.0, -1.0, 0.0]), np.ones(2000)])
    labels = (rows[:, 0] - rows[:, 1] + 2 * rng.normal(size=2000) > 1).astype(int)
    truth = from_labels(rows, labels).moment
    errors, claims, alone = [], [], []
    for _ in range(400):
        some, rest = np.split(rng.permutation(2000), [100])
        found = semi_supervised(rows[some], labels[some], rows[rest])
        errors.append(found.moment - truth)
        claims.append(found.noise_variance)
        alone.append(np.sum((from_labels(rows[some], labels[some]).moment - truth) ** 2))
    squared = np.square(errors).sum(axis=1)
    assert squared.mean() < 0.8 * np.mean(alone)
    np.testing.assert_allclose(squared.mean(), np.mean(claims), rtol=0.1)
    assert np.sum(np.mean(errors, axis=0) ** 2) < 0.02 * squared.mean()  # nearly unbiased


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: from_labels(ROWS, LABELS[:3]), "labels must be one for each of 7 rows, got shape"),
        (lambda: from_labels(ROWS, 2 * LABELS - 1), "labels must be class codes, 0 or 1, got -1"),
        (lambda: from_labels(ROWS, [math.nan] * 7), "got nan"),
        (lambda: from_labels(ROWS, ["a"] * 7), "got a"),
        (lambda: from_labels(ROWS[:0], []), "at least one row"),
        (lambda: from_labels(ROWS * np.inf, LABELS), "rows must be finite"),
        (lambda: from_labels(ROWS[0], LABELS[:3]), "two axes"),
        (lambda: from_noisy_labels(ROWS, LABELS, 0.5, 0.5), r"must be below 1, got 0.5 \+ 0.5"),
        (lambda: from_noisy_labels(ROWS, LABELS, 0.9, 0.2), "swap them if they are inverted"),
        (lambda: from_noisy_labels(ROWS, LABELS, -0.1, 0.2), "flipped_positive must be a probability"),
        (lambda: from_noisy_labels(ROWS, LABELS, 0.1, math.nan), "flipped_negative must be a probability"),
        (lambda: from_randomised_response(ROWS, LABELS, 0.0), "epsilon must be positive, got 0.0"),
        (lambda: from_randomised_response(ROWS, LABELS, math.nan), "epsilon must be positive"),
        (lambda: semi_supervised(ROWS[:1], LABELS[:1], ROWS), "two or more, not all zero, got 1"),
        (lambda: semi_supervised(0 * ROWS, LABELS, ROWS), "got 7 of mean square 0"),
        (lambda: semi_supervised(ROWS, LABELS, ROWS, ridge=0.0), "ridge must be a positive"),
        (lambda: semi_supervised(ROWS, LABELS, ROWS[:, :2]), "unlabelled rows must have 3 columns"),
    ],
)
def test_what_cannot_be_used_is_named(call, words):
    with pytest.raises(InputError, match=words):
        call()
