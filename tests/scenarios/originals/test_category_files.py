"""Originals with categories: raw records become the arrays that they were written from."""

import os
from pathlib import Path

import numpy as np
import pytest
from support.raw_files import WRITERS

from federation.contract.errors import InputError
from scenarios.data.catalogue import load
from scenarios.data.original_formats import Downloads, indicators
from scenarios.data.originals import ORIGINALS

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


SMALL = {"adult": _adult(), "kdd99": _kdd99()}


def made(name: str, folder: Path) -> dict[str, np.ndarray]:
    return ORIGINALS[name].make(Downloads(folder))


@pytest.mark.parametrize("name", SMALL)
def test_records_become_the_arrays_that_scenarios_read(name, tmp_path):
    WRITERS[name](SMALL[name], tmp_path)
    found = made(name, tmp_path)
    assert found.keys() - SMALL[name].keys() == ({"numeric_names"} if name == "kdd99" else set())
    for key, expected in SMALL[name].items():
        np.testing.assert_array_equal(found[key], expected, err_msg=key)
        assert found[key].dtype.kind == expected.dtype.kind, key
    stored = tmp_path / f"{name}.npz"
    ORIGINALS[name].save(tmp_path, stored)
    assert len(load(name, data_dir=tmp_path)) == 9


def test_numbers_of_a_connection_have_their_documented_names(tmp_path):
    WRITERS["kdd99"](SMALL["kdd99"], tmp_path)
    names = made("kdd99", tmp_path)["numeric_names"].tolist()
    assert (len(names), names[:3], names[-1]) == (
        38,
        ["duration", "src_bytes", "dst_bytes"],
        "dst_host_srv_rerror_rate",
    )


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
@pytest.mark.parametrize("name", ["adult", "kdd99"])
def test_the_arrays_that_are_there_come_back_from_raw_files(name, tmp_path):
    arrays = dict(np.load(Path(os.environ["FEDERATION_DATA"], f"{name}.npz")))
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


@pytest.mark.parametrize(
    ("name", "file", "content", "words"),
    [
        ("adult", "adult.data", "39, State-gov\n", "not of the official format .*Expected 15 columns"),
        ("adult", "adult.data", "", "adult.data is not of the official format .*Empty"),
        ("kdd99", "corrected", "", "there is no file kddcup.data_10_percent"),
        (
            "census_weeks",
            "census-income.test",
            "1" + ",1" * 41 + "\n,1" + ",1" * 40 + "\n",
            "'c0' of row 1 .* is empty",
        ),
    ],
)
def test_other_files_are_refused(tmp_path, name, file, content, words):
    (tmp_path / file).write_text(content)
    with pytest.raises(InputError, match=words):
        made(name, tmp_path)
