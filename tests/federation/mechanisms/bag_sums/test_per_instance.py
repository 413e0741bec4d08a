"""Wtd-LBA on given data: what is revealed altogether, what must not matter, the worst other label, and the warning."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee
from federation.mechanisms.bag_sums.weighted_sums import (
    PerInstanceDelta,
    bag_deltas,
    leverages_and_residuals,
    pair_delta,
    per_instance_delta,
)

RANGE = (0.0, 1.0)


def bag(seed: int, size: int = 12, columns: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(size=(size, columns)), np.ones(size)]), rng.random(size)


def test_leverages_and_residuals_are_those_of_the_projection() -> None:
    rows, labels = bag(0)
    hat = rows @ np.linalg.pinv(rows)
    leverage, residual = leverages_and_residuals(rows, labels)
    np.testing.assert_allclose(leverage, np.diag(hat), atol=1e-12)
    np.testing.assert_allclose(residual, labels - hat @ labels, atol=1e-12)


def test_units_and_duplicate_columns_do_not_matter() -> None:
    rows, labels = bag(1)
    expected = bag_deltas(1.0, rows, labels, label_range=RANGE)
    odd = np.column_stack([rows * [1e-12, 1.0, 1e9, 1e3], rows[:, 0] * 7, rows[:, 0] + rows[:, 1], np.zeros(12)])
    np.testing.assert_allclose(bag_deltas(1.0, odd, labels, label_range=RANGE), expected, rtol=1e-5)
    stretched = bag_deltas(1.0, rows, 5 + 52 * labels, label_range=(5.0, 57.0))
    np.testing.assert_allclose(stretched, expected, rtol=1e-6)


@given(st.integers(0, 10**6), st.integers(-(2**31), 2**31), st.integers(-40, 40))
@settings(derandomize=True, deadline=None, max_examples=15)
def test_where_labels_are_and_in_what_unit_does_not_matter_beside_a_constant(seed: int, shift: int, power: int) -> None:
    rows, labels = bag(seed)
    labels = np.rint(labels * 2**20) / 2**20  # doubles hold these exactly wherever they are moved
    unit = 2.0**power
    expected = bag_deltas(1.0, rows, labels, label_range=RANGE)
    moved = bag_deltas(1.0, rows, unit * (labels + shift), label_range=(unit * shift, unit * (shift + 1)))
    assert expected.max() < 1
    np.testing.assert_allclose(moved, expected, rtol=1e-5)


def test_labels_far_from_zero_are_revealed_where_they_are_a_function_of_the_rows() -> None:
    rows, _ = bag(8)
    labels = 1e6 + 0.5 + 0.1 * np.tanh(rows[:, 0])
    explained = np.column_stack([rows, np.tanh(rows[:, 0])])
    np.testing.assert_array_equal(bag_deltas(1.0, explained, labels, label_range=(1e6, 1e6 + 1)), 1.0)
    assert bag_deltas(1.0, rows, labels, label_range=(1e6, 1e6 + 1)).min() < 1


def test_without_a_constant_labels_far_from_zero_leave_a_large_residual() -> None:
    rows, labels = bag(9)
    near, far = (
        bag_deltas(1.0, rows[:, :3], labels + shift, label_range=(shift, shift + 1)).max() for shift in (0.0, 1e6)
    )
    assert far < near < 1


def test_indicators_of_all_values_beside_a_constant_are_fine() -> None:
    rng = np.random.default_rng(2)
    kinds = np.repeat(np.arange(4), 6)
    rows = np.column_stack([np.eye(4)[kinds], np.ones(24)])
    found = bag_deltas(1.0, rows, rng.random(24), label_range=RANGE)
    assert np.all((found > 0) & (found < 1))


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        (bag(3)[0], np.full(12, 0.3)),  # constant labels under an intercept
        (bag(3)[0], np.zeros(12)),
        (bag(3, size=4)[0], bag(3, size=4)[1]),  # as many columns as records
        (bag(3)[0], np.clip(0.5 + 0.01 * bag(3)[0][:, 0], 0, 1)),  # labels that are a function of the rows
        (np.zeros((5, 2)), np.zeros(5)),
    ],
)
def test_labels_without_residual_are_revealed(rows: np.ndarray, labels: np.ndarray) -> None:
    np.testing.assert_array_equal(bag_deltas(9.0, rows, labels, label_range=RANGE), 1.0)


def test_a_value_that_occurs_once_exposes_its_record() -> None:
    rows, labels = bag(4, size=40)
    alone = np.column_stack([rows, np.arange(40) == 7])
    found = bag_deltas(1.0, alone, labels, label_range=RANGE)
    assert found.argmax() == 7
    assert found[7] > 20 * np.median(found)


@given(st.integers(0, 10**6))
@settings(derandomize=True, deadline=None, max_examples=8)
def test_no_other_label_on_a_fine_grid_is_worse(seed: int) -> None:
    rows, labels = bag(seed, size=8, columns=2)
    leverage, residual = leverages_and_residuals(rows, labels)
    rss = float(residual @ residual)
    found = bag_deltas(0.7, rows, labels, label_range=RANGE)
    tried = np.linspace(*RANGE, 101)
    for i in range(8):
        others = np.full(101, leverage[i]), np.full(101, residual[i])
        values = pair_delta(0.7, tried - labels[i], *others, rss, coarse=False)
        assert values.max() <= found[i] * (1 + 1e-4)
        assert found[i] <= 1


def test_the_worst_label_can_lie_inside_the_range() -> None:
    rows = np.column_stack([np.arange(6.0), np.ones(6)])
    labels = 0.2 + 0.1 * np.arange(6.0)
    labels[2] = 0.9  # all others are on a line, on which 0.4 would be
    found = bag_deltas(3.0, rows, labels, label_range=RANGE)
    assert found[2] == 1
    leverage, residual = (part[[2, 2]] for part in leverages_and_residuals(rows, labels))
    _, all_residuals = leverages_and_residuals(rows, labels)
    ends = pair_delta(3.0, np.array([0.0, 1.0]) - 0.9, leverage, residual, float(all_residuals @ all_residuals))
    assert ends.max() < 0.9


def test_larger_bags_hide_labels_better() -> None:
    rng = np.random.default_rng(5)
    rows, labels = np.column_stack([rng.normal(size=(2048, 4)), np.ones(2048)]), rng.random(2048)
    found = [
        per_instance_delta(1.0, rows, labels, np.arange(1024).reshape(-1, k), label_range=RANGE) for k in (16, 64, 256)
    ]
    assert found[0].mean > 5 * found[1].mean > 25 * found[2].mean
    for value in found:
        assert value.mean <= value.mean_largest <= value.largest < 1
        assert value.revealed == 0


def test_it_cannot_be_taken_for_a_guarantee() -> None:
    rows, labels = bag(6)
    found = per_instance_delta(1.0, rows, labels, np.arange(12)[None], label_range=RANGE, inclusion=0.5)
    assert isinstance(found, PerInstanceDelta)
    assert not isinstance(found, Guarantee)
    assert not hasattr(found, "delta")
    assert not hasattr(found, "epsilon")
    record = json.loads(json.dumps(found.to_dict()))
    assert record["guarantee"] is None
    assert "must not be published" in record["warning"]
    assert "delta" not in record
    assert record["inclusion"] == 0.5
    with pytest.raises(InputError, match="a guarantee cannot be read"):
        Guarantee.from_dict(record)


def test_labels_at_the_ends_of_the_range_and_bags_that_are_never_drawn_are_looked_at_like_others() -> None:
    rows, labels = bag(7)
    labels[:2] = RANGE
    found = per_instance_delta(1.0, rows, labels, np.arange(12)[None], label_range=RANGE, inclusion=0.0)
    assert (found.inclusion, found.revealed) == (0.0, 0.0)
    assert 0 < found.mean < 1
    # One row in a bag tells its label.
    alone = per_instance_delta(1.0, rows, labels, np.array([[0]]), label_range=RANGE, inclusion=1.0)
    assert (alone.mean, alone.revealed) == (1.0, 1.0)


def test_bad_data_are_refused() -> None:
    rows, labels = bag(7)
    for wrong in (np.where(np.arange(12) == 3, 1.1, labels), np.where(np.arange(12) == 3, np.nan, labels)):
        with pytest.raises(InputError, match="rows must be finite and labels from 0 to 1"):
            bag_deltas(1.0, rows, wrong, label_range=RANGE)
    with pytest.raises(InputError, match="rows must be finite"):
        bag_deltas(1.0, np.where(rows == 1, np.nan, rows), labels, label_range=RANGE)
    with pytest.raises(InputError, match=r"bags must be row numbers \(bags, size\)"):
        per_instance_delta(1.0, rows, labels, np.arange(0), label_range=RANGE)
    for outside in (12, -1):
        with pytest.raises(InputError, match="bags must be numbers of the 12 rows, from 0"):
            per_instance_delta(1.0, rows, labels, np.array([[0, outside]]), label_range=RANGE)
    for inclusion in (-0.1, 1.1, np.nan):
        with pytest.raises(InputError, match=r"inclusion must lie in \[0, 1\]"):
            per_instance_delta(1.0, rows, labels, np.arange(12)[None], label_range=RANGE, inclusion=inclusion)
    with pytest.raises(InputError, match="label_range must be"):
        bag_deltas(1.0, rows, labels, label_range=(1.0, 1.0))
