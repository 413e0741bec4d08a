"""Files as their publishers hand them out, written from arrays as this project keeps them."""

import bz2
import gzip
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]


def _lines(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _number(value: Any) -> str:
    """As a file says it: whole numbers without a point."""
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
    """Of `ages`, weeks `y`, and `categories` (n, 6) texts; what scenarios do not use is the same everywhere."""
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
