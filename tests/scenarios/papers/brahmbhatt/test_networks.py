"""Tables 2 to 6: a network learns from bags as published and as by default."""

import numpy as np
import pytest

from federation.contract.randomness import generator
from scenarios.papers.brahmbhatt.networks import learned, table
from scenarios.papers.brahmbhatt.substitutes import World


@pytest.mark.parametrize("role", ["published", "default"])
def test_both_learn_more_than_the_mean(role):
    random = generator(1, "a world for networks")
    rows = np.column_stack([random.normal(size=(3000, 2)), np.ones(3000)])
    labels = 26 + 12 * np.tanh(rows[:, 0])
    world = World(rows[:2400], labels[:2400], rows[2400:], labels[2400:], (0.0, 52.0))
    assert learned(world, 256, 300, 8, 0.5, role, 1) < world.labels.var() / 3


def test_without_data_there_is_nothing(tmp_path):
    assert list(table(2, True, tmp_path)) == []
