"""What many parties hold, as arrays: parts of it, and each party's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parties.party_data.cohort import Held


def held(counts):
    counts = np.array(counts, dtype=np.int64)
    rows = np.arange(2.0 * counts.sum()).reshape(-1, 2)
    return Held(np.arange(10, 10 + len(counts)), rows, np.arange(counts.sum()) % 3, counts)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.data())
def test_a_part_is_each_chosen_partys_own(counts, data):
    whole = held(counts)
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=len(counts), max_size=len(counts))))
    part, each = whole.part(chosen), list(whole.each())
    assert part.parties.tolist() == whole.parties[chosen].tolist()
    expected = [each[place] for place in np.flatnonzero(chosen)]
    for (rows, labels), (own_rows, own_labels) in zip(part.each(), expected, strict=True):
        np.testing.assert_array_equal(rows, own_rows)
        np.testing.assert_array_equal(labels, own_labels)
    by_place = whole.part(np.flatnonzero(chosen))
    np.testing.assert_array_equal(by_place.rows, part.rows)


def test_owners_are_places_and_all_parties_are_no_copy():
    whole = held([2, 1, 3])
    assert whole.owners.tolist() == [0, 0, 1, 2, 2, 2]
    assert whole.part(np.arange(3)) is whole


@pytest.mark.parametrize("shown", [repr, str])
def test_nothing_of_it_is_shown(shown):
    assert "array" not in shown(held([2]))
