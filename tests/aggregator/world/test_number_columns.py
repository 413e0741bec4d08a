"""Columns of numbers that say nothing, by their names and public rows alone."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from aggregator.trial.feature_fitting import are_identifiers, identifiers, names_somebody, remarks

COUNT = 40
COLUMNS = {
    "patient_id": 1000.0 + 7 * np.arange(COUNT)[::-1],
    "visits": np.arange(COUNT) % 4,
    "site": np.full(COUNT, 3.0),
    "age": np.linspace(20.0, 60.5, COUNT),
}


def table(text=(), **changed):
    columns = {**COLUMNS, **changed}
    return SimpleNamespace(rows=np.column_stack([*columns.values()]), columns=tuple(columns), text_columns=text)


def test_numbers_so_named_that_no_two_public_rows_share_are_identifiers():
    assert identifiers(table()) == (0,)
    assert identifiers(table(text=(0,))) == ()  # of texts others decide
    assert identifiers(table(patient_id=COLUMNS["visits"])) == ()  # somebody has several rows
    assert identifiers(table(patient_id=COLUMNS["age"])) == ()  # no whole numbers
    assert identifiers(table(patient_id=np.where(COLUMNS["visits"] > 2, np.nan, COLUMNS["patient_id"]))) == ()
    assert identifiers(table(age=np.arange(COUNT))) == (0,)  # numbered through, but it may be anything


def test_what_says_nothing_is_told_with_what_to_do():
    first, second = remarks(table(), ["impute", "scale"], mixed=True)
    assert first.startswith("the column 'patient_id' is left out: it is named as an identifier, and no two of the 40")
    assert second.startswith("the column 'site' says nothing: it is 3 in all 40 public rows, so that nobody knows its")
    assert len(list(remarks(table(), ["standardise"], mixed=False))) == 2
    assert len(list(remarks(table(), ["scale"], mixed=False))) == 1  # as pixels of one unit may be
    assert len(list(remarks(table(), [{"whiten": 3}], mixed=True))) == 1
    holed = np.where(np.arange(COUNT) == 5, np.nan, 3.0)
    assert len(list(remarks(table(site=holed), ["standardise"], mixed=True))) == 1  # that it is missing says something


@pytest.mark.parametrize(("name", "named"), [("ID", True), ("row", True), ("Unnamed: 0", True), ("idle", False)])
def test_names_of_identifiers(name, named):
    assert names_somebody(name) is named
    assert are_identifiers(name, np.arange(0.0, 2000.0, 100.0)) is named
