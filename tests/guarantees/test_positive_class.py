"""Two classes out of many: `data.positive` from the scenario file to the released model."""

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scenarios
from federation.contract.errors import InputError
from scenarios.audits import auditor as audit_scenario
from scenarios.data.catalogue import load
from scenarios.runs.trial import split_of
from scenarios.scores.prediction import predict
from scenarios.scores.results import read_results
from scenarios.settings.schema import resolve
from scenarios.simulated.simulation import SplitSpec, split

ODD = ["1", "3", "5", "7", "9"]


def document(**data: Any) -> dict[str, Any]:
    return {
        "name": "odd",
        "data": {"source": "digits", "auxiliary": 200, "positive": ODD, **data},
        "parties": {"count": 20},
        "protocols": [{"kind": "soft_vote"}, {"kind": "pooled"}],
        "privacy": {"epsilon": 30},
        "trials": {"splits": 1, "noise": 1},
    }


def test_real_labels_have_no_positive_class():
    with pytest.raises(InputError, match=r"data\.positive"):
        load("diabetes", positive=["a"])
    with pytest.raises(InputError, match=r"data\.positive"):
        resolve({**document(source="diabetes"), "protocols": [{"kind": "label_sums"}]})


def test_every_process_cuts_the_same_two_classes():
    spec = split_of(resolve(document()), 0, None)
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
    with pytest.raises(InputError):  # as nothing was audited here
        audit_scenario.audit_scenario(str(tmp_path / "own.yaml"), as_json=True)
    assert told == [2]


def test_a_run_and_its_model_speak_of_the_two_classes(tmp_path: Path, undrawn: None) -> None:
    done = scenarios.run(document(), out=tmp_path / "out")
    rows = read_results(done.directory / "results.csv")
    reached = {(row["protocol"], row["metric"]): row["value"] for row in rows}
    assert reached["pooled", "accuracy"] > 0.85
    assert reached["soft_vote", "auc"] > 0.8  # which is for two classes
    np.savez(tmp_path / "new.npz", X=load("digits").rows(np.arange(60)))
    found = predict(done.directory, "soft_vote", tmp_path / "new.npz")
    assert set(found.values) == {"0+2+4+6+8", "1+3+5+7+9"}
    known = json.loads((done.directory / "ledger.json").read_text())
    assert re.search(r"1.*3.*5.*7.*9", json.dumps(known))
