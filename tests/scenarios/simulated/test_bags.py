"""Bags of parties: even pieces, one per value, and persons who belong to one party."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.errors import InputError
from scenarios.simulated.bags import bags_by_value, even_bags, require_one_holder


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(1, 10))
def test_even_bags_differ_by_at_most_one_row(sizes, bags):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    if min(sizes) < bags:
        with pytest.raises(InputError, match=f"parties.bags is {bags}, but party {np.argmin(sizes)} has {min(sizes)}"):
            even_bags(offsets, bags)
        return
    found = even_bags(offsets, bags)
    assert found[::bags].tolist() == offsets.tolist()
    for party in range(len(sizes)):
        rows = np.diff(found[party * bags : (party + 1) * bags + 1])
        assert rows.sum() == sizes[party]
        assert rows.max() - rows.min() <= 1
        assert rows.min() >= 1


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    st.lists(st.lists(st.sampled_from(["x", "y", "z"]), min_size=1, max_size=6), min_size=1, max_size=5), st.randoms()
)
def test_bags_by_value_are_the_values_of_each_party(parties, random):
    values = np.array([value for party in parties for value in party])
    offsets = np.concatenate([[0], np.cumsum([len(party) for party in parties])])
    order = np.arange(100, 100 + len(values))
    random.shuffle(order)
    table = np.full(200, "-")
    table[order] = values
    rows, bags = bags_by_value(order, offsets, table)
    assert bags.dtype == np.int64
    expected = [
        {row for row in order[offsets[k] : offsets[k + 1]] if table[row] == value}
        for k, party in enumerate(parties)
        for value in sorted(set(party))
    ]
    assert [set(rows[a:b]) for a, b in pairwise(bags)] == expected


def test_rows_of_a_bag_keep_their_order():
    rows, _ = bags_by_value(np.array([5, 3, 4, 1]), np.array([0, 4]), np.array(["", "b", "", "a", "b", "a"]))
    assert rows.tolist() == [5, 3, 4, 1]


def test_persons_belong_to_one_party():
    persons = np.array(["ann", "bob", "ann", "eve", "bob", "eve"])
    require_one_holder(np.array([0, 2, 1, 4, 3, 5]), np.array([0, 2, 6]), persons, "name")
    with pytest.raises(
        InputError,
        match=r"data.person: 2 of the 3 persons hold rows at several parties, such as name=ann at parties 0 and 1; "
        r"deal whole persons, with parties.partition: \{by: COLUMN\} or a single party",
    ):
        require_one_holder(np.array([0, 1, 2, 3, 4, 5]), np.array([0, 2, 6]), persons, "name")
