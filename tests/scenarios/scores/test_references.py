"""What the references learn from: all columns, scaled, with an intercept where the model has none."""

from __future__ import annotations

import numpy as np
import pytest

from federation.contract.errors import InputError
from scenarios.runs.runner import run
from scenarios.scores.classification_scoring import reference_stages
from scenarios.scores.prediction import predict

LOGISTIC = {"name": "logistic", "parameters": {}}
TREE = {"name": "DecisionTreeClassifier", "parameters": {}}
DEFAULT = ("impute", "scale", {"whiten": "auto"}, "constant", "unit_norm")


@pytest.mark.parametrize(
    ("stages", "classifier", "expected"),
    [
        (DEFAULT, LOGISTIC, ["impute", "scale", "standardise", "constant", "unit_norm"]),
        (DEFAULT, TREE, ["impute", "scale"]),
        (["impute", "standardise", "constant"], None, ["impute", "standardise", "constant"]),
        ([{"impute": {"flags": False}}, {"whiten": 3}, "max_norm"], TREE, [{"impute": {"flags": False}}, "scale"]),
        (["unit_norm"], LOGISTIC, ["scale", "standardise", "constant", "unit_norm"]),
        (["standardise", {"fourier": 8}], LOGISTIC, ["standardise", {"fourier": 8}, "constant", "unit_norm"]),
        (["signed_log", "unit_norm"], TREE, ["signed_log", "scale"]),
        ([{"pca": 60}], TREE, ["scale", {"pca": 60}]),
        ([{"whiten": 9}, {"polynomial": 2}, {"whiten": 5}], TREE, [{"whiten": 9}, {"polynomial": 2}]),
        ([], None, ["scale", "constant"]),
    ],
)
def test_what_private_releases_need_is_left_out(stages, classifier, expected):
    assert reference_stages(stages, classifier) == expected


@pytest.fixture
def shifted(tmp_path):
    """A file of rows of which only the distance from 0 tells the class, with a text column and missing cells."""
    random = np.random.default_rng(0)
    value, other = random.normal(3.0, 1.0, 600), random.normal(size=600) * 1000
    lines = [
        f"{'' if i % 7 == 0 else x},{y},{'red' if i % 3 else ''},{'far' if x > 2 else 'near'}"
        for i, (x, y) in enumerate(zip(value, other, strict=True))
    ]
    path = tmp_path / "shifted.csv"
    path.write_text("x,y,colour,class\n" + "\n".join(lines) + "\n")
    return path


def test_references_have_an_intercept_and_all_columns_whatever_the_features_of_releases(shifted, tmp_path, undrawn):
    """Behind the one whitened direction of largest variance, which is the useless column, nothing can be learned."""
    kinds = ["soft_vote", "pooled", "individual", "constant"]
    found = run(
        {
            "name": "shifted",
            "data": {"source": str(shifted), "label": "class", "features": ["impute", {"whiten": 1}, "unit_norm"]},
            "parties": {"count": 5},
            "protocols": [{"kind": kind} for kind in kinds],
            "privacy": {"epsilon": 1},
            "trials": {"splits": 1, "noise": 1},
        },
        out=tmp_path / "run",
    )
    accuracy = {row["variant"]: row["value"] for row in found.rows if row["metric"] == "accuracy"}
    assert accuracy["soft_vote"] < accuracy["constant"] + 0.02
    assert accuracy["pooled"] > accuracy["constant"] + 0.05
    assert accuracy["individual"] > accuracy["constant"] + 0.02


def test_a_released_model_takes_the_missing_cells_that_its_map_fills_in_and_no_others(shifted, tmp_path, undrawn):
    for stages in (["impute", "scale", "constant", "unit_norm"], ["scale", "constant", "unit_norm"]):
        whole = tmp_path / "whole.csv"
        lines = shifted.read_text().splitlines()
        whole.write_text("\n".join(line.replace(",,", ",blue,") for line in lines if not line.startswith(",")))
        source, out = (shifted if "impute" in stages else whole), tmp_path / f"run-{len(stages)}"
        run(
            {
                "name": "shifted",
                "data": {"source": str(source), "label": "class", "features": stages},
                "parties": {"count": 5},
                "privacy": {"epsilon": 1},
                "trials": {"splits": 1, "noise": 1},
            },
            out=out,
        )
        if "impute" in stages:
            assert len(predict(out, "soft_vote", shifted).values) == 600
        else:
            assert len(predict(out, "soft_vote", whole).values) == 600 - 86
            with pytest.raises(InputError, match=r"shifted.csv:2: column 'x' is missing"):
                predict(out, "soft_vote", shifted)
