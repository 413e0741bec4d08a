"""Texts as indicators, and the columns that say nothing, by public rows alone."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.trial.feature_fitting import fit, indicators
from aggregator.trial.feature_fitting import text_column_remarks as remarks
from federation.contract.errors import InputError


def table(rows, names, text):
    return SimpleNamespace(rows=np.array(rows, dtype=float), columns=names, text_columns=text)


def test_constant_and_nearly_unique_texts_get_no_indicators_and_a_remark():
    count = 60
    keys, same, colours, ages = np.arange(count), np.full(count, 7), np.arange(count) % 3, np.linspace(1, 9, count)
    public = table(np.column_stack([keys, same, colours, ages]), ("key", "site", "colour", "age"), (0, 1, 2))
    said = list(remarks(public))
    assert len(said) == 2
    assert said[0].startswith("the text column 'key' is left out: it has 60 different texts in 60 public rows; to keep")
    assert said[1].startswith("the text column 'site' is left out: its texts are the same in all 60 public rows;")
    features = fit(["standardise"], public.rows, public.text_columns)
    assert features.dimension == 4  # the age and three colours
    private = features.transform(np.array([[99.0, 8.0, 1.0, 5.0], [3.0, 7.0, 1.0, 5.0]]))
    np.testing.assert_array_equal(private[0], private[1])  # whatever a row says in the columns that are left out


@pytest.mark.parametrize(
    ("different", "rows", "stay"), [(20, 20, True), (21, 42, True), (21, 41, False), (1, 9, False)]
)
def test_the_rule_is_in_the_numbers_of_public_texts_and_rows(different, rows, stay):
    cells = np.arange(rows) % different
    public = table(np.column_stack([cells, np.arange(rows) % 2]), ("a", "b"), (0, 1))
    assert len(indicators(public.rows, [0, 1]).codes) == (different + 2 if stay else 2)
    assert len(list(remarks(public))) == (0 if stay else 1)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2)), min_size=1, max_size=60))
@settings(max_examples=60, deadline=None)
def test_a_remark_for_each_column_without_indicators_and_for_no_other(cells):
    public = table([[*row, 0.5] for row in cells], ("a", "b", "x"), (0, 1))
    step = indicators(public.rows, [0, 1])
    empty = {("a", "b")[i] for i in range(2) if step.starts[i] == step.starts[i + 1]}
    assert {line.split("'")[1] for line in remarks(public)} == empty
    out = step.apply(public.rows)
    np.testing.assert_array_equal(out[:, 1:].sum(axis=1), 2 - len(empty))  # each public text is known, once


def test_mistakes():
    with pytest.raises(InputError, match="2 public rows have no column that tells anything"):
        indicators(np.ones((2, 1)), [0])
    with pytest.raises(InputError, match=r"1001 different texts .* leave it out with data.drop"):
        indicators(np.tile(np.arange(1001.0), 2)[:, None], [0])
    with pytest.raises(InputError, match=r"must lie in 0\.\.1, got \[2\]"):
        indicators(np.ones((2, 2)), [2])
