"""`federation audit` of scenarios of regressions: what it audits, and that it tells what it cannot."""

from __future__ import annotations

import json

import pytest

from federation.contract.errors import InputError
from scenarios.audits import audit_scenario
from scenarios.audits.audit_labels import LabelSetting, label_question_of
from scenarios.settings.schema import resolve
from scenarios.settings.sweep import variants

HEAD = "data: {source: diabetes}\nparties: {count: 2}\nprivacy: {epsilon: [0.1, 1, 30], delta: 1.0e-6}\n"
SMALL = "{kind: noisy_weighted_llp, size: 2, weights: gaussian, sigma: 0.001}"


def audited(tmp_path, capsys, protocols, head=HEAD, runs=8000, as_json=True):
    path = tmp_path / "s.yaml"
    path.write_text(f"{head}protocols:\n" + "".join(f"  - {entry}\n" for entry in protocols))
    code = audit_scenario.audit_scenario(str(path), as_json, runs)
    out = capsys.readouterr().out
    return code, json.loads(out) if as_json else " ".join(out.split())


def test_private_variants_are_audited_and_all_others_listed(tmp_path, capsys):
    entries = [
        "{kind: label_sums, noise: [auto, 'off']}",
        "{kind: private_labels, noise: [one_bit, gaussian]}",
        "{kind: weighted_lba, size: 2, noise: [gaussian, published]}",
        "{kind: pooled}",
        SMALL,
    ]
    code, records = audited(tmp_path, capsys, entries)
    assert code == 0
    assert len({tuple(record) for record in records}) == 1  # all have the same keys
    found = {record["variant"]: record for record in records}
    exposed = {name for name, record in found.items() if record["verdict"] == "NON-PRIVATE"}
    assert {"label_sums-off", "weighted_lba-size=2-published", "pooled"} < exposed
    assert len(exposed) == 4  # and the sigma that is too small
    for name in ("label_sums", "private_labels"):  # pure
        assert (found[name]["epsilon"], found[name]["delta"], found[name]["verdict"]) == (1.0, 0.0, "stands")
        assert found[name]["half_the_noise_caught"]
    for name in ("private_labels-gaussian", "weighted_lba-size=2"):  # no run shows a delta of 1e-6
        assert (found[name]["delta"], found[name]["verdict"]) == (1e-6, "stands, no power here")


def test_the_table_says_on_what_world(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    _, text = audited(tmp_path, capsys, ["{kind: private_labels, noise: [one_bit, 'off']}"], as_json=False)
    assert "Lower bounds at epsilon 1 alone, of 0.1, 1, 30" in text
    assert "one party, 2 features, one label moves from one end of its declared range to the other" in text
    assert "NON-PRIVATE" in text


def test_noise_that_promises_nothing_cannot_be_audited(tmp_path, capsys):
    with pytest.raises(InputError, match="too little noise"):
        audited(tmp_path, capsys, [SMALL])


def document(**changes):
    return resolve({
        "data": {"source": "diabetes"}, "parties": {"count": 2}, "privacy": {"epsilon": 1},
        "protocols": [{"kind": "noisy_weighted_llp", "size": 3, "bags": 7}], **changes,
    })  # fmt: skip


def test_the_range_is_the_scenarios_own():
    assert LabelSetting.of(document(), 1.0) == LabelSetting(1.0, 1e-6, (25.0, 346.0))
    own = {"source": "absent.csv", "label": "l", "range": [0, 3]}
    assert LabelSetting.of(document(data=own), 1.0).label_range == (0, 3)  # without reading anything


def test_all_rows_of_the_small_world_are_in_bags():
    [variant] = variants(document())
    question = label_question_of(variant, LabelSetting(1.0, 1e-6, (0.0, 1.0)))
    assert (question.design.taking_part(2), question.design.bags, question.design.size) == (6, 2, 3)
    assert question.rows.most == 6
