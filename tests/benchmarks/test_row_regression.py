"""Errors of regressions on private rows: every method is measured on the same splits, and tends to what it should."""

import numpy as np
import pytest

from benchmarks.row_regression import ADASSP, CONSTANT, LABEL, MAPPED, POOLED, ROW, SETS, SHARES, interval, measured


def test_with_little_noise_all_methods_come_near_least_squares():
    found = measured(SETS["diabetes"], 1, epsilons=(0.1, 1000.0), splits=2, draws=1)
    assert {method for method, _ in found} == {ROW, MAPPED, LABEL, POOLED, CONSTANT, ADASSP}
    assert {values.shape for values in found.values()} == {(2,)}
    for method in (ROW, LABEL, ADASSP):
        assert found[method, 1000.0].mean() == pytest.approx(found[POOLED, 1000.0].mean(), rel=0.1)
        assert found[method, 0.1].mean() > found[method, 1000.0].mean()
    assert found[CONSTANT, 0.1].mean() > 1.5 * found[POOLED, 0.1].mean()


def test_many_parties_add_noise_of_their_own_or_shares():
    found = measured(SETS["diabetes"], 4, epsilons=(30.0,), splits=1, draws=1)
    assert {method for method, _ in found} == {ROW, MAPPED, LABEL, POOLED, CONSTANT, SHARES}


def test_an_interval_is_that_of_a_mean():
    assert interval(np.array([1.0, 3.0])) == pytest.approx(12.706, rel=1e-3)
    assert np.isnan(interval(np.array([1.0])))
