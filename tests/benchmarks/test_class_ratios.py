"""Natural bags from rows, labels and groups, and errors on them."""

import numpy as np
import pytest

from benchmarks.class_ratios import MEAN, measured, natural, of_file, private
from federation.contract.errors import InputError

RANDOM = np.random.default_rng(0)
GROUPS = np.repeat(list("abcdefgh"), 80)
LABELS = (RANDOM.uniform(size=640) < np.repeat(np.linspace(0.1, 0.9, 8), 80)).astype(np.int64)
ROWS = RANDOM.normal(size=(640, 3)) + 3 * LABELS[:, None]


def test_groups_are_bags_or_sets_and_never_both():
    bags = natural(ROWS, LABELS, GROUPS, 1)
    assert (len(bags.rows), len(bags.sets)) == (5, 3)
    shares = [LABELS[name == GROUPS].mean() for name in "abcdefgh"]
    found = [*bags.proportions[:, 1], *bags.ratios[:, 1]]
    assert sorted(found) == pytest.approx(sorted(shares))
    np.testing.assert_allclose([labels.mean() for labels in bags.labels], bags.proportions[:, 1])


def test_drawn_ratios_are_those_asked_for_as_far_as_rows_last():
    groups = np.tile(np.arange(5), 128)
    bags = natural(ROWS, LABELS, groups, 1, (0.4, 0.6))
    found = np.concatenate([bags.proportions, bags.ratios])[:, 1]
    np.testing.assert_allclose(np.abs(found - 0.5), 0.1, atol=0.01)
    assert {round(share, 1) for share in found} == {0.4, 0.6}
    with pytest.raises(InputError, match=r"50.*2"):
        natural(ROWS, LABELS, groups % 2, 1)


def test_errors_are_of_every_method_and_small_where_classes_are_far_apart():
    found = measured(private(natural(ROWS, LABELS, GROUPS, 1), 10.0, 1), ("bag_classifier", "auto"))
    assert found["auto"] == found["bag_classifier"] < 0.1 < found[MEAN]


def test_files_hold_rows_labels_and_groups(tmp_path):
    np.savez(tmp_path / "own.npz", X=ROWS, y=np.where(LABELS, "yes", "no"), groups=GROUPS)
    bags, own = of_file(tmp_path / "own.npz", 1), natural(ROWS, LABELS, GROUPS, 1)
    np.testing.assert_array_equal(bags.proportions, own.proportions)
    np.savez(tmp_path / "bad.npz", X=ROWS)
    with pytest.raises(InputError):
        of_file(tmp_path / "bad.npz", 1)
