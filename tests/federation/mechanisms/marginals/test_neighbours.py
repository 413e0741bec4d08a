"""What a row or a label moves in the cells of binned errors, on random rows and hypotheses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Unit
from federation.mechanisms.marginals.noise import MAX_CELLS, moved_cells, premises

BINS, FEATURES = 3, 4


def cells(bins: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Corrects and errors (d, bins, 2) of rows with these bins (n, d)."""
    counts = np.zeros((FEATURES, BINS, 2), dtype=np.int64)
    for feature in range(FEATURES):
        np.add.at(counts[feature], (bins[:, feature], wrong.astype(int)), 1)
    return counts


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_no_neighbour_moves_more(seed: int) -> None:
    random = np.random.default_rng(seed)
    bins = random.integers(BINS, size=(5, FEATURES))
    labels, predicted = random.integers(2, size=(2, 5))
    before = cells(bins, labels != predicted)
    removed = before - cells(bins[1:], (labels != predicted)[1:])
    flipped = labels.copy()
    flipped[0] = 1 - flipped[0]
    changed = (before - cells(bins, flipped != predicted))[..., 1]
    others = bins.copy()
    others[0] = random.integers(BINS, size=FEATURES)
    replaced = before - cells(others, flipped != predicted)
    for moved, unit, adjacency in (
        (removed, Unit.ROW, Adjacency.ADD_REMOVE),
        (changed, Unit.LABEL, Adjacency.REPLACE),
        (replaced, Unit.ROW, Adjacency.REPLACE),
    ):
        assert np.abs(moved).max() == 1
        assert np.abs(moved).sum() == moved_cells(unit, adjacency) * FEATURES


@pytest.mark.parametrize(
    ("unit", "adjacency"), [(Unit.LABEL, Adjacency.ADD_REMOVE), (Unit.PARTY, Adjacency.REPLACE), ("row", "swap")]
)
def test_other_units_are_refused(unit: Unit, adjacency: Adjacency) -> None:
    for ask in (moved_cells, lambda *pair: premises(*pair, 2)):
        with pytest.raises(InputError, match="must be one of row by add_remove, row by replace, label by replace"):
            ask(unit, adjacency)


def test_the_size_is_public_for_replaced_rows_only() -> None:
    texts = {
        adjacency: " ".join(premise.text for premise in premises(Unit.ROW, adjacency, 3)) for adjacency in Adjacency
    }
    assert "how many rows there are is public" in texts[Adjacency.REPLACE]
    assert "how many rows there are is not published" in texts[Adjacency.ADD_REMOVE]
    assert "3 queries, agreed on before the first" in texts[Adjacency.REPLACE]
    assert "one query is answered" in premises(Unit.LABEL, Adjacency.REPLACE, 1)[-1].text


def test_a_hundred_queries_about_ten_thousand_features_are_within_the_limit() -> None:
    assert moved_cells(Unit.ROW, Adjacency.ADD_REMOVE) * 100 * 10_000 <= MAX_CELLS
