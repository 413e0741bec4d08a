"""Originals of numbers: raw files of the official formats become the arrays that they were written from."""

import os
from pathlib import Path

import numpy as np
import pytest
from support.raw_files import WRITERS

from federation.contract.errors import InputError
from scenarios.data.catalogue import load
from scenarios.data.original_formats import _CTG, _HIGGS, _HOUSING, _PATTERNS, Downloads
from scenarios.data.originals import ORIGINALS

RANDOM = np.random.default_rng(7)
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
    "har": _har(),
    "mnist": _mnist(),
    "ctg": _ctg(),
    "higgs": {"X": _normal(5, 28), "y": np.array([1, 0, 0, 1, 1], np.uint8), "feature_names": np.array(_HIGGS)},
    "housing": _housing(),
    "protein": {"X": _normal(5, 9), "y": np.array([0.5, 21, 3, 0, 7], np.float32),
                "feature_names": np.array([f"F{i}" for i in range(1, 10)])},
    "acoustic": _acoustic(),
}  # fmt: skip


def made(name: str, folder: Path) -> dict[str, np.ndarray]:
    make = ORIGINALS[name].make
    assert make is not None
    return make(Downloads(folder))


@pytest.mark.parametrize("name", SMALL)
def test_raw_files_become_the_arrays_that_scenarios_read(name, tmp_path):
    WRITERS[name](SMALL[name], tmp_path)
    found = made(name, tmp_path)
    assert found.keys() == SMALL[name].keys()
    for key, expected in SMALL[name].items():
        np.testing.assert_array_equal(found[key], expected, err_msg=key)
        assert found[key].dtype.kind == expected.dtype.kind, key


@pytest.mark.reproduction
@pytest.mark.parametrize("name", [name for name in SMALL if name != "acoustic"])
def test_the_arrays_that_are_there_come_back_from_raw_files(name, tmp_path):
    stored = {"higgs": "higgs_sample", "housing": "california_housing"}.get(name, name)
    arrays = dict(np.load(Path(os.environ["FEDERATION_DATA"], f"{stored}.npz")))
    WRITERS[name](arrays, tmp_path)
    for key, found in made(name, tmp_path).items():
        np.testing.assert_array_equal(found, arrays[key], err_msg=key)


def test_only_the_first_rows_of_a_large_file_are_taken(tmp_path, monkeypatch):
    monkeypatch.setattr("scenarios.data.original_formats._HIGGS_ROWS", 3)
    WRITERS["higgs"](SMALL["higgs"], tmp_path)
    assert made("higgs", tmp_path)["y"].tolist() == [1, 0, 0]


def test_cardiotocograms_of_the_repository_are_rates_already(tmp_path):
    header = ",".join([*_CTG, "CLASS", "NSP"])
    (tmp_path / "CTG.csv").write_text(f"{header}\n{','.join(['0.5'] * 21)},3,2\n")
    found = made("ctg", tmp_path)
    assert (found["X"].tolist(), found["y_nsp"].tolist(), found["y_class"].tolist()) == ([[0.5] * 21], [2], [3])
    assert "exam_counts" not in found


def test_sounds_can_be_read_by_scenarios(tmp_path):
    WRITERS["acoustic"](SMALL["acoustic"], tmp_path)
    ORIGINALS["acoustic"].save(tmp_path, tmp_path / "acoustic.npz")
    table = load("acoustic", data_dir=tmp_path)
    assert (len(table), table.classes, [*map(len, table.official)]) == (7, ("1", "2", "3"), [4, 3])


@pytest.mark.parametrize(
    ("name", "file", "content", "words"),
    [
        ("mnist", "train-images-idx3-ubyte", b"\0\0\x08\x03\0\0\0\x09", "not of the official format .idx."),
        ("higgs", "HIGGS.csv", b"1,2\n", "HIGGS.csv is not of the official format .*Expected 29 columns"),
        ("protein", "CASP.csv", b"RMSD,F1\n1,2\n", "has no column 'F2'; name the original file"),
        ("protein", "CASP.csv", b"RMSD,F1\n1,x\n", "not of the official format .*invalid value 'x'"),
        ("housing", "housing.csv", b"longitude\n1\n", "has no column 'latitude'|no column 'ocean_proximity'"),
        ("har", "train/X_train.txt", b"1 2\n3\n", "not of the official format"),
        ("acoustic", "acoustic_scale", b"1 0:3\n", "not of the official format"),
        ("acoustic", "acoustic_scale.bz2", b"1 1:3\n", "not of the official format"),
        ("ctg", "CTG.csv", b"LB,NSP\n1,1\n", "has no column 'AC'"),
        ("mnist", "other", b"", "there is no file train-images-idx3-ubyte in .*; unpack the download there"),
    ],
)
def test_other_files_are_refused(tmp_path, name, file, content, words):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_bytes(content)
    with pytest.raises(InputError, match=words):
        made(name, tmp_path)
