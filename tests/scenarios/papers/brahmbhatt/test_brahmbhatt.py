"""All printed cells are declared, every series is measured in every split, and networks learn from bags."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from benchmarks.bag_regression import expected_error
from federation.contract.randomness import generator
from scenarios.papers.brahmbhatt import brahmbhatt as measured
from scenarios.papers.brahmbhatt.brahmbhatt import (
    CENSUS,
    CRITEO,
    LINEAR,
    RHO,
    SOURCES,
    World,
    cell,
    labelled,
    labelled_networks,
    learned,
    network_of,
    table,
    table_1,
)
from scenarios.reproductions.paper import paper, published

PAPER = paper("brahmbhatt")


@pytest.mark.parametrize("number", range(1, 7))
def test_tables_have_sixteen_cells_of_each_set_and_their_places(number):
    known = published("brahmbhatt", f"table{number}")
    [item] = [item for item in PAPER.items if item.name == f"table{number}"]
    for setting, (_, _, counts, sizes) in SOURCES.items():
        cells = {(series, x) for of, series, x in known if of == setting}
        assert cells == {(f"m = {count}", str(size)) for count in counts for size in sizes}
    assert {x for _, _, x in known} == set(item.at)
    assert {series for _, series, _ in known} == {one.name for one in item.series}


def test_every_declared_series_is_measured_and_a_quick_run_has_one_split(monkeypatch):
    rows = np.column_stack([generator(1, "few rows").normal(size=(200, 2)), np.ones(200)])
    world = World(rows, 10 + rows[:, 0], rows, 10 + rows[:, 0], (0.0, 21.0))
    monkeypatch.setattr(measured, "world", lambda setting, split, data_dir: world)
    found = list(measured.instances(True, None))
    [item] = [item for item in PAPER.items if item.name == "instances"]
    declared = {(setting, one.name) for setting in SOURCES for one in item.series}
    assert {(one.setting, one.series) for one in found if one.role == "published"} == declared
    assert {one.split for one in found} == {0}


def test_without_data_there_is_nothing(tmp_path):
    for measure in (measured.instances, table_1, partial(table, number=2)):
        assert list(measure(True, tmp_path)) == []


def linear():
    """Rows of three features and a constant, and labels with noise of variance 1."""
    random = generator(1, "a world with large labels")
    rows = np.column_stack([random.normal(size=(2000, 3)), np.ones(2000)])
    return rows, rows @ [5.0, -5.0, 2.0, 26.0] + random.normal(size=2000)


def test_adam_stops_far_from_what_the_same_sums_tell():
    rows, labels = linear()
    labels = np.clip(labels, 0, 52)
    found = list(cell(CENSUS, [World(rows, labels, rows, labels, (0.0, 52.0))] * 2, 60, 8))
    ends = [(role, split) for split in (0, 1) for role in ("published", "default")]
    assert [(one.role, one.split) for one in found] == ends
    assert {(one.setting, one.series, one.x) for one in found} == {(CENSUS, "m = 60", "8")}
    published, default = found[0].value, found[1].value
    assert default < 2 * expected_error(1.0, 4, 60)
    assert published > 100 * default


def test_every_label_gives_least_squares():
    rows, labels = linear()
    [found] = labelled(CENSUS, World(rows, labels, rows, labels, (0.0, 52.0)), 4)
    assert (found.series, found.role, found.split) == (LINEAR, "published", 4)
    assert found.value == pytest.approx(np.linalg.lstsq(rows, labels)[1][0] / 2000)


@pytest.fixture(scope="module")
def curved():
    random = generator(1, "a world for networks")
    rows = np.column_stack([random.normal(size=(3000, 2)), np.ones(3000)])
    labels = 26 + 12 * np.tanh(rows[:, 0])
    return World(rows[:2400], labels[:2400], rows[2400:], labels[2400:], (0.0, 52.0))


@pytest.mark.parametrize("role", ["published", "default"])
def test_both_learn_more_than_the_mean(curved, role):
    assert learned(curved, 256, 300, 8, 0.5, role, 1) < curved.labels.var() / 3


@pytest.mark.slow
def test_from_every_label_both_learn_the_curve_once_for_all_tables(curved):
    few = replace(curved, rows=curved.rows[:400], labels=curved.labels[:400])
    found = list(labelled_networks(CRITEO, few, 0))
    assert len(found) == len(RHO) * 2
    for role in ("published", "default"):
        values = {one.value for one in found if one.role == role}
        assert {one.series for one in found if one.role == role} == {network_of(number) for number in RHO}
        [error] = values
        assert error < curved.labels.var() / 5
