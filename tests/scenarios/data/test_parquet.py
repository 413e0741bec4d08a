"""Parquet files: the same tables as CSV files of the same rows; files larger than memory; and all mistakes."""

from __future__ import annotations

import csv
import datetime
import tempfile
from contextlib import contextmanager
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.features.feature_map import text_code
from scenarios.data import readers as parquet
from scenarios.data import sheets as stored
from scenarios.data.files import read_rows, read_table
from scenarios.data.readers import read_parquet
from scenarios.data.sheets import moment

COLUMNS = {"age": [30, 41, 52], "city": [" Rome ", "Oslo", "Rome"], "income": [1e3, 2500.5, -3.0]}


@pytest.fixture
def save(tmp_path):
    def to_file(**columns):
        path = tmp_path / "data.parquet"
        pq.write_table(pa.table(columns), path)
        return path

    return to_file


def test_readings_tell_what_is_missing_from_what_is_no_number(save):
    found = read_parquet(save(x=["1.5", "n/a", "abc", None, "inf", "-2"], y=[1.0, None, np.inf, np.nan, 2.0, 3.0]))
    for name, others in (("x", [2, 4]), ("y", [2])):
        values, rows = found.readings(name)
        assert rows.tolist() == others
        assert np.isnan(values[[1, 3, *others]]).all()
        assert np.isfinite(values[[0, 5]]).all()


def test_numbers_texts_and_labels(save):
    path = save(**COLUMNS, ill=["yes", "no", "yes"])
    table = read_table(path, "ill")
    assert (table.name, table.columns, table.text, table.classes) == (
        "data.parquet", ("age", "city", "income"), (1,), ("no", "yes"),
    )  # fmt: skip
    np.testing.assert_array_equal(table.labels, [1, 0, 1])
    rome, oslo = text_code("Rome"), text_code("Oslo")
    np.testing.assert_array_equal(table.rows(np.arange(3)), [[30, rome, 1000], [41, oslo, 2500.5], [52, rome, -3]])


def test_every_type_of_number_and_text(save):
    table = read_table(
        save(
            i=pa.array([1, 2, 3], pa.int8()),
            u=pa.array([2**63, 2, 3], pa.uint64()),
            h=pa.array(np.array([1, 2, 3], np.float16)),
            f=pa.array([0.5, 2, 3], pa.float32()),
            b=[True, False, True],
            d=pa.array([Decimal("1.5"), Decimal("2"), Decimal("3")], pa.decimal128(9, 2)),
            n=pa.array([5, 6, 5]).dictionary_encode(),
            c=pa.array(["x", "y", "x"]).dictionary_encode(),
            l=pa.array(["x", "y", "x"], pa.large_string()),
            y=pa.array(["p", "q", "p"]).dictionary_encode(),
        ),
        "y",
    )
    x, y = text_code("x"), text_code("y")
    expected = [[1, 2.0**63, 1, 0.5, 1, 1.5, 5, x, x], [2, 2, 2, 2, 0, 2, 6, y, y], [3, 3, 3, 3, 1, 3, 5, x, x]]
    np.testing.assert_array_equal(table.rows(np.arange(3)), expected)
    assert table.text == (7, 8)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    rows=st.lists(
        st.tuples(
            st.floats(allow_nan=False, allow_infinity=False),
            st.integers(-(10**15), 10**15),
            st.sampled_from(["a", " b", "x y", "Ünicode"]),
            st.sampled_from([3, 4]),
            st.sampled_from(["no", "yes"]),
        ),
        min_size=4,
        max_size=30,
    ).filter(lambda rows: len({row[4] for row in rows}) == 2)
)
def test_the_same_rows_as_csv_give_the_same_table(tmp_path_factory, rows):
    folder, names = tmp_path_factory.mktemp("both"), ("a", "b", "c", "g", "y")
    with (folder / "data.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])
    pq.write_table(pa.table(dict(zip(names, zip(*rows, strict=True), strict=True))), folder / "data.parquet")
    one, other = (read_table(folder / f"data.{suffix}", "y", groups=["g"]) for suffix in ("csv", "parquet"))
    assert (one.columns, one.text, one.classes) == (other.columns, other.text, other.classes)
    np.testing.assert_array_equal(one.rows(np.arange(len(rows))), other.rows(np.arange(len(rows))))
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.groups["g"], other.groups["g"])
    assert one.groups["g"].dtype == other.groups["g"].dtype == np.int64
    picked = [read_rows(folder / f"data.{suffix}", ("c", "b"), (0,)) for suffix in ("csv", "parquet")]
    np.testing.assert_array_equal(*picked)


@pytest.mark.parametrize("labels", [[5, 3, 5], [5.0, 3.0, 5.0], [True, False, True], ["5", "3", "5"]])
def test_labels_of_every_type(save, labels):
    table = read_table(save(x=[1, 2, 3], y=labels), "y")
    np.testing.assert_array_equal(table.labels, [1, 0, 1])
    assert table.with_classes(["True", "False"] if labels[0] is True else ["3", "5"])


def test_rows_to_predict(save):
    path = save(note=[datetime.date(2020, 1, 1)] * 2, income=[5, 6], city=["Oslo", "Bonn"], age=[1.0, 2.0])
    rows = read_rows(path, ("age", "city", "income"), text=(1,))
    np.testing.assert_array_equal(rows, [[1, text_code("Oslo"), 5], [2, text_code("Bonn"), 6]])
    assert read_rows(path, ("income",), text=(0,))[0, 0] == text_code("5")
    with pytest.raises(InputError, match=r"no column 'ages'; it has note, income, .* did you mean 'age'"):
        read_rows(path, ("ages",))
    with pytest.raises(InputError, match=r"row 0 .*: column 'city' is 'Oslo', not a finite number"):
        read_rows(path, ("city",))


GOOD = {"x": [1.0, 2.0, 3.0], "y": ["a", "b", "a"]}


@pytest.mark.parametrize(
    ("columns", "part"),
    [
        ({"x": [1, None, 3]}, r"data.parquet, row 1 \(counted from 0\): column 'x' is missing; .* correct them"),
        ({"x": [1, np.nan, 3]}, r"row 1 \(counted from 0\): column 'x' is missing"),
        ({"x": [1, 2, np.inf]}, r"row 2 \(counted from 0\): column 'x' is inf, not a finite number"),
        ({"x": pa.nulls(3)}, r"row 0 \(counted from 0\): column 'x' is missing"),
        ({"y": ["a", None, "b"]}, r"row 1 \(counted from 0\): column 'y' is missing"),
        ({"y": ["a", " NA", "b"]}, r"row 1 \(counted from 0\): column 'y' is missing"),
        ({"y": [1, np.nan, 2]}, r"row 1 \(counted from 0\): column 'y' is missing"),
        ({"x": [datetime.date(2020, 1, 1)] * 3}, r"column 'x' holds date32\[day\], neither numbers nor texts; turn"),
        ({"x": [datetime.datetime(2020, 1, 1)] * 3}, r"column 'x' holds timestamp.*, neither numbers nor texts"),
        ({"x": [[1], [2], [3]]}, r"column 'x' holds list.*, neither numbers nor texts"),
        ({"x": [b"a"] * 3}, r"column 'x' holds binary, neither"),
        ({"y": [datetime.date(2020, 1, 1)] * 3}, r"column 'y' holds date32"),
        ({"__index_level_0__": [1, 2, 3]}, "holds a pandas index as the column '__index_level_0__'; write it with"),
        ({"": [1, 2, 3]}, "data.parquet has no name for column 3"),
        ({"y": ["a", "a", "a"]}, "2 to 1000 classes, got 1"),
    ],
)
def test_mistakes_are_named(save, columns, part):
    with pytest.raises(InputError, match=part):
        read_table(save(**{**GOOD, **columns}), "y")


def test_a_label_is_needed_and_looked_for_by_name(save):
    path = save(**GOOD)
    with pytest.raises(InputError, match=r"data.label must name the label column of .* it has x, y"):
        read_table(path, None)
    with pytest.raises(InputError, match=r"no column 'Y'; it has x, y"):
        read_table(path, "Y")
    with pytest.raises(InputError, match="a column beside 'y' that can be a feature"):
        read_table(save(y=["a", "b"]), "y")


def test_texts_that_are_all_different_are_no_categories(save):
    with pytest.raises(InputError, match="column 'x' holds 60 different texts in 60 rows, such as '0,5'"):
        read_table(save(x=[f"{i},5" for i in range(60)], y=["a", "b"] * 30), "y")


def test_files_that_are_no_parquet(tmp_path, save):
    content = save(**GOOD).read_bytes()
    for damaged in (b"", b"text" * 100, content[: len(content) // 2], bytes(40) + content[40:]):
        path = tmp_path / "damaged.parquet"
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"damaged.parquet is damaged or not a Parquet file"):
            read_table(path, "y")
    with pytest.raises(InputError, match="has no rows"):
        read_table(save(x=pa.array([], pa.int64()), y=pa.array([], pa.string())), "y")
    twice = pa.table([pa.array([1]), pa.array([2])], names=["x", "x"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(InputError, match="has the name 'x' twice; rename or remove"):
        read_table(tmp_path / "twice.parquet", "x")


def test_the_name_of_a_folder_adds_no_column(tmp_path):
    folder = tmp_path / "site=3"
    folder.mkdir()
    pq.write_table(pa.table(GOOD), folder / "data.parquet")
    assert read_table(folder / "data.parquet", "y").columns == ("x",)


@pytest.mark.parametrize("numbers", [[1, 5, 2], [0.5, 1.25, -3.0], [Decimal("1.5"), Decimal("2.5"), Decimal("0.1")]])
def test_real_labels_are_numbers_of_any_type(save, numbers):
    table = read_table(save(x=[1, 2, 3], y=numbers), "y", real=True)
    assert (table.columns, table.classes, table.labels.dtype) == (("x",), (), np.float64)
    np.testing.assert_array_equal(table.labels, [float(number) for number in numbers])


@pytest.mark.parametrize(
    ("labels", "words"), [(["a", "b", "c"], "not a finite number"), ([1.0, None, 2.0], "row 1 .* is missing")]
)
def test_columns_that_are_no_real_labels_are_refused(save, labels, words):
    with pytest.raises(InputError, match=words):
        read_table(save(x=[1, 2, 3], y=labels), "y", real=True)


def test_texts_that_are_not_utf_8_are_told_of_the_file(tmp_path):
    path = tmp_path / "own.parquet"
    ends, content = pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"\xffa")
    bad = pa.StringArray.from_buffers(2, ends, content)
    for column in (bad, pa.DictionaryArray.from_arrays(pa.array([0, 1]), bad)):
        pq.write_table(pa.table({"a": column, "x": [1.0, 2.0], "y": ["u", "v"]}), path)
        for read in (lambda: read_table(path, "y"), lambda: read_rows(path, ["x"])):
            with pytest.raises(InputError, match=r"own\.parquet is damaged or not a Parquet file \(Invalid UTF8"):
                read()


def test_more_cells_than_a_file_can_mean_are_refused_before_they_are_read(tmp_path, monkeypatch):
    path = tmp_path / "own.parquet"
    pq.write_table(pa.table({"x": np.zeros(300_000), "y": np.arange(300_000) % 2}), path, compression="zstd")
    assert len(read_table(path, "y")) == 300_000  # below 2 GiB whatever the file's size
    monkeypatch.setattr(parquet, "_ALWAYS_READ", 2**20)
    monkeypatch.setattr(parquet, "_MOST_EXPANDED", 100)
    with pytest.raises(
        InputError, match=r"own\.parquet claims 600000 cells, far more than a file of its size can mean"
    ):
        read_table(path, "y")
    pq.write_table(pa.table({"x": np.random.default_rng(0).normal(size=300_000), "y": np.arange(300_000) % 2}), path)
    assert len(read_table(path, "y")) == 300_000


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_texts_of_every_type_are_told_where_numbers_are_wanted(save, kind):
    path = save(a=pa.array(["1", "x", None], kind), b=[1, 2, 3])
    assert read_rows(path, ("a", "b"), (0,), missing=True).shape == (3, 2)
    with pytest.raises(InputError, match="column 'a' is 'x', not a finite number"):
        read_rows(path, ("a", "b"))


def test_a_damaged_description_of_a_column_does_not_end_the_process(save):
    """One bit says that a column has no missing cells, and no longer fits the statistics beside it."""
    path = save(x=[1.0, None, 3.0])
    content = path.read_bytes()
    optional, required = (b"\x15\x0a\x25" + how + b"\x18\x01x" for how in (b"\x02", b"\x00"))
    assert content.count(optional) == 1
    path.write_bytes(content.replace(optional, required))
    with pytest.raises(InputError, match="is damaged or not a Parquet file"):
        read_rows(path, ("x",))


def test_dates_say_when_rows_arrived_and_are_no_features(save):
    days = [datetime.datetime(2023, 2, 3, 4, 5), datetime.datetime(2023, 3, 1)]
    path = save(day=pa.array([at.date() for at in days]), at=pa.array(days, pa.timestamp("ns", "UTC")), x=[1, 2])
    found = read_parquet(path)
    assert found.coded("day", dated=True)[0] == ["2023-02-03", "2023-03-01"]
    assert [moment(text)[0] for text in found.coded("at", dated=True)[0]] == [
        at.replace(tzinfo=datetime.UTC).timestamp() for at in days
    ]
    with pytest.raises(InputError, match="column 'day' holds date32"):
        found.texts("day")


@contextmanager
def as_large(folder):
    """Any Parquet file is too large to be read as a whole, and 7 rows of it are read at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "_WHOLE", 1)
        patch.setattr(stored, "_ROWS_READ", 7)
        patch.setattr(tempfile, "tempdir", str(folder))
        yield


def halves(folder, **columns):
    """The rows in two files, the first the shorter one."""
    whole = pa.table(columns)
    for number, rows in enumerate([whole.slice(0, 2), whole.slice(2)]):
        pq.write_table(rows, folder / f"half{number}.parquet", row_group_size=10)
    return folder / "half*.parquet"


ROWS = st.lists(st.tuples(st.floats(-9, 9), st.sampled_from(["u", " v", "w"]), st.booleans()), min_size=2, max_size=40)


@given(rows=ROWS)
def test_large_files_and_several_files_hold_the_same(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("own")
    a, c, y = zip(*rows, strict=True)
    columns = {"a": a, "c": c, "i": [*range(len(rows))], "y": ["p", "n", *("np"[one] for one in y[2:])], "g": c}
    several = halves(folder, **columns)
    pq.write_table(pa.table(columns), folder / "one.parquet")
    whole = read_table(folder / "one.parquet", "y", groups=["g"])
    tables = [read_table(several, "y", groups=["g"])]
    with as_large(folder):
        tables += [read_table(path, "y", groups=["g"]) for path in (several, folder / "one.parquet")]
        rows_to_predict = read_rows(several, ("i", "c"), (1,))
    everything = np.arange(len(rows))
    for table in tables:
        assert (table.columns, table.classes, table.text) == (whole.columns, whole.classes, whole.text)
        assert table.remarks == whole.remarks
        np.testing.assert_array_equal(table.rows(everything), whole.rows(everything))
        np.testing.assert_array_equal(table.labels, whole.labels)
        np.testing.assert_array_equal(table.groups["g"], whole.groups["g"])
    np.testing.assert_array_equal(rows_to_predict, whole.rows(everything)[:, [2, 1]])


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"x": [*range(12), None, *range(3)]}, r"half\*\.parquet, row 12 \(counted from 0\): column 'x' is missing"),
        ({"x": [*range(16)], "y": [*"np" * 6, None, *"npn"]}, "column 'y' is missing"),
    ],
)
def test_mistakes_in_large_files_are_named(tmp_path, columns, words):
    path = halves(tmp_path, **({"y": [*"np" * 8]} | columns))
    with as_large(tmp_path), pytest.raises(InputError, match=words):
        read_table(path, "y")


def test_files_of_other_columns_are_not_taken_together(tmp_path):
    pq.write_table(pa.table({"x": [1.0, 2.0], "y": ["n", "p"]}), tmp_path / "a1.parquet")
    pq.write_table(pa.table({"x": [1, 2], "y": ["n", "p"]}), tmp_path / "a2.parquet")
    with pytest.raises(InputError, match=r"a2\.parquet has other columns than a1\.parquet: .*x: "):
        read_table(tmp_path / "a*.parquet", "y")


def test_damage_in_a_large_file_is_told_where_it_is_found(tmp_path, rng):
    path = tmp_path / "own.parquet"
    pq.write_table(pa.table({"x": rng.normal(size=9000), "y": ["n", "p"] * 4500}), path, compression="gzip")
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 2000] = bytes(2000)
    path.write_bytes(content)
    with as_large(tmp_path), pytest.raises(InputError, match=r"own\.parquet"):
        read_table(path, "y")
