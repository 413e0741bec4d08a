"""New rows in blocks are the rows that are read at once, and there may be more of them where they are hashed."""

import numpy as np
import pytest

from federation.contract.errors import InputError
from scenarios.data import hashing
from scenarios.data.files import read_rows
from scenarios.data.frames import read_unlabelled
from scenarios.data.hashing import Hashing

WORDS, COLOURS, SPARSE = Hashing(3, "said"), Hashing(2, "colour", 2), Hashing(4)


@pytest.fixture
def comments(tmp_path):
    lines = [f"{i},{'red' if i % 3 else 'light blue'},word{i % 5} and {i}" for i in range(20)]
    path = tmp_path / "comments.csv"
    path.write_text("likes,colour,said\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def sparse(tmp_path):
    path = tmp_path / "new.svm"
    path.write_text("".join(f"1 {i + 1}:0.5 {7 * i + 30}:2\n" for i in range(20)))
    return path


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (("likes", *WORDS.names), ()),
        (("colour", "likes", *WORDS.names, *COLOURS.names), (0,)),
        (WORDS.names, ()),
        ((*WORDS.names, "likes"), ()),  # not as models have them: all at once
        (("likes", *WORDS.names[1:]), ()),
        (("likes", "colour"), (1,)),
    ],
)
def test_blocks_hold_the_rows_that_are_read_at_once(comments, columns, text):
    found = read_unlabelled(comments, columns, text)
    assert (found.columns, found.text) == (columns, text)
    np.testing.assert_array_equal(found.rows(range(20)), read_rows(comments, columns, text))


def test_sparse_rows_too(sparse):
    found = read_unlabelled(sparse, SPARSE.names)
    np.testing.assert_array_equal(found.rows(range(20)), read_rows(sparse, SPARSE.names))


def test_more_hashed_rows_than_memory_holds_with_their_zeros(comments, sparse, monkeypatch):
    expected = read_rows(comments, WORDS.names)
    monkeypatch.setattr(hashing, "MOST_CELLS", 20 * 8 - 1)
    with pytest.raises(InputError, match="more than the 159 cells"):
        read_rows(comments, WORDS.names)
    np.testing.assert_array_equal(read_unlabelled(comments, WORDS.names).rows(range(20)), expected)
    assert len(read_unlabelled(sparse, SPARSE.names)) == 20


def test_columns_that_lack_are_named_together(comments):
    with pytest.raises(InputError, match="lacks 2 of the 3 columns that are needed, age, text"):
        read_unlabelled(comments, ("age", "likes", *Hashing(2, "text").names))
    with pytest.raises(InputError, match=r"has no column 'siad'; .*did you mean 'said'"):
        read_unlabelled(comments, ("likes", *Hashing(2, "siad").names))
