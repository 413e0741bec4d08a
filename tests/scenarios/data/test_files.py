"""One's own CSV and npz files: what is read, and what every mistake is answered with."""

import csv

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refused

from federation.contract.errors import InputError
from federation.features.feature_map import text_code
from scenarios.data.files import read_public, read_rows, read_table
from scenarios.data.sheets import is_missing

GOOD = "age,city,income,ill\n30, Rome ,1e3,yes\n\n41,Oslo,2500.5,no\n52,Rome,-3,yes\n"
HOLED = "a,city,b,y\n1,Rome,,p\n NA ,,4,q\n3,Oslo,?,p\nnan,Rome,6,q\n"


@pytest.fixture
def write(tmp_path):
    def to_file(text: str, name: str = "data.csv", encoding: str = "utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return to_file


@pytest.fixture
def save(tmp_path):
    def to_file(**arrays):
        np.savez(tmp_path / "data.npz", **arrays)
        return tmp_path / "data.npz"

    return to_file


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_csv_with_numbers_texts_and_labels(write, mark, encoding):
    table = read_table(write(GOOD.replace(",", mark), encoding=encoding), "ill")
    assert table.columns == ("age", "city", "income")
    assert table.text == (1,)
    assert table.classes == ("no", "yes")
    np.testing.assert_array_equal(table.labels, [1, 0, 1])
    rome, oslo = text_code("Rome"), text_code("Oslo")
    np.testing.assert_array_equal(table.rows(np.arange(3)), [[30, rome, 1000], [41, oslo, 2500.5], [52, rome, -3]])
    assert table.name == "data.csv"
    assert table.official is None
    assert not table.groups


def test_csv_quotes_may_hold_marks_and_line_breaks_and_stand_behind_spaces(write):
    path = write('"a,b",t,y\n1,"x\ny",p\n2,"x, z",q\nthree,x,p\n')
    refused(r"data\.csv.*5.*a,b.*three", read_rows, path, ["a,b"])
    table = read_table(write('"a,b",t,y\n1,"x\ny",p\n2,"x, z",q\n'), "y")
    np.testing.assert_array_equal(table.rows(np.arange(2))[:, 1], [text_code("x\ny"), text_code("x, z")])
    table = read_table(write('x, "c", y\n1, "a, b", p\n2,  "c", q\n'), "y")
    assert table.columns == ("x", "c")
    np.testing.assert_array_equal(table.rows(np.arange(2))[:, 1], [text_code("a, b"), text_code("c")])


@settings(derandomize=True)
@given(
    rows=st.lists(
        st.lists(st.text(alphabet='a1 ,"\n\r;é', max_size=6), min_size=2, max_size=2), min_size=1, max_size=8
    ),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_cells_are_read_as_they_were_written(tmp_path_factory, rows, end):
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator=end, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    for i, name in enumerate(("a", "b")):
        codes = read_rows(path, (name,), text=(0,), missing=True)[:, 0]
        texts = [row[i].strip() for row in rows]
        np.testing.assert_array_equal(codes, [text_code("" if is_missing(text) else text) for text in texts])


def test_groups_are_numbers_or_texts_and_no_features(write, save):
    table = read_table(write(GOOD), "ill", groups=["city"])
    assert table.columns == ("age", "income")
    assert table.groups["city"].tolist() == ["Rome", "Oslo", "Rome"]
    table = read_table(write("h,x,y\n10,1,a\n9,2,b\n"), "y", groups=["h"])
    assert table.groups["h"].tolist() == [10, 9]  # numbers, so that 9 sorts before 10
    table = read_table(write("g,x,y\n99999999999999999999,1,a\n4,2,b\n"), "y", groups=["g"])
    assert table.groups["g"].tolist() == ["99999999999999999999", "4"]  # beyond 64 bits
    table = read_table(write("ward,who,x,y\n1,ann,5,a\n2,bob,6,b\n"), "y", groups=("who", "ward"))
    assert table.columns == ("x",)
    assert {name: group.tolist() for name, group in table.groups.items()} == {"who": ["ann", "bob"], "ward": [1, 2]}
    arrays = {"X": np.ones((2, 1)), "y": np.arange(2), "who": np.array(["ann", "bob"]), "ward": np.arange(2)}
    groups = read_table(save(**arrays), None, groups=("who", "ward")).groups
    assert {name: group.tolist() for name, group in groups.items()} == {"who": ["ann", "bob"], "ward": [0, 1]}
    refused(r"data\.csv.*2.*'g'", read_table, write("g,x,y\n,1,a\nb,1,c\n"), "y", groups=["g"])
    refused("site", read_table, write(GOOD), "ill", groups=["site"])


def test_labels_are_names_by_their_values_and_declared_ones_may_be_absent(write):
    table = read_table(write("x,y\n1,10\n2,9\n3,9\n"), "y")
    assert table.classes == ("9", "10")
    np.testing.assert_array_equal(table.labels, [1, 0, 0])
    table = read_table(write("x,y\n1,1\n2,1.0\n3,2\n4,2.0\n"), "y")
    assert table.classes == ("1", "2")
    assert table.labels.tolist() == [0, 0, 1, 1]
    table = read_table(write("x,y\n1,b\n2,b\n"), "y", classes=["a", "b"])
    np.testing.assert_array_equal(table.labels, [1, 1])
    refused("'b'", read_table, write("x,y\n1,b\n2,b\n"), "y", classes=["a", "c"])


def test_a_column_of_few_numbers_is_text_and_one_of_many_is_numbers(write):
    body = "".join(f"{i % 30 if i % 10 else 'x'},{'a' if i % 2 else 'b'}\n" for i in range(1, 101))
    refused(r"data\.csv.*11.*'v'.*'x'", read_table, write("v,y\n" + body), "y")
    few = "".join(f"site {i % 50},{'ab'[i % 2]}\n" for i in range(60))
    for text in (body.replace("1,", "x,"), "1_0,a\n2_0,b\n", few):
        assert read_table(write("v,y\n" + text), "y").text == (0,)
    misread = "v;y\n" + "".join(f"{'NA' if i < 3 else f'{i},5'};{'ab'[i % 2]}\n" for i in range(200))
    refused(r"'v'.*197.*3,5", read_table, write(misread), "y")  # the example is a cell of the column
    for spell in ("${:.2f}", "{:.2f} kg", "id{}"):
        text = "v,y\n" + "".join(f"{spell.format(i)},{'ab'[i % 2]}\n" for i in range(200))
        refused(r"'v'.*200.*200", read_table, write(text), "y")


@pytest.mark.parametrize(
    ("text", "label", "part"),
    [
        (GOOD, "il", r"'il'.*ill"),
        (GOOD, None, r"data\.label"),
        ("x,y\ninf,a\n2,b\n", "y", r"data\.csv.*2.*'x'.*inf"),
        ("x,y\n1,a\n2,b,c\n", "y", r"data\.csv.*3.*2.*3"),
        ("x,y\n1,a\n2\n", "y", r"data\.csv.*3.*2.*1"),
        ("x,y\n1,a\n2,a\n", "y", r"2.*1000.*1"),
        ("x,y\n" + "".join(f"1,{i % 1001}\n" for i in range(4004)), "y", r"1001.*0.*1.*2.*998"),
        ("x,y\n", "y", None),
        ("", "y", r"data\.csv.*1"),
        ("1,2\n3,4\n", "y", r"1.*2"),
        ("x,x,y\n1,2,a\n", "y", "'x'"),
        (",x,y\n0,1,a\n", "y", "1"),
        ("y\na\nb\n", "y", "'y'"),
        ("x,y\n" + "1,a\n" * 30 + "z" * 500 + ",b\n", "y", r"data\.csv.*32.*'x'"),
        ("x,y\n" + "".join(f"{i % 7},{i / 7:.4f}\n" for i in range(600)), "y", r"'y'.*600.*600"),  # a measurement
    ],
)
def test_mistakes_in_a_csv_are_named(write, text, label, part):
    refused(part, read_table, write(text), label)


def test_files_that_are_no_csv_or_of_another_encoding_are_named(write, tmp_path):
    refused(r"data\.csv.*CSV", read_table, write('x,y\n"' + "a" * 200_000 + '",b\n'), "y")
    refused(r"csv.*npz.*parquet", read_table, tmp_path / "data.xls", "y")
    # Far enough in that the reader has decoded some of the file before.
    late = "x,y\n" + "1,a\n" * 20_000 + "café,b\n"
    for text, words in (("größe,y\n1,a\n2,b\n", r"UTF-8.*1.*UTF-8"), (late, r"UTF-8.*20002")):
        refused(words, read_table, write(text, encoding="latin-1"), "y")


def test_npz_files_may_have_names_groups_and_an_official_split(save):
    X = np.arange(6, dtype=np.float32).reshape(3, 2)
    table = read_table(save(X=X, y=np.array([5, 3, 5])), None)
    assert table.columns == ("x0", "x1")
    assert table.classes == ("3", "5")
    assert table.blocks[0].dtype == np.float32
    np.testing.assert_array_equal(table.labels, [1, 0, 1])
    names = np.array(["a", "b"])
    path = save(X=X, target=np.array(["q", "p", "p"]), site=np.array([1, 1, 2]), feature_names=names)
    table = read_table(path, "target", groups=["site"])
    assert table.columns == ("a", "b")
    assert table.classes == ("p", "q")
    assert table.groups["site"].tolist() == [1, 1, 2]
    X, y = np.arange(10.0).reshape(5, 2), np.array([0, 1, 0, 1, 2])
    parts = {"X_train": X[:3], "X_test": X[3:], "y_train": y[:3], "y_test": y[3:]}
    table = read_table(save(**parts, s_train=y[:3], s_test=y[3:]), None, groups=["s"])
    np.testing.assert_array_equal(table.rows(np.arange(5)), X)
    np.testing.assert_array_equal(table.labels, y)
    np.testing.assert_array_equal(table.groups["s"], y)
    assert [part.tolist() for part in table.official] == [[0, 1, 2], [3, 4]]
    refused(r"X_train.*X_test", read_table, save(**{**parts, "X_test": X[3:, :1]}), None)


ROWS = np.ones((2, 2))


@pytest.mark.parametrize(
    ("arrays", "part"),
    [
        ({"Z": ROWS}, None),
        ({"X": ROWS, "Y": np.ones(2)}, "'y'"),
        ({"X": np.ones(2), "y": np.ones(2)}, r"'X'.*float64.*2"),
        ({"X": np.array([[1.0], [np.nan]]), "y": np.ones(2)}, r"1.*0.*'x0'"),
        ({"X": ROWS, "y": np.ones(3)}, r"'y'.*2.*float64.*3"),
        ({"X": ROWS, "y": np.array(["a", "N/A"])}, r"'y'.*1.*0"),
        ({"X": ROWS, "y": np.arange(2), "s": np.array(["a", "N/A"])}, r"'s'.*1.*0"),
        ({"X": ROWS, "y": np.ones(2)}, r"2.*1000.*1.*1"),
        ({"X": np.array([[{}], [{}]]), "y": np.ones(2)}, r"'X'.*X\.astype"),
        ({"X": ROWS, "y": np.arange(2), "feature_names": np.array(["a"])}, r"feature_names.*2"),
    ],
)
def test_mistakes_in_an_npz_are_named(save, arrays, part):
    refused(part, read_table, save(**arrays), None, groups=["s"] if "s" in arrays else ())


def test_damage_is_told_from_python_objects(save, tmp_path):
    good = save(X=np.random.default_rng(0).normal(size=(50, 20)), y=np.arange(50) % 2).read_bytes()
    for content, part in (
        (good[:500], r"own\.npz.*npz"),
        (good[:300] + bytes(40) + good[340:], r"own\.npz.*'X'"),
    ):
        (tmp_path / "own.npz").write_bytes(content)
        refused(part, read_table, tmp_path / "own.npz", None)


def test_absent_files_and_folders_are_named(tmp_path):
    for name in ("absent.csv", "absent.npz"):
        for read in (read_table, read_rows):
            refused(rf"{name}.*{tmp_path}", read, tmp_path / name, ["x"])
        (tmp_path / name).mkdir()
        refused(f"{name}", read_table, tmp_path / name, "y")


def test_rows_to_predict(write, save):
    path = write("note,income,city,age\nx,5,Oslo,1\ny,6,Bonn,2\n")
    rows = read_rows(path, ("age", "city", "income"), text=(1,))
    np.testing.assert_array_equal(rows, [[1, text_code("Oslo"), 5], [2, text_code("Bonn"), 6]])
    refused(r"ages.*age", read_rows, path, ("ages",))
    refused(r"data\.csv.*2.*city.*Oslo", read_rows, path, ("city",))
    assert read_rows(path, ("age",), text=(0,))[0, 0] == text_code("1")
    X = np.arange(6, dtype=np.float32).reshape(3, 2)
    rows = read_rows(save(X=X), ("a", "b"))
    np.testing.assert_array_equal(rows, X)
    assert rows.dtype == np.float64
    refused(r"3.*2", read_rows, save(X=X), ("a", "b", "c"))


def test_declared_and_few_classes_are_no_measurement(write, save):
    text = "x,y\n" + "".join(f"{i % 7},{i}\n" for i in range(60))
    assert len(read_table(write(text), "y", classes=[str(i) for i in range(60)]).classes) == 60
    assert len(read_table(write("x,y\n" + "".join(f"1,{i}\n" for i in range(20))), "y").classes) == 20
    assert len(read_table(write("x,y\n" + "".join(f"1,{i % 100}\n" for i in range(300))), "y").classes) == 100
    refused(r"'y'.*60.*60.*data\.classes", read_table, save(X=np.ones((60, 1)), y=np.arange(60) / 7), None)


@pytest.mark.parametrize("cell", ["", "NA", "nan", "?", " null ", "n/a", "None"])
def test_missing_numbers_and_labels_name_file_line_and_column(write, cell):
    refused(r"data\.csv.*3.*'v'.*column.*v.*1", read_table, write(f"v,w,y\n1,2,a\n{cell},4,b\n"), "y")
    refused(r"data\.csv.*3.*'y'", read_table, write(f"x,y\n1,a\n2,{cell}\n3,b\n"), "y")


def test_real_labels_of_csv_and_npz_files_are_numbers(write, save):
    table = read_table(write(GOOD), "income", real=True)
    assert table.columns == ("age", "city", "ill")
    assert table.text == (1, 2)
    assert (table.classes, table.label_range) == ((), None)
    assert table.labels.tolist() == [1000.0, 2500.5, -3.0]
    many = "x,y\n" + "".join(f"{i},{i / 7}\n" for i in range(90))  # no class has so many values
    np.testing.assert_array_equal(read_table(write(many), "y", real=True).labels, np.arange(90) / 7)
    wrong = {"": "is missing", "nan": "is missing", "inf": "not a finite number", "many": "'many'"}
    for cell, words in wrong.items():
        refused(rf"data\.csv.*3.*'y'.*{words}", read_table, write(f"x,y\n1,1\n2,{cell}\n3,3\n4,4\n"), "y", real=True)
    table = read_table(save(X=np.ones((3, 2)), y=np.array([1, 2, 9], dtype=np.uint8)), None, real=True)
    assert table.labels.dtype == np.float64
    assert table.labels.tolist() == [1.0, 2.0, 9.0]
    parts = {"X_train": np.ones((2, 2)), "X_test": np.zeros((1, 2)), "t_train": [0.5, 1.5], "t_test": [2.5]}
    split = read_table(save(**parts), "t", real=True)
    assert split.labels.tolist() == [0.5, 1.5, 2.5]
    assert [part.tolist() for part in split.official] == [[0, 1], [2]]
    for labels, words in (
        (["1", "2", "x"], "'y'"),
        ([1.0, np.nan, 2.0], r"'y'.*1.*0"),
        ([1.0, 2.0, -np.inf], "2"),
    ):
        refused(words, read_table, save(X=np.ones((3, 2)), y=np.array(labels)), None, real=True)


def test_missing_numbers_are_nan_where_the_features_impute(write, save, tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    expected = [[1, np.nan], [np.nan, 4], [3, np.nan], [np.nan, 6]]
    table = read_table(write(HOLED), "y", missing=True)
    assert (table.columns, table.text, table.labels.tolist()) == (("a", "city", "b"), (1,), [0, 1, 0, 1])
    np.testing.assert_array_equal(table.rows(np.arange(4))[:, [0, 2]], expected)
    assert table.rows(np.arange(4))[1, 1] == text_code("")
    columns = {"a": [1, None, 3, None], "city": ["Rome", None, "Oslo", "Rome"], "b": [None, 4.0, np.nan, 6.0]}
    parquet.write_table(pa.table({**columns, "empty": pa.nulls(4), "y": list("pqpq")}), tmp_path / "data.parquet")
    found = read_table(tmp_path / "data.parquet", "y", missing=True)
    np.testing.assert_array_equal(found.rows(np.arange(4))[:, [0, 2, 3]], np.column_stack([expected, [np.nan] * 4]))
    assert found.rows(np.arange(4))[1, 1] == text_code("")
    archive = save(X=np.array(expected), y=np.array(list("pqpq")))
    np.testing.assert_array_equal(read_table(archive, None, missing=True).rows(np.arange(4)), expected)
    for path in (write(HOLED), tmp_path / "data.parquet"):
        np.testing.assert_array_equal(read_rows(path, ("b", "a"), missing=True), np.array(expected)[:, ::-1])
    np.testing.assert_array_equal(read_rows(archive, ("a", "b"), missing=True), expected)


def test_what_is_no_number_is_none_and_missing_texts_are_one_where_the_features_impute(write):
    for cell in ("inf", "-inf", "1_000", "many"):
        with pytest.raises(InputError, match=rf"data\.csv.*21.*'v'.*'{cell}'"):
            read_table(write("v,y\n" + "1,a\n,b\n" * 9 + f"2,a\n{cell},b\n"), "y", missing=True)
    table = read_table(write("city,y\nRome,p\n,q\nNA,p\n ? ,q\nnone,p\n"), "y", missing=True)
    codes = table.rows(np.arange(5))[:, 0]
    np.testing.assert_array_equal(codes, [text_code("Rome"), *[text_code("")] * 4])


def test_every_column_with_missing_cells_is_named_with_their_number_and_what_would_take_them(write, save):
    refused(r"data\.csv.*2.*city.*1.*2.*1", read_table, write("city,b,a,y\n ? ,,3,p\nRome,1,,q\nOslo,,4,p\n"), "y")
    with pytest.raises(InputError, match=r"0.*0.*'x1'.*column.*x1.*1.*x2.*2"):
        read_table(save(X=np.array([[1, np.nan, np.nan], [1, 2, np.nan]]), y=np.arange(2)), None)
    advice = "or let the features .data.features. begin with impute, which fills in missing cells"
    refused(rf"data\.csv.*2.*'b'.*{advice}", read_rows, write(HOLED), ("b",))
    refused(rf"1.*'x0'.*{advice}", read_table, save(X=np.array([[1.0], [np.nan]]), y=np.arange(2)), None)
    refused(r"1.*0", read_table, save(X=np.array([[1.0], [np.inf]]), y=np.arange(2)), None)
    for missing in (False, True):
        refused(r"data\.csv.*3.*'y'", read_table, write("x,y\n1,2\n2,\n"), "y", real=True, missing=missing)


def test_columns_that_are_no_features_are_left_out(write, save):
    path = write("id,x,note,y\n1,2,this,a\n2,3,that,b\n")
    assert read_table(path, "y", drop=["id", "note"]).columns == ("x",)
    table = read_table(
        save(X=np.array([[1, 2], [3, 4]]), y=np.arange(2), feature_names=np.array(["a", "b"])), None, drop=["a"]
    )
    assert (table.columns, table.rows(np.arange(2)).tolist()) == (("b",), [[2], [4]])
    refused(r"data\.drop.*nota.*note", read_table, path, "y", drop=["nota"])
    refused(r"'y'.*data\.drop", read_table, path, "y", drop=["id", "x", "note"])
    for taken in ("y", "id"):
        refused(rf"data\.drop.*'{taken}'", read_table, path, "y", groups=["id"], drop=[taken])


def test_identifiers_are_remarked_or_refused_with_what_to_do(write):
    body = "".join(f"{100 + i},{1000 * i * i},K{i},{'ab'[i % 2]}\n" for i in range(60))
    refused(r"key.*60.*data\.person.*data\.drop.*key", read_table, write("number,area,key,y\n" + body), "y")
    (remark,) = read_table(write("number,area,key,y\n" + body), "y", drop=["key"]).remarks
    assert remark.startswith("'number' looks like an identifier, a number that no two rows share;")
    assert remark.endswith("data.drop: ['number']")
    assert read_table(write("number,area,key,y\n" + body), "y", drop=["key", "number"]).remarks == ()


def test_public_rows_have_the_columns_of_the_table_in_its_order(write, save, tmp_path):
    table = read_table(write("x,city,z,y\n1,Rome,3,a\n4,Oslo,6,b\n"), "y")
    public = tmp_path / "public.csv"
    public.write_text("other;z;city;x\nq;30;Rome;10\n;60;Bern;40\n")
    expected = [[10, text_code("Rome"), 30], [40, text_code("Bern"), 60]]
    np.testing.assert_array_equal(read_public(public, table, "data.csv"), expected)
    public.write_text("zz,x,y\n1,2,a\n")
    said = r"public\.csv.*2.*3.*data\.csv.*data\.csv"
    refused(said, read_public, public, table, "data.csv")
    public.write_text("x,city,z\n1,,3\n")
    refused(r"public\.csv.*2.*city", read_public, public, table, "data.csv")
    assert read_public(public, table, "data.csv", missing=True)[0, 1] == text_code("")
    archive = save(X=np.array([[1.0, 2.0], [3.0, 4.0]]), y=np.arange(2))
    named = read_table(archive, None, drop=["x0"])
    np.testing.assert_array_equal(read_public(archive, named, "data.npz"), [[2], [4]])
    refused(r"data\.npz.*3.*3", read_public, archive, table, "data.csv")
