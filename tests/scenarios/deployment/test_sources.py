"""Rows of files and of data bases under the names of a plan."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from federation.contract.errors import InputError
from parties.site.settings import Source, Table
from scenarios.data.hashing import Hashing
from scenarios.deployment.site_data import renamed, source


def test_files_of_every_kind_give_the_same_columns(tmp_path):
    rows = {"age": [30.5, 41.0], "ill": ["yes", "no"]}
    (tmp_path / "x.csv").write_text("age;ill\n30.5;yes\n41;no\n")
    pq.write_table(pa.table(rows), tmp_path / "x.parquet")
    np.savez(tmp_path / "x.npz", X=np.array([[30.5], [41.0]]), feature_names=["age"], ill=np.array(["yes", "no"]), z=3)
    (tmp_path / "x.svmlight").write_text("1 1:30.5\n0 1:41\n")
    for name in ("x.csv", "x.parquet", "x.npz"):
        sheet = source(Table(table="t", file=tmp_path / name))
        assert sheet.header == ["age", "ill"]
        assert (sheet.numbers("age").tolist(), sheet.texts("ill")) == (rows["age"], rows["ill"])
    assert source(Table(table="t", file=tmp_path / "x.svmlight")).header == ["x1", "y"]


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"Y": np.ones((2, 1))}, "has no array 'X'; it has Y"),
        ({"X": np.ones(3)}, "array 'X' must hold numbers in rows and columns"),
        ({"X": np.ones((2, 2)), "feature_names": ["a", "a"]}, "two of its columns have one name"),
        ({"X": np.ones((2, 1)), "feature_names": ["y"], "y": np.ones(2)}, "two of its columns have one name"),
    ],
)
def test_an_archive_of_another_form_is_refused(tmp_path, arrays, said):
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(InputError, match=said):
        source(Table(table="t", file=tmp_path / "x.npz"))


@pytest.mark.parametrize(("name", "said"), [("x.xlsx", "save it as CSV there"), ("x.csv", "there is no such file")])
def test_other_files_are_refused(tmp_path, name, said):
    with pytest.raises(InputError, match=said):
        source(Table(table="t", file=tmp_path / name))


def test_columns_get_the_names_and_values_of_the_plan(tmp_path):
    (tmp_path / "x.csv").write_text("AGE_Y,SEX,ICD,more\n30,M,C50,1\n41, F ,D24,2\n")
    sheet = source(Table(table="t", file=tmp_path / "x.csv"))
    sex = Source.model_validate({"from": "SEX", "map": {"M": "male", "F": "female"}})
    same = Source.model_validate({"from": "ICD"})
    found, wrong = renamed(sheet, {"age": "AGE_Y", "sex": sex, "dx": same}, ["age", "sex", "dx"])
    assert wrong == []
    assert found.header == ["age", "sex", "dx"]
    assert (found.texts("sex"), found.texts("dx")) == (["male", "female"], ["C50", "D24"])
    assert found.place(1) == f"{tmp_path / 'x.csv'}:3"


def test_columns_that_are_not_there_are_named_with_the_nearest(tmp_path):
    (tmp_path / "x.csv").write_text("AGE_Y,SEX\n30,M\n")
    sheet = source(Table(table="t", file=Path(tmp_path / "x.csv")))
    _, wrong = renamed(sheet, {"age": "AGE_X", "agee": "AGE_Y"}, ["age", "SEX"])
    assert len(wrong) == 2
    assert wrong[0] == "data.columns: the plan has no column 'agee'; it has age, SEX; did you mean 'age'?"
    assert "has no column 'AGE_X'; it has AGE_Y, SEX; did you mean 'AGE_Y'?" in wrong[1]
    assert 'write it in [data.columns]: age = "NAME HERE"' in wrong[1]


def test_hashed_columns_of_sparse_rows_are_those_of_the_plan(tmp_path):
    (tmp_path / "x.svm").write_text("1 1:2 3000000:1\n0 2:4\n")
    stage = Hashing(3)
    sheet = source(Table(table="t", file=tmp_path / "x.svm"), stage.names)
    assert sheet.header == [*stage.names, "y"]
    assert sum(abs(sheet.numbers(name)) for name in stage.names).tolist() == [3, 4]
    assert renamed(sheet, {}, [*stage.names, "y"])[0].header == [*stage.names, "y"]
