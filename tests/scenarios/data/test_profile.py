"""What columns seem to hold, before anybody has said what they are for."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from support.refusals import refused

from scenarios.data.files import read_table
from scenarios.data.profile import profile

ROWS = 40
COLUMNS = {
    "age": [f"{20.5 + i / 3:.2f}" for i in range(ROWS)],
    "children": [str(i % 4) for i in range(ROWS)],
    "city": ["Rome" if i % 3 else "Oslo" for i in range(ROWS)],
    "born": [f"19{i + 10}-03-{i % 28 + 1:02d}" for i in range(ROWS)],
    "seen": [f"{i % 28 + 1}.3.2001" for i in range(ROWS)],
    "number": [str(100 + i) for i in range(ROWS)],
    "weight": [str(1000 * i * i) for i in range(ROWS)],
    "site": ["A"] * ROWS,
    "rare": ["A"] * (ROWS - 3) + ["", "NA", "?"],
    "empty": ["", "NA"] * (ROWS // 2),
    "size": ["large", *map(str, range(ROWS - 1))],
    "patient_id": [str(i // 4) for i in range(ROWS)],
}
KINDS = {
    "age": "numbers", "children": "whole numbers", "city": "texts", "born": "dates", "seen": "dates",
    "number": "identifiers", "weight": "whole numbers", "site": "one value", "rare": "texts", "empty": "nothing",
    "size": "mixed", "patient_id": "whole numbers",
}  # fmt: skip


@pytest.fixture
def write(tmp_path):
    def save(columns):
        path = tmp_path / "data.csv"
        lines = [",".join(columns), *map(",".join, zip(*columns.values(), strict=True))]
        path.write_text("\n".join(lines) + "\n")
        return path

    return save


def test_every_kind_of_column_is_told_apart_and_measurements_from_classes(write):
    found = profile(write(COLUMNS))
    assert {column.name: column.kind for column in found.columns} == KINDS
    assert {c.name: c.missing for c in found.columns if c.missing} == {"rare": 3, "empty": ROWS}
    assert found.column("children", "--label").counts == {"0": 10, "1": 10, "2": 10, "3": 10}
    assert [c.name for c in found.columns if c.names_somebody] == ["patient_id"]
    assert [c.name for c in found.groups()] == ["children", "city"]
    real = {name: found.is_real(found.column(name, "--label")) for name in ("age", "weight", "number")}
    assert real == {"age": True, "weight": True, "number": True}
    assert not any(found.is_real(found.column(name, "--label")) for name in ("children", "city", "patient_id"))
    refused(r"--group.*cty.*city", found.column, "cty", "--group")


def test_free_text_identifiers_and_numbers_with_signs_are_told_apart_by_more_rows(write):
    forms = {"identifiers": ["EUR{}", "+49-30-{}", "K{}"], "signed numbers": ["${}.50", "{} %", "{} eur", "-€ {}'000"]}
    forms["free text"] = ["a visit of person {}"]
    for kind, spelled in forms.items():
        for form in spelled:
            column = profile(write({"v": [form.format(i + 10) for i in range(120)], "y": ["a", "b"] * 60})).columns[0]
            assert (form, column.kind) == (form, kind)


def test_columns_that_stay_can_be_read_and_those_with_a_reason_often_cannot(write):
    path = write(COLUMNS)
    found = profile(path)
    drop = [column.name for column in found.columns if column.no_feature]
    table = read_table(path, "city", drop=drop, missing=True)
    assert set(table.columns) == {c.name for c in found.columns if not c.no_feature} - {"city"}
    refused(r"size.*large", read_table, path, "city", missing=True)


def test_labels_are_looked_for_by_name_then_classes_then_at_the_ends(write):
    found = profile(write({**COLUMNS, "outcome": ["a", "b"] * (ROWS // 2)}))
    assert found.obvious_label() == "outcome"
    assert [c.name for c in found.label_candidates()][:3] == ["outcome", "city", "children"]
    assert {c.name for c in found.label_candidates()[-2:]} == {"age", "weight"}
    found = profile(write({"y": ["0", "1"] * 20, "class": ["0", "1"] * 20, "x": ["0.5"] * 40}))
    assert found.obvious_label() is None


def test_numbers_with_decimal_commas_are_refused_together(tmp_path):
    path = tmp_path / "data.csv"
    decimal, quoted = "a;b;y\n1,5;1.000,5;c\n2,5;2.000,5;d\n", 'a,y\n"1,5",c\n"2,5",d\n'
    for text, words in ((decimal, r"data\.csv"), (quoted, r"data\.csv.*a")):
        path.write_text(text)
        refused(words, profile, path)


def test_parquet_and_npz_files_have_the_kinds_of_their_columns(tmp_path):
    path = tmp_path / "data.parquet"
    times = pa.array(range(30), pa.timestamp("s"))
    parquet.write_table(pa.table({"at": times, "x": np.arange(30.0) ** 1.5, "y": pa.array([True, False] * 15)}), path)
    kinds = {column.name: column.kind for column in profile(path).columns}
    assert kinds == {"at": "unusable", "x": "numbers", "y": "whole numbers"}
    path = tmp_path / "data.npz"
    rows = np.column_stack([np.linspace(0, 1, 30), np.arange(30.0), np.full(30, 2.0), np.full(30, np.nan)])
    np.savez(path, X=rows, y=np.array(["a", "b"] * 15), z=np.linspace(0, 1, 30))
    assert [(c.name, c.kind) for c in profile(path).columns] == [
        ("x0", "numbers"), ("x1", "identifiers"), ("x2", "one value"), ("x3", "nothing"), ("y", "texts"),
    ]  # fmt: skip
    assert profile(path, "z").columns[-1].kind == "numbers"


@given(st.lists(st.sampled_from(["", "NA", "1", "2.5", "x", "1990-01-02"]), min_size=1, max_size=30))
def test_cells_are_values_or_missing(tmp_path_factory, cells):
    path = tmp_path_factory.mktemp("profile") / "data.csv"
    path.write_text("".join(f"{cell},0\n" for cell in ["v", *cells]))
    column = profile(path).columns[0]
    assert column.missing == sum(cell in ("", "NA") for cell in cells)
    assert column.distinct == len(set(cells) - {"", "NA"})
    assert (column.kind == "nothing") == (column.distinct == 0)
