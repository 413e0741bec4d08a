"""First lines of the tables: every series is measured in every split."""

import numpy as np

from federation.contract.randomness import generator
from scenarios.papers.brahmbhatt import brahmbhatt as measured
from scenarios.papers.brahmbhatt.brahmbhatt import INSTANCES
from scenarios.papers.brahmbhatt.guarantees import SOURCES, World


def test_every_declared_series_is_measured_and_a_quick_run_has_one_split(monkeypatch):
    rows = np.column_stack([generator(1, "few rows").normal(size=(200, 2)), np.ones(200)])
    world = World(rows, 10 + rows[:, 0], rows, 10 + rows[:, 0], (0.0, 21.0))
    monkeypatch.setattr(measured, "world", lambda setting, split, data_dir: world)
    found = list(measured.instances(True, None))
    declared = {(setting, one.name) for setting in SOURCES for one in INSTANCES.series}
    assert {(one.setting, one.series) for one in found if one.role == "published"} == declared
    assert {one.split for one in found} == {0}


def test_without_data_there_is_nothing(tmp_path):
    assert list(measured.instances(True, tmp_path)) == []
