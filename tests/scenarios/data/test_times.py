"""Moments as files write them."""

from datetime import UTC, datetime

import numpy as np
import pytest

from federation.contract.errors import InputError
from scenarios.data.sheets import moment, moments, seconds
from scenarios.data.tables import Table


def table(values):
    n = len(values)
    return Table("toy", ("x",), ("a", "b"), np.arange(n) % 2, (np.arange(n * 1.0)[:, None],), groups={"t": values})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2023-02-03", (2023, 2, 3)),
        ("2023-02", (2023, 2, 1)),
        ("2023-Q3", (2023, 7, 1)),
        ("2023-W07", (2023, 2, 13)),
        ("2020-W53", (2020, 12, 28)),
        ("2023-02-03T04:05:06", (2023, 2, 3, 4, 5, 6)),
        ("2023-02-03 04:05:06+02:00", (2023, 2, 3, 2, 5, 6)),
        ("1969-12-31", (1969, 12, 31)),
    ],
)
def test_dates_are_seconds_since_1970(text, expected):
    assert moment(text) == (datetime(*expected, tzinfo=UTC).timestamp(), True)


@pytest.mark.parametrize("text", ["", "soon", "2023-13", "2023-W54", "2023-Q5", "nan", "inf", "2023/02/03"])
def test_what_is_no_moment_is_refused(text):
    with pytest.raises(ValueError, match=r".*"):
        moment(text)


def test_numbers_stay_what_they_are():
    found, dated = moments(table(np.array([3, 1, 2])), "t")
    assert found.tolist() == [3.0, 1.0, 2.0]
    assert not dated
    assert moments(table(np.array([3, 1, 2])), "x")[0].tolist() == [0.0, 1.0, 2.0]  # a column of numbers


def test_dates_come_back_from_seconds():
    found, dated = moments(table(np.array(["2023-02-03", "1969-12-31"])), "t")
    assert dated
    assert seconds(found).astype(str).tolist() == ["2023-02-03T00:00:00", "1969-12-31T00:00:00"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["2023-02-03", "later"], r"data.time: 'later' in row 1 \(counted from 0\) of 'toy' is not a number, an ISO"),
        (["2023-02-03", "7"], "data.time: the column 't' of 'toy' has numbers and dates, such as '7' and '2023-02-03'"),
    ],
)
def test_a_column_of_anything_else_is_refused_by_its_row(values, said):
    with pytest.raises(InputError, match=said):
        moments(table(np.array(values)), "t")


def test_an_unknown_column_is_refused_by_the_setting():
    with pytest.raises(InputError, match=r"data\.time: 'toy' has no column 'tt'"):
        moments(table(np.array([1, 2])), "tt")
