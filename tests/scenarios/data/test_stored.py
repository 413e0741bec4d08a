"""Columns of Parquet files that are read when they are used, beside those of the whole table."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from federation.contract.errors import InputError
from scenarios.data import sheets as stored
from scenarios.data.sheets import Stored, readable


@pytest.fixture
def whole():
    return pa.table({"a": np.arange(50.0), "t": ["u", None] * 25, "d": pa.array(["x", "y"] * 25).dictionary_encode()})


@pytest.fixture
def found(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "_ROWS_READ", 8)
    files = tmp_path / "1.parquet", tmp_path / "2.parquet"
    for file, part in zip(files, (whole.slice(0, 30), whole.slice(30)), strict=True):
        pq.write_table(part, file, row_group_size=20)
    return Stored(files, whole.schema, 50)


def test_columns_are_those_of_the_table(found, whole):
    assert found.column_names == whole.column_names
    assert found.schema.equals(whole.schema)
    for name in whole.column_names:
        assert found.column(name).to_pylist() == whole.column(name).to_pylist()


def test_parts_are_the_rows_in_order_and_few_at_a_time(found, whole):
    parts = [*found.parts(["t", "a"])]
    assert max(part.num_rows for part in parts) == 8
    assert {*parts[0].column_names} == {"a", "t"}
    rows = pa.concat_tables(part.select(["a", "t"]) for part in parts)
    assert rows.to_pydict() == whole.select(["a", "t"]).to_pydict()


def test_another_file_has_another_stamp(found):
    before = found.stamp
    assert found.stamp == before
    os.utime(found.files[1], ns=(1, 1))
    assert found.stamp != before


def test_what_pyarrow_raises_names_the_file(tmp_path):
    with pytest.raises(InputError, match=r"own\.parquet is damaged .*\(a reason\)"), readable(tmp_path / "own.parquet"):
        raise pa.ArrowInvalid("Invalid: a reason")
