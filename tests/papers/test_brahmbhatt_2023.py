"""Brahmbhatt et al. 2023: what aggregation costs beside other label privacy, its figures where the data is at hand."""

import pytest
from support.measured import means, needed_data

from benchmarks.bag_regression import expected_error

INFINITE = float("inf")


def errors(scenario, tmp_path, overrides=(), data_dir=None):
    """Mean error by variant and epsilon."""
    return means("mse", scenario, tmp_path / "out", overrides, data_dir)


def test_aggregation_is_not_the_best_label_privacy(tmp_path):
    found = errors("diabetes-label-dp", tmp_path, ["trials.splits=4", "privacy.epsilon=[4]"])
    sums, pooled = found["label_sums", 4], found["pooled", INFINITE]
    assert pooled < sums < found["private_labels-gaussian", 4]
    assert sums < found["noisy_weighted_llp-size=4", 4] < found["weighted_lba-size=4", 4]


@pytest.mark.reproduction
def test_house_values_at_epsilon_1(tmp_path):
    found = errors("housing-label-dp", tmp_path, ["privacy.epsilon=[1]", "trials.noise=5"], needed_data())
    at = {name: value for (name, epsilon), value in found.items() if epsilon == 1}
    assert found["pooled", INFINITE] == pytest.approx(0.444, abs=0.02)
    assert at["label_sums-gaussian"] <= 0.455
    sums = [at[f"label_sums-{name}"] for name in ("gaussian", "whitened-gaussian")]
    values = [*sums, at["private_labels-laplace"], at["private_labels-gaussian"]]
    assert values == sorted(values)
    assert at["weighted_lba"] > at["noisy_weighted_llp"] > at["private_labels-laplace"]


@pytest.mark.reproduction
@pytest.mark.parametrize("size", [32, 64])
def test_secret_sums_cost_what_their_number_says_and_not_the_size_of_bags(tmp_path, size):
    scenario = {
        "data": {"source": "protein", "auxiliary": 1000, "test": 0.2},
        "parties": {"count": 1},
        "protocols": [{"kind": "weighted_lba", "size": size, "bags": 200, "noise": "off"}, {"kind": "pooled"}],
        "privacy": {"epsilon": 1},
        "trials": {"splits": 20, "noise": 1},
    }
    found = errors(scenario, tmp_path, data_dir=needed_data())
    [measured] = [value for (name, _), value in found.items() if name.startswith("weighted_lba")]
    assert measured == pytest.approx(expected_error(found["pooled", INFINITE], 10, 200), rel=0.03)
