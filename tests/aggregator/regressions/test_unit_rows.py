"""The public map behind which private rows are summed: its norms, what it keeps, and what it cannot be fitted on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.regressions.row_sessions import LEAST_PUBLIC_ROWS, unit_rows
from aggregator.trial.feature_fitting import fit
from federation.contract.errors import InputError
from federation.features.feature_map import FeatureMap
from federation.features.steps import UnitNorm

ROWS = np.random.default_rng(2).normal(size=(200, 4)) @ np.diag([1.0, 50.0, 2.0, 0.3]) + 3.0


def test_directions_are_white_and_a_row_in_twenty_is_cut():
    features = unit_rows(FeatureMap(4, ()), ROWS[:, :3] @ np.eye(3, 4)).transform(ROWS)
    longest = np.linalg.norm(features, axis=1)
    assert longest.max() <= 1 + 1e-12
    features = unit_rows(fit(["standardise"], ROWS), ROWS).transform(ROWS)
    cut = np.linalg.norm(features, axis=1) > 1 - 1e-9
    assert np.mean(cut) == pytest.approx(0.05, abs=0.01)
    scale = features[~cut][0, -1]  # of the constant
    np.testing.assert_allclose(features[~cut][:, -1], scale)
    assert features.shape[1] == 5
    whole = features[:, :-1] / features[:, -1:]  # before the cut
    np.testing.assert_allclose(whole.T @ whole / len(whole), np.eye(4), atol=1e-9)


def test_it_has_no_more_directions_than_a_fifth_of_the_public_rows():
    assert unit_rows(fit(["standardise"], ROWS[:15]), ROWS[:15]).dimension == 3 + 1
    assert unit_rows(fit(["standardise"], ROWS[:10]), ROWS[:10]).dimension == 2 + 1


def test_directions_that_hardly_vary_are_left_out():
    rows = np.column_stack([ROWS[:, 0], 1e-3 * ROWS[:, 2], np.ones(200)])
    assert unit_rows(FeatureMap(3, ()), rows).dimension == 2


def test_one_column_is_enough():
    assert unit_rows(FeatureMap(1, ()), ROWS[:, :1]).dimension == 2


def test_a_map_that_bounds_norms_stays_as_it_is():
    bounded = FeatureMap(4, (UnitNorm(),))
    assert unit_rows(bounded, ROWS) is bounded


@given(st.integers(10, 40), st.integers(1, 6), st.integers(0, 100))
def test_no_row_is_longer_than_one_however_far_it_is(count, columns, seed):
    random = np.random.default_rng(seed)
    found = unit_rows(FeatureMap(columns, ()), random.standard_t(2, size=(count, columns)))
    far = found.transform(10.0 ** random.uniform(-3, 9, size=(50, columns)))
    assert np.linalg.norm(far, axis=1).max() <= 1 + 1e-12


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (ROWS[: LEAST_PUBLIC_ROWS - 1], r"needs 10 public rows or more.*got 9; raise data.auxiliary"),
        (np.ones((50, 4)), "the 50 public rows are all equal"),
    ],
)
def test_public_rows_that_tell_nothing_are_refused(rows, words):
    with pytest.raises(InputError, match=words):
        unit_rows(FeatureMap(4, ()), rows)
