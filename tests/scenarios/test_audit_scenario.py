import numpy as np
import pytest

from aggregator.worst_case import PARTIES, neighbours
from federation.errors import InputError
from scenarios.audit_scenario import audit_scenario, audit_variant
from scenarios.schema import resolve
from scenarios.sweep import variants


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


@pytest.mark.parametrize("perturb", ["statistic", "output"])
def test_the_worst_pair_differs_in_one_party_and_tips_every_majority(perturb):
    before, after = neighbours(perturb)
    change = np.abs(before.tally.counts - after.tally.counts)
    assert (change == 1).all()
    assert (before.tally.majority() != after.tally.majority()).all()
    assert before.answered == PARTIES


def test_a_scenario_without_a_guarantee_cannot_be_audited(tmp_path):
    path = tmp_path / "off.yaml"
    path.write_text(
        "data: {source: digits}\nparties: {count: 9}\nprivacy: {epsilon: 1}\n"
        'protocols: [{kind: soft_vote, noise: "off"}, {kind: pooled}]\n'
    )
    with pytest.raises(InputError, match="nothing to audit"):
        audit_scenario(str(path), as_json=True)


def test_a_verdict_admits_that_it_has_no_power():
    weak = audit_variant(variant(perturb="output", sensitivity="published"), 1.0, 1e-6, runs=2000)
    assert weak.result.passed
    assert weak.word == "no power"
