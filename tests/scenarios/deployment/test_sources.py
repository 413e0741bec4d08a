"""Rows of files and of data bases under the names of a plan."""

import datetime
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from federation.contract.errors import InputError
from parties.site.settings import Source, Table
from scenarios.data.hashing import Hashing
from scenarios.deployment.sources import renamed, source


@pytest.fixture
def base(tmp_path):
    """A data base of three rows, and a query of it as a site has it."""
    with sqlite3.connect(tmp_path / "x.db") as made:
        made.execute("create table patients (age real, sex text, ill integer, code, seen timestamp)")
        rows = [(30.5, "m", 1, 3), (None, "f", 0, "b"), (41, None, 1, 2.5)]
        made.executemany("insert into patients values (?, ?, ?, ?, '2024-01-02 03:04:05')", rows)

    def asked(query, url=f"sqlite:///{tmp_path}/x.db"):
        return source(Table(table="t", query=query, url=url))

    return asked


def test_a_select_gives_numbers_and_texts(base):
    sheet = base("select age, sex as gender, ill, code, seen from patients order by ill desc, age;")
    assert sheet.header == ["age", "gender", "ill", "code", "seen"]
    assert sheet.numbers("age", missing=True).tolist() == [30.5, 41.0, pytest.approx(np.nan, nan_ok=True)]
    assert sheet.texts("gender") == ["m", "", "f"]
    assert sheet.texts("code") == ["3", "2.5", "b"]
    assert sheet.texts("seen") == ["2024-01-02 03:04:05"] * 3
    assert str(sheet.place(1)) == "the query's answer, row 1 (counted from 0)"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("delete from patients", "must be one SELECT, got 'delete from patients'"),
        ("select 1; delete from patients", "must be one SELECT"),
        ("with x as (select 1) delete from patients", "the data base says: .*attempt to write a readonly database"),
        ("select height from patients", "the data base says: .*no such column: height"),
        ("select * from patients where age > 100", "gives no rows"),
        ("select age, age from patients", "two columns of one name: age, age; name them with AS"),
    ],
)
def test_all_but_a_select_is_refused(base, query, said):
    with pytest.raises(InputError, match=said):
        base(query)
    assert base("select * from patients").table.num_rows == 3


def test_a_data_base_that_cannot_be_opened_is_named(base, monkeypatch):
    for url in ("nosuch://host/x", "not a url", "sqlite:////no/such/folder/x.db"):
        with pytest.raises(InputError, match=r"the data base says: .*; correct data.url or data.query"):
            base("select 1", url)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(InputError, match=r"pip install 'multiparty-federation\[sql\]'"):
        base("select 1")


def test_dates_of_a_data_base_are_texts(base, monkeypatch):
    class Found:
        def keys(self):
            return ["seen"]

        def fetchall(self):
            return [(datetime.date(2024, 1, 2),), (None,)]

    monkeypatch.setattr("sqlalchemy.engine.Connection.exec_driver_sql", lambda *_: Found())
    assert base("select 1").texts("seen") == ["2024-01-02", ""]


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
