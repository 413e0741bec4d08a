"""`federation audit` of scenarios whose parties protect rows of two classes: what it audits, and on what world."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.questions.moments import moment_noise
from federation.numerics.norms import within_norm
from aggregator.contract.registry import protocol
from scenarios.audits import audit_scenario, audit_two_classes
from scenarios.audits.audit_labels import LabelNeighbour
from scenarios.audits.audit_two_classes import (
    CellNeighbour,
    SumNeighbour,
    TwoClassSetting,
    two_class_question_of,
    worst_row,
)
from scenarios.settings.sweep import Variant

HEAD = "data: {source: breast_cancer}\nparties: {count: 4}\nprivacy: {epsilon: [0.1, 1, 30], delta: 1.0e-6}\n"


def audited(tmp_path, capsys, protocols, runs=10_000, as_json=True):
    path = tmp_path / "s.yaml"
    path.write_text(f"{HEAD}protocols:\n" + "".join(f"  - {entry}\n" for entry in protocols))
    code = audit_scenario.audit_scenario(str(path), as_json, runs)
    out = capsys.readouterr().out
    return code, json.loads(out) if as_json else " ".join(out.split())


def asked(kind, **options):
    variant = Variant("a variant", kind, asdict(protocol(kind)(**options)), {}, False)
    return two_class_question_of(variant, TwoClassSetting(1.0, 1e-6))


def test_a_mixed_scenario_is_audited_by_what_each_variant_protects(tmp_path, capsys):
    entries = [
        "{kind: mean_operator, noise: [laplace, gaussian, published_laplace, randomised_response, 'off']}",
        "{kind: mean_operator, noise: laplace, summation: secure}",
        "{kind: error_marginals, noise: [pure, 'off']}",
        "{kind: soft_vote, noise: [pure, 'off']}",
        "{kind: pooled}",
        "{kind: constant}",
    ]
    code, records = audited(tmp_path, capsys, entries)
    assert code == 0
    assert len({tuple(record) for record in records}) == 1  # all have the same keys
    found = {record["variant"]: record for record in records}
    exposed = {"mean_operator-off", "error_marginals-off", "soft_vote-off", "pooled", "constant"}
    assert {name for name, record in found.items() if record["verdict"] == "NON-PRIVATE"} == exposed
    for name in ("mean_operator-laplace", "mean_operator-laplace-secure", "error_marginals-pure"):
        assert (found[name]["epsilon"], found[name]["delta"]) == (1.0, 0.0)
        assert found[name]["verdict"] == "stands"
        assert found[name]["half_the_noise_caught"]
    assert (found["soft_vote"]["claim_stands"], found["soft_vote"]["runs"]) == (True, 10_000)
    honest = found["mean_operator-published_laplace"]  # of 3 features, the constant one included
    assert honest["epsilon"] == pytest.approx(3**0.5, rel=1e-6)
    assert 1.0 < honest["lower_bound"] <= honest["epsilon"]
    gaussian = found["mean_operator-gaussian"]  # no run shows a delta of 1e-6
    assert (gaussian["delta"], gaussian["verdict"]) == (1e-6, "stands, no power here")


def test_the_table_says_on_what_worlds_and_what_is_promised_instead(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    entries = ["{kind: mean_operator, noise: published_laplace}", "{kind: error_marginals}", "{kind: soft_vote}"]
    _, text = audited(tmp_path, capsys, entries, runs=2000, as_json=False)
    assert "Lower bounds at epsilon 1 alone, of 0.1, 1, 30" in text
    assert "one party, one row or label changes (mean_operator, error_marginals)" in text
    assert "one party changes all it sends (soft_vote)" in text
    assert " of 1.73 │" in text
    _, text = audited(tmp_path, capsys, ["{kind: mean_operator, summation: secure}"], runs=2000, as_json=False)
    assert "4 of 6 parties, whose answers are seen in one sum only, one row or label changes." in text


def test_a_protocol_that_asks_something_else_is_refused(monkeypatch):
    monkeypatch.setattr(audit_two_classes, "asked_in", lambda plan: [])
    with pytest.raises(InputError, match="mean_operator cannot be audited"):
        asked("mean_operator")


@pytest.mark.parametrize(
    ("options", "longest"),
    [
        ({"noise": "laplace"}, 3**0.5),
        ({"noise": "published_laplace"}, 3**0.5),
        ({"noise": "laplace", "l1_bound": 1.2}, 1.2),
        ({"noise": "laplace", "expansion": "fourier"}, 2**0.5),
        ({"noise": "laplace", "expansion": "polynomial"}, 1 + 2**0.5),  # of 6 features: sqrt(6) bounds it
        ({"noise": "pure"}, 1.0),
        ({"noise": "gaussian", "expansion": "polynomial", "degree": 3}, 1.0),
        ({"noise": "auto", "l1_bound": 1.1}, 1.1),  # Laplace noise
        ({"noise": "auto", "l1_bound": 1.7}, 1.0),  # L2-Gamma noise
        ({"noise": "pure", "protect": "row", "expansion": "fourier"}, 1.0),
    ],
)
def test_the_worst_row_is_as_long_as_rows_get(options, longest):
    question = asked("mean_operator", **options)
    order = 1 if moment_noise(question).name.endswith("laplace") else 2
    cut = within_norm(question.feature_map.transform(worst_row(question)[None]), options.get("l1_bound"))
    assert np.linalg.norm(cut[0], ord=order) == pytest.approx(longest, rel=1e-6)


@pytest.mark.parametrize("changed", [1, 2])
def test_neighbours_of_a_sum_differ_in_the_rows_that_change(changed):
    sides = [SumNeighbour([1.0, 2.0], changed, moved) for moved in (False, True)]
    first, other = ([side.holdings(party) for side in sides] for party in (0, 1))
    np.testing.assert_array_equal(first[0].rows, first[1].rows)
    assert (first[0].labels != first[1].labels).sum() == changed
    np.testing.assert_array_equal(other[0].labels, other[1].labels)


@pytest.mark.parametrize(("change", "gone", "classes"), [("add_remove", 10, 0), ("replace", 10, 10), ("label", 0, 10)])
def test_neighbours_of_an_exchange_differ_in_one_unit_for_each_run(change, gone, classes):
    before, after = (CellNeighbour(3, change, 1, 10, moved).holdings(0) for moved in (False, True))
    assert before.rows.shape == (11, 3)
    assert len(set(map(tuple, before.rows)) - set(map(tuple, after.rows))) == gone
    assert before.labels.sum() == 0
    assert after.labels.sum() == classes


def test_randomised_response_is_audited_as_private_labels_are():
    question = asked("mean_operator", noise="randomised_response")
    rows = LabelNeighbour(True, 1, question.rows.most, *question.rows.label_range).holdings(0).rows
    assert question.rows.feature_map.transform(rows).shape == (4, 3)
    assert question.rows.label_range == (0.0, 1.0)


def test_as_many_queries_are_audited_as_the_scenario_agrees_on():
    assert asked("error_marginals", rounds=3).exchange.queries == 3
    assert asked("error_marginals", rounds=3, importance="always").exchange.queries == 4
