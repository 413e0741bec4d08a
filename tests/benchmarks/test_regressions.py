"""Errors of regressions before and after shrinkage: every cell is there, and the figures are of what they say."""

import numpy as np
import pytest

from benchmarks.regressions import Cell, measure, summary, world
from federation.contract.errors import InputError


def test_cells_hold_errors_of_least_squares_and_of_what_is_released():
    found = measure(
        "friedman1", splits=1, draws=2, epsilons=(0.1, 100.0), labels=("one_bit",), parties=(1, 4), rows=500
    )
    mechanisms = {"label_sums pure", "label_sums gaussian", "private_labels one_bit"}
    bags = {"noisy_weighted_llp 4", "noisy_weighted_llp 64", "weighted_lba 16"}
    assert {cell.mechanism for cell in found} == mechanisms | bags
    assert {cell.parties for cell in found if cell.mechanism.startswith("label_sums")} == {1, 4}
    for cell, errors in found.items():
        assert errors.clipped <= errors.before
        if cell.epsilon < 1:
            assert errors.change < 0.5
    plenty = found[Cell("friedman1", "label_sums gaussian", 1, 100.0)]
    assert plenty.after == pytest.approx(plenty.exact, rel=0.01)
    known, _ = world("friedman1", 0, rows=500)
    assert plenty.constant == pytest.approx(np.mean((known.test_labels - known.labels.mean()) ** 2))


def test_a_summary_tells_the_geometric_mean_the_worst_and_how_many_are_worse():
    assert summary([0.5, 2.0, 1.01, 1.03]) == (pytest.approx((1.01 * 1.03) ** 0.25), 2.0, 2)


def test_sets_that_nobody_knows_are_refused():
    with pytest.raises(InputError):
        world("nowhere", 0)
