"""Runs scenarios for reproductions and averages what they measured."""

import os
import statistics

import pytest

import scenarios
from scenarios.runs import runner


def means(metric, scenario, out, overrides=(), data_dir=None):
    """The mean of a metric by variant and epsilon; nothing is drawn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "_draw", lambda *arguments: None)
        run = scenarios.run(scenario, out=out, overrides=overrides, data_dir=data_dir)
    found = {}
    for row in run.rows:
        if row["metric"] == metric:
            found.setdefault((row["variant"], row["epsilon"]), []).append(row["value"])
    return {key: statistics.mean(values) for key, values in found.items()}


def needed_data():
    """The folder of real data; skips the test where none is named."""
    if "FEDERATION_DATA" not in os.environ:
        pytest.skip("FEDERATION_DATA names no data")
    return os.environ["FEDERATION_DATA"]
