"""Tables in CSV format: large files in small blocks, and all mistakes.

Columns of Parquet files that are read when they are used, beside those of the whole table.
Moments as files write them.
"""

import csv
import os
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.dataset import field, scalar
from support.refusals import refused

from federation.contract.errors import InputError
from federation.features.feature_map import text_code
from scenarios.data import sheets
from scenarios.data.files import read_table
from scenarios.data.sheets import Stored, moment, moments, read_large, readable, seconds
from scenarios.data.tables import Table

EVERYTHING = scalar(True)


@pytest.fixture
def written(tmp_path, rng):
    """A file of 500 rows, and its cells."""
    cells = [
        (f"{rng.normal():.4f}", rng.choice(["red", "a, b", "", "blue "]), str(rng.integers(5)), f"t{rng.integers(30)}")
        for _ in range(500)
    ]
    with (tmp_path / "x.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("x", "colour", "n", "t"), *cells])
    return tmp_path / "x.csv", cells


@pytest.mark.parametrize("block", [64, 1000, 1 << 24])
def test_blocks_give_what_the_file_holds(written, monkeypatch, block):
    monkeypatch.setattr(sheets, "_BLOCK", block)
    path, cells = written
    numbers, texts = read_large(path, ("n", "x"), ("t", "colour"), field("n") >= 2)
    wanted = [row for row in cells if int(row[2]) >= 2]
    assert list(numbers) == ["n", "x"]
    np.testing.assert_array_equal(numbers["x"], [float(row[0]) for row in wanted])
    np.testing.assert_array_equal(numbers["n"], [float(row[2]) for row in wanted])
    found = texts[np.arange(len(wanted))]
    np.testing.assert_array_equal(found, [[text_code(row[3]), text_code(row[1].strip())] for row in wanted])
    assert texts.codes.dtype == np.uint16
    assert texts.shape == (len(wanted), 2)
    assert len(texts) == len(wanted)


def test_a_file_without_a_header_has_the_names_that_are_known(tmp_path):
    (tmp_path / "x").write_text('1\t"a\tu\n\tb\tv\n3\t"a\tw\n')
    numbers, texts = read_large(tmp_path / "x", ("p",), ("q",), EVERYTHING, separator="\t", names=("p", "q", "r"))
    np.testing.assert_array_equal(numbers["p"], [1, np.nan, 3])
    np.testing.assert_array_equal(texts[np.arange(3)][:, 0], [text_code(t) for t in ('"a', "b", '"a')])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x,y\n1,a\n", None),
        ("", None),
        ("x,t\n1,a\n2\n", "2"),
        ("x,t\n1,a\nno,b\n", None),
        ("x,t\n", None),
        ("x,t\n-1,a\n", None),
        ("x,t\n" + "".join(f"1,t{i}\n" for i in range(4)), r"'t'.*3"),  # identifiers
    ],
)
def test_what_is_wrong_with_a_file(tmp_path, monkeypatch, text, words):
    monkeypatch.setattr(sheets, "_MOST_TEXTS", 3)
    (tmp_path / "x.csv").write_text(text)
    refused(words, read_large, tmp_path / "x.csv", ("x",), ("t",), field("x") > 0)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a,y\n1\0,u\n2,v\n", r"own\.csv.*2.*NUL.*UTF-8"),
        (b"a\0,y\n1,u\n2,v\n", r"own\.csv.*1.*NUL"),
        ("a,y\n1,u\n2,v\n".encode("utf-16-le"), r"own\.csv.*1.*NUL"),
        (b"a,y\n1,u" + b"\0" * 4096, r"own\.csv.*2.*NUL"),  # of a disk that was full
        (b"a,a,y\n1,2,u\n", r"own\.csv.*1.*'a'"),
        (b'a,y\n"' + b"1,u\n" * 40_000, None),
        (b"a,y" + b"x" * 5000, r"own\.csv.*1"),  # a first line without an end
    ],
)
def test_damaged_csv_files_are_told(tmp_path, monkeypatch, content, words):
    monkeypatch.setattr(sheets, "_LONGEST_LINE", 1000)
    (tmp_path / "own.csv").write_bytes(content)
    refused(words, read_table, tmp_path / "own.csv", "y")


@pytest.mark.parametrize(("label", "groups"), [("y", ()), ("x", ("y",))])
def test_one_long_text_does_not_make_all_as_long(tmp_path, label, groups):
    """In an array of texts each would take 400 kB, all 20001 of them 8 GB."""
    path = tmp_path / "own.csv"
    path.write_text("a,x,y\n1,u," + "z" * 100_000 + "\n" + "2,v,w\n" * 20_000)
    refused(r"own\.csv.*2.*'y'.*100000", read_table, path, label, groups)


@pytest.fixture
def whole():
    return pa.table({"a": np.arange(50.0), "t": ["u", None] * 25, "d": pa.array(["x", "y"] * 25).dictionary_encode()})


@pytest.fixture
def found(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(sheets, "_ROWS_READ", 8)
    files = tmp_path / "1.parquet", tmp_path / "2.parquet"
    for file, part in zip(files, (whole.slice(0, 30), whole.slice(30)), strict=True):
        pq.write_table(part, file, row_group_size=20)
    return Stored(files, whole.schema, 50)


def test_columns_are_those_of_the_table_and_parts_its_rows_in_order_and_few_at_a_time(found, whole):
    assert found.column_names == whole.column_names
    assert found.schema.equals(whole.schema)
    for name in whole.column_names:
        assert found.column(name).to_pylist() == whole.column(name).to_pylist()
    parts = [*found.parts(["t", "a"])]
    assert max(part.num_rows for part in parts) == 8
    assert {*parts[0].column_names} == {"a", "t"}
    rows = pa.concat_tables(part.select(["a", "t"]) for part in parts)
    assert rows.to_pydict() == whole.select(["a", "t"]).to_pydict()


def test_another_file_has_another_stamp_and_what_pyarrow_raises_names_the_file(found, tmp_path):
    before = found.stamp
    assert found.stamp == before
    os.utime(found.files[1], ns=(1, 1))
    assert found.stamp != before
    with pytest.raises(InputError, match=r"own\.parquet"), readable(tmp_path / "own.parquet"):
        raise pa.ArrowInvalid("Invalid: a reason")


def table(values):
    n = len(values)
    return Table("toy", ("x",), ("a", "b"), np.arange(n) % 2, (np.arange(n * 1.0)[:, None],), groups={"t": values})


def test_dates_are_seconds_since_1970_and_what_is_no_moment_is_refused():
    for text, expected in {
        "2023-02-03": (2023, 2, 3),
        "2023-02": (2023, 2, 1),
        "2023-Q3": (2023, 7, 1),
        "2023-W07": (2023, 2, 13),
        "2020-W53": (2020, 12, 28),
        "2023-02-03T04:05:06": (2023, 2, 3, 4, 5, 6),
        "2023-02-03 04:05:06+02:00": (2023, 2, 3, 2, 5, 6),
        "1969-12-31": (1969, 12, 31),
    }.items():
        assert moment(text) == (datetime(*expected, tzinfo=UTC).timestamp(), True)
    for text in ("", "soon", "2023-13", "2023-W54", "2023-Q5", "nan", "inf", "2023/02/03"):
        with pytest.raises(ValueError, match=r".*"):
            moment(text)


def test_numbers_stay_what_they_are_and_dates_come_back_from_seconds():
    found, dated = moments(table(np.array([3, 1, 2])), "t")
    assert found.tolist() == [3.0, 1.0, 2.0]
    assert not dated
    assert moments(table(np.array([3, 1, 2])), "x")[0].tolist() == [0.0, 1.0, 2.0]  # a column of numbers
    found, dated = moments(table(np.array(["2023-02-03", "1969-12-31"])), "t")
    assert dated
    assert seconds(found).astype(str).tolist() == ["2023-02-03T00:00:00", "1969-12-31T00:00:00"]


@pytest.mark.parametrize(
    ("values", "column", "said"),
    [
        (["2023-02-03", "later"], "t", r"data\.time.*later.*1.*0.*toy.*ISO"),
        (["2023-02-03", "7"], "t", r"data\.time.*'t'.*toy.*'7'.*2023-02-03"),
        ([1, 2], "tt", r"data\.time.*toy.*'tt'"),
    ],
)
def test_a_column_of_anything_else_is_refused_by_its_row(values, column, said):
    refused(said, moments, table(np.array(values)), column)
