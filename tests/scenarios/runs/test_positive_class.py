"""Two classes out of many: `data.positive` from the scenario file to the released model."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scenarios
from federation.contract.errors import InputError
from scenarios.audits import audit_scenario
from scenarios.data.catalogue import load
from scenarios.data.tables import Table
from scenarios.runs.world import split_of
from scenarios.scores.prediction import predict
from scenarios.scores.results import read_results
from scenarios.settings.explained import to_yaml
from scenarios.settings.schema import Scenario, resolve
from scenarios.settings.yaml_rules import parse
from scenarios.simulated.simulation import SplitSpec, split

ODD = ["1", "3", "5", "7", "9"]


def table(*classes: str, labels: Any = None) -> Table:
    labels = np.arange(len(classes)) if labels is None else np.asarray(labels)
    return Table("t", ("x",), classes, labels, (np.zeros((len(labels), 1)),))


def document(**data: Any) -> dict[str, Any]:
    return {
        "name": "odd",
        "data": {"source": "digits", "auxiliary": 200, "positive": ODD, **data},
        "parties": {"count": 20},
        "protocols": [{"kind": "soft_vote"}, {"kind": "pooled"}],
        "privacy": {"epsilon": 30},
        "trials": {"splits": 1, "noise": 1},
    }


def resolved(**data: Any) -> Scenario:
    return resolve(document(**data))


@settings(derandomize=True, deadline=None)
@given(st.data())
def test_every_row_is_in_the_class_that_its_own_belongs_to(data: st.DataObject) -> None:
    drawn = data.draw(st.lists(st.text("ab+", min_size=1), min_size=2, max_size=8, unique=True))
    names = ["rest", "positive", "others", *drawn]
    positive = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=len(names) - 1, unique=True))
    labels = data.draw(st.lists(st.integers(0, len(names) - 1), min_size=1, max_size=20))
    two = Table("t", ("x",), tuple(names), np.array(labels), (np.zeros((len(labels), 1)),))
    two = two.with_positive(positive)
    assert two.labels.dtype == np.int64
    assert two.labels.tolist() == [int(names[label] in positive) for label in labels]
    assert len(set(two.classes)) == 2


@pytest.mark.parametrize(
    ("classes", "positive", "expected"),
    [
        ("0123456789", ODD, ("0+2+4+6+8", "1+3+5+7+9")),
        (("normal", "suspect", "pathologic"), ["pathologic", "suspect"], ("normal", "suspect+pathologic")),
        ([str(year) for year in range(1990, 2000)], ["1990"], ("rest", "1990")),
        ([str(year) for year in range(1990, 2000)], [str(year) for year in range(1991, 2000)], ("1990", "positive")),
        (("a", "b", "a+b"), ["a+b"], ("others", "a+b")),
        (["rest", *map(str, range(1990, 2000))], ["rest"], ("others", "rest")),
        (("1", "2.50"), ["2.5"], ("1", "2.50")),  # another spelling of the same number
    ],
)
def test_the_two_names_say_what_they_hold(classes, positive, expected):
    assert table(*classes).with_positive(positive).classes == expected


@pytest.mark.parametrize(
    ("positive", "words"),
    [
        (
            ["normall"],
            "'t' has no class 'normall'; it has normal, suspect, other; did you mean 'normal'",
        ),
        (["normal", "suspect", "other"], "leave out at least one of the 3, got"),
        ([], "must name one or more different classes"),
        (["normal", "normal"], "different classes"),
    ],
)
def test_what_makes_no_two_classes_is_refused(positive, words):
    with pytest.raises(InputError, match=words):
        table("normal", "suspect", "other").with_positive(positive)


def test_real_labels_have_no_positive_class():
    with pytest.raises(InputError, match=r"has real labels, no classes: remove data\.positive"):
        load("diabetes", positive=["a"])
    with pytest.raises(InputError, match=r"data\.positive: names classes, but the labels are real numbers; remove it"):
        resolve({**document(source="diabetes"), "protocols": [{"kind": "label_sums"}]})


def test_it_applies_to_the_declared_classes_of_an_own_file(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("x,y\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in range(8)))
    known = {"label": "y", "classes": ("b", "a", "absent")}
    assert load(str(path), **known, positive=["a", "absent"]).classes == ("b", "a+absent")
    assert load(str(path), **known, positive=["absent"]).labels.tolist() == [0] * 8
    with pytest.raises(InputError, match="has no class 'absent'; it has a, b"):
        load(str(path), label="y", positive=["absent"])


@pytest.mark.parametrize(
    ("positive", "words"),
    [([], "data.positive: must be one or more distinct class names"), ([1, "1"], "distinct"), ([True], "class name")],
)
def test_schema(positive, words):
    with pytest.raises(InputError, match=words):
        resolved(positive=positive)


def test_numbers_are_names_and_written_scenarios_are_the_same():
    scenario = resolved(positive=[1, 3, 5, 7, 9])
    assert scenario.data.positive == tuple(ODD)
    assert resolve(parse(to_yaml(scenario), "x")[0]) == scenario
    assert resolved(positive=None).data.positive is None
    described = Scenario.model_json_schema()["$defs"]["Data"]["properties"]["positive"]
    assert described["anyOf"][0]["items"] == {"type": ["string", "integer"], "minLength": 1}


def test_every_process_cuts_the_same_two_classes():
    spec = split_of(resolved(), 0, None)
    again = split(SplitSpec(**json.loads(json.dumps(asdict(spec)))))
    assert again.table.classes == ("0+2+4+6+8", "1+3+5+7+9")
    digits = load("digits")
    np.testing.assert_array_equal(again.table.labels, digits.labels % 2)
    holdings = spec.reference("SimulatedParties").call().holdings(3)
    np.testing.assert_array_equal(holdings.labels, digits.labels[again.cut.party(3)] % 2)
    evaluated = spec.reference("SimulatedParties").call().evaluation()[1]
    np.testing.assert_array_equal(evaluated, digits.labels[again.cut.test] % 2)


@pytest.mark.parametrize("kind", ["class_ratio", "mean_operator"])
def test_audits_know_of_two_classes_without_reading_anything(tmp_path, monkeypatch, kind):
    told = []

    def note(variant, epsilon, public, runs=None):
        told.append(public.classes)

    monkeypatch.setattr(audit_scenario, "audit_variant", note)
    own = {"source": str(tmp_path / "absent.csv"), "label": "l", "positive": ["a", "b"]}
    (tmp_path / "own.yaml").write_text(json.dumps({**document(**own), "protocols": [{"kind": kind}]}))
    with pytest.raises(InputError, match="too little noise for any promise"):  # as nothing was audited here
        audit_scenario.audit_scenario(str(tmp_path / "own.yaml"), as_json=True)
    assert told == [2]


def test_a_run_and_its_model_speak_of_the_two_classes(tmp_path: Path) -> None:
    done = scenarios.run(document(), out=tmp_path / "out")
    rows = read_results(done.directory / "results.csv")
    reached = {(row["protocol"], row["metric"]): row["value"] for row in rows}
    assert reached["pooled", "accuracy"] > 0.85
    assert reached["soft_vote", "auc"] > 0.8  # which is for two classes
    np.savez(tmp_path / "new.npz", X=load("digits").rows(np.arange(60)))
    found = predict(done.directory, "soft_vote", tmp_path / "new.npz")
    assert set(found.values) == {"0+2+4+6+8", "1+3+5+7+9"}
    known = json.loads((done.directory / "ledger.json").read_text())
    assert "1, 3, 5, 7, 9 together are the positive class of two, as declared" in json.dumps(known)
