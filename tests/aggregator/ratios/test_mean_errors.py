"""The errors of class means that are predicted, against those of simulated bags."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.mixtures import skewed

from aggregator.learners.class_ratios.unmixing import MeanErrors, Unmixing

SHARES = np.concatenate([skewed(3, 0.1), skewed(3, 0.3)])
SIZES = np.array([10.0, 20, 30, 10, 20, 30])
LEVELS = np.array([0.3, 0.1, 0.2, 0.0, 0.5, 0.1])


def errors(covariance, freedom=None, mean_noise=LEVELS):
    return MeanErrors.of(Unmixing(SHARES, SIZES), covariance, freedom, mean_noise)


@pytest.mark.parametrize("whitened", [False, True])
def test_the_excess_is_the_expected_product_of_errors(whitened):
    rng, covariance = np.random.default_rng(0), np.diag([4.0, 1.0, 0.5, 0.1])
    known = errors(covariance)
    metric = known.whitening(0.5) if whitened else np.eye(4)
    scale = np.sqrt(np.diag(covariance) / SIZES[:, None])
    drawn = scale * rng.normal(size=(20000, 6, 4)) + np.sqrt(LEVELS)[:, None] * rng.normal(size=(20000, 6, 4))
    moved = drawn.swapaxes(1, 2) @ Unmixing(SHARES, SIZES).matrix
    simulated = np.mean(moved.swapaxes(1, 2) @ metric @ moved, axis=0)
    # rows have no labels here, so nothing is given back for them
    found = replace(known, label_covariance=np.zeros((3, 3))).debiased(np.zeros((3, 3)), metric if whitened else None)
    assert -found == pytest.approx(simulated, rel=0.05, abs=0.02)


def test_a_metric_from_few_rows_is_corrected_for_having_seen_them():
    """With as many dimensions as half of the rows, tr(W S) is far below what another row has."""
    rng, dimension, rows = np.random.default_rng(1), 60, 120
    scale = np.linspace(0.2, 2, dimension)
    predicted, found, naive = [], [], []
    for _ in range(30):
        covariance = np.cov(scale * rng.normal(size=(rows, dimension)), rowvar=False)
        known, exact = (errors(covariance, freedom, 0.0) for freedom in (rows - 1, None))
        metric = known.whitening(0.1)
        predicted.append(known.spread(metric))
        naive.append(exact.spread(metric))
        found.append(np.sum(metric * np.diag(scale**2)))
    assert np.mean(predicted) == pytest.approx(np.mean(found), rel=0.02)
    assert np.mean(naive) < 0.75 * np.mean(found)


def test_where_there_are_no_errors_the_metric_is_euclidean():
    assert errors(np.zeros((4, 4)), mean_noise=0.0).whitening(1.0) == pytest.approx(np.eye(4))
