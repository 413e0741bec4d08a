"""Arrays of npz files: which are taken, and how every other is named."""

import re

import numpy as np
import pytest

from federation.contract.errors import InputError
from scenarios.data.readers import Archive


@pytest.fixture
def archive(tmp_path):
    def of(**arrays):
        np.savez(tmp_path / "own.npz", **arrays)
        return Archive(tmp_path / "own.npz")

    return of


def test_arrays_by_name(archive):
    found = archive(X=np.ones((3, 2)), y=np.arange(3))
    assert list(found) == ["X", "y"]
    assert "X" in found
    assert "Z" not in found
    assert found["y"].tolist() == [0, 1, 2]


def test_a_missing_array_is_named_with_those_that_are_there(archive):
    with pytest.raises(InputError, match=r"no array 'label'; it has labels; did you mean 'labels'\?"):
        archive(labels=np.arange(3))["label"]
    with pytest.raises(InputError, match="no array 'X'; it has none"):
        archive()["X"]


def test_a_file_that_cannot_be_opened_says_why(tmp_path):
    with pytest.raises(InputError, match=r"absent\.npz cannot be read: No such file or directory; check the path"):
        Archive(tmp_path / "absent.npz")
    for content in (b"", b"text"):
        (tmp_path / "own.npz").write_bytes(content)
        with pytest.raises(InputError, match=r"own\.npz is damaged or not an npz file; save it again"):
            Archive(tmp_path / "own.npz")
    np.save(tmp_path / "one.npy", np.ones(3))
    with pytest.raises(InputError, match="holds one array, not an npz archive of named arrays"):
        Archive(tmp_path / "one.npy")


def test_python_objects_are_never_loaded(archive):
    found = archive(X=np.array([print, None], dtype=object), y=np.arange(2))
    assert found["y"].tolist() == [0, 1]
    with pytest.raises(InputError, match=r"array 'X' holds Python objects; save it as numbers or as text"):
        found["X"]


def test_tables_are_finite_numbers_of_equal_width(archive):
    found = archive(
        X=np.ones((3, 2)), bits=np.eye(2, dtype=bool), wide=np.ones((3, 4)), flat=np.ones(3), none=np.ones((0, 2)),
        texts=np.array([["a", "b"]]), holes=np.array([[1.0, 2.0], [3.0, -np.inf]]),
        long=np.array([[1.0, np.finfo(np.longdouble).max]]),
    )  # fmt: skip
    assert [table.shape for table in found.tables("X", "bits")] == [(3, 2), (2, 2)]
    with pytest.raises(InputError, match=r"X and wide must have equal columns, got \[2, 4\]"):
        found.tables("X", "wide")
    for name in ("flat", "none", "texts"):
        with pytest.raises(InputError, match=f"array '{name}' must hold numbers in rows and columns, got "):
            found.tables("X", name)
    with pytest.raises(InputError, match=r"array 'holes', row 1, column 1 \(counted from 0\) is -inf; remove or"):
        found.tables("holes")
    if np.finfo(np.longdouble).max > np.finfo(float).max:
        with pytest.raises(InputError, match=r"array 'long', row 0, column 1 \(counted from 0\) is inf"):
            found.tables("long")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.arange(2), r"must hold 3 numbers or texts, got int64 of shape \(2,\)"),
        (np.ones((3, 1)), r"must hold 3 numbers or texts, got float64 of shape \(3, 1\)"),
        (np.ones(3, complex), "must hold 3 numbers or texts, got complex128"),
        (np.array([1.0, np.nan, 2.0]), r"row 1 \(counted from 0\) is missing"),
        (np.array(["a", "b", " "]), r"row 2 \(counted from 0\) is missing"),
        (np.array(["NA", "b", "c"]), r"row 0 \(counted from 0\) is missing"),
    ],
)
def test_vectors_have_a_value_for_every_row(archive, values, words):
    with pytest.raises(InputError, match=f"array 'v'.* {words}"):
        archive(v=values).vector("v", 3)


def test_among_names_a_word_for_missing_is_a_name_and_a_blank_is_none(archive):
    found = archive(words=np.array(["NA", "null"]), blank=np.array(["a", ""]))
    assert found.vector("words", 2, names=True).tolist() == ["NA", "null"]
    with pytest.raises(InputError, match="row 1"):
        found.vector("blank", 2, names=True)


def test_parts_are_joined_by_the_rows_that_they_belong_to(archive):
    found = archive(y_train=np.array([1, 2]), y_test=np.array([3]))
    blocks = (np.ones((2, 1)), np.ones((1, 1)))
    assert found.joined("y", ("_train", "_test"), blocks).tolist() == [1, 2, 3]
    with pytest.raises(InputError, match=re.escape("array 'y_test' must hold 2 numbers or texts")):
        found.joined("y", ("_train", "_test"), (blocks[0], np.ones((2, 1))))


def test_columns_are_numbered_where_names_may_be_left_out(archive):
    rows = np.ones((3, 2))
    assert archive(X=rows).column_names("names", rows, needed=False) == ("x0", "x1")
    assert archive(names=np.array([7, 8])).column_names("names", rows, needed=False) == ("7", "8")
    with pytest.raises(InputError, match="no array 'names'"):
        archive(X=rows).column_names("names", rows)
