"""Cuts of a table: disjoint, complete, repeatable, and errors that say what to change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from federation.errors import InputError
from scenarios.partition import Cut, cut
from scenarios.tables import Table


def table(n: int = 100, groups: np.ndarray | None = None, train: int | None = None) -> Table:
    return Table(
        "toy",
        ("row",),
        ("0", "1"),
        np.arange(n) % 2,
        (np.arange(n)[:, None],),
        groups={} if groups is None else {"site": groups},
        official=None if train is None else (np.arange(train), np.arange(train, n)),
    )


def cut_of(data: Table, **changes) -> Cut:
    options = {"auxiliary": 0.25, "test": 0.2, "parties": 4, "rows": None, "partition": "iid", "seed": 1}
    return cut(data, **{**options, **changes})


def assert_disjoint(pieces: Cut, n: int) -> None:
    rows = np.concatenate([pieces.auxiliary, pieces.test, pieces.order])
    assert len(np.unique(rows)) == len(rows)
    assert rows.min() >= 0
    assert rows.max() < n
    assert pieces.offsets[0] == 0
    assert pieces.offsets[-1] == len(pieces.order)
    assert (np.diff(pieces.offsets) > 0).all()
    assert {a.dtype for a in (pieces.auxiliary, pieces.test, pieces.order, pieces.offsets)} == {np.dtype(np.int64)}


@settings(derandomize=True, deadline=None, max_examples=80)
@given(
    n=st.integers(6, 120),
    auxiliary=st.integers(1, 30) | st.floats(0.01, 0.9),
    test=st.integers(1, 30) | st.floats(0.01, 0.9),
    parties=st.integers(1, 20),
    rows=st.none() | st.integers(1, 6),
    seed=st.integers(0, 2**40),
    split=st.integers(0, 3),
)
def test_iid_cuts(n, auxiliary, test, parties, rows, seed, split):
    options = {"auxiliary": auxiliary, "test": test, "parties": parties, "rows": rows, "seed": seed}
    try:
        pieces = cut_of(table(n), **options, split=split)
    except InputError:
        assume(False)
    assert_disjoint(pieces, n)
    sizes = np.diff(pieces.offsets)
    assert pieces.parties == parties
    if rows is None:
        assert len(pieces.auxiliary) + len(pieces.test) + len(pieces.order) == n
        assert sizes.max() - sizes.min() <= 1
    else:
        assert (sizes == rows).all()
    again = cut_of(table(n), **options, split=split)
    for name in ("auxiliary", "test", "order", "offsets"):
        np.testing.assert_array_equal(getattr(again, name), getattr(pieces, name))
    fewer = cut_of(table(n), **{**options, "parties": 1}, split=split)
    np.testing.assert_array_equal(fewer.auxiliary, pieces.auxiliary)
    np.testing.assert_array_equal(fewer.test, pieces.test)
    if rows is not None:
        np.testing.assert_array_equal(fewer.party(0), pieces.party(0))


@settings(derandomize=True, deadline=None, max_examples=80)
@given(
    labels=st.lists(st.integers(0, 5), min_size=8, max_size=80),
    auxiliary=st.integers(1, 4),
    parties=st.none() | st.integers(1, 6),
    rows=st.none() | st.integers(1, 5),
    seed=st.integers(0, 2**40),
)
def test_cuts_by_group(labels, auxiliary, parties, rows, seed):
    groups = np.array(labels)
    options = {"auxiliary": auxiliary, "test": 2, "seed": seed, "partition": {"by": "site"}}
    try:
        pieces = cut_of(table(len(groups), groups), **options, parties=parties, rows=rows)
    except InputError:
        assume(False)
    assert_disjoint(pieces, len(groups))
    assert pieces.parties == (parties or len(set(labels)))
    assert list(pieces.party_names) == sorted(pieces.party_names)
    taken = np.concatenate([pieces.auxiliary, pieces.test])
    for k, name in enumerate(pieces.party_names):
        assert {str(g) for g in groups[pieces.party(k)]} == {name}
        left = np.setdiff1d(np.flatnonzero(groups == int(name)), taken)
        assert len(pieces.party(k)) == min(len(left), rows or len(left))


@settings(derandomize=True, deadline=None, max_examples=80)
@given(
    n=st.integers(6, 120),
    parties=st.integers(1, 20),
    rows=st.none() | st.integers(1, 6),
    partition=st.sampled_from([{"dirichlet": 1e-6}, {"dirichlet": 0.5}, {"dirichlet": 100}, {"quantity": 1.3}]),
    seed=st.integers(0, 2**40),
)
def test_skewed_cuts(n, parties, rows, partition, seed):
    options = {"auxiliary": 0.2, "test": 0.2, "parties": parties, "rows": rows, "seed": seed}
    try:
        alike = cut_of(table(n), **options)
    except InputError:
        assume(False)
    pieces = cut_of(table(n), **options, partition=partition)
    assert_disjoint(pieces, n)
    assert pieces.parties == parties
    assert len(pieces.order) == len(alike.order)
    for name in ("auxiliary", "test"):
        np.testing.assert_array_equal(getattr(pieces, name), getattr(alike, name))
    if "dirichlet" in partition:
        np.testing.assert_array_equal(pieces.offsets, alike.offsets)
        if rows is not None:
            fewer = cut_of(table(n), **{**options, "parties": 1}, partition=partition)
            np.testing.assert_array_equal(fewer.party(0), pieces.party(0))


def test_skewed_parties_differ_in_classes_or_in_size():
    pure = cut_of(table(4000), parties=300, rows=6, partition={"dirichlet": 1e-6})
    assert all(len({row % 2 for row in pure.party(k)}) == 1 for k in range(300))
    sizes = np.diff(cut_of(table(4000), parties=300, rows=6, partition={"quantity": 1.3}).offsets)
    assert sizes.sum() == 1800
    assert sizes.max() > 10 * np.median(sizes)


@pytest.mark.parametrize("partition", ["iid", {"dirichlet": 0.5}, {"quantity": 1.3}])
def test_splits_and_seeds_give_other_cuts(partition):
    changes = ({"split": 0}, {"split": 1}, {"seed": 2})
    cuts = [cut_of(table(), partition=partition, **change) for change in changes]
    for name in ("auxiliary", "test", "order"):
        assert len({tuple(getattr(pieces, name)) for pieces in cuts}) == 3


def test_rows_are_shuffled_evenly():
    """Every row is public equally often: 400 splits, each of 20 rows in 100; five deviations either way."""
    counts = np.zeros(100)
    for split in range(400):
        counts[cut_of(table(), auxiliary=20, test=1, split=split).auxiliary] += 1
    mean, deviation = 400 * 0.2, np.sqrt(400 * 0.2 * 0.8)
    assert np.abs(counts - mean).max() < 5 * deviation


def test_official_split_is_kept_and_auxiliary_rows_are_training_rows():
    pieces = cut_of(table(100, train=70), test="official", auxiliary=0.1, parties=63)
    np.testing.assert_array_equal(pieces.test, np.arange(70, 100))
    assert len(pieces.auxiliary) == 7
    assert len(pieces.order) == 63
    assert max(pieces.auxiliary.max(), pieces.order.max()) < 70


def test_groups_of_the_official_test_rows_are_no_parties():
    groups = np.repeat(np.arange(10), 10)
    pieces = cut_of(table(100, groups, train=70), test="official", auxiliary=10, parties=None, partition={"by": "site"})
    assert pieces.party_names == tuple("0123456")
    assert repr(pieces) == "Cut(10 auxiliary, 30 test, 60 private rows of 7 parties)"


def test_smaller_count_draws_among_the_groups_by_the_key():
    groups = np.repeat(np.arange(20), 5)
    drawn = {
        cut_of(table(100, groups), auxiliary=1, test=1, parties=3, seed=s, partition={"by": "site"}).party_names
        for s in range(5)
    }
    assert len(drawn) == 5


def test_a_million_parties():
    pieces = cut_of(table(1_300_000), auxiliary=1000, test=1000, parties=1_000_000, rows=1)
    assert pieces.parties == 1_000_000
    assert len(pieces.party(999_999)) == 1


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"test": "official"}, "'toy' has no official test rows; give a count"),
        ({"test": "offical"}, "data.test must be a count or a fraction .* got 'offical'"),
        ({"test": 0}, "data.test must take from 1 to 99 of the 100 rows, got 0"),
        ({"test": 100}, "data.test must take from 1 to 99"),
        ({"test": True}, "data.test must be a count or a fraction"),
        ({"auxiliary": 80}, "data.auxiliary must take from 1 to 79 of the 80 rows, got 80"),
        ({"auxiliary": 1.0}, "data.auxiliary must be a count or a fraction between 0 and 1, got 1.0"),
        ({"auxiliary": -0.5}, "data.auxiliary must be a count or a fraction"),
        ({"auxiliary": float("nan")}, "data.auxiliary must be a count or a fraction"),
        ({"parties": None}, "parties.count is needed"),
        ({"parties": 0}, "parties.count must be a whole number from 1, got 0"),
        ({"rows": 2.5}, "parties.rows must be a whole number from 1, got 2.5"),
        (
            {"parties": 61},
            "parties.count 61 with at least one row each needs 61 private rows, but 60 are left",
        ),
        (
            {"parties": 31, "rows": 2},
            "parties.count 31 x parties.rows 2 needs 62 private rows, but 60 are left after 20 auxiliary "
            "and 20 test rows; lower parties.count, parties.rows, data.auxiliary or data.test",
        ),
        ({"partition": "dirichlet"}, "parties.partition must be iid, .* from 1e-06 to 1e.06, got 'dirichlet'"),
        ({"partition": {"dirichlet": 0}}, "parties.partition must be iid, .* got {'dirichlet': 0}"),
        ({"partition": {"quantity": float("nan")}}, "parties.partition must be iid, .* nan"),
        ({"partition": {"quantity": 1, "dirichlet": 1}}, "parties.partition must be iid"),
        ({"partition": {"dirichlet": 1}, "parties": None}, "needed for the dirichlet partition"),
        ({"partition": {"quantity": 1}, "parties": 61}, "needs 61 private rows, but 60 are left"),
        ({"partition": {"by": "sit"}}, "no group 'sit'; allowed: site; did you mean 'site'"),
        ({"partition": {"by": "site"}, "parties": 11}, "parties.count is 11, but 'site' has 10 groups"),
        (
            {"partition": {"by": "site"}, "parties": None, "auxiliary": 79},
            "all rows of the party site=. went to the auxiliary or test rows; lower data.auxiliary",
        ),
    ],
)
def test_impossible_cuts_say_what_to_change(changes, part):
    with pytest.raises(InputError, match=part):
        cut_of(table(100, np.repeat(np.arange(10), 10)), **changes)
