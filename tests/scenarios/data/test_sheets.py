"""Parquet files: the same tables as CSV files of the same rows; large files in small blocks; and all mistakes."""

from __future__ import annotations

import csv
import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.dataset import field, scalar

from federation.contract.errors import InputError
from federation.features.feature_map import text_code
from scenarios.data import sheets
from scenarios.data.files import read_rows, read_table
from scenarios.data.sheets import read_large, read_parquet
from scenarios.data.tables import CodedTexts
from scenarios.data.times import moment

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


def test_coded_texts_are_indexed_like_an_array():
    vocabularies = (np.array([10.0, 20.0]), np.array([1.0, 2.0, 3.0]))
    block = CodedTexts(np.array([[0, 2], [1, 1], [0, 0]], np.uint16), vocabularies)
    np.testing.assert_array_equal(block[np.array([2, 0, 2])], [[10, 1], [10, 3], [10, 1]])
    assert block[np.array([], dtype=int)].shape == (0, 2)


def test_a_file_without_a_header_has_the_names_that_are_known(tmp_path):
    (tmp_path / "x").write_text('1\t"a\tu\n\tb\tv\n3\t"a\tw\n')
    numbers, texts = read_large(
        tmp_path / "x",
        ("p",),
        ("q",),
        EVERYTHING,
        separator="\t",
        names=("p", "q", "r"),
    )
    np.testing.assert_array_equal(numbers["p"], [1, np.nan, 3])
    np.testing.assert_array_equal(texts[np.arange(3)][:, 0], [text_code(t) for t in ('"a', "b", '"a')])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x,y\n1,a\n", "lacks the columns t; it has x, y"),
        ("", "lacks the columns x, t; it has none"),
        ("x,t\n1,a\n2\n", r"is not of the documented format \(.*Expected 2 columns"),
        ("x,t\n1,a\nno,b\n", "is not of the documented format .*no"),
        ("x,t\n", "has no row with a label"),
        ("x,t\n-1,a\n", "has no row with a label"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path, text, words):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        read_large(tmp_path / "x.csv", ("x",), ("t",), field("x") > 0)


def test_a_column_of_identifiers_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sheets, "_MOST_TEXTS", 3)
    (tmp_path / "x.csv").write_text("x,t\n" + "".join(f"1,t{i}\n" for i in range(4)))
    with pytest.raises(InputError, match="column 't' has more than 3 different texts"):
        read_large(tmp_path / "x.csv", ("x",), ("t",), EVERYTHING)


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
    monkeypatch.setattr(sheets, "_ALWAYS_READ", 2**20)
    monkeypatch.setattr(sheets, "_MOST_EXPANDED", 100)
    with pytest.raises(
        InputError, match=r"own\.parquet claims 600000 cells, far more than a file of its size can mean"
    ):
        read_table(path, "y")
    pq.write_table(pa.table({"x": np.random.default_rng(0).normal(size=300_000), "y": np.arange(300_000) % 2}), path)
    assert len(read_table(path, "y")) == 300_000


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a,y\n1\0,u\n2,v\n", r"own\.csv:2 holds a NUL, which is no text; save it as UTF-8"),
        (b"a\0,y\n1,u\n2,v\n", r"own\.csv:1 holds a NUL"),
        ("a,y\n1,u\n2,v\n".encode("utf-16-le"), r"own\.csv:1 holds a NUL"),
        (b"a,y\n1,u" + b"\0" * 4096, r"own\.csv:2 holds a NUL"),  # of a disk that was full
        (b"a,a,y\n1,2,u\n", r"own\.csv:1: the header has the name 'a' twice"),
        (b'a,y\n"' + b"1,u\n" * 40_000, "field larger than field limit .*; check its quotation marks"),
    ],
)
def test_damaged_csv_files_are_told(tmp_path, content, words):
    (tmp_path / "own.csv").write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_table(tmp_path / "own.csv", "y")


def test_a_first_line_without_an_end_is_not_read_to_it(tmp_path, monkeypatch):
    path = tmp_path / "own.csv"
    path.write_text("a,y" + "x" * 5000)
    monkeypatch.setattr(sheets, "_LONGEST_LINE", 1000)
    with pytest.raises(InputError, match=r"own\.csv:1: the first line, of the columns' names, has no end"):
        read_table(path, "y")


@pytest.mark.parametrize(("label", "groups"), [("y", ()), ("x", ("y",))])
def test_one_long_text_does_not_make_all_as_long(tmp_path, label, groups):
    """In an array of texts each would take 400 kB, all 20001 of them 8 GB."""
    path = tmp_path / "own.csv"
    path.write_text("a,x,y\n1,u," + "z" * 100_000 + "\n" + "2,v,w\n" * 20_000)
    with pytest.raises(InputError, match=r"own\.csv:2: column 'y' is a text of 100000 characters, too long for one of"):
        read_table(path, label, groups)


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
    assert found.texts("day", dated=True) == ["2023-02-03", "2023-03-01"]
    assert [moment(text)[0] for text in found.texts("at", dated=True)] == [
        at.replace(tzinfo=datetime.UTC).timestamp() for at in days
    ]
    with pytest.raises(InputError, match="column 'day' holds date32"):
        found.texts("day")
