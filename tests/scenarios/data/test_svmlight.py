"""svmlight files as sheets."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from federation.contract.errors import InputError
from scenarios.data import svmlight
from scenarios.data.files import read_public, read_rows, read_table
from scenarios.data.profile import profile


@pytest.fixture
def saved(tmp_path):
    random = np.random.default_rng(0)
    rows = random.normal(size=(30, 4)) * (random.random((30, 4)) < 0.5)
    labels = np.where(rows[:, 0] > 0, 1, -1)
    path = tmp_path / "own.svmlight"
    dump_svmlight_file(rows, labels, str(path), zero_based=False)
    return path, rows, labels


def test_rows_and_labels_are_those_that_were_written(saved):
    path, rows, labels = saved
    table = read_table(path, None)
    assert (table.columns, table.classes) == (("x1", "x2", "x3", "x4"), ("-1", "1"))
    np.testing.assert_allclose(table.rows(np.arange(30)), rows, rtol=1e-15)
    np.testing.assert_array_equal(table.labels, labels == 1)
    assert read_table(path, "y", real=True).labels.tolist() == labels.tolist()
    assert [(column.name, column.kind) for column in profile(path).columns][-2:] == [
        ("x4", "numbers"), ("y", "whole numbers"),
    ]  # fmt: skip


def test_columns_that_are_all_zero_in_other_rows_are_there(saved, tmp_path):
    path, _, _ = saved
    other = tmp_path / "new.svmlight"
    other.write_text("0 2:5\n0 1:-1\n")
    expected = [[0, 5, 0, 0], [-1, 0, 0, 0]]
    assert read_rows(other, ("x1", "x2", "x3", "x4")).tolist() == expected
    assert read_public(other, read_table(path, None), "own.svmlight").tolist() == expected
    assert read_rows(other, ("x4", "x2")).tolist() == [[0, 5], [0, 0]]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("1 0:3\n", r"not of the svmlight format \(.*\); every line is LABEL INDEX:VALUE"),
        ("a,b\n1,2\n", "not of the svmlight format"),
        ("1 2:3 1:4\n", "not of the svmlight format"),
        ("", "has no rows with a value"),
        ("1\n0\n", "has no rows with a value"),
        ("1 99999999:1\n0 1:1\n", r"has 2 rows of 99999999 columns"),
        ("nan 1:1\n1 1:2\n", "'y' is missing"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path, text, part):
    path = tmp_path / "bad.svmlight"
    path.write_text(text)
    with pytest.raises(InputError, match=part):
        read_table(path, None)


def test_what_is_too_large_is_refused_before_memory_is_taken(saved, monkeypatch):
    monkeypatch.setattr(svmlight, "_MOST_CELLS", 119)
    with pytest.raises(InputError, match="30 rows of 4 columns, zeros among them, more than the 119 cells"):
        read_table(saved[0], None)
