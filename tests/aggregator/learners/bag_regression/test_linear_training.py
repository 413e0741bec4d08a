"""Adam on sums of bags: it reaches least squares if there are enough steps, whose number grows with the bags' size."""

import numpy as np
import pytest

from aggregator.learners.bag_regression.linear import BagLeastSquares, trained
from federation.contract.errors import FederationError
from federation.contract.randomness import generator

LAW = [0.3, -0.2, 0.1]


def sums(seed, size):
    rows = generator(seed, "sums to train on").normal(size=(64, 3)) * np.sqrt(size)
    return rows, rows @ LAW


def reached(draws, size, **options):
    rows, labels = (np.stack(part) for part in zip(*draws, strict=True))
    return trained(rows, labels, size, generator(1, "order"), **options)


def test_with_enough_steps_it_is_least_squares_for_every_draw():
    draws = [sums(seed, 4) for seed in range(3)]
    found = reached(draws, 4, batch_rows=32, epochs=400)
    for weights, (rows, labels) in zip(found, draws, strict=True):
        assert weights == pytest.approx(BagLeastSquares().fit(rows, labels).weights_, abs=1e-3)


def test_a_draw_is_trained_as_if_it_were_alone():
    draws = [sums(seed, 4) for seed in range(3)]
    np.testing.assert_allclose(reached(draws, 4, epochs=5)[1:2], reached(draws[1:2], 4, epochs=5), rtol=1e-12)


def test_larger_bags_get_more_steps_and_so_come_farther():
    left = {size: np.abs(reached([sums(1, size)], size, batch_rows=256, epochs=100) - LAW).max() for size in (4, 64)}
    assert left[64] < 0.1 < left[4]


def test_no_weight_moves_by_more_than_the_rates_of_its_steps():
    # (1 - beta1) / sqrt(1 - beta2) times the rate at most in any step (Kingma and Ba 2015, Section 2.1)
    [weights] = reached([sums(1, 4)], 4, batch_rows=64, epochs=2, learning_rate=1e-2)
    steps = 2 * 64 * 4 // 64
    assert 0 < np.abs(weights).max() <= steps * 1e-2 * 0.1 / np.sqrt(0.001)


def test_sums_without_squares_are_refused():
    rows, labels = sums(1, 4)
    with pytest.raises(FederationError, match="scale the features"):
        reached([(rows * 1e200, labels)], 4, epochs=2)
