"""Which columns of a file of public rows are features, and that it is the file that sites have agreed to."""

import hashlib

import numpy as np
import pytest

from federation.contract.errors import InputError
from scenarios.data.hashing import Hashing
from scenarios.deployment.plans import feature_columns, public_rows, sha256

CSV = "age,city,ill,day\n30,Rome,yes,mon\n,Oslo,no,tue\n52,Rome,yes,wed\n"


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "public.csv"
    path.write_text(CSV)
    return path


@pytest.fixture
def npz(tmp_path):
    path = tmp_path / "public.npz"
    np.savez(path, X=np.arange(6.0).reshape(3, 2), feature_names=np.array(["age", "weight"]))
    return path


def test_features_are_all_columns_but_the_named_ones_and_texts_are_told_from_numbers(csv):
    found = feature_columns(csv, ["ill", "day", "who"])
    assert [(one.name, one.text) for one in found] == [("age", False), ("city", True)]


def test_columns_of_arrays_have_the_names_that_the_file_gives_them(npz):
    assert [one.name for one in feature_columns(npz, ["weight"])] == ["age"]
    rows = public_rows(npz.name, sha256(npz), ["age", "weight"], [], False, str(npz.parent))
    np.testing.assert_array_equal(rows.rows, np.arange(6.0).reshape(3, 2))


def test_columns_without_names_are_refused(tmp_path):
    np.savez(tmp_path / "public.npz", X=np.zeros((3, 2)))
    with pytest.raises(InputError, match=r"have no names.*feature_names"):
        feature_columns(tmp_path / "public.npz", [])


def test_a_file_without_a_feature_is_refused(csv):
    with pytest.raises(InputError, match="no column that could be a feature"):
        feature_columns(csv, ["age", "city", "ill", "day"])


def test_the_rows_are_those_of_the_file_without_its_labels(csv):
    rows = public_rows(csv.name, sha256(csv), ["age", "city"], [1], True, str(csv.parent))
    assert rows.rows.shape == (3, 2)
    assert np.isnan(rows.rows[1, 0])
    assert rows.rows[0, 1] == rows.rows[2, 1] != rows.rows[1, 1]
    assert (rows.columns, rows.text_columns) == (("age", "city"), (1,))


def test_missing_cells_are_refused_where_nothing_fills_them_in(csv):
    with pytest.raises(InputError, match="'age' is missing"):
        public_rows(csv.name, sha256(csv), ["age"], [], False, str(csv.parent))


def test_a_file_that_was_changed_is_refused(csv):
    digest = sha256(csv)
    assert digest == hashlib.sha256(CSV.encode()).hexdigest()
    csv.write_text(CSV.replace("30", "31"))
    with pytest.raises(InputError, match="not the file that the sites have agreed to"):
        public_rows(csv.name, digest, ["age"], [], True, str(csv.parent))
    csv.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        public_rows(csv.name, digest, ["age"], [], True, str(csv.parent))


def test_words_are_hashed_into_numbers_behind_all_others(csv):
    stage = Hashing(3, "city")
    found = feature_columns(csv, ["ill", "day"], [stage])
    assert [(one.name, one.text) for one in found] == [("age", False), *((name, False) for name in stage.names)]
    names = [one.name for one in found]
    rows = public_rows(csv.name, sha256(csv), names, [], True, str(csv.parent)).rows
    assert np.abs(rows[:, 1:]).sum(axis=1).tolist() == [1, 1, 1]
    assert rows[0, 1:].tolist() == rows[2, 1:].tolist()
    with pytest.raises(InputError, match="has no column 'town' to hash; it has age, city, ill, day"):
        feature_columns(csv, ["ill"], [Hashing(3, "town")])


def test_sparse_public_rows_are_hashed(tmp_path):
    path, stage = tmp_path / "public.svm", Hashing(3)
    path.write_text("1 1:2 3000000:1\n0 2:4\n")
    names = [one.name for one in feature_columns(path, ["y"], [stage])]
    assert names == [*stage.names]
    rows = public_rows(path.name, sha256(path), names, [], False, str(tmp_path)).rows
    assert np.abs(rows).sum(axis=1).tolist() == [3, 4]
