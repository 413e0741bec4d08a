"""Bounds, exact values and simulated releases agree where they must, also for sums that stand for the paper's data."""

import math

import numpy as np
import pytest

from federation.contract.randomness import generator
from federation.mechanisms.bag_sums.calibration import delta
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.bag_sums.noisy_labels import theorem_delta
from scenarios.papers.brahmbhatt.brahmbhatt import (
    CRITEO,
    EPSILON,
    World,
    gaussian_sums,
    lemma_3_4,
    simulated_delta,
    theorem_1_2,
    world,
)
from scenarios.reproductions.paper import paper, read

PAPER = paper("brahmbhatt")


@pytest.mark.parametrize("noisy", [320, 3200])
def test_simulated_releases_agree_with_the_exact_delta(noisy):
    design = BagDesign(3200, 100, 32, noisy=noisy)
    exact = delta(EPSILON, design, sigma=1.0, label_range=(0.0, 1.0))
    assert simulated_delta(design, 1) == pytest.approx(exact, rel=0.05)


def test_kept_values_are_those_that_the_library_gives(reproductions):
    [item] = [item for item in PAPER.items if item.name == "theoremd1"]
    kept = read(reproductions, PAPER, item)
    design = BagDesign(51_200, 100, 512, noisy=51_200)
    of = {"sigma": 1.0, "label_range": (0.0, 1.0)}
    for series, value in (("Theorem D.1", theorem_delta(1.0, design, **of)), ("exact", delta(1.0, design, **of))):
        [found] = kept.by_split("rho = 1", series, "published", "512").values()
        assert found == pytest.approx(math.log10(value), rel=1e-4)


def test_in_bags_of_fewer_rows_than_features_nothing_may_be_left_of_the_loss(reproductions):
    [item] = [item for item in PAPER.items if item.name == "lemma34"]
    kept = read(reproductions, PAPER, item)
    shares = kept.by_split("US census", "in a bag", "published", "1024").values()
    [expected] = kept.by_split("US census", "(k - r) / k", "published", "1024").values()
    assert sum(shares) / len(shares) == pytest.approx(expected, abs=0.05)
    assert kept.by_split("US census", "least of these bags", "published", "32") == {-1: pytest.approx(0, abs=1e-9)}


def test_without_data_there_is_neither_a_world_nor_anything_of_bags(tmp_path):
    assert list(theorem_1_2(True, tmp_path)) == list(lemma_3_4(True, tmp_path)) == []
    assert world(CRITEO, 0, tmp_path) is None


def test_sums_of_rows_and_labels_have_the_same_weights_and_k_times_the_second_moment_of_one():
    random = generator(1, "a small world")
    rows = np.column_stack([random.normal(size=(500, 2)), np.ones(500)])
    labels = rows @ [2.0, -1.0, 5.0]
    small = World(rows, labels, rows, labels, (0.0, 10.0))
    sums = gaussian_sums(small, 40, 8, generator(1, "sums"))
    assert sums.rows.shape == (40, 3)
    assert sums.labels == pytest.approx(sums.rows @ [2.0, -1.0, 5.0])
    many = gaussian_sums(small, 4000, 16, generator(1, "sums"))
    assert np.mean(many.labels**2) / 16 == pytest.approx(np.mean(labels**2), rel=0.1)
