"""`federation audit` of scenarios of class ratios: what it audits, and that it tells what it cannot."""

from __future__ import annotations

import json

import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.privacy.audit import AuditResult
from scenarios.audits import audit_scenario
from scenarios.audits.audit_bags import Setting, question_of, worst_pair
from scenarios.settings.schema import resolve
from scenarios.settings.sweep import variants

HEAD = "data: {source: digits}\nparties: {count: 9}\nprivacy: {epsilon: [0.1, 1, 30], delta: 1.0e-6}\n"
RUNS = 20_000
ROW_OPTIONS = {
    "kind": "class_ratio", "noise": "gaussian", "protect": "row", "submit": "embedding", "estimator": "whitened"
}  # fmt: skip
ROW = json.dumps(ROW_OPTIONS)


def audited(tmp_path, capsys, protocols, head=HEAD, runs=RUNS, as_json=True):
    path = tmp_path / "s.yaml"
    path.write_text(f"{head}protocols:\n" + "".join(f"  - {entry}\n" for entry in protocols))
    code = audit_scenario.audit_scenario(str(path), as_json, runs)
    out = capsys.readouterr().out
    return code, json.loads(out) if as_json else " ".join(out.split())


def test_private_variants_are_audited_and_all_others_listed(tmp_path, capsys):
    entries = [
        "{kind: class_ratio}",
        "{kind: class_ratio, noise: [gaussian, published_dirichlet, 'off']}",
        ROW,
        "{kind: pooled}",
    ]
    code, records = audited(tmp_path, capsys, entries)
    assert code == 0
    assert len({tuple(record) for record in records}) == 1  # all have the same keys
    found = {record["variant"]: record for record in records}
    [row] = [name for name in found if name.endswith("-row")]
    assert {name for name, record in found.items() if record["verdict"] == "NON-PRIVATE"} == {
        "class_ratio-published_dirichlet", "class_ratio-off", "pooled",
    }  # fmt: skip
    assert found["pooled"]["claim_stands"] is None
    tight = found["class_ratio"]  # pure, by its own choice
    assert (tight["epsilon"], tight["delta"], tight["verdict"]) == (1.0, 0.0, "stands")
    assert 0.5 < tight["lower_bound"] <= 1.0
    assert tight["half_the_noise_caught"]
    for name in ("class_ratio-gaussian", row):  # no run shows a delta of 1e-6
        assert (found[name]["delta"], found[name]["verdict"]) == (1e-6, "stands, no power here")


def test_a_delta_that_can_be_tested_gives_power(tmp_path, capsys):
    head = HEAD.replace("1.0e-6", "0.05")
    entries = ["{kind: class_ratio, noise: [gaussian, laplace]}", ROW]
    _, records = audited(tmp_path, capsys, entries, head)
    assert {record["verdict"] for record in records} == {"stands"}
    assert all(record["half_the_noise_caught"] for record in records)


def test_the_table_says_on_what_world(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    entries = ["{kind: class_ratio, noise: [pure, 'off']}"]
    _, text = audited(tmp_path, capsys, entries, as_json=False)
    assert "Lower bounds at epsilon 1 alone, of 0.1, 1, 30" in text
    assert "one party, 10 classes, one row or label changes" in text
    assert "NON-PRIVATE" in text


def test_a_refuted_claim_fails(tmp_path, capsys, monkeypatch):
    refuted = AuditResult(1.2, 1.0, 0.0, 0.999, 1000, "")
    monkeypatch.setattr(audit_scenario, "audit_bags", lambda *_, **__: (refuted, refuted))
    code, [record] = audited(tmp_path, capsys, ["{kind: class_ratio}"])
    assert code == 1
    assert record["verdict"] == "REFUTED"


def test_a_scenario_without_a_guarantee_cannot_be_audited(tmp_path, capsys):
    with pytest.raises(InputError, match="nothing to audit"):
        audited(tmp_path, capsys, ["{kind: class_ratio, noise: ['off', published_dirichlet]}"])


def test_noise_that_cannot_be_made_is_named(tmp_path, capsys):
    with pytest.raises(InputError, match="pseudo_count must be at least"):
        audited(tmp_path, capsys, ["{kind: class_ratio, noise: dirichlet_shifted, pseudo_count: 2}"])


def document(**changes):
    return resolve({
        "data": {"source": "digits"}, "parties": {"count": 9}, "privacy": {"epsilon": 1},
        "protocols": [{"kind": "class_ratio"}], **changes,
    })  # fmt: skip


def test_the_setting_is_the_scenarios_own(tmp_path):
    assert Setting.of(document(), 1.0) == Setting(1.0, 1e-6, 10)
    declared = document(data={"source": "absent.csv", "label": "l", "classes": ["a", "b", "c"]})
    assert Setting.of(declared, 1.0).classes == 3  # without reading anything
    path = tmp_path / "own.csv"
    path.write_text("x,who,label\n" + "".join(f"{n},{n // 2},{n % 4}\n" for n in range(40)))
    data = {"source": str(path), "label": "label", "person": "who", "rows_per_person": [2, 3]}
    assert Setting.of(document(data=data), 2.0) == Setting(2.0, 1e-6, 4, 2)
    assert (
        "one person changes the labels of its rows, of which 2 count" in Setting.of(document(data=data), 2.0).described
    )
    with pytest.raises(InputError, match="absent"):
        Setting.of(document(data={"source": "absent.csv", "label": "l"}), 1.0)


@pytest.mark.parametrize("persons", [0, 1, 3])
@pytest.mark.parametrize("units", [1, 2])
def test_the_pair_is_of_neighbours(persons, units):
    [variant] = variants(document())
    pair = worst_pair(question_of(variant, Setting(1.0, 1e-6, 4, persons)), units)
    assert pair.question.bags.rows_per_person == persons
    moved = pair.counts[1] - pair.counts[0]
    counting = max(1, persons)
    assert moved[:counting].tolist() == [[-units, units, 0, 0]] * counting
    assert not moved[counting:].any()
    assert len(moved) == persons + 1
    held = [provider.call().holdings(0) for provider in pair.providers]
    changed = held[0].labels != held[1].labels
    if persons:
        assert set(held[0].persons[changed]) == set(range(units))
    np.testing.assert_array_equal(held[0].rows, held[1].rows)
    promised = pair.answer(0, "form", 1).guarantee
    assert promised.unit is (Unit.PERSON if persons else Unit.LABEL)


def test_floors_are_reached_and_pseudo_counts_stand_alone():
    for options, least in (({"noise": "dirichlet_floor", "floor": 33}, 33),
                           ({"noise": "dirichlet_shifted", "pseudo_count": 33}, 0)):  # fmt: skip
        [variant] = variants(document(protocols=[{"kind": "class_ratio", **options}]))
        pair = worst_pair(question_of(variant, Setting(1.0, 1e-3, 3)))
        assert pair.counts[0].tolist() == [[least + 1, least, least]]
        assert pair.counts[1].tolist() == [[least, least + 1, least]]


def test_rows_of_the_pair_are_as_far_apart_as_rows_can_be():
    [variant] = variants(document(protocols=[ROW_OPTIONS]))
    pair = worst_pair(question_of(variant, Setting(1.0, 1e-3, 3)))
    assert 1.999 < np.linalg.norm(pair.sums[0] - pair.sums[1]) <= 2


def test_draws_of_the_two_sides_are_independent():
    [variant] = variants(document())
    pair = worst_pair(question_of(variant, Setting(1.0, 1e-6, 2)))
    here, there, again = (pair.answer(side, "x", 4000).arrays["counts"][0, :, 0, 0] for side in (0, 1, 0))
    np.testing.assert_array_equal(here, again)
    assert abs(np.corrcoef(here, there)[0, 1]) < 5 / 4000**0.5
