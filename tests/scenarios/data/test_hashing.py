"""Feature hashing: what scikit-learn makes of the same cells, under names that say how."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from support.refusals import refused

from scenarios.data import hashing, sheets
from scenarios.data.files import open_sheet, read_public, read_rows, read_table
from scenarios.data.hashing import HashedRows, Hashing, hashings, made_from, read_for

TEXTS = ["Great song, great video", "", "subscribe to my channel", "Great channel"] * 5
STAGE = Hashing(6, "said", 2)


@pytest.fixture
def comments(tmp_path):
    lines = [f"{i % 3},{text!r},{'spam' if i % 2 else 'ham'}" for i, text in enumerate(TEXTS)]
    path = tmp_path / "comments.csv"
    path.write_text("likes,said,class\n" + "\n".join(lines).replace("'", '"') + "\n")
    return path


def expected():
    return HashingVectorizer(n_features=64, ngram_range=(1, 2), norm=None).transform(TEXTS).toarray()


def test_words_become_columns_after_all_others_in_every_reader_and_alone_will_do(comments, monkeypatch, tmp_path):
    monkeypatch.setattr(sheets, "_TEXTS_AT_A_TIME", 3)  # whatever is read together
    table = read_table(comments, "class", hashes=[STAGE])
    assert table.columns == ("likes", *STAGE.names)
    assert table.text == ()
    rows = table.rows(np.arange(20))
    np.testing.assert_array_equal(rows[:, 1:], expected())
    np.testing.assert_array_equal(rows[:, 0], np.arange(20) % 3)
    np.testing.assert_array_equal(table.rows(np.array([5, 2])), rows[[5, 2]])
    for found in (read_rows(comments, table.columns), read_public(comments, table, "comments.csv")):
        np.testing.assert_array_equal(found, rows)
    np.testing.assert_array_equal(open_sheet(comments).numbers(STAGE.names[9]), expected()[:, 9])
    alone = tmp_path / "alone.csv"
    alone.write_text("said,class\none two,a\ntwo three,b\n")
    assert read_table(alone, "class", hashes=[STAGE]).columns == STAGE.names
    both = read_table(comments, "likes", hashes=[STAGE, Hashing(2, "class")])
    assert both.columns == (*STAGE.names, *Hashing(2, "class").names)


def test_other_columns_what_a_file_lacks_and_too_many_cells_are_refused(comments, tmp_path, monkeypatch):
    np.savez(tmp_path / "own.npz", X=np.eye(4), y=np.array([0, 1, 0, 1]))
    for path, label, stage, words in (
        (comments, "class", Hashing(6, "siad"), r"siad.*said"),
        (comments, "class", Hashing(6), r"hash.*comments\.csv"),
        (tmp_path / "own.npz", None, STAGE, r"hash.*DIMENSIONS"),
    ):
        refused(words, read_table, path, label, hashes=[stage])
    table = read_table(comments, "class", hashes=[STAGE])
    other = tmp_path / "other.csv"
    other.write_text("likes,text\n1,a\n")
    refused(r"1.*65.*comments\.csv", read_public, other, table, "comments.csv")
    refused("said", read_rows, other, table.columns)
    monkeypatch.setattr(hashing, "MOST_CELLS", 20 * 64 - 1)
    refused(r"comments\.csv.*20.*64.*1279", read_rows, comments, table.columns)


@pytest.mark.parametrize("column", ["said", "a, 2 words, 3 bits)[1]", "x", "two\nlines", "(€)"])
def test_a_name_says_how_its_column_is_made(column):
    stage = Hashing(16, column, 3)
    assert made_from(stage.names[-1]) == (stage, 65535)
    assert read_for(stage.names[0]) == column
    assert made_from(Hashing(4).names[15]) == (Hashing(4), 15)
    for name in ("said", "hash(x, 0 bits)[0]", "hash(x, 17 bits)[0]", "hash(x, 4 bits)[16]", "hash(x)"):
        assert made_from(name) is None
        assert read_for(name) == name


def test_only_what_is_not_zero_is_kept_of_the_stages_in_their_order():
    features = ["impute", {"hash": 4}, {"hash": {"column": "said", "bits": 3}}, {"whiten": 2}]
    assert hashings(features) == (4, {"column": "said", "bits": 3})
    assert [*map(Hashing.of, hashings(features))] == [Hashing(4), Hashing(3, "said", 1)]
    rows = HashedRows.of([], 8)
    assert (rows.shape, rows[np.array([], dtype=int)].shape) == ((0, 8), (0, 8))
    kept = hashing.hashed_texts([["word"] * 100], Hashing(16, "said"))
    assert (kept.shape, kept.values.nbytes + kept.places.nbytes) == ((100, 65536), 600)
