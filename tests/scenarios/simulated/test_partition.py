"""Cuts of a table: disjoint, complete, repeatable, and errors that say what to change."""

from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.refusals import refused

from federation.contract.errors import InputError
from scenarios.data.catalogue import load
from scenarios.data.tables import Table
from scenarios.simulated.partition import Cut, cut, smallest_count


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


OPTIONS = {"auxiliary": 0.25, "test": 0.2, "parties": 4, "rows": None, "partition": "iid", "seed": 1}
BY = {"by": "site"}
BY_SITE = {"parties": None, "partition": BY}


def cut_of(data: Table, **changes) -> Cut:
    return cut(data, **{**OPTIONS, **changes})


def assert_same(one: Cut, other: Cut, *names: str) -> None:
    for name in names:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def assert_disjoint(pieces: Cut, n: int) -> None:
    rows = np.concatenate([pieces.auxiliary, pieces.test, pieces.order])
    assert len(np.unique(rows)) == len(rows)
    assert rows.min() >= 0
    assert rows.max() < n
    assert pieces.offsets[0] == 0
    assert pieces.offsets[-1] == len(pieces.order)
    assert (np.diff(pieces.offsets) > 0).all()
    assert {a.dtype for a in (pieces.auxiliary, pieces.test, pieces.order, pieces.offsets)} == {np.dtype(np.int64)}


@settings(derandomize=True)
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
    assert_same(cut_of(table(n), **options, split=split), pieces, "auxiliary", "test", "order", "offsets")
    fewer = cut_of(table(n), **{**options, "parties": 1}, split=split)
    assert_same(fewer, pieces, "auxiliary", "test")
    if rows is not None:
        np.testing.assert_array_equal(fewer.party(0), pieces.party(0))


@settings(derandomize=True)
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
    taken = np.concatenate([pieces.auxiliary, pieces.test])
    assert pieces.parties == (parties or len(np.unique(np.delete(groups, taken))))
    assert list(pieces.party_names) == sorted(pieces.party_names)
    for k, name in enumerate(pieces.party_names):
        assert {str(g) for g in groups[pieces.party(k)]} == {name}
        left = np.setdiff1d(np.flatnonzero(groups == int(name)), taken)
        assert len(pieces.party(k)) == min(len(left), rows or len(left))


@settings(derandomize=True)
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
    assert_same(pieces, alike, "auxiliary", "test")
    if "dirichlet" in partition:
        assert_same(pieces, alike, "offsets")
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
    assert (len(pieces.auxiliary), len(pieces.order)) == (7, 63)
    assert max(pieces.auxiliary.max(), pieces.order.max()) < 70


def test_groups_of_which_no_row_is_left_are_no_parties():
    official = table(100, np.repeat(np.arange(10), 10), train=70)
    pieces = cut_of(official, test="official", auxiliary=10, **BY_SITE)
    assert pieces.party_names == tuple("0123456")
    assert repr(pieces) == "Cut(10 auxiliary, 30 test, 60 private rows of 7 parties)"
    groups = np.repeat(np.arange(50), 2)
    pieces = cut_of(table(100, groups), **BY_SITE)
    assert 30 < pieces.parties < 50
    assert set(pieces.party_names) == {str(group) for group in groups[pieces.order]}
    refused(rf"parties\.count.*50.*site.*{pieces.parties}", cut_of, table(100, groups), parties=50, partition=BY)


def test_whole_groups_are_held_out_for_tests():
    groups = np.arange(100) % 20
    held = {"test": BY, "auxiliary": "public.csv", **BY_SITE}
    pieces = cut_of(table(100, groups), **held)
    assert pieces.parties == 15
    assert not {*groups[pieces.test]} & {*groups[pieces.order]}
    assert len(pieces.test) + len(pieces.order) == 100
    refused(r"8.*7", cut_of, table(100, np.arange(100) % 7), **held)


def test_smaller_count_draws_among_the_groups_by_the_key():
    drawing = partial(cut_of, table(100, np.repeat(np.arange(20), 5)), auxiliary=1, test=1, parties=3, partition=BY)
    assert len({drawing(seed=seed).party_names for seed in range(5)}) == 5


@pytest.mark.slow
def test_a_million_parties():
    pieces = cut_of(table(1_300_000), auxiliary=1000, test=1000, parties=1_000_000, rows=1)
    assert pieces.parties == 1_000_000
    assert len(pieces.party(999_999)) == 1


@settings(derandomize=True)
@given(
    parties=st.integers(1, 6),
    bags=st.integers(1, 6),
    rows=st.none() | st.integers(1, 4),
    partition=st.sampled_from(["iid", {"dirichlet": 0.5}, {"quantity": 1.3}, {"majority": 0.1}]),
    seed=st.integers(0, 2**40),
)
def test_bags_are_dealt_as_parties_are(parties, bags, rows, partition, seed):
    """What is dealt to K parties with B bags each is what K B parties would hold."""
    options = {"test": 20, "auxiliary": 20, "seed": seed, "partition": partition}
    try:
        pieces = cut_of(table(200), **options, parties=parties, bags=bags, rows=rows and rows * bags)
    except InputError:
        assume(False)
    virtual = cut_of(table(200), **options, parties=parties * bags, rows=rows)
    assert_same(pieces, virtual, "auxiliary", "test", "order")
    np.testing.assert_array_equal(pieces.bag_offsets, virtual.offsets)
    np.testing.assert_array_equal(pieces.offsets, virtual.offsets[::bags])
    assert (pieces.bags_per_party, virtual.bags_per_party) == (bags, 1)
    assert pieces.largest_bag == np.diff(virtual.offsets).max()
    for k in range(parties):
        held = [pieces.party(k)[pieces.bags(k) == b].tolist() for b in range(bags)]
        assert held == [virtual.party(k * bags + b).tolist() for b in range(bags)]
        assert virtual.bags(k).tolist() == [0] * len(virtual.party(k))


def test_majorities_take_turns_over_the_bags_of_all_parties_and_prescribed_bags_are_as_large_as_can_be():
    data = table(1000)
    pieces = cut_of(data, parties=3, bags=3, rows=120, partition={"majority": 0.05})
    assert_disjoint(pieces, 1000)
    counts = [np.bincount(data.labels[pieces.party(k)][pieces.bags(k) == b]) for k in range(3) for b in range(3)]
    assert [count.tolist() for count in counts] == [[38, 2] if b % 2 == 0 else [2, 38] for b in range(9)]
    assert smallest_count(pieces, data) == 2
    fewer = cut_of(data, parties=1, bags=3, rows=120, partition={"majority": 0.05})
    np.testing.assert_array_equal(fewer.party(0), pieces.party(0))
    assert repr(pieces) == "Cut(200 auxiliary, 200 test, 360 private rows of 3 parties in 9 bags)"
    pieces = cut_of(data, parties=2, bags=2, partition={"proportions": [[0.75, 0.25], [0.5, 0.5]]})
    sizes = set(pieces.bag_sizes.tolist())
    held = np.bincount(data.labels[pieces.order])
    available = np.bincount(np.delete(data.labels, np.concatenate([pieces.auxiliary, pieces.test])))
    assert len(sizes) == 1
    assert held[0] / held[1] == pytest.approx(5 / 3, rel=0.03)
    assert available[0] - held[0] < 4


def test_bags_by_group_within_parties_and_parties_by_group_in_even_bags():
    groups = np.arange(100) % 3
    pieces = cut_of(table(100, groups), parties=4, rows=9, bags=BY)
    for k in range(4):
        held = groups[pieces.party(k)]
        present, codes = np.unique(held, return_inverse=True)
        assert pieces.bags(k).tolist() == codes.tolist() == sorted(codes)
        assert pieces.bags(k).max() + 1 == len(present) <= pieces.bags_per_party
    same = cut_of(table(100, groups), parties=4, rows=9)
    assert sorted(same.order) == sorted(pieces.order)
    assert cut_of(table(100, groups), **BY_SITE, bags=BY).bags_per_party == 1
    data = table(100, np.repeat(np.arange(4), 25))
    pieces = cut_of(data, **BY_SITE, bags=2)
    assert_same(pieces, cut_of(data, **BY_SITE), "order", "offsets")
    assert np.ptp(pieces.bag_sizes.reshape(4, 2), axis=1).max() <= 1
    assert cut_of(data, **BY_SITE, person="site").parties == 4


def test_bags_are_the_same_at_all_parties_where_that_is_said():
    groups = np.array(["c", "a", "b", "d"])[np.arange(100) % 4]
    groups[groups == "d"] = np.where(np.arange(25) < 24, "a", "d")
    pieces, apart = (
        cut_of(table(100, groups), parties=6, rows=4, bags=BY, common_bags=common) for common in (True, False)
    )
    np.testing.assert_array_equal(pieces.order, apart.order)
    assert pieces.bags_per_party == 4  # of all values of the table, whoever has rows of them
    for k in range(6):
        assert pieces.bags(k).tolist() == ["abcd".index(site) for site in groups[pieces.party(k)]]
    assert pieces.largest_bag == apart.largest_bag  # of one party
    numbered = [cut_of(table(100), parties=4, rows=9, bags=3, common_bags=common) for common in (False, True)]
    for k in range(4):
        assert numbered[1].bags(k).tolist() == numbered[0].bags(k).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


@settings(derandomize=True)
@given(parties=st.integers(1, 5), bags=st.integers(1, 4), seed=st.integers(0, 2**40))
def test_the_smallest_count_is_over_all_bags_and_classes(parties, bags, seed):
    data = table(100)
    pieces = cut_of(data, parties=parties, bags=bags, partition={"dirichlet": 0.5}, seed=seed)
    counted = [
        np.bincount(data.labels[pieces.party(k)][pieces.bags(k) == b], minlength=2).min()
        for k in range(parties)
        for b in range(bags)
    ]
    assert smallest_count(pieces, data) == min(counted)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"test": "official"}, "toy"),
        ({"test": 100}, r"data\.test.*1.*99.*100.*100"),
        ({"test": 99}, r"data\.auxiliary.*2.*1"),
        ({"auxiliary": 80}, r"data\.auxiliary.*1.*79.*80.*80"),
        ({"parties": 61}, r"parties\.count.*61.*61.*60"),
        ({"parties": 31, "rows": 2}, r"parties\.count.*31.*parties\.rows.*2.*62.*60.*20.*20.*parties\.count"),
        ({"partition": {"quantity": 1}, "parties": 61}, r"61.*60"),
        ({"partition": {"by": "sit"}}, r"sit.*allowed.*site.*site"),
        ({"partition": BY, "parties": 11}, r"parties\.count.*11.*site.*10"),
        ({"bags": {"by": "sit"}}, r"parties\.bags.*toy.*sit.*allowed.*site.*site"),
        ({"bags": 16}, r"parties\.count.*4.*16.*64.*60"),
        ({"bags": 9, **BY_SITE}, r"parties\.bags.*9"),
        ({"partition": {"majority": 0.1}, "rows": 15}, r"4.*15.*3"),
        ({"person": "site"}, r"data\.person.*10.*10.*site"),
        ({"person": "name"}, r"data\.person.*toy.*name.*allowed.*site"),
    ],
)
def test_impossible_cuts_say_what_to_change(changes, part):
    refused(part, cut_of, table(100, np.repeat(np.arange(10), 10)), **changes)


def regression(n: int = 60) -> Table:
    groups, rows = {"site": np.arange(n) // 20}, np.arange(n)[:, None]
    return Table("real", ("row",), (), np.linspace(0, 1, n), (rows,), groups=groups, label_range=(0.0, 1.0))


@pytest.mark.parametrize(
    "changes",
    [{}, {"rows": 6, "bags": 2}, {"partition": {"quantity": 1.0}}, {"partition": BY, "parties": 3}],
)
def test_real_labels_change_nothing_in_partitions_that_do_not_look_at_labels(changes):
    pieces = cut_of(regression(), **changes)
    assert_disjoint(pieces, 60)
    same = cut_of(table(60, groups=np.arange(60) // 20), **changes)
    assert_same(pieces, same, "auxiliary", "test", "order", "offsets", "bag_offsets")


def test_rows_that_are_drawn_follow_on_each_other():
    pieces = cut(load("crowd"), auxiliary=30, test=20, parties=4, rows=6, partition="iid", seed=1, bags=2)
    assert pieces.test.tolist() == list(range(20))
    assert pieces.auxiliary.tolist() == list(range(20, 50))
    assert [*pieces.party(3)] == list(range(68, 74))
    assert pieces.bags(3).tolist() == [0, 0, 0, 1, 1, 1]
    assert pieces.order == range(50, 74)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"auxiliary": 0.25}, r"data\.auxiliary"),
        ({"test": 0.2}, r"data\.test"),
        ({"rows": None}, r"parties\.rows"),
        ({"bags": {"by": "x0"}}, r"parties\.bags"),
        ({"partition": {"dirichlet": 1.0}}, r"parties\.partition"),
        ({"parties": 10**9}, "6000000000"),
    ],
)
def test_rows_that_are_drawn_are_dealt_by_whole_numbers_only(changes, named):
    asked = {"auxiliary": 30, "test": 20, "parties": 4, "rows": 6, "partition": "iid", "seed": 1, **changes}
    refused(named, cut, load("crowd"), **asked)
