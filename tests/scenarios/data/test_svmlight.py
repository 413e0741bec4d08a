"""svmlight files as sheets."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.feature_extraction import FeatureHasher

from federation.contract.errors import InputError
from scenarios.data import readers as svmlight
from scenarios.data.files import read_public, read_rows, read_table
from scenarios.data.hashing import Hashing
from scenarios.data.profile import profile
from scenarios.data.readers import read_hashed


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
        ("1 99999999:1\n0 1:1\n", "not of the svmlight format .* with indices from 1 to 16777216"),
        ("1 16777216:1\n" * 9, r"has 9 rows of 16777216 columns, .* begin with {hash: 12}"),
        ("nan 1:1\n1 1:2\n", "'y' is missing"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path, text, part):
    path = tmp_path / "bad.svmlight"
    path.write_text(text)
    with pytest.raises(InputError, match=part):
        read_table(path, None)


def written_days(folder):
    """Five days of four sparse rows each, in pieces that end within a day."""
    random = np.random.default_rng(1)
    for day in (0, 1, 2, 10, 11):
        lines = []
        for row in range(4):
            columns = np.sort(random.choice(3_000_000, 30, replace=False)) + 1
            lines.append(f"{'+1' if row % 2 else '-1'} " + " ".join(f"{i}:{0.25 * (i % 7)}" for i in columns))
        (folder / f"Day{day}.svm").write_text("\n".join(lines) + "\n")
    return folder / "Day*.svm"


def test_hashed_rows_are_those_of_a_feature_hasher_of_the_columns_names(tmp_path):
    pattern = written_days(tmp_path)
    table = read_table(pattern, None, ["file"], hashes=[Hashing(8)])
    assert (len(table), table.classes, table.columns[3]) == (20, ("-1", "1"), "hash(x, 8 bits)[3]")
    assert [*dict.fromkeys(table.groups["file"].tolist())] == ["Day0", "Day1", "Day2", "Day10", "Day11"]
    assert table.labels.tolist() == [0, 1] * 10
    rows = []
    for day in (0, 1, 2, 10, 11):
        for line in (tmp_path / f"Day{day}.svm").read_text().splitlines():
            pairs = (pair.split(":") for pair in line.split()[1:])
            rows.append({f"x{index}": float(value) for index, value in pairs})
    expected = FeatureHasher(256).transform(rows).toarray()
    np.testing.assert_allclose(table.rows(np.arange(20)), expected, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(table.rows(np.array([7, 3])), table.rows(np.arange(20))[[7, 3]])


def test_the_same_rows_whatever_the_pieces_they_are_read_in(tmp_path, monkeypatch):
    pattern = written_days(tmp_path)
    whole = read_hashed(pattern, Hashing(6))
    monkeypatch.setattr(svmlight, "_PIECE", 700)
    pieces = read_hashed(pattern, Hashing(6))
    np.testing.assert_array_equal(pieces.rows[np.arange(20)], whole.rows[np.arange(20)])
    assert (pieces.labels.tolist(), pieces.files.tolist()) == (whole.labels.tolist(), whole.files.tolist())


def test_new_and_public_rows_are_hashed_as_the_table_was(tmp_path):
    pattern = written_days(tmp_path)
    table = read_table(pattern, None, hashes=[Hashing(5)])
    one = tmp_path / "Day2.svm"
    expected = table.rows(np.arange(8, 12))
    np.testing.assert_array_equal(read_rows(one, table.columns), expected)
    np.testing.assert_array_equal(read_public(one, table, "days"), expected)


def test_several_files_without_hashing_are_one_sheet(tmp_path):
    (tmp_path / "a1.svm").write_text("1 1:2\n")
    (tmp_path / "a2.svm").write_text("0 3:4\n")
    table = read_table(tmp_path / "a?.svm", None)
    assert table.rows(np.arange(2)).tolist() == [[2, 0, 0], [0, 0, 4]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label": "x3"}, "data.label: the labels of .* are 'y', got 'x3'; leave it out"),
        ({"groups": ["day"]}, "no column 'day' by which rows could be dealt; its only one is 'file'"),
        ({"drop": ["x3"]}, "data.drop: the columns of .* are hashed together"),
        ({"hashes": [Hashing(4, "text")]}, "has no columns of texts; hash all of its columns by one stage"),
        ({"hashes": [Hashing(4), Hashing(5)]}, "hash all of its columns by one stage"),
    ],
)
def test_what_does_not_go_with_hashed_columns_is_refused(tmp_path, options, words):
    given = {"label": None, "hashes": [Hashing(4)], **options}
    with pytest.raises(InputError, match=words):
        read_table(written_days(tmp_path), given.pop("label"), **given)


@pytest.mark.parametrize("text", ["", "nan 1:1\n", "1 0:1\n"])
def test_files_that_cannot_be_hashed_are_refused(tmp_path, text):
    path = tmp_path / "bad.svm"
    path.write_text(text)
    with pytest.raises(InputError, match=r"bad\.svm"):
        read_table(path, None, hashes=[Hashing(4)])


def test_what_is_too_large_is_refused_before_memory_is_taken(saved, monkeypatch):
    monkeypatch.setattr(svmlight, "MOST_CELLS", 119)
    with pytest.raises(InputError, match="30 rows of 4 columns, zeros among them, more than the 119 cells"):
        read_table(saved[0], None)
