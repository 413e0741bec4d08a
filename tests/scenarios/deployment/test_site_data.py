"""Rows of files, of SQLite, and of PostgreSQL where a server is installed, under the names of a plan."""

import datetime
import re
import socket
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.postgresql import postgresql
from support.refusals import refused

from federation.contract.errors import InputError
from parties.site.settings import Source, Table
from scenarios.data.hashing import Hashing
from scenarios.deployment import site_data as database
from scenarios.deployment.site_data import renamed, require_reached, selected, source


@pytest.fixture
def base(tmp_path):
    """A data base of three rows, and a query of it as a site has it."""
    with sqlite3.connect(tmp_path / "x.db") as made:
        made.execute("create table patients (age real, sex text, ill integer, code, seen timestamp)")
        rows = [(30.5, "m", 1, 3), (None, "f", 0, "b"), (41, None, 1, 2.5)]
        made.executemany("insert into patients values (?, ?, ?, ?, '2024-01-02 03:04:05')", rows)

    def asked(query, url=f"sqlite:///{tmp_path}/x.db"):
        return selected(url, query)

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
        ("delete from patients", r"SELECT.*';'"),
        ("select 1; delete from patients", "SELECT"),
        ("with x as (select 1) delete from patients", None),
        ("select height from patients", None),
        ("select * from patients where age > 100", None),
        ("select age, age from patients", r"name.*age.*AS"),
    ],
)
def test_all_but_a_select_is_refused(base, query, said):
    refused(said, base, query)
    assert base("select * from patients").table.num_rows == 3


def test_a_data_base_that_cannot_be_opened_is_named(base, monkeypatch):
    for url in ("nosuch://host/x", "sqlite:////no/such/folder/x.db"):
        refused(r"data\.url.*data\.query", base, "select 1", url)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    refused(r"pip.*multiparty-federation\[sql\]", base, "select 1")


def test_dates_of_a_data_base_are_texts(base, monkeypatch):
    class Found:
        def keys(self):
            return ["seen"]

        def fetchall(self):
            return [(datetime.date(2024, 1, 2),), (None,)]

    monkeypatch.setattr("sqlalchemy.engine.Connection.exec_driver_sql", lambda *_: Found())
    assert base("select 1").texts("seen") == ["2024-01-02", ""]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://ada:qq@zz@127.0.0.1:1/x",
        "postgresql+psycopg://ada:qq@zz:kk/rd?@127.0.0.1:1/x",
        "postgresql+psycopg://ada:qq@zz/kk@127.0.0.1:1/x",
        "postgresql+psycopg//ada:qq@127.0.0.1:1/x",
    ],
)
def test_no_part_of_a_password_is_told_or_looked_for(url):
    with pytest.raises(InputError) as caught:
        require_reached(url)
    assert "%40" in str(caught.value)
    assert not any(part in str(caught.value) for part in ("qq", "zz", "kk"))


def test_what_a_data_base_says_is_told_without_the_password_and_a_driver_that_is_not_there_is_named():
    refused("asyncpg", require_reached, "postgresql+asyncpg://ada:geheim@127.0.0.1:1/x")
    pytest.importorskip("psycopg", exc_type=ImportError)
    refused(r"\*\*\*", require_reached, "postgresql+psycopg://ada:geheim@127.0.0.1:1/geheim?geheim=3")


@pytest.fixture(scope="module")
def server():
    """Four patients in PostgreSQL: a table with all that is asked of one, a view of it, and who may read them."""
    with postgresql() as found:
        found.do(
            "create table patients (id int, age numeric(5, 1), sex char(3), bmi real, well boolean, scan bytea, "
            "seen timestamp, born date, person uuid, icd varchar, wide numeric)",
            r"insert into patients values (1, 30.5, 'm', 1.25, true, '\xdead', '2024-01-02 03:04:05', '1990-01-02', "
            "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'C50.1', 12345678901234567890.5)",
            "insert into patients (id, icd) values (2, 'D24')",
            r"insert into patients values (3, 'NaN', 'f', 'Infinity', false, '\x00', 'infinity', '1980-03-04', "
            "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12', '100%', 2)",
            "create view adults as select age, well from patients where age > 18 and age < 'NaN'",
            "create role reader login password 'p@ss:w/rd?'",
            "grant select on adults to reader",
            "create function spoil() returns int language sql as 'delete from patients returning 1'",
        )
        yield found


@pytest.mark.slow
def test_every_type_of_postgresql_is_numbers_or_texts_or_refused_where_it_is_used(server):
    sheet = selected(server.url(), "select * from patients where id < 3 order by id")
    nothing = pytest.approx(np.nan, nan_ok=True)
    for name, number in {"age": 30.5, "bmi": 1.25, "well": 1.0, "wide": 12345678901234567890.5}.items():
        assert sheet.numbers(name, missing=True).tolist() == [number, nothing]
    for name, text in {
        "sex": "m",  # a text of fixed length is filled with spaces
        "well": "True",
        "seen": "2024-01-02 03:04:05",
        "born": "1990-01-02",
        "person": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    }.items():
        assert sheet.texts(name) == [text, ""]
    refused("scan", sheet.texts, "scan")
    last = selected(server.url(), "select age, bmi from patients where id = 3")
    assert last.readings("age")[0].tolist() == [nothing]
    refused(None, selected, server.url(), "select seen from patients")


def test_a_view_is_read_by_whoever_may_read_nothing_else_and_a_percent_sign_is_one(server):
    known = server.url("reader", "p%40ss%3Aw%2Frd%3F")
    assert selected(known, "SELECT\t*\nfrom adults;").numbers("age").tolist() == [30.5]
    refused(None, selected, known, "select age from patients")
    assert selected(server.url(), "select id from patients where icd like 'C50%'").numbers("id").tolist() == [1]
    assert selected(server.url(), "(select 7 % 4 as rest)").numbers("rest").tolist() == [3]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("delete from patients", r"SELECT.*';'"),
        ("select 1; commit; delete from patients", r"SELECT.*';'"),
        ("with gone as (delete from patients returning *) select * from gone", None),
        ("select spoil()", "DELETE"),
        ("select height from patients", r"says.*column.*height.*LINE.*1"),
    ],
)
def test_postgresql_changes_nothing(server, query, said):
    refused(said, selected, server.url(), query)
    assert selected(server.url(), "select count(*) as n from patients").numbers("n").tolist() == [3]


def test_whatever_keeps_a_site_from_its_data_base_is_one_sentence_without_the_password(server, monkeypatch):
    silent = socket.create_server(("127.0.0.1", 0))  # takes connections and never says a word
    monkeypatch.setattr(database, "_SECONDS", 2)  # the least that the driver takes
    for url, said in {
        server.url(password="wrong-word"): 'password authentication failed for user "owner"',
        server.url(base="nosuch"): 'database "nosuch" does not exist',
        "postgresql+psycopg://owner:wrong-word@127.0.0.1:1/x": "Connection refused",
        f"postgresql+psycopg://owner:wrong-word@127.0.0.1:{silent.getsockname()[1]}/x": "timeout expired",
    }.items():
        with pytest.raises(InputError, match=r"data\.query.*data\.url.*data\.query") as to:
            require_reached(url)
        assert said in str(to.value)
        assert "wrong-word" not in str(to.value)
        assert "\n" not in str(to.value)
    silent.close()
    require_reached(server.url())


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
    ("name", "arrays", "said"),
    [
        ("x.npz", {"Y": np.ones((2, 1))}, "'X'"),
        ("x.npz", {"X": np.ones(3)}, "'X'"),
        ("x.npz", {"X": np.ones((2, 2)), "feature_names": ["a", "a"]}, None),
        ("x.npz", {"X": np.ones((2, 1)), "feature_names": ["y"], "y": np.ones(2)}, None),
        ("x.xlsx", {}, "CSV"),
        ("x.csv", {}, None),
    ],
)
def test_archives_of_another_form_and_other_files_are_refused(tmp_path, name, arrays, said):
    np.savez(tmp_path / "x.npz", **arrays)
    refused(said, source, Table(table="t", file=tmp_path / name))


def test_columns_get_the_names_and_values_of_the_plan_and_those_not_there_are_named_with_the_nearest(tmp_path):
    (tmp_path / "x.csv").write_text("AGE_Y,SEX,ICD,more\n30,M,C50,1\n41, F ,D24,2\n")
    sheet = source(Table(table="t", file=tmp_path / "x.csv"))
    sex = Source.model_validate({"from": "SEX", "map": {"M": "male", "F": "female"}})
    same = Source.model_validate({"from": "ICD"})
    found, wrong = renamed(sheet, {"age": "AGE_Y", "sex": sex, "dx": same}, ["age", "sex", "dx"])
    assert wrong == []
    assert found.header == ["age", "sex", "dx"]
    assert (found.texts("sex"), found.texts("dx")) == (["male", "female"], ["C50", "D24"])
    assert found.place(1) == f"{tmp_path / 'x.csv'}:3"
    (tmp_path / "x.csv").write_text("AGE_Y,SEX\n30,M\n")
    sheet = source(Table(table="t", file=Path(tmp_path / "x.csv")))
    _, wrong = renamed(sheet, {"age": "AGE_X", "agee": "AGE_Y"}, ["age", "SEX"])
    assert len(wrong) == 2
    assert re.search(r"data\.columns.*agee.*SEX.*age", wrong[0])
    assert re.search(r"AGE_X.*AGE_Y.*SEX.*AGE_Y", wrong[1])
    assert re.search(r"data\.columns.*NAME.*HERE", wrong[1])


def test_hashed_columns_of_sparse_rows_are_those_of_the_plan(tmp_path):
    (tmp_path / "x.svm").write_text("1 1:2 3000000:1\n0 2:4\n")
    stage = Hashing(3)
    sheet = source(Table(table="t", file=tmp_path / "x.svm"), stage.names)
    assert sheet.header == [*stage.names, "y"]
    assert sum(abs(sheet.numbers(name)) for name in stage.names).tolist() == [3, 4]
    assert renamed(sheet, {}, [*stage.names, "y"])[0].header == [*stage.names, "y"]
