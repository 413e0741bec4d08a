"""Audits of the variants whose noise the aggregator adds, on the worst pair of neighbouring answers, and of twins."""

import numpy as np
import pytest
from support.voting import ensemble
from support.worst_pairs import variant_of

from aggregator.collectors.vectors import VectorAnswers
from aggregator.contract.registry import protocol
from aggregator.ensembles.output import perturb_output
from aggregator.ensembles.worst_case import WorstParameters, WorstVotes
from aggregator.protocols.majority_vote import MajorityVote
from aggregator.protocols.parameter_average import ParameterAverage
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from aggregator.trial.feature_fitting import fit
from aggregator.trial.plan import PublicNumbers
from aggregator.trial.public_rows import PublicRows
from federation.contract.randomness import NoiseBits
from federation.features.feature_map import Ball
from federation.mechanisms.accounting import sensitivity
from federation.mechanisms.audits import audit
from federation.mechanisms.noise.additive import calibrate
from federation.numerics.rows import contrasts
from scenarios.audits.auditor import audit_variant, perturbable

RUNS = 60_000
DELTA = 0.01
BOTH = "party_and_auxiliary_row"
TIGHT = {
    "unit": ParameterAverage(),
    "clipped": ParameterAverage(average="clipped"),
    "plain": ParameterAverage(average="plain"),
    "unit shares": SoftVote(),
    "gaussian unit shares": SoftVote(noise="gaussian"),
    "shares": SoftVote(share="raw"),
    "probabilities": SoftVote(submit="votes", ballot="probabilities"),
    "gaussian shares": SoftVote(share="raw", noise="gaussian"),
    "isotropic": SoftVote(shape="isotropic"),
    "isotropic, gaussian": SoftVote(shape="isotropic", noise="gaussian"),
    "public features": SoftVote(perturb="output", sensitivity="public_features", regularisation=100.0),
    "public features, majority": MajorityVote(sensitivity="public_features", regularisation=100.0),
    "diameter, majority": MajorityVote(),
    "row too": SoftVote(perturb="output", protect=BOTH, regularisation=100.0),
    "row too, majority": MajorityVote(protect=BOTH, sensitivity="tight", regularisation=100.0),
    "noisy votes": SoftVote(perturb="votes", noise="gaussian"),
}


VOTES = [*TIGHT][8:]  # where and how noise is added to votes


def variant(chosen):
    kinds = {ParameterAverage: "parameter_average", MajorityVote: "majority_vote", SoftVote: "soft_vote"}
    kind = kinds[type(chosen)]
    assert protocol(kind) is type(chosen)
    return variant_of(kind, vars(chosen))


def audited(chosen, runs=RUNS):
    return audit_variant(variant(chosen), 1.0, PublicNumbers(DELTA), runs)


def sides(chosen):
    """What is perturbed on either side of its worst case."""
    worst = chosen.worst_case(1, PublicNumbers(DELTA))
    return [perturbable(worst, variant(chosen), 1.0, DELTA, there) for there in (False, True)]


@pytest.mark.parametrize("name", TIGHT)
def test_a_tight_variant_stands_close_to_its_claim_and_half_its_noise_is_caught(name):
    finding = audited(TIGHT[name])
    assert 0.5 < finding.result.lower_bound <= 1.0
    assert not finding.twin.passed


@pytest.mark.parametrize("form", ["published", "tight"])
def test_a_loose_bound_of_the_average_stands_too(form):
    finding = audited(ParameterAverage(average="plain", sensitivity=form), runs=20_000)
    assert finding.result.passed
    assert finding.word == "stands, no power here"


@pytest.mark.parametrize("name", [name for name in TIGHT if isinstance(TIGHT[name], ParameterAverage)])
def test_an_average_of_what_parties_really_train_stands_too(name, monkeypatch):
    """Their minimisers are no longer than the vectors that the worst case sends."""
    monkeypatch.setattr(WorstParameters, "sent", WorstVotes.sent)
    before, after = sides(TIGHT[name])
    assert 0 < np.linalg.norm(before.value - after.value) <= before.sensitivity
    assert audited(TIGHT[name], runs=20_000).result.passed


def test_an_average_of_unclipped_parameters_is_refuted(monkeypatch):
    chosen = ParameterAverage(average="plain")
    claimed = sides(chosen)[0].sensitivity

    def trusting(self, public, question, parties):
        return VectorAnswers(question, parties, Ball(2 * question.largest))

    monkeypatch.setattr(ParameterAverage, "collector", trusting)
    monkeypatch.setattr(ParameterAverage, "_sensitivity", lambda self, answers: claimed)
    assert not audited(chosen).result.passed


@pytest.mark.parametrize("name", [name for name in TIGHT if name not in VOTES])
def test_the_pair_differs_by_the_charged_sensitivity(name):
    before, after = sides(TIGHT[name])
    assert before.sensitivity == after.sensitivity
    distance = np.linalg.norm(before.value - after.value)
    assert 0.999 * before.sensitivity < distance <= before.sensitivity


@pytest.mark.slow
def test_the_erm_decoder_is_post_processing():
    finding = audited(SoftVote(submit="votes", decoder="erm"), runs=6_000)
    assert 0.5 < finding.result.lower_bound <= 1.0
    assert not finding.twin.passed


@pytest.mark.parametrize("sensitivity_form", ["published", "tight", "diameter"])
def test_loose_claims_for_a_row_and_a_party_stand_too(sensitivity_form):
    weak = SoftVote(perturb="output", protect=BOTH, sensitivity=sensitivity_form, regularisation=1e-4)
    assert audited(weak, runs=20_000).result.passed


def refuted(pair, claimed, runs=RUNS):
    """Whether noise for the claimed sensitivity fails an audit at epsilon 1 on two values."""
    mechanism = calibrate("pure", sensitivity=claimed, dimension=len(pair[0]), epsilon=1.0)

    def sampler(side):
        bits = NoiseBits(5, f"twin {side} {claimed!r}")
        return lambda n: mechanism.release(pair[side], bits, n)

    def gap(outputs):
        return np.linalg.norm(outputs - pair[1], axis=1) - np.linalg.norm(outputs - pair[0], axis=1)

    return not audit(sampler(0), sampler(1), gap, epsilon=1.0, runs=runs, confidence=0.999).passed


def values(chosen):
    return [side.value for side in sides(chosen)]


def test_twins_with_the_wrong_sensitivity_are_refuted():
    """The mistakes that each variant invites, on its worst pair."""
    both = SoftVote(perturb="output", protect=BOTH, regularisation=100.0)
    alone = sensitivity.soft_vote("tight", regularisation=100.0, parties=5, classes=2)
    assert refuted(values(both), alone), "the bound of a party alone, while a row changes too"
    isotropic = SoftVote(shape="isotropic")
    rows = isotropic.worst_case(1, PublicNumbers(DELTA)).public
    reach = PublicRows(fit(["unit_norm"], rows), rows, ("unit_norm",)).eigenbasis.reach
    assert refuted(values(isotropic), sensitivity.statistic(5, reach**2)), "a reach that is squared"
    public = MajorityVote(sensitivity="public_features", regularisation=100.0)
    soft = sensitivity.soft_vote("public_features", regularisation=100.0, parties=5, classes=2, reach=reach)
    assert refuted(values(public), soft), "the sensitivity of shares for majority labels"
    votes = SoftVote(perturb="votes", noise="gaussian")
    assert refuted(values(votes), sensitivity.vote_shares(5, 1)), "the sensitivity of one row for all rows"


@pytest.fixture
def three_classes():
    """The minimisers of two neighbours with three classes, one feature, strong regularisation: (C,) each."""
    before, after = np.zeros((5, 1), dtype=int), np.zeros((5, 1), dtype=int)
    after[0] = 1
    worlds = [ensemble(votes, np.ones((1, 1)), 3) for votes in (before, after)]
    return [perturb_output(world, "soft", "tight", 100.0) for world in worlds], [
        world.minimiser("soft", 100.0).ravel() for world in worlds
    ]


def test_noise_in_contrasts_is_as_private_as_it_claims(three_classes):
    perturbables, _ = three_classes
    pair = [one.value for one in perturbables]
    assert len(pair[0]) == 2
    assert not refuted(pair, perturbables[0].sensitivity)
    assert refuted(pair, perturbables[0].sensitivity / 2)


def test_noise_in_contrasts_around_weights_that_were_not_projected_is_refuted(three_classes):
    """A solver that leaves weights off the sum-zero subspace tells the neighbours apart with certainty."""
    perturbables, minimisers = three_classes
    basis = contrasts(3)
    off = [minimisers[0], minimisers[1] + 1e-6]  # equal in every class: no effect on any decision
    mechanism = calibrate("pure", sensitivity=perturbables[0].sensitivity, dimension=2, epsilon=1.0)

    def sampler(side):
        bits = NoiseBits(6, f"off the subspace {side}")
        return lambda n: off[side] + mechanism.release(np.zeros(2), bits, n) @ basis.T

    result = audit(sampler(0), sampler(1), lambda w: w.sum(axis=1), epsilon=1.0, runs=4000, confidence=0.999)
    assert result.lower_bound > 5
    clean = [perturbables[0].decode(mechanism.release(one.value, NoiseBits(7, "w"), 50), None) for one in perturbables]
    np.testing.assert_allclose([w.sum(axis=1) for w in clean], 0, atol=1e-12)
