"""Bags of parties: even pieces, one per value, one party a person; prescribed class shares have exact counts."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refused

from federation.contract.errors import InputError
from scenarios.simulated.bags import (
    bag_counts,
    bag_shares,
    bags_by_value,
    even_bags,
    exact_counts,
    largest_size,
    require_one_holder,
    shifted_shares,
)


@settings(derandomize=True)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(1, 10))
def test_even_bags_differ_by_at_most_one_row(sizes, bags):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    if min(sizes) < bags:
        refused(rf"parties\.bags.*{bags}.*{np.argmin(sizes)}.*{min(sizes)}", even_bags, offsets, bags)
        return
    found = even_bags(offsets, bags)
    assert found[::bags].tolist() == offsets.tolist()
    for party in range(len(sizes)):
        rows = np.diff(found[party * bags : (party + 1) * bags + 1])
        assert rows.sum() == sizes[party]
        assert rows.max() - rows.min() <= 1
        assert rows.min() >= 1


@settings(derandomize=True)
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


def test_rows_of_a_bag_keep_their_order_and_persons_belong_to_one_party():
    rows, _ = bags_by_value(np.array([5, 3, 4, 1]), np.array([0, 4]), np.array(["", "b", "", "a", "b", "a"]))
    assert rows.tolist() == [5, 3, 4, 1]
    persons = np.array(["ann", "bob", "ann", "eve", "bob", "eve"])
    require_one_holder(np.array([0, 2, 1, 4, 3, 5]), np.array([0, 2, 6]), persons, "name")
    with pytest.raises(InputError, match=r"data\.person.*2.*3.*name.*0.*1.*parties\.partition.*COLUMN"):
        require_one_holder(np.arange(6), np.array([0, 2, 6]), persons, "name")


CLASSES = ("a", "b", "c")


def by_fractions(weights: list[int], size: int) -> list[int]:
    """Largest remainders of exact shares weights / sum, ties to the first class."""
    wanted = [Fraction(weight * size, sum(weights)) for weight in weights]
    counts = [int(value) for value in wanted]
    order = sorted(range(len(weights)), key=lambda i: (counts[i] - wanted[i], i))
    for i in order[: size - sum(counts)]:
        counts[i] += 1
    return counts


@settings(derandomize=True)
@given(st.lists(st.integers(0, 64), min_size=2, max_size=6).filter(any), st.integers(1, 5000))
def test_counts_are_those_of_exact_fractions(weights, size):
    shares = np.array([weights], dtype=float) / sum(weights)
    counts = exact_counts(shares, size)[0]
    assert counts.sum() == size
    assert (np.abs(counts - shares[0] * size) < 1).all()
    assert counts.tolist() == by_fractions(weights, size)


def test_counts_of_shares_written_in_decimals_are_the_plain_ones():
    shares = np.array([[0.05, 0.05, 0.05, 0.05, 0.8], [0.1, 0.9, 0, 0, 0]])
    assert exact_counts(shares, 1000).tolist() == [[50, 50, 50, 50, 800], [100, 900, 0, 0, 0]]
    assert exact_counts(bag_shares("majority", 0.1, 3), 600).tolist() == [[480, 60, 60], [60, 480, 60], [60, 60, 480]]


def test_equal_remainders_go_round():
    """Bags of 45 rows with a majority of .55 and .05 of nine classes each: no class may gain from its place."""
    counts = exact_counts(bag_shares("majority", 0.05, 10), 45, in_turn=True)
    assert counts.sum(axis=0).tolist() == counts.sum(axis=1).tolist() == [45] * 10
    assert [row.tolist() for row in counts] == [np.roll(counts[0], p).tolist() for p in range(10)]
    assert exact_counts(np.full((2, 4), 0.25), 6, in_turn=True).tolist() == [[2, 2, 1, 1], [1, 2, 2, 1]]
    assert exact_counts(np.full((2, 4), 0.25), 6).tolist() == [[2, 2, 1, 1]] * 2


def test_majorities_take_turns_proportions_are_as_listed_and_one_class_is_shifted():
    np.testing.assert_allclose(bag_shares("majority", 0.05, 2), [[0.95, 0.05], [0.05, 0.95]])
    shares = bag_shares("majority", 0.02, 7)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(shares, 0.02 + np.eye(7) * (1 - 7 * 0.02))
    np.testing.assert_allclose(bag_shares("majority", 0, 4), np.eye(4))
    np.testing.assert_allclose(bag_shares("proportions", LISTED, 3), LISTED)
    shifted = shifted_shares(np.array([0.1, 0.7]), np.array([0, 2]), 3)
    np.testing.assert_allclose(shifted, [[0.1, 0.45, 0.45], [0.15, 0.15, 0.7]])


LISTED = [[0.2, 0.3, 0.5], [1, 0, 0]]


@pytest.mark.parametrize(
    ("kind", "value", "classes", "said"),
    [
        ("majority", 0.4, 3, r"majority.*1/3.*0\.333333.*3.*0\.4"),
        ("proportions", LISTED, 4, r"4.*0\.2.*0\.3.*0\.5"),
    ],
)
def test_shares_that_do_not_fit_the_classes_are_refused(kind, value, classes, said):
    refused(said, bag_shares, kind, value, classes)


@settings(derandomize=True)
@given(st.integers(0, 60), st.integers(1, 50))
def test_the_largest_size_of_a_threshold_is_the_threshold(threshold, most):
    assert largest_size(lambda n: n <= threshold, most) == min(threshold, most)


@settings(derandomize=True)
@given(
    available=st.lists(st.integers(1, 400), min_size=3, max_size=3),
    bags=st.integers(1, 8),
    share=st.sampled_from([0.0, 0.05, 0.1, 0.3]),
)
def test_bags_as_large_as_can_be(available, bags, share):
    supply = np.array(available)
    shares = bag_shares("majority", share, 3)
    try:
        counts = bag_counts(shares, bags, None, supply, CLASSES)
    except InputError:
        sizes = []
    else:
        sizes = counts.sum(axis=1).tolist()
        assert len(set(sizes)) == 1
        assert (counts.sum(axis=0) <= supply).all()
        assert (np.abs(counts - shares[np.arange(bags) % 3] * sizes[0]) < 1).all()
    one_more = (sizes[0] if sizes else 0) + 1
    needed = sum(exact_counts(shares, one_more, in_turn=True)[bag % 3] for bag in range(bags))
    assert (needed > supply).any()


def test_a_class_that_does_not_suffice_is_named():
    shares, enough = bag_shares("majority", 0.05, 2), [[95, 5], [5, 95], [95, 5], [5, 95]]
    assert bag_counts(shares, 4, 100, np.array([200, 200]), ("a", "b")).tolist() == enough
    refused(r"4.*100.*200.*'a'.*180.*90.*parties\.rows", bag_counts, shares, 4, 100, np.array([180, 999]), ("a", "b"))
    refused(r"1.*'b'.*0", bag_counts, np.array([[0.0, 1.0]]), 1, None, np.array([9, 0]), ("a", "b"))
