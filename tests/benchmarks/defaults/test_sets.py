"""Sets of a folder and of the catalogue, as the benchmark writes them."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.defaults.sets import CLASSES, LEAST_OF_A_GROUP, REAL, TWO_CLASSES, of_folder, prepared
from federation.contract.errors import InputError
from scenarios.data.files import read_table


def _folder(tmp_path: Path, **arrays: np.ndarray) -> Path:
    (tmp_path / "own").mkdir()
    np.savez(tmp_path / "own" / "mine.npz", **arrays)
    return tmp_path / "own"


def test_whole_numbers_are_classes_and_others_are_real(tmp_path: Path) -> None:
    folder = _folder(tmp_path, X=np.ones((40, 2)), y=np.arange(40) % 3)
    np.savez(folder / "real.npz", X=np.ones((40, 2)), y=np.arange(40) / 7)
    np.savez(folder / "floats.npz", X=np.ones((40, 2)), y=(np.arange(40) % 2).astype(float))
    found = {name: prepared(name, read, 100, tmp_path) for name, read in of_folder(folder).items()}
    assert found["mine"].classes == ("0", "1", "2")
    assert found["floats"].classes == ("0", "1")
    assert found["real"].classes == ()
    assert found["real"].label_range == (0.0, 39 / 7)


def test_rows_are_sampled_together_with_labels_and_groups_and_the_same_each_time(tmp_path: Path) -> None:
    number = np.arange(100)
    folder = _folder(tmp_path, X=np.stack([number, number / 3], axis=1), y=number % 5, groups=number % 2)
    one, again = (prepared("mine", of_folder(folder)["mine"], 30, tmp_path) for _ in range(2))
    assert one == again
    with np.load(one.file) as file:
        rows, labels, groups = file["X"], file["y"], file["groups"]
    assert rows.shape == (30, 2)
    np.testing.assert_array_equal(rows[:, 0] % 5, labels)
    np.testing.assert_array_equal(rows[:, 0] % 2, groups.astype(int))
    np.testing.assert_array_equal(rows[:, 1], rows[:, 0] / 3)  # thirds keep their digits


def test_rare_groups_are_left_out_where_groups_hold_rows(tmp_path: Path) -> None:
    groups = np.array(["many"] * 40 + ["few"] * (LEAST_OF_A_GROUP - 1))
    folder = _folder(tmp_path, X=np.ones((len(groups), 1)), y=np.arange(len(groups)) % 2, groups=groups)
    read = of_folder(folder)["mine"]
    assert prepared("mine", read, 100, tmp_path).groups == 2
    grouped = prepared("mine", read, 100, tmp_path, grouped=True)
    assert (grouped.groups, grouped.rows) == (1, 40)


def test_what_is_written_is_what_the_product_reads_and_private_rows_are_as_many_as_it_deals(tmp_path: Path) -> None:
    one = prepared("wine", CLASSES["wine"], 1000, tmp_path)
    table = read_table(one.file, None)
    assert (len(table), table.classes) == (one.rows, one.classes)
    assert one.private == 178 - 36 - 36  # a fifth for testing, a quarter of the rest public


@pytest.mark.parametrize("name", ["gaussians_1_percent", "three_ordered", "made_3_classes"])
def test_generated_classes_are_as_said(name: str, tmp_path: Path) -> None:
    labels = CLASSES[name](4000).labels
    shares = np.bincount(labels) / len(labels)
    wanted = {"gaussians_1_percent": [0.99, 0.01], "three_ordered": [0.25, 0.5, 0.25], "made_3_classes": [1 / 3] * 3}
    np.testing.assert_allclose(shares, wanted[name], atol=0.02)


def test_two_classes_are_made_of_more_and_generated_numbers_lie_in_their_range() -> None:
    labels = TWO_CLASSES["digits_from_5"](500).labels
    assert 0.4 < labels.mean() < 0.6
    rows = REAL["friedman1"](200)
    assert rows.label_range == (rows.labels.min(), rows.labels.max())


@pytest.mark.parametrize(("place", "text"), [("nowhere", None), (".", "npz")])
def test_a_folder_without_sets_is_refused(place: str, text: str | None, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=text):
        of_folder(tmp_path / place)
