"""What a dry run says of bags and target sets, and what it refuses before anything runs."""

from __future__ import annotations

import numpy as np
import pytest
from support.released_lines import lines_document

import scenarios
from federation.contract.errors import InputError
from scenarios.runs.runner import preview
from scenarios.settings.schema import resolve

PLAIN = {
    "name": "bags",
    "data": {"source": "digits", "auxiliary": 100, "test": 0.4, "features": ["unit_norm"]},
    "parties": {"count": 4, "bags": 5, "partition": {"majority": 0.05}},
    "protocols": [{"kind": "class_ratio"}],
    "privacy": {"epsilon": 1},
    "trials": {"splits": 2},
}


def point(*settings):
    return preview(resolve(PLAIN, settings), None)["points"][0]


def test_bags_and_their_sizes():
    found = point()
    assert found["bags_per_party"] == 5
    assert found["smallest_bag"] == found["largest_bag"] == found["private_rows"] / 20
    even = point("parties={count: 7, partition: iid, rows: 30, bags: 3}")
    assert (even["bags_per_party"], even["smallest_bag"], even["largest_bag"]) == (3, 10, 10)
    alone = point("parties={count: 7, partition: iid, bags: 1}", "protocols=[{kind: pooled}]")
    assert alone["largest_bag"] - alone["smallest_bag"] == 1
    assert "target_sets" not in alone


def test_target_sets():
    found = point("data.targets={shares: [0.1, 0.5], vary: 3, rows: 100}")
    assert (found["target_sets"], found["target_rows"], found["target_shares_of"]) == (2, 100, "3")
    assert point("data.targets={}")["target_shares_of"] == "0"


def test_every_split_is_checked_before_anything_runs(tmp_path):
    """Of the 13 rows of the rare class those for testing differ in number from split to split."""
    labels = ["rare"] * 13 + ["other"] * 87
    lines = [
        f"{value:.4f},{label}" for value, label in zip(np.random.default_rng(0).normal(size=100), labels, strict=True)
    ]
    path = tmp_path / "rare.csv"
    path.write_text("\n".join(["x,label", *lines]) + "\n")
    document = {
        **PLAIN,
        "data": {
            "source": str(path), "label": "label", "test": 0.4, "features": ["unit_norm"],
            "targets": {"rows": 8, "shares": [0.5], "vary": "rare"},
        },
        "parties": {"count": 2},
        "trials": {"splits": 1, "noise": 1},
    }  # fmt: skip
    assert preview(resolve(document), None)["points"]
    document["trials"]["splits"] = 40
    for act in (lambda: preview(resolve(document), None), lambda: scenarios.run(document, out=tmp_path / "out")):
        with pytest.raises(InputError, match="needs 4 test rows of the class 'rare', but there are"):
            act()
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("protocols")
def test_a_dry_run_names_the_range_and_not_the_labels(own_file):
    [point] = preview(resolve(lines_document(own_file, "slope", "pooled")), None)["points"]
    assert point["data"] == "own.csv: 300 rows, 2 columns, labels from -9 to 15"
    assert (point["parties"], point["features"]) == (6, 3)
