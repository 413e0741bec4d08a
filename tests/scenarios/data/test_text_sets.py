"""Texts and sparse rows of the catalogue: their labels, groups and splits, and that they must be hashed."""

import numpy as np
import pyarrow
import pytest
from pyarrow.parquet import write_table

from federation.contract.errors import InputError
from scenarios.data.catalogue import entry, load


def days(folder, *numbers, labels=("+1", "-1")):
    (folder / "malicious_url").mkdir()
    for day in numbers:
        lines = [f"{label} 4:0.5 {day + 3000000}:1\n" for label in labels]
        (folder / "malicious_url" / f"Day{day}.svm").write_text("".join(lines))


def test_urls_of_the_first_ten_days_are_for_training(tmp_path):
    days(tmp_path, 9, 10, 0)
    found = load("malicious_url", data_dir=tmp_path, hashes=[6])
    assert found.classes == ("benign", "malicious")
    assert found.labels.tolist() == [1, 0] * 3
    assert found.groups["day"].tolist() == [0, 0, 9, 9, 10, 10]
    assert [part.tolist() for part in found.official] == [[0, 1, 2, 3], [4, 5]]


def test_other_days_are_refused(tmp_path):
    days(tmp_path, 10, 11)
    with pytest.raises(InputError, match="must hold some of the days 0 to 9, and some later ones"):
        load("malicious_url", data_dir=tmp_path, hashes=[6])


def test_other_labels_are_refused(tmp_path):
    days(tmp_path, 0, 10, labels=("1", "2"))
    with pytest.raises(InputError, match="must hold the original files Day0"):
        load("malicious_url", data_dir=tmp_path, hashes=[6])


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        ("malicious_url", r"{hash: 12}"),
        ("youtube_spam", r"{hash: {column: content, bits: 12}}"),
        ("tweets", r"{hash: {column: text, bits: 12}}"),
    ],
)
def test_they_must_be_hashed(tmp_path, name, stage):
    days(tmp_path, 0)
    table = pyarrow.table({"content": ["a b"], "text": ["a b"]})
    for file in ("youtube_spam.parquet", "tweets.parquet"):
        write_table(table, tmp_path / file)
    with pytest.raises(InputError) as caught:
        load(name, data_dir=tmp_path)
    assert str(caught.value).endswith(f"let the features begin with {stage}")
    assert entry(name).hashed.stage == stage


def test_columns_of_numbers_are_not_hashed():
    with pytest.raises(InputError, match=r"'digits' has columns of numbers; use {project: DIMENSIONS}"):
        load("digits", hashes=[6])


def test_comments_may_be_dealt_by_video(tmp_path):
    table = pyarrow.table({"content": ["one two", "two"], "video": ["a", "b"], "class": ["spam", "ham"]})
    write_table(table, tmp_path / "youtube_spam.parquet")
    found = load("youtube_spam", data_dir=tmp_path, hashes=[{"column": "content", "bits": 4}])
    assert (found.labels.tolist(), found.groups["video"].tolist(), found.official) == ([1, 0], ["a", "b"], None)
    assert np.abs(found.rows(np.arange(2))).sum(axis=1).tolist() == [2, 1]
