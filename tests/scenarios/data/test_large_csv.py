"""Large files in small blocks: the same as read at once, in little memory, with errors that say what is wrong."""

import csv

import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.features.feature_map import text_code
from scenarios.data import large_csv
from scenarios.data.large_csv import CodedTexts, read_large


def everything(numbers):
    return np.ones(len(next(iter(numbers.values()))), dtype=bool)


@pytest.fixture
def written(tmp_path, rng):
    """A file of 500 rows, and its cells."""
    cells = [
        (f"{rng.normal():.4f}", rng.choice(["red", "a, b", "", "blue "]), str(rng.integers(5)), f"t{rng.integers(30)}")
        for _ in range(500)
    ]
    with (tmp_path / "x.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("x", "colour", "n", "t"), *cells])
    return tmp_path / "x.csv", cells


@pytest.mark.parametrize("block", [64, 1000, 1 << 24])
def test_blocks_give_what_the_file_holds(written, monkeypatch, block):
    monkeypatch.setattr(large_csv, "_BLOCK", block)
    path, cells = written
    sheet = read_large(path, ("n", "x"), ("t", "colour"), lambda numbers: numbers["n"] >= 2)
    wanted = [row for row in cells if int(row[2]) >= 2]
    assert list(sheet.numbers) == ["n", "x"]
    np.testing.assert_array_equal(sheet.numbers["x"], [float(row[0]) for row in wanted])
    np.testing.assert_array_equal(sheet.numbers["n"], [float(row[2]) for row in wanted])
    found = sheet.texts[np.arange(len(wanted))]
    np.testing.assert_array_equal(found, [[text_code(row[3]), text_code(row[1].strip())] for row in wanted])
    assert sheet.texts.codes.dtype == np.uint16
    assert sheet.texts.shape == (len(wanted), 2)
    assert len(sheet.texts) == len(wanted)


def test_coded_texts_are_indexed_like_an_array():
    vocabularies = (np.array([10.0, 20.0]), np.array([1.0, 2.0, 3.0]))
    block = CodedTexts(np.array([[0, 2], [1, 1], [0, 0]], np.uint16), vocabularies)
    np.testing.assert_array_equal(block[np.array([2, 0, 2])], [[10, 1], [10, 3], [10, 1]])
    assert block[np.array([], dtype=int)].shape == (0, 2)


def test_a_file_without_a_header_has_the_names_that_are_known(tmp_path):
    (tmp_path / "x").write_text('1\t"a\tu\n\tb\tv\n3\t"a\tw\n')
    sheet = read_large(tmp_path / "x", ("p",), ("q",), everything, separator="\t", names=("p", "q", "r"))
    np.testing.assert_array_equal(sheet.numbers["p"], [1, np.nan, 3])
    np.testing.assert_array_equal(sheet.texts[np.arange(3)][:, 0], [text_code(t) for t in ('"a', "b", '"a')])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x,y\n1,a\n", "lacks the columns t; it has x, y"),
        ("", "lacks the columns x, t; it has none"),
        ("x,t\n1,a\n2\n", r"is not of the documented format \(.*Expected 2 columns"),
        ("x,t\n1,a\nno,b\n", "is not of the documented format .*no"),
        ("x,t\n", "has no row with a label"),
        ("x,t\n-1,a\n", "has no row with a label"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path, text, words):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        read_large(tmp_path / "x.csv", ("x",), ("t",), lambda numbers: numbers["x"] > 0)


def test_a_column_of_identifiers_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(large_csv, "_MOST_TEXTS", 3)
    (tmp_path / "x.csv").write_text("x,t\n" + "".join(f"1,t{i}\n" for i in range(4)))
    with pytest.raises(InputError, match="column 't' has more than 3 different texts"):
        read_large(tmp_path / "x.csv", ("x",), ("t",), everything)
