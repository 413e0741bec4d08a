"""Lacombe, Jetley and Sebag 2021 (EXPRIL): cardiotocograms and generated data, beside one noisy mean operator."""

import statistics

import pytest
from support.measured import needed_data

import scenarios

AS_PUBLISHED = "least_squares-hard-hidden=16_256_256_16"
PUBLISHED = f"error_marginals-published-label-{AS_PUBLISHED}"


def accuracies(scenario, out, overrides=(), data_dir=None):
    """Mean accuracy by variant."""
    run = scenarios.run(scenario, out=out, overrides=overrides, data_dir=data_dir)
    found = {}
    for row in run.rows:
        if row["metric"] == "accuracy":
            found.setdefault(row["variant"], []).append(row["value"])
    return {name: statistics.mean(values) for name, values in found.items()}


@pytest.mark.reproduction
def test_cardiotocograms_of_one_distribution(tmp_path):
    found = accuracies("ctg-error-marginals", tmp_path / "out", ["data.auxiliary=1063"], needed_data())
    assert found[PUBLISHED] == pytest.approx(0.73, abs=0.03)
    assert found["error_marginals-pure"] >= 0.80
    assert found["mean_operator-pure-row"] >= 0.83
    assert found[f"error_marginals-off-{AS_PUBLISHED}"] >= 0.86
    assert found["error_marginals-off"] >= 0.86


@pytest.mark.reproduction
def test_clusters_that_no_line_divides(tmp_path):
    found = accuracies("expril-synthetic", tmp_path / "out", ["data.source=expril_a", "trials.splits=10"])
    assert found["mean_operator-pure-row-fourier"] >= 0.80
    assert found["mean_operator-pure-row"] < 0.70
