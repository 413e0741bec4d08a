"""Raw records, numbers and texts of the official formats become the arrays that they were written from."""

import bz2
import gzip
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.originals.__main__ import ORIGINALS
from benchmarks.originals.formats import (
    _CTG,
    _HIGGS,
    _HOUSING,
    _PATTERNS,
    VIDEOS,
    Downloads,
    coded,
    indicators,
    numbers,
    texts,
)
from federation.contract.errors import InputError
from scenarios.data.catalogue import load
from scenarios.data.hashing import Hashing

Arrays = Mapping[str, np.ndarray]


def _lines(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _number(value: Any) -> str:
    """Write a number as the published files do: a whole number has no decimal point."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def har(arrays: Arrays, folder: Path) -> None:
    folder = folder / "UCI HAR Dataset"
    _lines(folder / "features.txt", [f"{i + 1} {name}" for i, name in enumerate(arrays["feature_names"])])
    names = [*arrays["class_names"]]
    _lines(folder / "activity_labels.txt", [f"{code} {name}" for code, name in enumerate(names) if code])
    for part in ("train", "test"):
        rows = ["  ".join(f"{value: .9e}" for value in row) for row in arrays[f"X_{part}"].tolist()]
        _lines(folder / part / f"X_{part}.txt", rows)
        for name in ("y", "subject"):
            _lines(folder / part / f"{name}_{part}.txt", [str(value) for value in arrays[f"{name}_{part}"]])


def kdd99(arrays: Arrays, folder: Path) -> None:
    vocabularies = [arrays[name] for name in ("protocols", "services", "flags")]
    for part, name in (("train", "kddcup.data_10_percent"), ("test", "corrected")):
        lines = []
        for numeric, codes, attack in zip(
            arrays[f"numeric_{part}"], arrays[f"categorical_{part}"], arrays[f"attack_{part}"], strict=True
        ):
            cells = [_number(value) for value in numeric]
            texts = [str(of[code]) for of, code in zip(vocabularies, codes, strict=True)]
            lines.append(",".join([cells[0], *texts, *cells[1:], f"{arrays['attack_names'][attack]}."]))
        _lines(folder / name, lines)
    with gzip.open(folder / "corrected.gz", "wb") as packed:
        packed.write((folder / "corrected").read_bytes())
    (folder / "corrected").unlink()


def adult(arrays: Arrays, folder: Path) -> None:
    vocabularies = [arrays[f"values_{str(name).replace('-', '_')}"] for name in arrays["categorical_names"]]
    # Where in a record the numbers and the categories are.
    places = [0, 2, 4, 10, 11, 12, 1, 3, 5, 6, 7, 8, 9, 13]
    lines = []
    for numeric, codes, rich in zip(arrays["numeric"], arrays["categorical"], arrays["y"], strict=True):
        texts = [str(of[code]) for of, code in zip(vocabularies, codes, strict=True)]
        cells = dict(zip(places, [*map(str, numeric), *texts], strict=True))
        lines.append(", ".join([*(cells[i] for i in range(14)), ">50K" if rich else "<=50K"]))
    train = len(arrays["X_train"])
    _lines(folder / "adult.data", [*lines[:train], ""])
    _lines(folder / "adult.test", ["|1x3 Cross validator", *(f"{line}." for line in lines[train:]), ""])


def mnist(arrays: Arrays, folder: Path) -> None:
    for part, name in (("train", "train"), ("test", "t10k")):
        images = arrays[f"X_{part}"]
        side = round(images.shape[1] ** 0.5)
        with gzip.open(folder / f"{name}-images-idx3-ubyte.gz", "wb") as packed:
            packed.write(np.array([2051, len(images), side, side], ">i4").tobytes() + images.tobytes())
        labels = arrays[f"y_{part}"]
        head = np.array([2049, len(labels)], ">i4").tobytes()
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(head + labels.tobytes())


def ctg(arrays: Arrays, folder: Path) -> None:
    names, counts = [*arrays["feature_names"].tolist()], [*arrays["exam_count_names"].tolist()]
    measured = [name for name in names if name not in counts]
    header = ["FileName", "Date", "SegFile", *counts, *measured, "CLASS", "NSP"]
    blank = "," * (len(header) - 1)
    lines = [",".join(header), blank]
    for exam, row, kind, state in zip(
        arrays["exam_counts"], arrays["X"], arrays["y_class"], arrays["y_nsp"], strict=True
    ):
        values = [*exam, *(row[names.index(name)] for name in measured), kind, state]
        lines.append(",".join(["a.txt", "12/1/1996", "b.txt", *map(_number, values)]))
    lines += [blank, ",,," + ",".join("" if name in ("LB", "NSP") else "7" for name in header[3:])]
    _lines(folder / "CTG.csv", lines)


def higgs(arrays: Arrays, folder: Path) -> None:
    rows = zip(arrays["y"], arrays["X"], strict=True)
    text = "".join(",".join(f"{value:.18e}" for value in (label, *row)) + "\n" for label, row in rows)
    with gzip.open(folder / "HIGGS.csv.gz", "wb") as packed:
        packed.write(text.encode())


def housing(arrays: Arrays, folder: Path) -> None:
    lines = [",".join([*arrays["feature_names"], "median_house_value", "ocean_proximity"])]
    for row, dollars, near in zip(arrays["X"], arrays["y"], arrays["ocean_proximity"], strict=True):
        cells = ["" if np.isnan(value) else repr(float(value)) for value in row]
        lines.append(",".join([*cells, repr(float(dollars)), str(arrays["ocean_values"][near])]))
    _lines(folder / "housing.csv", lines)


def protein(arrays: Arrays, folder: Path) -> None:
    rows = [",".join(_number(value) for value in (y, *x)) for y, x in zip(arrays["y"], arrays["X"], strict=True)]
    _lines(folder / "CASP.csv", [",".join(["RMSD", *arrays["feature_names"]]), *rows])


def census_weeks(arrays: Arrays, folder: Path) -> None:
    """Write `ages`, weeks `y` and `categories` (n, 6) texts; all other columns have the same value in every row."""
    lines = []
    for age, weeks, categories in zip(arrays["ages"], arrays["y"], arrays["categories"], strict=True):
        cells = ["Not in universe"] * 42
        cells[0], cells[39], cells[24], cells[41] = _number(age), _number(weeks), "1700.09", "- 50000."
        for place, text in zip((12, 7, 6, 15, 2, 3), categories, strict=True):
            cells[place] = str(text)
        lines.append(", ".join(cells))
    _lines(folder / "census-income.test", lines)


def acoustic(arrays: Arrays, folder: Path) -> None:
    for part, name in (("train", "acoustic_scale"), ("test", "acoustic_scale.t")):
        lines = []
        for label, row in zip(arrays[f"y_{part}"], arrays[f"X_{part}"], strict=True):
            lines.append(" ".join([str(label), *(f"{i + 1}:{float(v)!r}" for i, v in enumerate(row) if v)]))
        (folder / f"{name}.bz2").write_bytes(bz2.compress("".join(f"{line} \n" for line in lines).encode()))


WRITERS: dict[str, Callable[[Arrays, Path], None]] = {
    writer.__name__: writer
    for writer in (har, kdd99, adult, mnist, ctg, higgs, housing, protein, census_weeks, acoustic)
}


RANDOM = np.random.default_rng(11)
WEEKS_SIZES = (2, 7, 3, 8, 52, 47)  # of the six categories


def _adult() -> dict[str, np.ndarray]:
    n = 9
    names = ["workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country"]
    numbers = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    numeric = RANDOM.integers(0, 99999, (n, 6)).astype(np.int32)
    codes = np.column_stack([RANDOM.permutation(np.arange(n) % 3) for _ in names]).astype(np.uint8)
    values = {f"values_{name.replace('-', '_')}": np.array(["?", f"{name} a", f"{name} b"]) for name in names}
    rows = np.hstack([numeric, *(indicators(code, 3) for code in codes.T)]).astype(np.float32)
    rich = (np.arange(n) % 2).astype(np.uint8)
    features = [f"{name}={value}" for name, of in zip(names, values.values(), strict=True) for value in of]
    return values | {
        "numeric": numeric, "numeric_names": np.array(numbers), "categorical": codes,
        "categorical_names": np.array(names), "X": rows, "y": rich, "X_train": rows[:6], "y_train": rich[:6],
        "X_test": rows[6:], "y_test": rich[6:], "feature_names": np.array([*numbers, *features]),
    }  # fmt: skip


def _kdd99() -> dict[str, np.ndarray]:
    known = {"protocols": np.array(["icmp", "tcp"]), "services": np.array(["IRC", "http", "smtp"]),
             "flags": np.array(["REJ", "SF"])}  # fmt: skip
    arrays: dict[str, np.ndarray] = {}
    for part, attacks in (("train", [0, 1, 2, 2, 1, 0]), ("test", [3, 1, 2])):
        n = len(attacks)
        codes = np.column_stack([np.arange(n) % len(of) for of in known.values()]).astype(np.uint8)
        hot = [indicators(code, len(of)) for code, of in zip(codes.T, known.values(), strict=True)]
        arrays |= {
            f"numeric_{part}": RANDOM.integers(0, 5000, (n, 38)).astype(np.float32) / 4,
            f"categorical_{part}": codes,
            f"onehot_{part}": np.hstack(hot),
            f"attack_{part}": np.array(attacks, np.uint8),
            f"y_{part}": np.array([attack != 1 for attack in attacks], np.uint8),
        }
    hot_names = [
        f"{n}={v}" for n, of in zip(("protocol_type", "service", "flag"), known.values(), strict=True) for v in of
    ]
    return arrays | known | {
        "categorical_names": np.array(["protocol_type", "service", "flag"]), "onehot_names": np.array(hot_names),
        "attack_names": np.array(["neptune", "normal", "satan", "worm"]),
        "attack_family": np.array(["dos", "normal", "probe", "r2l"]),
    }  # fmt: skip


def made(name: str, folder: Path) -> dict[str, np.ndarray]:
    make = ORIGINALS[name].make
    assert make is not None
    return make(Downloads(folder))


def test_numbers_of_a_connection_have_their_documented_names(tmp_path):
    WRITERS["kdd99"](SMALL["kdd99"], tmp_path)
    names = made("kdd99", tmp_path)["numeric_names"].tolist()
    assert (len(names), names[:3]) == (38, ["duration", "src_bytes", "dst_bytes"])
    assert names[-1] == "dst_host_srv_rerror_rate"


def test_weeks_have_a_constant_the_age_and_indicators(tmp_path):
    texts = [["Male", "Widowed", "Not in universe", "Full-time", "33", "2"],
             ["Female", "Divorced", "High school", "Full-time", "4", "10"]] * 2  # fmt: skip
    arrays = {"ages": np.array([20, 40, 30, 30]), "y": np.array([52, 0, 26, 7]), "categories": np.array(texts)}
    WRITERS["census_weeks"](arrays, tmp_path)
    found = made("census_weeks", tmp_path)
    age = np.array([-2, 2, 0, 0]) / np.sqrt(2)
    # By alphabet: Female, Divorced, High school, Full-time, then codes as texts, 33 before 4 and 10 before 2.
    first, second = [0, 1, 0, 1, 0, 1, 1, 1, 0, 0, 1], [1, 0, 1, 0, 1, 0, 1, 0, 1, 1, 0]
    expected = np.column_stack([np.ones(4), age, np.array([first, second] * 2)])
    np.testing.assert_allclose(found["X"], expected, atol=1e-7)
    assert (found["y"].tolist(), float(found["lo"]), float(found["hi"])) == ([52, 0, 26, 7], 0.0, 52.0)


@pytest.mark.reproduction
@pytest.mark.parametrize("name", ["adult", "kdd99", "har", "mnist", "ctg", "higgs", "housing", "protein"])
def test_the_arrays_that_are_there_come_back_from_raw_files(name, tmp_path):
    stored = {"higgs": "higgs_sample", "housing": "california_housing"}.get(name, name)
    arrays = dict(np.load(Path(os.environ["FEDERATION_DATA"], f"{stored}.npz")))
    WRITERS[name](arrays, tmp_path)
    for key, found in made(name, tmp_path).items():
        np.testing.assert_array_equal(found, arrays[key], err_msg=key)


@pytest.mark.reproduction
def test_the_weeks_that_are_there_come_back_but_for_the_place_of_one_rare_code(tmp_path):
    arrays = dict(np.load(Path(os.environ["FEDERATION_DATA"], "census_weeks.npz")))
    rows, start, categories, industry = arrays["X"], 2, [], 0
    for size in WEEKS_SIZES:
        names = sorted(map(str, range(size)))
        if size == 52:  # there the one person with industry 10 comes last
            industry, names = start, [*(name for name in names if name != "10"), "10"]
        categories.append(np.array(names)[rows[:, start : start + size].argmax(axis=1)])
        start += size
    ages = np.unique(rows[:, 1], return_inverse=True)[1]
    WRITERS["census_weeks"]({"ages": ages, "y": arrays["y"], "categories": np.column_stack(categories)}, tmp_path)
    found = made("census_weeks", tmp_path)
    moved = np.delete(np.arange(121), industry + 2)
    moved = np.insert(moved, industry + 51, industry + 2)
    np.testing.assert_array_equal(found["X"][:, moved], rows)
    for key in ("y", "lo", "hi"):
        np.testing.assert_array_equal(found[key], arrays[key])


@pytest.fixture
def found(tmp_path):
    (tmp_path / "deep" / "train").mkdir(parents=True)
    (tmp_path / "deep" / "train" / "a.txt").write_text("1 2\n3 4\n")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b'x, city\n1,Rome\n,"Os\nlo"\n'))
    (tmp_path / "c.svm.bz2").write_bytes(bz2.compress(b"1 2:5 \n"))
    return Downloads(tmp_path)


def test_files_are_found_however_deep_and_packed(found):
    assert found.path("a.txt") == found.path("train/a.txt") == found.folder / "deep" / "train" / "a.txt"
    assert found.matrix("a.txt").tolist() == [[1, 2], [3, 4]]
    assert found.open("c.svm").read() == b"1 2:5 \n"
    rows, labels = found.svmlight("c.svm", 3)
    assert (rows.toarray().tolist(), labels.tolist()) == ([[0, 5, 0]], [1])
    (found.folder / "a.txt").write_text("9")
    assert found.matrix("a.txt").tolist() == [[9]]  # the nearest one
    with pytest.raises(InputError, match=r"test/a\.txt"):
        found.matrix("test/a.txt")


def test_a_table_has_the_names_of_its_first_line_or_given_ones(found):
    table = found.table("b.csv", numbers=["x"])
    path = found.path("b.csv")
    np.testing.assert_array_equal(numbers(table, ["x"], path, missing=True), [[1], [np.nan]])
    assert texts(table, " city", path).tolist() == ["Rome", "Os\nlo"]
    bare = found.table("a.txt", ["p", "q"], " ", numbers=["q"], skip=1)
    assert bare.to_pydict() == {"p": ["3"], "q": [4.0]}
    assert found.table("a.txt", ["p", "q"], " ", rows=1).num_rows == 1
    with pytest.raises(InputError, match=r"b\.csv\.gz.*'x'.*1"):
        numbers(table, ["x"], path)
    with pytest.raises(InputError, match="town"):
        texts(table, "town", path)
    known, codes = coded(np.array(["b", "a", "b"]))  # categories are by alphabet
    assert (known.tolist(), codes.tolist()) == (["a", "b"], [1, 0, 1])
    assert indicators(codes, 3).tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0]]


COUNTS = ["b", "e", "AC", "FM", "UC", "DL", "DS", "DP", "DR"]


def _normal(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def _bytes(low: int, high: int, *shape: int) -> np.ndarray:
    return RANDOM.integers(low, high, size=shape).astype(np.uint8)


def _har() -> dict[str, np.ndarray]:
    return {
        "X_train": _normal(5, 4), "X_test": _normal(3, 4),
        "y_train": np.array([1, 2, 3, 4, 5], np.uint8), "y_test": np.array([6, 6, 1], np.uint8),
        "subject_train": np.array([1, 1, 3, 3, 30], np.uint8), "subject_test": np.array([2, 2, 4], np.uint8),
        "feature_names": np.array(["tBodyAcc-mean()-X", "angle(tBodyAccMean,gravity)", "c", "d"]),
        "class_names": np.array(["", *(["WALKING", "UP", "DOWN", "SITTING", "STANDING", "LAYING"])]),
    }  # fmt: skip


def _ctg() -> dict[str, np.ndarray]:
    n = 6
    counts = _bytes(0, 9, n, 9).astype(np.float32)
    counts[:, 1] = counts[:, 0] + 627
    rates = counts[:, 2:].astype(np.float64) / 627
    rows = dict.fromkeys(_CTG, _normal(n)) | dict(zip(COUNTS[2:], rates.T, strict=True))
    return {
        "exam_counts": counts, "exam_count_names": np.array(COUNTS),
        "X": np.column_stack([rows[name] for name in _CTG]).astype(np.float32),
        "X22": np.column_stack([rows[name] for name in (*_CTG, "DR")]).astype(np.float32),
        "y": np.array([1, 2, 3, 1, 1, 2], np.uint8), "y_nsp": np.array([1, 2, 3, 1, 1, 2], np.uint8),
        "y_class": _bytes(1, 11, n), "feature_names": np.array(_CTG), "class_names": np.array(_PATTERNS),
        "nsp_names": np.array(["", "Normal", "Suspect", "Pathologic"]),
    }  # fmt: skip


def _mnist() -> dict[str, np.ndarray]:
    return {"X_train": _bytes(0, 256, 4, 49), "X_test": _bytes(0, 256, 2, 49), "y_train": _bytes(0, 10, 4),
            "y_test": _bytes(0, 10, 2)}  # fmt: skip


def _housing() -> dict[str, np.ndarray]:
    rows = _normal(4, 8)
    rows[2, 4] = np.nan
    return {"X": rows, "y": np.array([14999, 250000.5, 3e5, 500001], np.float32),
            "ocean_proximity": np.array([1, 0, 0, 1], np.uint8), "ocean_values": np.array(["<1H OCEAN", "INLAND"]),
            "feature_names": np.array(_HOUSING)}  # fmt: skip


def _acoustic() -> dict[str, np.ndarray]:
    rows = _normal(7, 50) * (RANDOM.random((7, 50)) < 0.5)
    return {"X_train": rows[:4], "X_test": rows[4:], "y_train": np.array([1, 2, 3, 1], np.uint8),
            "y_test": np.array([3, 2, 1], np.uint8)}  # fmt: skip


SMALL = {
    "adult": _adult(),
    "kdd99": _kdd99(),
    "har": _har(),
    "mnist": _mnist(),
    "ctg": _ctg(),
    "higgs": {"X": _normal(5, 28), "y": np.array([1, 0, 0, 1, 1], np.uint8), "feature_names": np.array(_HIGGS)},
    "housing": _housing(),
    "protein": {"X": _normal(5, 9), "y": np.array([0.5, 21, 3, 0, 7], np.float32),
                "feature_names": np.array([f"F{i}" for i in range(1, 10)])},
    "acoustic": _acoustic(),
}  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_raw_files_become_the_arrays_that_scenarios_read(name, tmp_path):
    WRITERS[name](SMALL[name], tmp_path)
    found = made(name, tmp_path)
    assert found.keys() - SMALL[name].keys() == ({"numeric_names"} if name == "kdd99" else set())
    for key, expected in SMALL[name].items():
        np.testing.assert_array_equal(found[key], expected, err_msg=key)
        assert found[key].dtype.kind == expected.dtype.kind, key


def test_only_the_first_rows_of_a_large_file_are_taken(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.originals.formats._HIGGS_ROWS", 3)
    WRITERS["higgs"](SMALL["higgs"], tmp_path)
    assert made("higgs", tmp_path)["y"].tolist() == [1, 0, 0]


def test_cardiotocograms_of_the_repository_are_rates_already(tmp_path):
    header = ",".join([*_CTG, "CLASS", "NSP"])
    (tmp_path / "CTG.csv").write_text(f"{header}\n{','.join(['0.5'] * 21)},3,2\n")
    found = made("ctg", tmp_path)
    assert (found["X"].tolist(), found["y_nsp"].tolist(), found["y_class"].tolist()) == ([[0.5] * 21], [2], [3])
    assert "exam_counts" not in found


@pytest.mark.parametrize(
    ("name", "rows", "official"), [("adult", 9, []), ("kdd99", 9, [6, 3]), ("acoustic", 7, [4, 3])]
)
def test_what_is_saved_can_be_read_by_scenarios(name, rows, official, tmp_path):
    WRITERS[name](SMALL[name], tmp_path)
    ORIGINALS[name].save(tmp_path, tmp_path / f"{name}.npz")
    table = load(name, data_dir=tmp_path)
    assert (len(table), [*map(len, table.official or ())]) == (rows, official)
    assert name != "acoustic" or table.classes == ("1", "2", "3")


@pytest.mark.parametrize(
    ("name", "file", "content", "words"),
    [
        ("adult", "adult.data", b"39, State-gov\n", "15"),
        ("adult", "adult.data", b"", r"adult\.data"),
        ("kdd99", "corrected", b"", r"kddcup\.data_10_percent"),
        ("census_weeks", "census-income.test", b"1" + b",1" * 41 + b"\n,1" + b",1" * 40 + b"\n", r"'c0'.*1"),
        ("mnist", "train-images-idx3-ubyte", b"\0\0\x08\x03\0\0\0\x09", None),
        ("higgs", "HIGGS.csv", b"1,2\n", r"HIGGS\.csv.*29"),
        ("protein", "CASP.csv", b"RMSD,F1\n1,2\n", "'F2'"),
        ("protein", "CASP.csv", b"RMSD,F1\n1,x\n", "'x'"),
        ("housing", "housing.csv", b"longitude\n1\n", "has no column 'latitude'|no column 'ocean_proximity'"),
        ("har", "train/X_train.txt", b"1 2\n3\n", None),
        ("acoustic", "acoustic_scale", b"1 0:3\n", None),
        ("acoustic", "acoustic_scale.bz2", b"1 1:3\n", None),
        ("ctg", "CTG.csv", b"LB,NSP\n1,1\n", "'AC'"),
        ("mnist", "other", b"", "idx3"),
    ],
)
def test_other_files_are_refused(tmp_path, name, file, content, words):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_bytes(content)
    with pytest.raises(InputError, match=words):
        made(name, tmp_path)


HEADER = "COMMENT_ID,AUTHOR,DATE,CONTENT,CLASS\n"
TWEETS = "$T$ is great , love it\nbeer\n1\ni hate $T$ so much\nrain\n-1\n$T$ exists\nan ocean\n0\n"


def write_comments(folder):
    for i, name in enumerate(VIDEOS):
        lines = f'a,Me,2013-11-07T06:20:48,"check, this\nout {i}",1\nb,You,,nice song {i},0\n'
        (folder / name).write_text(HEADER + lines, encoding="utf-8-sig")


def test_comments_know_their_video_and_whether_they_are_spam(tmp_path):
    write_comments(tmp_path)
    ORIGINALS["youtube_spam"].save(tmp_path, tmp_path / "youtube_spam.parquet")
    found = load("youtube_spam", data_dir=tmp_path, hashes=[{"column": "content", "bits": 4}])
    assert (found.columns, found.classes) == (Hashing(4, "content").names, ("ham", "spam"))
    assert found.labels.tolist() == [1, 0] * 5
    assert found.groups["video"].tolist()[::2] == ["Psy", "KatyPerry", "LMFAO", "Eminem", "Shakira"]


def test_tweets_have_their_target_back_and_an_official_split(tmp_path):
    (tmp_path / "train.raw").write_text(TWEETS)
    (tmp_path / "test.raw").write_text("about $T$ , neutral\nit\n0\n")
    rows = ORIGINALS["tweets"].make(Downloads(tmp_path)).to_pylist()
    assert rows[0] == {"text": "beer is great , love it", "sentiment": "positive", "part": "train"}
    assert rows[3]["text"] == "about it , neutral"
    ORIGINALS["tweets"].save(tmp_path, tmp_path / "tweets.parquet")
    found = load("tweets", data_dir=tmp_path, hashes=[{"column": "text", "bits": 4}])
    assert (found.classes, found.labels.tolist()) == (("negative", "neutral", "positive"), [2, 0, 1, 1])
    assert [part.tolist() for part in found.official] == [[0, 1, 2], [3]]


@pytest.mark.parametrize("content", ["", "one\n", "a\nb\n2\n"])
def test_other_tweets_are_refused(tmp_path, content):
    (tmp_path / "train.raw").write_text(content)
    with pytest.raises(InputError, match=r"train\.raw.*-1.*0.*1"):
        ORIGINALS["tweets"].save(tmp_path, tmp_path / "tweets.parquet")
    assert not (tmp_path / "tweets.parquet").exists()


def test_other_comments_are_refused(tmp_path):
    write_comments(tmp_path)
    (tmp_path / VIDEOS[2]).write_text(HEADER + "a,b,c,d,maybe\n")
    with pytest.raises(InputError, match=r"CLASS.*0.*1"):
        ORIGINALS["youtube_spam"].save(tmp_path, tmp_path / "youtube_spam.parquet")


def test_twenty_days_are_copied(tmp_path):
    (tmp_path / "url_svmlight").mkdir()
    for day in range(22):
        (tmp_path / "url_svmlight" / f"Day{day}.svm").write_text(f"+1 4:0.5 {day + 1000}:1\n-1 2:4\n")
    ORIGINALS["malicious_url"].save(tmp_path, tmp_path / "malicious_url")
    found = load("malicious_url", data_dir=tmp_path, hashes=[5])
    assert (len(found), found.classes, found.name) == (40, ("benign", "malicious"), "malicious_url")
    assert [len(part) for part in found.official] == [20, 20]
    assert found.groups["day"].tolist() == [day for day in range(20) for _ in range(2)]


@pytest.mark.parametrize(("name", "file"), [("census_1940", "census_1940.csv"), ("criteo_sscl", "CriteoSearchData")])
def test_what_is_read_as_it_is_is_copied(tmp_path, name, file):
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / file).write_text("anything")
    ORIGINALS[name].save(tmp_path / "from", tmp_path / file)
    assert (tmp_path / file).read_text() == "anything"
