"""Tables 2 to 6: a network learns from bags as published and as by default."""

from dataclasses import replace

import numpy as np
import pytest

from federation.contract.randomness import generator
from scenarios.papers.brahmbhatt.brahmbhatt import RHO, learned, network_of, table
from scenarios.papers.brahmbhatt.brahmbhatt import labelled_networks as labelled
from scenarios.papers.brahmbhatt.guarantees import CRITEO, World


@pytest.fixture(scope="module")
def curved():
    random = generator(1, "a world for networks")
    rows = np.column_stack([random.normal(size=(3000, 2)), np.ones(3000)])
    labels = 26 + 12 * np.tanh(rows[:, 0])
    return World(rows[:2400], labels[:2400], rows[2400:], labels[2400:], (0.0, 52.0))


@pytest.mark.parametrize("role", ["published", "default"])
def test_both_learn_more_than_the_mean(curved, role):
    assert learned(curved, 256, 300, 8, 0.5, role, 1) < curved.labels.var() / 3


def test_from_every_label_both_learn_the_curve_once_for_all_tables(curved):
    few = replace(curved, rows=curved.rows[:400], labels=curved.labels[:400])
    found = list(labelled(CRITEO, few, 0))
    assert len(found) == len(RHO) * 2
    for role in ("published", "default"):
        values = {one.value for one in found if one.role == role}
        assert {one.series for one in found if one.role == role} == {network_of(number) for number in RHO}
        [error] = values
        assert error < curved.labels.var() / 5


def test_without_data_there_is_nothing(tmp_path):
    assert list(table(2, True, tmp_path)) == []
