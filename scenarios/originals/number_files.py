"""Originals of numbers: sensors, digits, cardiotocograms, collisions, houses, proteins, vehicles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError
from scenarios.originals.downloads import Arrays, Downloads, coded, names_of, numbers, texts

_IMAGES, _LABELS = 2051, 2049  # what idx files of images and of labels begin with
_CTG = names_of("LB AC FM UC DL DS DP ASTV MSTV ALTV MLTV Width Min Max Nmax Nzeros Mode Mean Median Variance Tendency")
_COUNTED = ("AC", "FM", "UC", "DL", "DS", "DP", "DR")  # in an examination from second b to e
_PATTERNS = ["A", "B", "C", "D", "E", "AD", "DE", "LD", "FS", "SUSP"]
_HIGGS = names_of(
    "lepton_pT lepton_eta lepton_phi missing_energy_magnitude missing_energy_phi jet_1_pt jet_1_eta jet_1_phi "
    "jet_1_btag jet_2_pt jet_2_eta jet_2_phi jet_2_btag jet_3_pt jet_3_eta jet_3_phi jet_3_btag jet_4_pt "
    "jet_4_eta jet_4_phi jet_4_btag m_jj m_jjj m_lv m_jlv m_bb m_wbb m_wwbb"
)
_HIGGS_ROWS = 25_972  # any serve; as many as the scenarios were made for
_HOUSING = names_of(
    "longitude latitude housing_median_age total_rooms total_bedrooms population households median_income"
)
_ACOUSTIC_COLUMNS = 50


def har(found: Downloads) -> Arrays:
    """The folder UCI HAR Dataset: 561 features in lines of text, activities and subjects as numbers."""
    arrays: Arrays = {}
    for part in ("train", "test"):
        arrays[f"X_{part}"] = found.matrix(f"{part}/X_{part}.txt").astype(np.float32)
        for name in ("y", "subject"):
            arrays[f"{name}_{part}"] = found.matrix(f"{part}/{name}_{part}.txt")[:, 0].astype(np.uint8)
    for name, file in (("feature_names", "features.txt"), ("class_names", "activity_labels.txt")):
        arrays[name] = texts(found.table(file, ["code", "name"], " "), "name", found.path(file))
    arrays["class_names"] = np.array(["", *arrays["class_names"]])
    return arrays


def mnist(found: Downloads) -> Arrays:
    """The four idx files, packed or not."""
    arrays: Arrays = {}
    for part, file in (("train", "train"), ("test", "t10k")):
        images = _idx(found, f"{file}-images-idx3-ubyte", _IMAGES, 3)
        arrays[f"X_{part}"] = images.reshape(len(images), -1)
        arrays[f"y_{part}"] = _idx(found, f"{file}-labels-idx1-ubyte", _LABELS, 1)
    return arrays


def _idx(found: Downloads, name: str, magic: int, axes: int) -> NDArray[np.uint8]:
    """An idx file: whole numbers of four bytes, the largest first, for what it is and its shape; then bytes."""
    with found.open(name) as file:
        head = np.frombuffer(file.read(4 * (1 + axes)), ">i4")
        body = np.frombuffer(file.read(), np.uint8)
    if len(head) <= axes or head[0] != magic or len(body) != np.prod(head[1:]):
        raise InputError(f"{found.path(name)} is not of the official format (idx); download it again")
    return body.reshape(head[1:])


def ctg(found: Downloads) -> Arrays:
    """CTG.csv: the sheet "Raw Data" of CTG.xls, which counts per examination, or the repository's own, per second."""
    path = found.path("CTG.csv")
    table = found.table("CTG.csv", numbers=[*_CTG, "b", "e", "DR", "CLASS", "NSP"])
    kept = np.isfinite(numbers(table, ["LB", "NSP"], path, missing=True)).all(
        axis=1
    )  # the sheet has blank lines and sums
    columns = dict(zip(_CTG, numbers(table.filter(kept), _CTG, path).T, strict=True))
    classes, states = numbers(table.filter(kept), ["CLASS", "NSP"], path).astype(np.uint8).T
    arrays: Arrays = {}
    if {"b", "e", "DR"} <= {*table.column_names}:
        counts = numbers(table.filter(kept), ["b", "e", *_COUNTED], path)
        rates = counts[:, 2:] / (counts[:, 1:2] - counts[:, :1])
        columns |= dict(zip(_COUNTED, rates.T, strict=True))
        arrays["exam_counts"], arrays["exam_count_names"] = counts.astype(np.float32), np.array(["b", "e", *_COUNTED])
        arrays["X22"] = np.column_stack([*columns.values()]).astype(np.float32)
    arrays["X"] = np.column_stack([columns[name] for name in _CTG]).astype(np.float32)
    return arrays | {
        "y": states,
        "y_nsp": states,
        "y_class": classes,
        "feature_names": np.array(_CTG),
        "class_names": np.array(_PATTERNS),
        "nsp_names": np.array(["", "Normal", "Suspect", "Pathologic"]),
    }


def higgs(found: Downloads) -> Arrays:
    """The first rows of HIGGS.csv: the label and 28 numbers in every line, without a header."""
    names = ["signal", *_HIGGS]
    table = found.table("HIGGS.csv", names, numbers=names, rows=_HIGGS_ROWS)
    values = numbers(table, names, found.path("HIGGS.csv"))
    return {
        "X": values[:, 1:].astype(np.float32),
        "y": values[:, 0].astype(np.uint8),
        "feature_names": np.array(_HIGGS),
    }


def housing(found: Downloads) -> Arrays:
    """housing.csv, with a header."""
    path = found.path("housing.csv")
    table = found.table("housing.csv", numbers=[*_HOUSING, "median_house_value"])
    known, codes = coded(texts(table, "ocean_proximity", path))
    return {
        "X": numbers(table, _HOUSING, path, missing=True).astype(np.float32),
        "ocean_proximity": codes,
        "ocean_values": known,
        "y": numbers(table, ["median_house_value"], path)[:, 0].astype(np.float32),
        "feature_names": np.array(_HOUSING),
    }


def protein(found: Downloads) -> Arrays:
    """CASP.csv, with a header: RMSD, which is to be predicted, and F1 to F9."""
    names = [f"F{i}" for i in range(1, 10)]
    columns = ["RMSD", *names]
    table = found.table("CASP.csv", numbers=columns)
    values = numbers(table, columns, found.path("CASP.csv")).astype(np.float32)
    return {"X": values[:, 1:], "y": values[:, 0], "feature_names": np.array(names)}


def acoustic(found: Downloads) -> Arrays:
    """acoustic_scale and acoustic_scale.t in svmlight format, packed or not."""
    arrays: Arrays = {}
    for part, name in (("train", "acoustic_scale"), ("test", "acoustic_scale.t")):
        rows, labels = found.svmlight(name, _ACOUSTIC_COLUMNS)
        arrays[f"X_{part}"] = rows.toarray().astype(np.float32)
        arrays[f"y_{part}"] = labels.astype(np.uint8)
    return arrays
