"""Which period rows are of, and what a release over time learns from and is tested on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import refused

from scenarios.data.tables import Table
from scenarios.simulated.periods import periods_of, window_cut

N = 240


def table(time=None, **groups):
    time = np.arange(N) % 6 if time is None else np.array(time)
    rows = np.arange(len(time))
    return Table("toy", ("x",), ("a", "b"), rows // 3 % 2, (1.0 * rows[:, None],), groups={"t": time, **groups})


def cut_of(whole, period, **changes):
    dealing = dict(
        time="t", periods={"every": 1}, window=None, test="next", bag_each=False,
        auxiliary=10, parties=4, rows=None, partition="iid", seed=1, split=0,
    )  # fmt: skip
    return window_cut(whole, period=period, **{**dealing, **changes})


@pytest.mark.parametrize(
    ("span", "of_row", "names"),
    [
        ("day", [1, 2, 2, 3], ("2022-12-31", "2023-01-01", "2023-01-02")),
        ("week", [1, 1, 1, 2], ("2022-W52", "2023-W01")),
        ("month", [1, 2, 2, 2], ("2022-12", "2023-01")),
        ("quarter", [1, 2, 2, 2], ("2022-Q4", "2023-Q1")),
        ("year", [1, 2, 2, 2], ("2022", "2023")),
    ],
)
def test_spans_are_those_of_the_calendar(span, of_row, names):
    days = ["2022-12-31T23:59:59", "2023-01-01", "2023-01-01T12:00", "2023-01-02"]
    found = periods_of(table(days), "t", {"every": span})
    assert (found.of_row.tolist(), found.names) == (of_row, names)


@pytest.mark.parametrize(
    ("periods", "of_row", "last"),
    [
        (2, [1, 1, 2, 2, 2], "from 5"),
        (5, [1, 2, 3, 4, 5], "from 8"),
        ({"every": 4}, [1, 1, 2, 2, 3], "from 8"),
        ([2.5, 7.0], [0, 0, 1, 1, 2], "from 7"),
    ],
)
def test_numbers_are_divided_by_length_or_by_starts(periods, of_row, last):
    found = periods_of(table([0.0, 2.0, 5.0, 6.0, 10.0]) if periods != 5 else table([0, 2, 4, 6, 10]), "t", periods)
    assert found.of_row.tolist() == of_row
    assert found.names[-1] == last


@pytest.mark.parametrize(
    ("time", "periods", "said"),
    [
        ([1, 2], {"every": "week"}, "{every: week} is for dates, and 't' of 'toy' holds numbers"),
        (["2023-01", "2023-02"], {"every": 7.0}, "{every: 7} is for numbers, and 't' of 'toy' holds dates"),
        (["2023-01", "2023-02"], [1.0, 2.0], "'t' of 'toy' holds dates, and 1.0 is a number"),
        ([1, 2], ["2023-01", "2023-02"], "'t' of 'toy' holds numbers, and 2023-01 is a date"),
        ([4, 4], 2, "all rows of 't' of 'toy' are of one moment"),
        (["2023-01", "2023-01"], {"every": "year"}, "must give 2 to 1000 periods, got 1"),
        ([0, 10**6], {"every": 1}, "must give 2 to 1000 periods, got 1001"),
        (["0001-01-01", "2023-01-01"], {"every": "day"}, "must give 2 to 1000 periods, got 1001"),
        (["2023-01", "2023-03"], {"every": "month"}, r"period 2 of 3 \(2023-02\) has no rows"),
        ([1, 2], [1.0, 2.0, 5.0], r"period 3 of 3 \(from 5\) has no rows"),
    ],
)
def test_periods_that_the_data_has_not_are_refused(time, periods, said):
    refused(said.replace("{", r"\{"), periods_of, table(time), "t", periods)


@pytest.mark.parametrize(("window", "past"), [(None, [0, 1, 2, 3]), (2, [2, 3]), (1, [3]), (9, [0, 1, 2, 3])])
def test_a_release_learns_from_the_window_before_the_rows_that_test_it(window, past):
    whole = table()
    pieces = cut_of(whole, 5, window=window)
    time = whole.groups["t"]
    assert np.unique(time[pieces.order]).tolist() == past
    assert np.unique(time[pieces.auxiliary]).tolist() == past  # public rows are of the past, too
    assert sorted(pieces.test) == np.flatnonzero(time == 4).tolist()
    assert len(pieces.auxiliary) == 10 * len(past)
    assert pieces.bags_per_party == 1
    assert sorted([*pieces.order, *pieces.auxiliary]) == np.flatnonzero(np.isin(time, past)).tolist()


@given(window=st.sampled_from([None, 1, 2, 3]), bags=st.integers(1, 3), split=st.integers(0, 3))
def test_a_row_stays_with_its_party_and_what_is_public_stays_so(window, bags, split):
    whole = table()
    holder, public = {}, set()
    for period in range(2, 7):
        dealt = dict(auxiliary=0.2, bags=bags, bag_each=True, split=split)
        pieces = cut_of(whole, period, periods=6, window=window, **dealt)
        public |= {*pieces.auxiliary.tolist()}
        for party in range(pieces.parties):
            for row in pieces.party(party).tolist():
                assert holder.setdefault(row, party) == party
        past = min(period - 1, window or 9)
        assert pieces.bags_per_party == bags * past
        assert {len(set(whole.groups["t"][held])) for held in np.split(pieces.order, pieces.bag_offsets[1:-1])} == {1}
    assert not public & holder.keys()


def test_parties_by_a_column_come_and_go():
    time = np.repeat([0, 1, 2], 40)
    site = np.where(time == 0, np.arange(120) % 2, 1 + np.arange(120) % 2)  # 0 and 1, then 1 and 2
    whole = table(time, site=site)
    by = dict(partition={"by": "site"}, parties=None, auxiliary=4)
    pieces = cut_of(whole, 3, **by)
    assert pieces.party_names == ("0", "1", "2")
    for party in range(3):
        assert {*site[pieces.party(party)]} == {party}
    assert {*time[pieces.party(1)]} == {0, 1}
    assert cut_of(whole, 3, window=1, **by).party_names == ("1", "2")


def test_what_does_not_suffice_is_told_with_its_period_and_other_test_rows_are_refused():
    time = np.append(np.zeros(100), np.ones(12)).astype(int)
    refused(r"1.*0.*parties\.count.*4.*parties\.rows.*30.*120", cut_of, table(time), 2, rows=30)
    refused(r"data\.test.*data\.time", cut_of, table(), 2, periods=2, test=0.2)
