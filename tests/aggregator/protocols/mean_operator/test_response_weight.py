"""How much errors of randomised response count: against the formula by matrices, and at both ends of the noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.protocols.mean_operator.options import response_weight

ROWS = np.random.default_rng(3).normal(size=(300, 5)) * [0.4, 0.3, 0.1, 0.05, 0.01]


@pytest.mark.parametrize("variance", [0.0, 0.01, 0.1, 4.0])
def test_it_is_the_ratio_of_what_both_errors_do_to_scores(variance):
    gram = ROWS.T @ ROWS / len(ROWS)
    model = np.linalg.inv(gram / 4 + 2 * max(1e-4, variance / 2) * np.eye(5))
    harm = [np.trace(gram @ model @ noise @ model) / np.trace(noise) for noise in (gram, np.eye(5))]
    assert response_weight(ROWS, variance) == pytest.approx(harm[0] / harm[1])


def test_large_noise_harms_most_where_the_rows_are_and_small_noise_least():
    spectrum = np.linalg.eigvalsh(ROWS.T @ ROWS)
    assert response_weight(ROWS, 1e6) == pytest.approx(5 * (spectrum**2).sum() / spectrum.sum() ** 2, rel=1e-3)
    weights = [response_weight(ROWS, variance) for variance in (1e-4, 1e-2, 1.0)]
    assert weights == sorted(weights)
    assert weights[0] < 1 < weights[-1]


@given(st.floats(0.0, 100.0), st.integers(1, 6))
def test_rows_in_all_directions_alike_have_a_weight_of_one(variance, width):
    assert response_weight(np.eye(width) / 2, variance) == pytest.approx(1.0)


def test_directions_without_rows_count_and_rows_without_length_say_nothing():
    wide = np.column_stack([ROWS, np.zeros((300, 3))])
    assert response_weight(wide, 0.1) == pytest.approx(response_weight(ROWS, 0.1) * 8 / 5)
    assert response_weight(np.zeros((4, 2)), 0.1) == 1.0


def test_of_many_rows_some_are_enough():
    assert response_weight(np.repeat(ROWS, 7, axis=0), 0.1) == pytest.approx(response_weight(ROWS, 0.1), rel=0.1)
