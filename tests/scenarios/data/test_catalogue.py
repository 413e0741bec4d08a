"""The catalogue: bundled sets, files of the documented shape, and what is said when they are missing."""

from __future__ import annotations

import os

import numpy as np
import pyarrow.parquet
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from federation.contract.errors import InputError
from scenarios.data.catalogue import contents, digest, entry, load, names, public_file

RNG = np.random.default_rng(0)
ACTIVITIES = ["", "WALKING", "UP", "DOWN", "SITTING", "STANDING", "LAYING"]


@pytest.fixture(autouse=True)
def _no_data_directory(monkeypatch):
    monkeypatch.delenv("FEDERATION_DATA", raising=False)


def har_arrays(**changes) -> dict[str, np.ndarray]:
    arrays = {
        "X_train": RNG.normal(size=(12, 5)).astype(np.float32),
        "X_test": RNG.normal(size=(6, 5)).astype(np.float32),
        "y_train": np.tile(np.arange(1, 7, dtype=np.uint8), 2),
        "y_test": np.arange(6, 0, -1, dtype=np.uint8),
        "subject_train": np.repeat([1, 3], 6),
        "subject_test": np.full(6, 2),
        "feature_names": np.array(list("abcde")),
        "class_names": np.array(ACTIVITIES),
    }
    return {name: value for name, value in {**arrays, **changes}.items() if value is not None}


def kdd_arrays(**changes) -> dict[str, np.ndarray]:
    arrays = {
        "numeric_train": np.array([[1, 0, 99], [2, 1000, 0], [0, 3, 5]], dtype=np.float32),
        "numeric_test": np.array([[7, 1, 0]], dtype=np.float32),
        "onehot_train": np.eye(3, 2, dtype=np.uint8),
        "onehot_test": np.ones((1, 2), dtype=np.uint8),
        "y_train": np.array([0, 1, 1], dtype=np.uint8),
        "y_test": np.array([0], dtype=np.uint8),
        "numeric_names": np.array(["duration", "src_bytes", "dst_bytes"]),
        "onehot_names": np.array(["flag=S0", "flag=SF"]),
    }
    return {name: value for name, value in {**arrays, **changes}.items() if value is not None}


def test_names_have_one_line_each():
    classes = {"digits", "breast_cancer", "gaussians", "adult", "ctg", "har", "higgs", "kdd99", "mnist"}
    classes |= {f"expril_{letter}" for letter in "abcde"}
    assert {name for name in names() if not entry(name).regression} == classes
    real = {"diabetes", "housing", "protein", "census_weeks", "census_1940", "criteo_sscl"}
    assert set(names()) == classes | real
    assert all(line and "\n" not in line for line in names().values())


def test_digits_are_whole_compact_and_loaded_once():
    table = load("digits")
    assert repr(table) == "Table('digits': 1797 rows, 64 columns, 10 classes)"
    assert table.blocks[0].dtype == np.uint8
    assert table.classes == tuple("0123456789")
    assert load("digits") is table
    from sklearn.datasets import load_digits

    np.testing.assert_array_equal(table.rows(np.arange(1797)), load_digits().data)
    np.testing.assert_array_equal(table.labels, load_digits().target)


def test_breast_cancer_names_its_classes_and_columns():
    table = load("breast_cancer")
    assert table.classes == ("malignant", "benign")
    assert (len(table), table.columns[0]) == (569, "mean radius")
    assert np.bincount(table.labels).tolist() == [212, 357]


def test_gaussians_are_as_difficult_as_documented():
    table = load("gaussians")
    rows = table.rows(np.arange(len(table)))
    assert repr(table) == "Table('gaussians': 600000 rows, 10 columns, 3 classes)"
    assert table.blocks[0].dtype == np.float32
    # P(N(2, 1) exceeds two of N(0, 1)) by quadrature, and what the best guess reaches.
    best = quad(lambda z: norm.pdf(z - 2) * norm.cdf(z) ** 2, -8, 12)[0]
    assert best == pytest.approx(0.8658, abs=5e-5)
    assert "at best .866 accurate" in names()["gaussians"]
    assert (rows[:, :3].argmax(axis=1) == table.labels).mean() == pytest.approx(best, abs=5 * np.sqrt(0.12 / 600_000))
    sizes = np.bincount(table.labels)
    assert np.abs(sizes - 200_000).max() < 5 * np.sqrt(600_000 * 2 / 9)
    centred = rows - 2.0 * np.eye(3, 10)[table.labels]
    np.testing.assert_allclose(centred.T @ centred / len(rows), np.eye(10), atol=5 * np.sqrt(2 / 600_000))
    assert load("gaussians") is table


def test_har(tmp_path):
    arrays = har_arrays()
    np.savez_compressed(tmp_path / "har.npz", **arrays)
    table = load("har", data_dir=tmp_path)
    assert table.name == "har"
    assert table.classes == tuple(ACTIVITIES[1:])
    assert table.columns == tuple("abcde")
    np.testing.assert_array_equal(table.rows(np.arange(12)), arrays["X_train"])
    assert [table.classes[code] for code in table.labels[12:]] == ACTIVITIES[:0:-1]
    assert table.groups["subject"].tolist() == [1] * 6 + [3] * 6 + [2] * 6
    assert [len(part) for part in table.official] == [12, 6]
    assert load("har", data_dir=tmp_path) is table


def test_har_without_names(tmp_path):
    np.savez(tmp_path / "har.npz", **har_arrays(class_names=None, feature_names=None))
    table = load("har", data_dir=tmp_path)
    assert table.classes == tuple("123456")
    assert table.columns[0] == "x0"


def test_a_changed_file_is_loaded_again(tmp_path):
    np.savez(tmp_path / "har.npz", **har_arrays())
    before = load("har", data_dir=tmp_path)
    np.savez_compressed(tmp_path / "har.npz", **har_arrays(X_train=np.zeros((12, 5))))
    assert load("har", data_dir=tmp_path) is not before
    assert not load("har", data_dir=tmp_path).rows(np.arange(12)).any()


def test_kdd99(tmp_path, monkeypatch):
    np.savez(tmp_path / "kdd99.npz", **kdd_arrays())
    monkeypatch.setenv("FEDERATION_DATA", str(tmp_path))
    table = load("kdd99")
    assert table.columns == ("duration", "log1p(src_bytes)", "log1p(dst_bytes)", "flag=S0", "flag=SF")
    assert table.classes == ("normal", "attack")
    assert table.labels.tolist() == [0, 1, 1, 0]
    expected = [[1, 0, np.log(100), 1, 0], [2, np.log(1001), 0, 0, 1]]
    np.testing.assert_allclose(table.rows(np.arange(2)), expected, rtol=1e-6)
    assert [part.tolist() for part in table.official] == [[0, 1, 2], [3]]
    assert {block.dtype for block in table.blocks} == {np.dtype(np.float32), np.dtype(np.uint8)}


def test_cardiotocograms(tmp_path):
    states = np.array([2, 1, 1, 3], dtype=np.uint8)
    arrays = {"X": RNG.normal(size=(4, 3)).astype(np.float32), "feature_names": np.array(["LB", "AC", "FM"])}
    np.savez(tmp_path / "ctg.npz", **arrays, y_nsp=states, y=states)
    table = load("ctg", data_dir=tmp_path)
    assert (table.name, table.columns) == ("ctg", ("LB", "AC", "FM"))
    assert [table.classes[code] for code in table.labels] == ["suspect", "normal", "normal", "pathologic"]
    np.testing.assert_array_equal(table.rows(np.arange(4)), arrays["X"])
    assert table.public is None
    np.savez(tmp_path / "ctg.npz", **arrays, y_nsp=states - 1)
    with pytest.raises(InputError, match=r"must hold X \(2126, 21\), .* 3 pathologic\); got another label"):
        load("ctg", data_dir=tmp_path)


@pytest.mark.parametrize("name", ["har", "kdd99"])
def test_a_missing_file_says_where_it_was_looked_for_and_where_it_can_be_had(name, tmp_path):
    with pytest.raises(InputError, match=f"needs the file {name}.npz, but no data directory is given") as caught:
        load(name)
    for part in ("--data-dir", "FEDERATION_DATA", "UCI", "_train"):
        assert part in str(caught.value)
    with pytest.raises(InputError, match=f"there is no {name}.npz in {tmp_path}"):
        load(name, data_dir=tmp_path)


@pytest.mark.parametrize(
    ("name", "arrays", "part"),
    [
        ("har", har_arrays(y_train=np.tile(np.arange(6), 2)), "must hold X_train .* got the classes 0, 1"),
        ("har", {"X": np.ones((6, 2)), "y": np.arange(1, 7), "subject": np.ones(6)}, "must hold X_train"),
        ("har", har_arrays(subject_test=None), "no array 'subject_test'"),
        ("har", har_arrays(class_names=np.array(["a"])), "'class_names' must hold 7 names"),
        ("kdd99", kdd_arrays(y_test=np.array([2])), r"must hold numeric_train \(494021, 38\)"),
        ("kdd99", kdd_arrays(onehot_train=np.ones((2, 2))), "must hold numeric_train"),
        ("kdd99", kdd_arrays(numeric_names=np.array(list("abc"))), "must include src_bytes"),
        ("kdd99", kdd_arrays(numeric_train=-np.ones((3, 3))), "src_bytes, a column of counts from 0"),
        ("kdd99", kdd_arrays(numeric_train=np.ones((3, 2))), "must have equal columns"),
        ("kdd99", kdd_arrays(onehot_names=None), "no array 'onehot_names'"),
    ],
)
def test_files_of_another_content_are_refused(tmp_path, name, arrays, part):
    np.savez(tmp_path / f"{name}.npz", **arrays)
    with pytest.raises(InputError, match=part):
        load(name, data_dir=tmp_path)


@pytest.mark.parametrize("name", ["har", "kdd99"])
def test_damaged_files_are_refused(tmp_path, name):
    np.savez(tmp_path / f"{name}.npz", **har_arrays())
    content = (tmp_path / f"{name}.npz").read_bytes()
    (tmp_path / f"{name}.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=f"{name}.npz is damaged or not an npz file"):
        load(name, data_dir=tmp_path)


def test_own_files_by_path_and_in_the_data_directory(tmp_path):
    (tmp_path / "own.csv").write_text("g,x,y\n1,2,b\n1,3,a\n")
    table = load(str(tmp_path / "own.csv"), label="y", groups=["g"])
    assert table.columns == ("x",)
    assert load("own.csv", label="y", groups=["g"], data_dir=tmp_path) is table
    assert load("own.csv", label="y", data_dir=tmp_path).columns == ("g", "x")
    assert load("own.csv", label="y", classes=["b", "a"], data_dir=tmp_path).labels.tolist() == [0, 1]


def test_parquet_files_are_own_files(tmp_path):
    pyarrow.parquet.write_table(pyarrow.table({"g": [1, 1], "x": [2, 3], "y": ["b", "a"]}), tmp_path / "own.parquet")
    table = load("own.parquet", label="y", groups=["g"], data_dir=tmp_path)
    assert table.columns == ("x",)
    assert load("own.parquet", label="y", groups=["g"], data_dir=tmp_path) is table


def test_declared_classes_of_a_data_set():
    table = load("breast_cancer", classes=["benign", "malignant"])
    assert np.bincount(table.labels).tolist() == [357, 212]
    with pytest.raises(InputError, match="which is not among the declared classes"):
        load("breast_cancer", classes=["benign", "other"])


@pytest.mark.parametrize(
    ("source", "part"),
    [
        (
            "digts",
            r"'digts' is neither a data set \(digits, .*\) nor a .csv or .* or .svmlight file; did you mean 'digits'",
        ),
        ("nowhere.csv", r"there is no such file: nowhere.csv in .* or .*unknown_sources.*; correct .*--data-dir"),
        ("table.xlsx", "neither a data set"),
    ],
)
def test_unknown_sources(source, part, tmp_path):
    with pytest.raises(InputError, match=part):
        load(source, label="y", data_dir=tmp_path)


def test_own_files_have_real_labels_where_a_range_is_declared(tmp_path):
    (tmp_path / "own.csv").write_text("g,x,y\n1,2,0.5\n1,3,7\n")
    source = {"source": "own.csv", "label": "y", "data_dir": tmp_path}
    table = load(**source, groups=["g"], label_range=(0, 10))
    assert (table.columns, table.classes, table.label_range) == (("x",), (), (0.0, 10.0))
    assert table.labels.tolist() == [0.5, 7.0]
    assert load(**source).classes == ("0.5", "7")  # the same file with classes
    assert load(**source, label_range=(0, 5), outside="clip").labels.tolist() == [0.5, 5.0]
    with pytest.raises(InputError, match=r"data.range: 1 of the 2 labels .* outside \[0, 5\], such as 7 in row 1"):
        load(**source, label_range=(0, 5))
    with pytest.raises(InputError, match=r"remove one of them"):
        load(**source, label_range=(0, 10), classes=["0.5", "7"])


def test_a_range_is_never_taken_from_the_data(tmp_path, monkeypatch):
    rows = "1\t5\t" + "\t".join(["1"] * 21) + "\n"
    (tmp_path / "CriteoSearchData").write_text(rows)
    with pytest.raises(InputError, match=r"data.range: real labels need a declared public range .* documents none"):
        load("criteo_sscl", data_dir=tmp_path)
    assert load("criteo_sscl", data_dir=tmp_path, label_range=(0, 400)).label_range == (0.0, 400.0)
    with pytest.raises(InputError, match=r"'digits' has classes; remove data.range"):
        load("digits", label_range=(0, 9))
    with pytest.raises(InputError, match=r"has real labels, no classes: remove data.classes"):
        load("diabetes", classes=["a", "b"])


def test_a_documented_range_can_be_narrowed():
    narrow = load("diabetes", label_range=(50, 200), outside="clip")
    assert (narrow.labels.min(), narrow.labels.max(), narrow.label_range) == (50.0, 200.0, (50.0, 200.0))
    assert load("diabetes").label_range == (25.0, 346.0)
    with pytest.raises(InputError, match=r"choose data\.outside: clip"):
        load("diabetes", label_range=(50, 200))


def test_a_data_set_has_its_own_labels():
    with pytest.raises(InputError, match=r"remove data\.label"):
        load("digits", label="y")


def test_it_applies_to_the_declared_classes_of_an_own_file(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("x,y\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in range(8)))
    known = {"label": "y", "classes": ("b", "a", "absent")}
    assert load(str(path), **known, positive=["a", "absent"]).classes == ("b", "a+absent")
    assert load(str(path), **known, positive=["absent"]).labels.tolist() == [0] * 8
    with pytest.raises(InputError, match="has no class 'absent'; it has a, b"):
        load(str(path), label="y", positive=["absent"])


def test_columns_are_dropped_from_own_files_only(tmp_path):
    (tmp_path / "own.csv").write_text("g,x,y\n1,2,b\n1,3,a\n")
    assert load("own.csv", label="y", drop=["g"], data_dir=tmp_path).columns == ("x",)
    with pytest.raises(InputError, match=r"data.drop is for one's own files; 'digits' is as it is"):
        load("digits", drop=["pixel"])


def test_public_files_are_looked_for_as_data_is_and_tell_by_their_contents(tmp_path):
    for name, cells in (("own.csv", "x,y\n2,b\n3,a\n"), ("public.csv", "x\n7\n")):
        (tmp_path / name).write_text(cells)
    table = load("own.csv", label="y", data_dir=tmp_path)
    assert public_file("public.csv", "own.csv", table, tmp_path).tolist() == [[7]]
    with pytest.raises(InputError, match=r"data.auxiliary: there is no such file: publik.csv"):
        public_file("publik.csv", "own.csv", table, tmp_path)
    before = contents("own.csv", "public.csv", tmp_path)
    assert contents("own.csv", 0.25, tmp_path) == digest("own.csv", tmp_path)
    assert before.startswith(digest("own.csv", tmp_path))
    assert contents("digits", "official") is None
    assert contents("digits", "public.csv", tmp_path).startswith("digits ")
    (tmp_path / "public.csv").write_text("x\n8888\n")
    assert contents("own.csv", "public.csv", tmp_path) != before


def test_what_is_named_as_a_file_and_is_none(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    for source, words in {
        str(tmp_path / "pipe.csv"): "is a pipe or a device, which may never end",
        str(tmp_path / "folder.csv"): "is a folder; name a file in it",
        str(tmp_path / "loop.csv"): "cannot be read: Too many levels of symbolic links; correct the name",
        "x" * 5000 + ".csv": "cannot be read: File name too long; correct the name",
        "a\0.csv": "cannot be read: embedded null byte; correct the name",
        "~nobody-of-that-name/own.csv": "there is no such file: own.csv in .*nobody-of-that-name",
    }.items():
        for what in (load, digest):
            with pytest.raises(InputError, match=words):
                what(source)


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may read everything")
@pytest.mark.parametrize("name", ["own.csv", "own.npz", "own.parquet"])
def test_files_that_may_not_be_read_are_told(tmp_path, name):
    (tmp_path / name).touch(mode=0)
    for what in (load, digest):
        with pytest.raises(InputError, match=f"{name} .*Permission denied"):
            what(str(tmp_path / name))
