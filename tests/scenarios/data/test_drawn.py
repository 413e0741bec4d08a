"""Rows that are drawn when they are read: the same whoever reads them, of the law that the data set names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import binomtest

from federation.contract.errors import InputError
from scenarios.data.catalogue import load
from scenarios.data.generated_sets import Draws, drawn
from scenarios.data.tables import describe

NAMES = ["crowd", "intrusions"]


@given(st.integers(0, 5000), st.integers(0, 3000))
def test_a_row_is_the_same_however_it_is_asked_for(first, count):
    table = load("crowd")
    consecutive, places = range(first, first + count), np.arange(first, first + count)
    np.testing.assert_array_equal(table.rows(consecutive), table.rows(places))
    np.testing.assert_array_equal(table.labels[consecutive], table.labels[places])
    shuffled = np.random.default_rng(first).permutation(places)[:5]
    np.testing.assert_array_equal(table.rows(shuffled), table.rows(places)[shuffled - first])


@pytest.mark.parametrize("name", NAMES)
def test_rows_far_away_cost_nothing_before_them(name):
    table = load(name)
    last = np.array([len(table) - 1])
    assert table.rows(last).shape == (1, len(table.columns))
    assert table.labels[last].dtype == np.int64


@pytest.mark.parametrize("name", NAMES)
def test_instances_are_other_rows_of_the_same_law(name):
    some = range(1000)
    first, again, other = (load(name, instance=instance) for instance in (0, 0, 1))
    np.testing.assert_array_equal(first.rows(some), again.rows(some))
    assert (first.rows(some) != other.rows(some)).any(axis=1).all()


def test_the_crowd_can_be_told_apart_as_well_as_its_law_says():
    table, some = load("crowd"), range(200_000)
    right = np.count_nonzero((table.rows(some).sum(axis=1) > 0) == (table.labels[some] == 1))
    assert binomtest(right, 200_000, float(ndtr(0.4 * np.sqrt(10)))).pvalue > 1e-6
    assert binomtest(int(table.labels[some].sum()), 200_000, 0.5).pvalue > 1e-6


def test_connections_have_numbers_and_one_value_of_each_text():
    table, some = load("intrusions"), range(50_000)
    rows = table.rows(some)
    assert np.isin(rows[:, 38:], (0, 1)).all()
    for first, last in ((38, 41), (41, 108), (108, 119)):
        assert (rows[:, first:last].sum(axis=1) == 1).all()
    assert table.columns[38] == "protocol=0"
    assert table.columns[118] == "flag=10"
    assert binomtest(int(table.labels[some].sum()), 50_000, 0.8).pvalue > 1e-6


def test_classes_are_counted_piece_by_piece(monkeypatch):
    monkeypatch.setattr("scenarios.data.tables._ROWS_COUNTED", 300)
    table = load("crowd")
    np.testing.assert_array_equal(table.class_counts(range(1000)), np.bincount(table.labels[range(1000)]))


@pytest.mark.parametrize(("key", "value"), [("classes", ["no", "yes", "maybe"]), ("positive", ["yes"])])
def test_their_classes_are_their_own(key, value):
    with pytest.raises(InputError, match=f"drawn with its own classes: remove data.{key}"):
        load("crowd", **{key: value})


def test_nobody_counts_all_of_them_to_describe_them():
    assert describe(load("crowd")) == "crowd: 1000000000 rows, 10 columns, classes no, yes, drawn when they are read"


def test_parties_who_read_one_after_another_share_what_was_drawn():
    made = []

    def make(labels, random):
        made.append(len(labels))
        return np.zeros((len(labels), 1), np.float32)

    table = drawn(Draws("few", 4096, 1, (0.5, 0.5), make), ("x",), ("no", "yes"))
    for party in range(1024):
        table.rows(range(2 * party, 2 * party + 2))
    assert made == [1024, 1024]
