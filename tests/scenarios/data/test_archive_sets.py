"""Data sets with real labels: files of the documented shape, their ranges, and what is refused."""

import numpy as np
import pytest
from support.refusals import refused

from scenarios.data import archive_sets
from scenarios.data.catalogue import entry, load
from scenarios.data.tables import describe


@pytest.fixture(autouse=True)
def _no_data_directory(monkeypatch):
    monkeypatch.delenv("FEDERATION_DATA", raising=False)


def housing(**changes):
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    rows[2, 1] = np.nan
    labels = np.array([14999, 250000, 300000, 500001], dtype=np.float32)
    return {"X": rows, "y": labels, "feature_names": np.array(["age", "bedrooms", "income"]), **changes}


def numbers(**changes):
    return {"X": np.arange(6, dtype=np.float32).reshape(3, 2), "y": np.array([0, 20.5, 21], np.float32), **changes}


def test_diabetes_is_whole_and_needs_no_file():
    table = load("diabetes")
    from sklearn.datasets import load_diabetes

    bundle = load_diabetes(scaled=False)
    np.testing.assert_array_equal(table.rows(np.arange(442)), bundle.data)
    np.testing.assert_array_equal(table.labels, bundle.target)
    assert (table.label_range, table.columns[2], table.classes) == ((25.0, 346.0), "bmi", ())
    assert describe(table) == "diabetes: 442 rows, 10 columns, labels from 25 to 346"


def test_housing_leaves_out_rows_that_are_not_whole_and_decodes_the_ends(tmp_path):
    np.savez(tmp_path / "california_housing.npz", **housing())
    table = load("housing", data_dir=tmp_path)
    assert table.columns == ("age", "bedrooms", "income")
    np.testing.assert_array_equal(table.rows(np.arange(3)), [[0, 1, 2], [3, 4, 5], [9, 10, 11]])
    np.testing.assert_allclose(table.labels, [0.15, 2.5, 5.0], rtol=0, atol=0)
    assert table.label_range == (0.15, 5.0)
    assert "207 rows" in entry("housing").description


def test_protein_and_census_weeks(tmp_path):
    np.savez(tmp_path / "protein.npz", **numbers(feature_names=np.array(["F1", "F2"])))
    np.savez(tmp_path / "census_weeks.npz", **numbers(y=np.array([0, 52, 26], np.uint8), lo=[0.0], hi=[52.0]))
    protein, weeks = load("protein", data_dir=tmp_path), load("census_weeks", data_dir=tmp_path)
    assert (protein.columns, protein.label_range) == (("F1", "F2"), (0.0, 21.0))
    assert (weeks.columns, weeks.label_range) == (("x0", "x1"), (0.0, 52.0))
    assert (weeks.labels.dtype, weeks.labels.tolist()) == (np.float64, [0.0, 52.0, 26.0])


@pytest.mark.parametrize(
    ("name", "arrays", "words"),
    [
        ("housing", housing(y=np.array([1, 2, 3, 4.0])), None),
        ("housing", housing(y=np.array([2e4, np.nan, 3e4, 4e4])), "1"),
        ("housing", housing(X=np.full((4, 3), np.inf, np.float32)), r"20640.*8"),
        ("housing", housing(X=np.ones((4, 3), int)), r"20640.*8"),
        ("housing", housing(y=np.ones(3)), r"'y'.*4"),
        ("protein", numbers(y=np.array([0, 1, 22.0])), None),
        ("protein", numbers(y=np.array(["a", "b", "c"])), None),
        ("protein", numbers(X=np.full((3, 2), np.nan)), r"'X'.*0.*0"),
        ("census_weeks", numbers(y=np.array([0, 1, 53.0])), None),
        ("census_weeks", {"y": np.zeros(3)}, "'X'"),
    ],
)
def test_files_of_another_content_are_refused(tmp_path, name, arrays, words):
    np.savez(tmp_path / entry(name).file, **arrays)
    refused(words, load, name, data_dir=tmp_path)


def test_digits_are_asked_of_scikit_learn_where_its_file_lies_elsewhere(monkeypatch):
    read = archive_sets._digits()
    monkeypatch.setattr(archive_sets, "_DIGITS_FILE", "datasets/elsewhere.csv.gz")
    asked = archive_sets._digits()
    assert (read.columns, read.classes) == (asked.columns, asked.classes)
    np.testing.assert_array_equal(read.blocks[0], asked.blocks[0], strict=True)
    np.testing.assert_array_equal(read.labels, asked.labels, strict=True)
