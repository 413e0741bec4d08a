"""The paper's training: it reaches least squares if there are enough steps, whose number grows with k."""

import numpy as np
import pytest

from aggregator.learners.bag_regression.least_squares import BagLeastSquares
from federation.contract.randomness import generator
from scenarios.papers.brahmbhatt.adam import trained
from scenarios.papers.brahmbhatt.substitutes import Sums


def draw(seed, size):
    random = generator(seed, "sums to train on")
    rows = random.normal(size=(64, 3)) * np.sqrt(size)
    return Sums(rows, rows @ [0.3, -0.2, 0.1])


def test_with_enough_steps_it_is_least_squares_for_every_draw():
    draws = [draw(seed, 4) for seed in range(3)]
    found = trained(draws, 4, 32, generator(1, "order"), epochs=400)
    for weights, sums in zip(found, draws, strict=True):
        assert weights == pytest.approx(BagLeastSquares().fit(*sums).weights_, abs=1e-3)


def test_larger_bags_get_more_steps_and_so_come_farther():
    left = {
        size: np.abs(trained([draw(1, size)], size, 256, generator(1, "order"), epochs=100) - [0.3, -0.2, 0.1]).max()
        for size in (4, 64)
    }
    assert left[64] < 0.1 < left[4]
