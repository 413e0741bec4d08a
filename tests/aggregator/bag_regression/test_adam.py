"""Adam against its recursion written out, and the cosine's ends."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from aggregator.learners.bag_regression.training import Adam, cosine_decay


def test_steps_are_the_weighted_means_of_the_algorithm():
    """The moments as explicit sums: m_t = sum (1 - b1) b1^(t-s) g_s, corrected by 1 - b1^t; likewise v_t."""
    rng = np.random.default_rng(0)
    start, gradients = rng.normal(size=5), rng.normal(size=(30, 5))
    parameters = start.copy()
    adam, expected = Adam(parameters), start.copy()
    for t, gradient in enumerate(gradients, start=1):
        adam.step(gradient, 1e-2)
        ages = np.arange(t - 1, -1, -1.0)
        first, second = 0.1 * 0.9**ages, 0.001 * 0.999**ages
        mean, square = first @ gradients[:t] / first.sum(), second @ gradients[:t] ** 2 / second.sum()
        expected -= 1e-2 * mean / (np.sqrt(square) + 1e-7)
        np.testing.assert_allclose(parameters, expected, rtol=1e-10)


def test_the_first_step_has_the_size_of_the_rate():
    parameters = np.zeros(3)
    Adam(parameters).step(np.array([5.0, -1e-3, 0.0]), 0.1)
    np.testing.assert_allclose(parameters, [-0.1, 0.1, 0.0], rtol=1e-3)


def test_it_finds_the_minimum_of_a_quadratic():
    parameters = np.array([3.0, -2.0])
    adam, centre = Adam(parameters), np.array([1.0, 0.5])
    for step in range(3000):
        adam.step(np.array([1.0, 100.0]) * (parameters - centre), cosine_decay(step, 3000, 1e-2, 1e-3))
    np.testing.assert_allclose(parameters, centre, atol=1e-4)


def test_the_rate_decays_from_initial_to_alpha_of_it():
    rates = [cosine_decay(step, 100, 1e-3, 1e-3) for step in range(101)]
    assert rates[0] == 1e-3
    assert rates[-1] == pytest.approx(1e-6)
    assert rates[50] == pytest.approx(1e-3 * (1 + 1e-3) / 2)
    assert all(later < earlier for earlier, later in pairwise(rates))
    assert rates[25] == pytest.approx(1e-6 + (1e-3 - 1e-6) * (1 + math.sqrt(0.5)) / 2)
