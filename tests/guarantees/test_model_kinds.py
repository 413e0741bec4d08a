"""Kinds of released models by name, this project's own and those of other packages."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.packages import install
from support.released_lines import stored

from aggregator.contract.registry import MODELS, model
from aggregator.releases.model_files import ReleasedFile, head
from federation.contract.errors import InputError
from federation.contract.guarantee import NoGuarantee
from federation.contract.plugins import installed
from federation.features.feature_map import FeatureMap
from federation.features.steps import Append
from scenarios.scores.prediction import predict

KINDS = {"class_ratio": "ratios", "classifier": "classes", "linear": "classes", "regression": "numbers"}


@pytest.fixture
def shelved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package is installed whose kind of models is a class of its own making."""
    entries = {"federation.models": ["shelf = shelf_pack:Shelf", "broken_shelf = shelf_pack:Broken"]}
    install(tmp_path, "Shelf-Pack", "class Shelf:\n    pass\n", entries)
    monkeypatch.syspath_prepend(tmp_path)


def test_own_kinds_say_what_they_predict() -> None:
    assert {name: model(name).predicts for name in installed(MODELS)} == KINDS
    assert all(issubclass(model(name), ReleasedFile) for name in KINDS)
    assert {name: model(name).kind or "linear" for name in KINDS} == {name: name for name in KINDS}


def test_an_unknown_kind_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match=r"classifer.*allowed.*class_ratio.*classifier"):
        model("classifer")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("shelf", "the entry point 'shelf' of the package 'Shelf-Pack' (federation.models: shelf_pack:Shelf) does not "
         "derive from ReleasedFile; its package must be repaired"),
        ("broken_shelf", "the entry point 'broken_shelf' of the package 'Shelf-Pack' (federation.models: "
         "shelf_pack:Broken) cannot be imported: AttributeError: module 'shelf_pack' has no attribute 'Broken'; repair "
         "or remove that package"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("shelved")
def test_a_class_of_another_making_is_refused_in_one_sentence(name: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        model(name)
    assert str(refused.value) == words


def test_a_file_whose_kind_nobody_has_installed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "models" / "v" / "split-0.npz"
    path.parent.mkdir(parents=True)
    stored(path, [[[1.0, 0.0]]], [NoGuarantee("none").to_dict()], FeatureMap(1, (Append(1.0),)))
    assert head(path)[0] == "regression"
    with np.load(path) as arrays:
        known = dict(arrays)
    known["description"] = np.array(json.dumps(json.loads(str(known["description"])) | {"kind": "ranking"}))
    np.savez(path, **known)
    (tmp_path / "new.csv").write_text("a\n1\n")
    with pytest.raises(InputError, match=r"split-0\.npz.*ranking.*allowed.*class_ratio"):
        predict(tmp_path, "v", tmp_path / "new.csv")
