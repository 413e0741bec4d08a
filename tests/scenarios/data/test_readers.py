"""Parquet files: the same tables as CSV files of the same rows; files larger than memory; and all mistakes.

Arrays of npz files: which are taken, and how every other is named.
Several files as one source.
svmlight files as sheets.
"""

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
from sklearn.datasets import dump_svmlight_file
from sklearn.feature_extraction import FeatureHasher
from support.examples import examples
from support.refusals import refused

from federation.contract.errors import InputError
from federation.features.feature_map import text_code
from scenarios.data import readers, sheets
from scenarios.data.catalogue import digest, load
from scenarios.data.files import read_public, read_rows, read_table
from scenarios.data.hashing import Hashing
from scenarios.data.profile import profile
from scenarios.data.readers import Archive, files_of, is_pattern, is_there, read_hashed, read_parquet
from scenarios.data.sheets import moment


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


@settings(derandomize=True)
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


GOOD = {"x": [1.0, 2.0, 3.0], "y": ["a", "b", "a"]}


@pytest.mark.parametrize(
    ("columns", "label", "part"),
    [
        ({"x": [1, None, 3]}, "y", r"data\.parquet.*1.*0.*'x'"),
        ({"x": [1, np.nan, 3]}, "y", r"1.*0.*'x'"),
        ({"x": [1, 2, np.inf]}, "y", r"2.*0.*'x'"),
        ({"x": pa.nulls(3)}, "y", r"0.*0.*'x'"),
        ({"y": ["a", None, "b"]}, "y", r"1.*0.*'y'"),
        ({"y": ["a", " NA", "b"]}, "y", r"1.*0.*'y'"),
        ({"y": [1, np.nan, 2]}, "y", r"1.*0.*'y'"),
        ({"x": [datetime.date(2020, 1, 1)] * 3}, "y", r"'x'.*date32"),
        ({"x": [[1], [2], [3]]}, "y", "'x'"),
        ({"x": [b"a"] * 3}, "y", "'x'"),
        ({"y": [datetime.date(2020, 1, 1)] * 3}, "y", r"'y'.*date32"),
        ({"__index_level_0__": [1, 2, 3]}, "y", "__index_level_0__"),
        ({"": [1, 2, 3]}, "y", r"data\.parquet.*3"),
        ({"y": ["a", "a", "a"]}, "y", r"2.*1000.*1"),
        ({"x": [f"{i},5" for i in range(60)], "y": ["a", "b"] * 30}, "y", r"'x'.*60.*60.*0,5"),  # no categories
        ({}, None, r"data\.label"),
        ({}, "Y", "'Y'"),
        ({"x": None}, "y", "'y'"),
    ],
)
def test_mistakes_are_named(save, columns, label, part):
    written = {name: cells for name, cells in (GOOD | columns).items() if cells is not None}
    refused(part, read_table, save(**written), label)


def test_files_that_are_no_parquet(tmp_path, save):
    content = save(**GOOD).read_bytes()
    path = tmp_path / "damaged.parquet"
    for damaged in (b"", b"text" * 100, content[: len(content) // 2], bytes(40) + content[40:]):
        path.write_bytes(damaged)
        refused(r"damaged\.parquet", read_table, path, "y")
    refused(None, read_table, save(x=pa.array([], pa.int64()), y=pa.array([], pa.string())), "y")
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["x", "x"]), path)
    refused("'x'", read_table, path, "x")


def test_the_name_of_a_folder_adds_no_column(tmp_path):
    (tmp_path / "site=3").mkdir()
    pq.write_table(pa.table(GOOD), tmp_path / "site=3" / "data.parquet")
    assert read_table(tmp_path / "site=3" / "data.parquet", "y").columns == ("x",)


def test_real_labels_are_numbers_of_any_type(save):
    for numbers in ([1, 5, 2], [0.5, 1.25, -3.0], [Decimal("1.5"), Decimal("2.5"), Decimal("0.1")]):
        table = read_table(save(x=[1, 2, 3], y=numbers), "y", real=True)
        assert (table.columns, table.classes, table.labels.dtype) == (("x",), (), np.float64)
        np.testing.assert_array_equal(table.labels, [float(number) for number in numbers])
    for labels, words in ((["a", "b", "c"], None), ([1.0, None, 2.0], "1")):
        refused(words, read_table, save(x=[1, 2, 3], y=labels), "y", real=True)


def test_texts_that_are_not_utf_8_are_told_of_the_file(tmp_path):
    path = tmp_path / "own.parquet"
    ends, content = pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"\xffa")
    bad = pa.StringArray.from_buffers(2, ends, content)
    for column in (bad, pa.DictionaryArray.from_arrays(pa.array([0, 1]), bad)):
        pq.write_table(pa.table({"a": column, "x": [1.0, 2.0], "y": ["u", "v"]}), path)
        for read in (lambda: read_table(path, "y"), lambda: read_rows(path, ["x"])):
            refused(r"own\.parquet.*UTF8", read)


def test_more_cells_than_a_file_can_mean_are_refused_before_they_are_read(tmp_path, monkeypatch):
    path = tmp_path / "own.parquet"
    pq.write_table(pa.table({"x": np.zeros(300_000), "y": np.arange(300_000) % 2}), path, compression="zstd")
    assert len(read_table(path, "y")) == 300_000  # below 2 GiB whatever the file's size
    monkeypatch.setattr(readers, "_ALWAYS_READ", 2**20)
    monkeypatch.setattr(readers, "_MOST_EXPANDED", 100)
    refused(r"own\.parquet.*600000", read_table, path, "y")
    pq.write_table(pa.table({"x": np.random.default_rng(0).normal(size=300_000), "y": np.arange(300_000) % 2}), path)
    assert len(read_table(path, "y")) == 300_000


def test_texts_of_every_type_are_told_where_numbers_are_wanted(save):
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        path = save(a=pa.array(["1", "x", None], kind), b=[1, 2, 3])
        assert read_rows(path, ("a", "b"), (0,), missing=True).shape == (3, 2)
        refused(r"'a'.*'x'", read_rows, path, ("a", "b"))


def test_a_damaged_description_of_a_column_does_not_end_the_process(save):
    """One bit says that a column has no missing cells, and no longer fits the statistics beside it."""
    path = save(x=[1.0, None, 3.0])
    content = path.read_bytes()
    optional, required = (b"\x15\x0a\x25" + how + b"\x18\x01x" for how in (b"\x02", b"\x00"))
    assert content.count(optional) == 1
    path.write_bytes(content.replace(optional, required))
    refused(None, read_rows, path, ("x",))


def test_dates_say_when_rows_arrived_and_are_no_features(save):
    days = [datetime.datetime(2023, 2, 3, 4, 5), datetime.datetime(2023, 3, 1)]
    path = save(day=pa.array([at.date() for at in days]), at=pa.array(days, pa.timestamp("ns", "UTC")), x=[1, 2])
    found = read_parquet(path)
    assert found.coded("day", dated=True)[0] == ["2023-02-03", "2023-03-01"]
    moments = [moment(text)[0] for text in found.coded("at", dated=True)[0]]
    assert moments == [at.replace(tzinfo=datetime.UTC).timestamp() for at in days]
    assert read_rows(path, ("x",)).tolist() == [[1], [2]]
    refused(r"day.*date32", found.texts, "day")


@contextmanager
def as_large(folder):
    """Any Parquet file is too large to be read as a whole, and 7 rows of it are read at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readers, "_WHOLE", 1)
        patch.setattr(sheets, "_ROWS_READ", 7)
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
@settings(max_examples=examples(12))
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


def test_mistakes_in_large_files_and_damage_are_named(tmp_path, rng):
    for columns, words in (
        ({"x": [*range(12), None, *range(3)]}, r"half\*\.parquet.*12.*0.*'x'"),
        ({"x": [*range(16)], "y": [*"np" * 6, None, *"npn"]}, "'y'"),
    ):
        path = halves(tmp_path, **({"y": [*"np" * 8]} | columns))
        with as_large(tmp_path), pytest.raises(InputError, match=words):
            read_table(path, "y")
    path = tmp_path / "own.parquet"
    pq.write_table(pa.table({"x": rng.normal(size=9000), "y": ["n", "p"] * 4500}), path, compression="gzip")
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 2000] = bytes(2000)
    path.write_bytes(content)
    with as_large(tmp_path), pytest.raises(InputError, match=r"own\.parquet"):
        read_table(path, "y")


def test_files_of_other_columns_are_not_taken_together(tmp_path):
    for name, numbers in (("a1", [1.0, 2.0]), ("a2", [1, 2])):
        pq.write_table(pa.table({"x": numbers, "y": ["n", "p"]}), tmp_path / f"{name}.parquet")
    refused(r"a2\.parquet.*a1\.parquet", read_table, tmp_path / "a*.parquet", "y")


@pytest.fixture
def archive(tmp_path):
    def of(**arrays):
        np.savez(tmp_path / "own.npz", **arrays)
        return Archive(tmp_path / "own.npz")

    return of


def test_arrays_are_found_by_name_and_python_objects_are_never_loaded(archive):
    found = archive(X=np.array([print, None], dtype=object), y=np.arange(3))
    assert list(found) == ["X", "y"]
    assert "X" in found
    assert "Z" not in found
    assert found["y"].tolist() == [0, 1, 2]
    with pytest.raises(InputError, match="'X'"):
        found["X"]
    with pytest.raises(InputError, match=r"label.*labels"):
        archive(labels=np.arange(3))["label"]
    with pytest.raises(InputError, match="'X'"):
        archive()["X"]


def test_a_file_that_cannot_be_opened_says_why(tmp_path):
    refused(r"absent\.npz", Archive, tmp_path / "absent.npz")
    for content in (b"", b"text"):
        (tmp_path / "own.npz").write_bytes(content)
        refused(r"own\.npz.*npz", Archive, tmp_path / "own.npz")
    np.save(tmp_path / "one.npy", np.ones(3))
    refused("npz", Archive, tmp_path / "one.npy")


def test_tables_are_finite_numbers_of_equal_width(archive):
    found = archive(
        X=np.ones((3, 2)), bits=np.eye(2, dtype=bool), wide=np.ones((3, 4)), flat=np.ones(3), none=np.ones((0, 2)),
        texts=np.array([["a", "b"]]), holes=np.array([[1.0, 2.0], [3.0, -np.inf]]),
        long=np.array([[1.0, np.finfo(np.longdouble).max]]),
    )  # fmt: skip
    assert [table.shape for table in found.tables("X", "bits")] == [(3, 2), (2, 2)]
    refused(r"2.*4", found.tables, "X", "wide")
    for name in ("flat", "none", "texts"):
        refused(f"'{name}'", found.tables, "X", name)
    refused(r"holes.*1.*1.*0", found.tables, "holes")
    if np.finfo(np.longdouble).max > np.finfo(float).max:
        refused(r"long.*0.*1.*0", found.tables, "long")


def test_vectors_have_a_value_for_every_row(archive):
    for values, words in (
        (np.arange(2), r"must hold 3 numbers or texts, got int64 of shape \(2,\)"),
        (np.ones((3, 1)), r"must hold 3 numbers or texts, got float64 of shape \(3, 1\)"),
        (np.ones(3, complex), "must hold 3 numbers or texts, got complex128"),
        (np.array([1.0, np.nan, 2.0]), r"row 1 \(counted from 0\) is missing"),
        (np.array(["a", "b", " "]), r"row 2 \(counted from 0\) is missing"),
        (np.array(["NA", "b", "c"]), r"row 0 \(counted from 0\) is missing"),
    ):
        refused(rf"'v'.*{words}", archive(v=values).vector, "v", 3)
    found = archive(words=np.array(["NA", "null"]), blank=np.array(["a", ""]))
    assert found.vector("words", 2, names=True).tolist() == ["NA", "null"]  # a name among names
    refused("1", found.vector, "blank", 2, names=True)


def test_parts_are_joined_by_their_rows_and_columns_are_numbered_where_names_may_be_left_out(archive):
    found = archive(y_train=np.array([1, 2]), y_test=np.array([3]))
    blocks = (np.ones((2, 1)), np.ones((1, 1)))
    assert found.joined("y", ("_train", "_test"), blocks).tolist() == [1, 2, 3]
    refused(r"y_test.*2", found.joined, "y", ("_train", "_test"), (blocks[0], np.ones((2, 1))))
    rows = np.ones((3, 2))
    assert archive(X=rows).column_names("names", rows, needed=False) == ("x0", "x1")
    assert archive(names=np.array([7, 8])).column_names("names", rows, needed=False) == ("7", "8")
    refused("names", archive(X=rows).column_names, "names", rows)


@pytest.fixture
def folder(tmp_path):
    for name in ("Day10.svm", "Day2.svm", "Day2b.svm", "other.txt", "odd[1].svm"):
        (tmp_path / name).write_text("1 1:1\n0 2:1\n")
    return tmp_path


def test_files_come_by_their_numbers_a_file_may_have_the_name_of_a_pattern_and_no_files_are_refused(folder):
    for pattern, names in {
        "Day*.svm": ["Day2.svm", "Day2b.svm", "Day10.svm"],
        "Day?.svm": ["Day2.svm"],
        "odd[1]*": ["odd[1].svm"],  # brackets mean themselves
        "odd[1].svm": ["odd[1].svm"],
    }.items():
        assert files_of(folder / pattern) == [folder / name for name in names]
    (folder / "really*.svm").write_text("1 1:1\n")
    assert not is_pattern(folder / "really*.svm")
    assert is_there(folder / "really*.svm")
    assert not is_there(folder / "Night*.svm")
    refused(r"Night\*\.svm", files_of, folder / "Night*.svm")
    (folder / "a1.csv").write_text("x,y\n1,a\n2,b\n")
    for pattern, label, words in (("Night*.svm", None, r"data\.source.*Night\*\.svm"), ("a*.csv", "y", r"a\*\.csv")):
        refused(words, load, pattern, label=label, data_dir=folder)


def test_a_file_that_comes_or_goes_changes_what_is_read(folder):
    before, rows = digest("Day*.svm", folder), len(load("Day*.svm", data_dir=folder))
    (folder / "Day3.svm").write_text("1 1:1\n")
    assert digest("Day*.svm", folder) != before
    assert len(load("Day*.svm", data_dir=folder)) == rows + 1


@pytest.fixture
def saved(tmp_path):
    random = np.random.default_rng(0)
    rows = random.normal(size=(30, 4)) * (random.random((30, 4)) < 0.5)
    labels = np.where(rows[:, 0] > 0, 1, -1)
    path = tmp_path / "own.svmlight"
    dump_svmlight_file(rows, labels, str(path), zero_based=False)
    return path, rows, labels


def test_rows_and_labels_are_those_that_were_written(saved, tmp_path):
    path, rows, labels = saved
    table = read_table(path, None)
    assert (table.columns, table.classes) == (("x1", "x2", "x3", "x4"), ("-1", "1"))
    np.testing.assert_allclose(table.rows(np.arange(30)), rows, rtol=1e-15)
    np.testing.assert_array_equal(table.labels, labels == 1)
    assert read_table(path, "y", real=True).labels.tolist() == labels.tolist()
    kinds = [(column.name, column.kind) for column in profile(path).columns]
    assert kinds[-2:] == [("x4", "numbers"), ("y", "whole numbers")]
    other = tmp_path / "new.svmlight"
    other.write_text("0 2:5\n0 1:-1\n")  # columns that are all zero here are there
    expected = [[0, 5, 0, 0], [-1, 0, 0, 0]]
    assert read_rows(other, ("x1", "x2", "x3", "x4")).tolist() == expected
    assert read_public(other, table, "own.svmlight").tolist() == expected
    assert read_rows(other, ("x4", "x2")).tolist() == [[0, 5], [0, 0]]


@pytest.mark.parametrize(
    ("text", "hashes", "part"),
    [
        ("1 0:3\n", (), r"LABEL.*INDEX.*VALUE"),
        ("a,b\n1,2\n", (), None),
        ("1 2:3 1:4\n", (), None),
        ("", (), None),
        ("1\n0\n", (), None),
        ("1 99999999:1\n0 1:1\n", (), r"1.*16777216"),
        ("1 16777216:1\n" * 9, (), r"9.*16777216.*hash.*12"),
        ("nan 1:1\n1 1:2\n", (), "'y'"),
        ("", [Hashing(4)], r"bad\.svmlight"),
        ("nan 1:1\n", [Hashing(4)], r"bad\.svmlight"),
        ("1 0:1\n", [Hashing(4)], r"bad\.svmlight"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path, text, hashes, part):
    path = tmp_path / "bad.svmlight"
    path.write_text(text)
    refused(part, read_table, path, None, hashes=hashes)


def written_days(folder):
    """Five days of four sparse rows each, in pieces that end within a day."""
    random = np.random.default_rng(1)
    for day in (0, 1, 2, 10, 11):
        lines = []
        for row in range(4):
            columns = np.sort(random.choice(3_000_000, 30, replace=False)) + 1
            lines.append(f"{'+1' if row % 2 else '-1'} " + " ".join(f"{i}:{0.25 * (i % 7)}" for i in columns))
        (folder / f"Day{day}.svm").write_text("\n".join(lines) + "\n")
    return folder / "Day*.svm"


def test_hashed_rows_are_those_of_a_feature_hasher_of_the_columns_names(tmp_path):
    pattern = written_days(tmp_path)
    table = read_table(pattern, None, ["file"], hashes=[Hashing(8)])
    assert (len(table), table.classes, table.columns[3]) == (20, ("-1", "1"), "hash(x, 8 bits)[3]")
    assert [*dict.fromkeys(table.groups["file"].tolist())] == ["Day0", "Day1", "Day2", "Day10", "Day11"]
    assert table.labels.tolist() == [0, 1] * 10
    rows = []
    for day in (0, 1, 2, 10, 11):
        for line in (tmp_path / f"Day{day}.svm").read_text().splitlines():
            pairs = (pair.split(":") for pair in line.split()[1:])
            rows.append({f"x{index}": float(value) for index, value in pairs})
    expected = FeatureHasher(256).transform(rows).toarray()
    np.testing.assert_allclose(table.rows(np.arange(20)), expected, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(table.rows(np.array([7, 3])), table.rows(np.arange(20))[[7, 3]])


def test_rows_are_hashed_alike_in_all_pieces_and_of_new_rows_but_not_beside_other_columns(tmp_path, monkeypatch):
    pattern = written_days(tmp_path)
    table = read_table(pattern, None, hashes=[Hashing(6)])
    expected = table.rows(np.arange(8, 12))
    np.testing.assert_array_equal(read_rows(tmp_path / "Day2.svm", table.columns), expected)
    np.testing.assert_array_equal(read_public(tmp_path / "Day2.svm", table, "days"), expected)
    whole = read_hashed(pattern, Hashing(6))
    monkeypatch.setattr(readers, "_PIECE", 700)
    pieces = read_hashed(pattern, Hashing(6))
    np.testing.assert_array_equal(pieces.rows[np.arange(20)], whole.rows[np.arange(20)])
    assert (pieces.labels.tolist(), pieces.files.tolist()) == (whole.labels.tolist(), whole.files.tolist())
    for options, words in (
        ({"label": "x3"}, r"data\.label.*'y'.*'x3'"),
        ({"groups": ["day"]}, r"day.*file"),
        ({"drop": ["x3"]}, r"data\.drop"),
        ({"hashes": [Hashing(4, "text")]}, None),
        ({"hashes": [Hashing(4), Hashing(5)]}, None),
    ):
        refused(words, read_table, pattern, **{"label": None, "hashes": [Hashing(4)], **options})


def test_several_files_without_hashing_are_one_sheet_and_too_large_ones_are_refused(tmp_path, saved, monkeypatch):
    (tmp_path / "a1.svm").write_text("1 1:2\n")
    (tmp_path / "a2.svm").write_text("0 3:4\n")
    assert read_table(tmp_path / "a?.svm", None).rows(np.arange(2)).tolist() == [[2, 0, 0], [0, 0, 4]]
    monkeypatch.setattr(readers, "MOST_CELLS", 119)
    refused(r"30.*4.*119", read_table, saved[0], None)
