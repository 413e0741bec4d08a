"""Target sets: exact shares of test rows, repeatable, and refusals that name class, need and supply."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.errors import InputError
from scenarios.data.tables import Table
from scenarios.settings.schema import resolve
from scenarios.simulated.targets import target_sets, wants_targets

N = 3000
TABLE = Table(
    "toy",
    ("row",),
    ("low", "mid", "high"),
    np.random.default_rng(0).choice(3, N, p=[0.2, 0.3, 0.5]),
    (np.arange(N)[:, None],),
)
TEST = np.arange(500, 2000)


def drawn(targets=None, table=TABLE, test=TEST, seed=1, split=0):
    return target_sets(table, test, **(targets or {}), seed=seed, split=split)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    rows=st.none() | st.integers(1, 250),
    shares=st.lists(st.floats(0, 1), min_size=1, max_size=4, unique=True),
    vary=st.sampled_from([None, "low", "mid", "high"]),
    seed=st.integers(0, 2**40),
)
def test_sets_have_the_shares_that_were_asked_for(rows, shares, vary, seed):
    varied = TABLE.classes.index(vary or "low")
    sets = drawn(dict(rows=rows, shares=tuple(shares), vary=vary), seed=seed)
    assert [one.share for one in sets] == shares
    sizes = {len(one.indices) for one in sets}
    assert len(sizes) == 1
    assert rows is None or sizes == {rows}
    for one in sets:
        assert len(np.unique(one.indices)) == len(one.indices)
        assert np.isin(one.indices, TEST).all()
        counts = np.bincount(TABLE.labels[one.indices], minlength=3)
        np.testing.assert_array_equal(one.proportions, counts / counts.sum())
        assert abs(counts[varied] - one.share * counts.sum()) < 1
        others = np.delete(counts, varied)
        assert others.max() - others.min() <= 1
        np.testing.assert_array_equal(one.rows[:, 0], one.indices)


def test_by_default_the_first_class_takes_shares_from_one_to_nine_tenths():
    sets = drawn()
    np.testing.assert_allclose([one.proportions[0] for one in sets], np.arange(1, 10) / 10, atol=0.002)
    supply = np.bincount(TABLE.labels[TEST])
    assert len(sets[0].indices) == pytest.approx(supply[0] / 0.9, abs=2)  # the rarest class decides
    plenty = Table("big", ("row",), ("a", "b"), np.arange(6000) % 2, (np.arange(6000)[:, None],))
    assert len(drawn(table=plenty, test=np.arange(6000))[0].indices) == 1000


def test_sets_depend_on_seed_split_and_their_own_share_only():
    [one] = drawn(dict(rows=50, shares=(0.5,)))
    again = drawn(dict(rows=50, shares=(0.3, 0.5)))[1]
    np.testing.assert_array_equal(one.indices, again.indices)
    others = [drawn(dict(rows=50, shares=(0.5,)), **change)[0] for change in ({"seed": 2}, {"split": 1})]
    others.append(drawn(dict(rows=50, shares=(0.6,)))[0])
    for other in others:
        assert set(other.indices) != set(one.indices)


def test_every_test_row_of_a_class_is_drawn_equally_often():
    """400 splits, each with 20 of 100 rows of a class; five deviations either way."""
    table = Table("toy", ("row",), ("a", "b"), np.arange(200) % 2, (np.arange(200)[:, None],))
    counts = np.zeros(200)
    for split in range(400):
        [one] = drawn(dict(rows=40, shares=(0.5,)), table=table, test=np.arange(200), split=split)
        counts[one.indices] += 1
    assert np.abs(counts - 80).max() < 5 * np.sqrt(400 * 0.2 * 0.8)


def test_larger_sets_hold_smaller_ones_of_the_same_share():
    sizes = (10, 40, 160)
    sets = [set(drawn(dict(rows=rows, shares=(0.25,)))[0].indices) for rows in sizes]
    for smaller, larger in pairwise(sets):
        assert smaller < larger


@pytest.mark.parametrize(
    ("targets", "part"),
    [
        (
            dict(rows=500, shares=(0.1, 0.9)),
            r"a set of 500 rows with the share 0.9 of the class 'low' needs 450 test rows of the class 'low', but "
            r"there are \d+; sets of \d+ rows would do: lower data.targets.rows, leave out that share or raise",
        ),
        (dict(rows=2000, shares=(0.1,), vary="high"), r"needs 900 test rows of the class 'low', but"),
        (dict(vary="hgih"), r"data.targets.vary: 'toy' has no class 'hgih'; it has low, mid, high; did you mean"),
    ],
)
def test_sets_that_cannot_be_drawn(targets, part):
    with pytest.raises(InputError, match=part):
        drawn(targets)


def test_a_class_without_test_rows_is_named():
    with pytest.raises(InputError, match=r"needs 1 test rows of the class 'mid', but there are 0; lower"):
        drawn(dict(shares=(0.0,)), test=TEST[TABLE.labels[TEST] != 1])


def test_a_table_is_not_shown():
    assert "Table" not in repr(drawn()[0])


def test_who_wants_targets():
    plain = {"data": {"source": "digits"}, "parties": {"count": 5}, "privacy": {"epsilon": 1}}
    assert not wants_targets(resolve(plain))
    assert wants_targets(resolve(plain, ["protocols=[{kind: pooled}, {kind: class_ratio}]"]))
