"""All printed cells are declared, every series is measured in every split, and networks learn from bags.

Bounds, exact values and simulated releases agree where they must, also for sums that stand for the paper's data.
"""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks.bag_regression import expected_error
from federation.contract.randomness import generator
from federation.mechanisms.bag_sums.calibration import delta
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.bag_sums.noisy_labels import theorem_delta
from scenarios.papers.brahmbhatt import brahmbhatt as measured
from scenarios.reproductions.paper import paper, published, read

PAPER = paper("brahmbhatt")
KEPT = Path(__file__).resolve().parents[4] / "docs" / "reproductions"


@pytest.mark.parametrize("number", range(1, 7))
def test_tables_have_sixteen_cells_of_each_set_and_their_places(number):
    known = published("brahmbhatt", f"table{number}")
    [item] = [item for item in PAPER.items if item.name == f"table{number}"]
    for setting, (_, _, counts, sizes) in measured.SOURCES.items():
        cells = {(series, x) for of, series, x in known if of == setting}
        assert cells == {(f"m = {count}", str(size)) for count in counts for size in sizes}
    assert {x for _, _, x in known} == set(item.at)
    assert {series for _, series, _ in known} == {one.name for one in item.series}


def test_every_declared_series_is_measured_and_a_quick_run_has_one_split(monkeypatch):
    rows = np.column_stack([generator(1, "few rows").normal(size=(200, 2)), np.ones(200)])
    world = measured.World(rows, 10 + rows[:, 0], rows, 10 + rows[:, 0], (0.0, 21.0))
    monkeypatch.setattr(measured, "world", lambda setting, split, data_dir: world)
    found = list(measured.instances(True, None))
    [item] = [item for item in PAPER.items if item.name == "instances"]
    declared = {(setting, one.name) for setting in measured.SOURCES for one in item.series}
    assert {(one.setting, one.series) for one in found if one.role == "published"} == declared
    assert {one.split for one in found} == {0}


def test_without_data_there_is_nothing(tmp_path):
    tables = (measured.table_1, partial(measured.table, number=2))
    for measure in (measured.instances, *tables, measured.theorem_1_2, measured.lemma_3_4):
        assert list(measure(True, tmp_path)) == []
    assert measured.world(measured.CRITEO, 0, tmp_path) is None


def linear():
    """Rows of three features and a constant, and labels with noise of variance 1."""
    random = generator(1, "a world with large labels")
    rows = np.column_stack([random.normal(size=(2000, 3)), np.ones(2000)])
    return rows, rows @ [5.0, -5.0, 2.0, 26.0] + random.normal(size=2000)


def test_adam_stops_far_from_what_the_same_sums_tell():
    rows, labels = linear()
    labels = np.clip(labels, 0, 52)
    found = list(measured.cell(measured.CENSUS, [measured.World(rows, labels, rows, labels, (0.0, 52.0))] * 2, 60, 8))
    ends = [(role, split) for split in (0, 1) for role in ("published", "default")]
    assert [(one.role, one.split) for one in found] == ends
    assert {(one.setting, one.series, one.x) for one in found} == {(measured.CENSUS, "m = 60", "8")}
    published, default = found[0].value, found[1].value
    assert default < 2 * expected_error(1.0, 4, 60)
    assert published > 100 * default


def test_every_label_gives_least_squares():
    rows, labels = linear()
    [found] = measured.labelled(measured.CENSUS, measured.World(rows, labels, rows, labels, (0.0, 52.0)), 4)
    assert (found.series, found.role, found.split) == (measured.LINEAR, "published", 4)
    assert found.value == pytest.approx(np.linalg.lstsq(rows, labels)[1][0] / 2000)


@pytest.fixture(scope="module")
def curved():
    random = generator(1, "a world for networks")
    rows = np.column_stack([random.normal(size=(3000, 2)), np.ones(3000)])
    labels = 26 + 12 * np.tanh(rows[:, 0])
    return measured.World(rows[:2400], labels[:2400], rows[2400:], labels[2400:], (0.0, 52.0))


@pytest.mark.parametrize("role", ["published", "default"])
def test_both_learn_more_than_the_mean(curved, role):
    assert measured.learned(curved, 256, 300, 8, 0.5, role, 1) < curved.labels.var() / 3


@pytest.mark.slow
def test_from_every_label_both_learn_the_curve_once_for_all_tables(curved):
    few = replace(curved, rows=curved.rows[:400], labels=curved.labels[:400])
    found = list(measured.labelled_networks(measured.CRITEO, few, 0))
    assert len(found) == len(measured.RHO) * 2
    for role in ("published", "default"):
        values = {one.value for one in found if one.role == role}
        assert {one.series for one in found if one.role == role} == {
            measured.network_of(number) for number in measured.RHO
        }
        [error] = values
        assert error < curved.labels.var() / 5


@pytest.mark.parametrize("noisy", [320, 3200])
def test_simulated_releases_agree_with_the_exact_delta(noisy):
    design = BagDesign(3200, 100, 32, noisy=noisy)
    exact = delta(measured.EPSILON, design, sigma=1.0, label_range=(0.0, 1.0))
    assert measured.simulated_delta(design, 1) == pytest.approx(exact, rel=0.05)


def test_kept_values_are_those_that_the_library_gives():
    [item] = [item for item in PAPER.items if item.name == "theoremd1"]
    kept = read(KEPT, PAPER, item)
    design = BagDesign(51_200, 100, 512, noisy=51_200)
    of = {"sigma": 1.0, "label_range": (0.0, 1.0)}
    for series, value in (("Theorem D.1", theorem_delta(1.0, design, **of)), ("exact", delta(1.0, design, **of))):
        [found] = kept.by_split("rho = 1", series, "published", "512").values()
        assert found == pytest.approx(math.log10(value), rel=1e-4)


def test_in_bags_of_fewer_rows_than_features_nothing_may_be_left_of_the_loss():
    [item] = [item for item in PAPER.items if item.name == "lemma34"]
    kept = read(KEPT, PAPER, item)
    shares = kept.by_split("US census", "in a bag", "published", "1024").values()
    [expected] = kept.by_split("US census", "(k - r) / k", "published", "1024").values()
    assert sum(shares) / len(shares) == pytest.approx(expected, abs=0.05)
    assert kept.by_split("US census", "least of these bags", "published", "32") == {-1: pytest.approx(0, abs=1e-9)}


def test_sums_of_rows_and_labels_have_the_same_weights_and_k_times_the_second_moment_of_one():
    random = generator(1, "a small world")
    rows = np.column_stack([random.normal(size=(500, 2)), np.ones(500)])
    labels = rows @ [2.0, -1.0, 5.0]
    small = measured.World(rows, labels, rows, labels, (0.0, 10.0))
    sums = measured.gaussian_sums(small, 40, 8, generator(1, "sums"))
    assert sums.rows.shape == (40, 3)
    assert sums.labels == pytest.approx(sums.rows @ [2.0, -1.0, 5.0])
    many = measured.gaussian_sums(small, 4000, 16, generator(1, "sums"))
    assert np.mean(many.labels**2) / 16 == pytest.approx(np.mean(labels**2), rel=0.1)
