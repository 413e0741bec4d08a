"""Sums of bags that stand for those of the paper's data."""

import numpy as np
import pytest

from federation.contract.randomness import generator
from scenarios.papers.brahmbhatt.guarantees import CRITEO, World, gaussian_sums, world


@pytest.fixture
def small():
    random = generator(1, "a small world")
    rows = np.column_stack([random.normal(size=(500, 2)), np.ones(500)])
    labels = rows @ [2.0, -1.0, 5.0]
    return World(rows, labels, rows, labels, (0.0, 10.0))


def test_sums_of_rows_and_labels_have_the_same_weights(small):
    sums = gaussian_sums(small, 40, 8, generator(1, "sums"))
    assert sums.rows.shape == (40, 3)
    assert sums.labels == pytest.approx(sums.rows @ [2.0, -1.0, 5.0])


def test_a_sum_of_k_rows_has_k_times_the_second_moment_of_one(small):
    sums = gaussian_sums(small, 4000, 16, generator(1, "sums"))
    assert np.mean(sums.labels**2) / 16 == pytest.approx(np.mean(small.labels**2), rel=0.1)


def test_there_is_no_world_without_data(tmp_path):
    assert world(CRITEO, 0, tmp_path) is None
