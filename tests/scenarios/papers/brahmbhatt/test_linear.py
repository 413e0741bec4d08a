"""A cell of Table 1: Adam falls behind least squares on the same sums."""

import numpy as np
import pytest

from aggregator.learners.bag_regression.linear import expected_error
from federation.contract.randomness import generator
from scenarios.papers.brahmbhatt.brahmbhatt import LINEAR, cell, labelled, table_1
from scenarios.papers.brahmbhatt.guarantees import CENSUS, World


def test_adam_stops_far_from_what_the_same_sums_tell():
    random = generator(1, "a world with large labels")
    rows = np.column_stack([random.normal(size=(2000, 3)), np.ones(2000)])
    labels = np.clip(rows @ [5.0, -5.0, 2.0, 26.0] + random.normal(size=2000), 0, 52)
    found = list(cell(CENSUS, [World(rows, labels, rows, labels, (0.0, 52.0))] * 2, 60, 8))
    assert [(one.role, one.split) for one in found] == [
        ("published", 0), ("default", 0), ("published", 1), ("default", 1)
    ]  # fmt: skip
    assert {(one.setting, one.series, one.x) for one in found} == {(CENSUS, "m = 60", "8")}
    published, default = found[0].value, found[1].value
    assert default < 2 * expected_error(1.0, 4, 60)
    assert published > 100 * default


def test_every_label_gives_least_squares():
    random = generator(1, "a world with large labels")
    rows = np.column_stack([random.normal(size=(2000, 3)), np.ones(2000)])
    labels = rows @ [5.0, -5.0, 2.0, 26.0] + random.normal(size=2000)
    [found] = labelled(CENSUS, World(rows, labels, rows, labels, (0.0, 52.0)), 4)
    assert (found.series, found.role, found.split) == (LINEAR, "published", 4)
    assert found.value == pytest.approx(np.linalg.lstsq(rows, labels)[1][0] / 2000)


def test_without_data_there_is_nothing(tmp_path):
    assert list(table_1(True, tmp_path)) == []
