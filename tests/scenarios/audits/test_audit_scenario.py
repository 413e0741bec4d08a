import json
from pathlib import Path

import pytest
from fake_protocols import KINDS

from federation.contract.errors import InputError
from federation.privacy.audit import AuditResult
from scenarios.audits.audit_scenario import VariantAudit, audit_scenario, audit_variant
from scenarios.settings.schema import resolve
from scenarios.settings.sweep import variants


def variant(**options):
    document = {"data": {"source": "digits"}, "parties": {"count": 50}, "privacy": {"epsilon": 1}}
    [only] = variants(resolve({**document, "protocols": [{"kind": "soft_vote", **options}]}))
    return only


def test_the_default_is_tight_end_to_end_and_half_its_noise_is_caught():
    finding = audit_variant(variant(), 1.0, 1e-6)
    assert 0.5 < finding.result.lower_bound <= 1.0
    assert finding.twin.lower_bound > 1.0


def test_gaussian_noise_stands_and_half_of_it_is_caught_at_a_testable_delta():
    finding = audit_variant(variant(noise="gaussian"), 1.0, 0.01)
    assert 0.5 < finding.result.lower_bound <= 1.0
    assert finding.twin.lower_bound > 1.0


@pytest.mark.parametrize("sensitivity", ["published", "tight"])
def test_output_perturbation_stands(sensitivity):
    finding = audit_variant(variant(perturb="output", sensitivity=sensitivity, regularisation=100.0), 1.0, 1e-6)
    assert finding.result.passed
    if sensitivity == "tight":
        assert finding.result.lower_bound > 0.5
        assert not finding.twin.passed


def test_a_scenario_without_a_guarantee_cannot_be_audited(tmp_path):
    path = tmp_path / "off.yaml"
    path.write_text(
        "data: {source: digits}\nparties: {count: 9}\nprivacy: {epsilon: 1}\n"
        'protocols: [{kind: soft_vote, noise: "off"}, {kind: pooled}]\n'
    )
    with pytest.raises(InputError, match="nothing to audit"):
        audit_scenario(str(path), as_json=True)


@pytest.mark.usefixtures("protocols")
def test_a_task_without_an_audit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(KINDS["ratio"], "task", "ranking")
    path = tmp_path / "ranks.yaml"
    path.write_text("data: {source: digits}\nparties: {count: 9}\nprivacy: {epsilon: 1}\nprotocols: [{kind: ratio}]\n")
    with pytest.raises(InputError, match="has the task ranking"):
        audit_scenario(str(path), as_json=True)


def test_a_verdict_admits_that_it_has_no_power():
    weak = audit_variant(variant(perturb="output", sensitivity="published"), 1.0, 1e-6, runs=2000)
    assert weak.result.passed
    assert weak.word == "stands, no power here"


@pytest.mark.parametrize(("bound", "word"), [(0.5, "stands"), (0.49, "stands, no power here"), (1.1, "REFUTED")])
def test_the_verdict_has_power_from_half_the_claim_on(bound, word):
    result = found(bound)
    assert VariantAudit("v", result, result).word == word


def found(bound, epsilon=1.0):
    return AuditResult(lower_bound=bound, claimed=epsilon, delta=0.0, confidence=0.999, runs=1000, event="")


@pytest.fixture
def scenario(tmp_path, monkeypatch):
    """A scenario of several epsilons, and the bounds that its audits are to find."""
    path = tmp_path / "s.yaml"
    path.write_text(
        "data: {source: digits}\nparties: {count: 9}\nprivacy: {epsilon: [0.1, 3, 1.2, 30]}\n"
        "protocols: [{kind: soft_vote, perturb: output, sensitivity: published, regularisation: [0.0001, 1.0e-6]}]\n"
    )
    bounds, asked = {}, []

    def fake(variant, epsilon, delta, runs=None):
        asked.append((variant.name, epsilon, runs))
        result = found(bounds.get(variant.name, 0.0), epsilon)
        return VariantAudit(variant.name, result, result)

    monkeypatch.setattr("scenarios.audits.audit_scenario.audit_variant", fake)
    return str(path), bounds, asked


def test_it_says_what_was_audited_and_what_not(scenario, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    path, _, asked = scenario
    assert audit_scenario(path, as_json=False, runs=1234) == 0  # no power refutes nothing
    assert {(epsilon, runs) for _, epsilon, runs in asked} == {(1.2, 1234)}
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    text = " ".join(out.split())
    assert "Lower bounds at epsilon 1.2 alone, of 0.1, 3, 1.2, 30" in text
    assert "Other epsilons and the scenario's own data are not audited" in text
    assert text.count("stands, no power here") == 2
    for word in ("soft_vote-output- │", "published- │", "regularisation=0.0001 │", "regularisation=1e-06 │"):
        assert word in text


def test_only_a_refuted_claim_fails(scenario, capsys):
    path, bounds, _ = scenario
    bounds["soft_vote-output-published-regularisation=1e-06"] = 1.3
    assert audit_scenario(path, as_json=True) == 1
    assert [record["verdict"] for record in json.loads(capsys.readouterr().out)] == ["stands, no power here", "REFUTED"]


def test_the_only_epsilon_of_a_scenario_is_not_compared_with_others(scenario, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = Path(scenario[0]).read_text().replace("[0.1, 3, 1.2, 30]", "3")
    Path(scenario[0]).write_text(text)
    audit_scenario(scenario[0], as_json=False)
    out = capsys.readouterr().out
    assert "at epsilon 3, end to end" in out
    assert "The scenario's own data are not audited" in " ".join(out.split())
