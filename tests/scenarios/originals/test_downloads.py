"""Files of a folder of downloads by their names, packed or not."""

import bz2
import gzip

import numpy as np
import pytest

from federation.contract.errors import InputError
from scenarios.data.original_formats import Downloads, coded, indicators, numbers, texts


@pytest.fixture
def found(tmp_path):
    (tmp_path / "deep" / "train").mkdir(parents=True)
    (tmp_path / "deep" / "train" / "a.txt").write_text("1 2\n3 4\n")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b'x, city\n1,Rome\n,"Os\nlo"\n'))
    (tmp_path / "c.svm.bz2").write_bytes(bz2.compress(b"1 2:5 \n"))
    return Downloads(tmp_path)


def test_files_are_found_however_deep_and_packed(found):
    assert found.path("a.txt") == found.path("train/a.txt") == found.folder / "deep" / "train" / "a.txt"
    assert found.matrix("a.txt").tolist() == [[1, 2], [3, 4]]
    assert found.open("c.svm").read() == b"1 2:5 \n"
    rows, labels = found.svmlight("c.svm", 3)
    assert (rows.toarray().tolist(), labels.tolist()) == ([[0, 5, 0]], [1])
    (found.folder / "a.txt").write_text("9")
    assert found.matrix("a.txt").tolist() == [[9]]  # the nearest one


def test_a_table_has_the_names_of_its_first_line_or_given_ones(found):
    table = found.table("b.csv", numbers=["x"])
    path = found.path("b.csv")
    np.testing.assert_array_equal(numbers(table, ["x"], path, missing=True), [[1], [np.nan]])
    assert texts(table, " city", path).tolist() == ["Rome", "Os\nlo"]
    bare = found.table("a.txt", ["p", "q"], " ", numbers=["q"], skip=1)
    assert bare.to_pydict() == {"p": ["3"], "q": [4.0]}
    assert found.table("a.txt", ["p", "q"], " ", rows=1).num_rows == 1
    with pytest.raises(InputError, match=r"b\.csv\.gz: 'x' of row 1 .* is empty"):
        numbers(table, ["x"], path)
    with pytest.raises(InputError, match="has no column 'town'"):
        texts(table, "town", path)


def test_what_is_not_there_is_told(found):
    with pytest.raises(InputError, match=r"there is no file test/a.txt in .*; unpack the download there"):
        found.matrix("test/a.txt")


def test_categories_are_by_alphabet():
    known, codes = coded(np.array(["b", "a", "b"]))
    assert (known.tolist(), codes.tolist()) == (["a", "b"], [1, 0, 1])
    assert indicators(codes, 3).tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0]]
