"""Audits of the variants that ask for other answers than votes, on the worst pair of neighbouring answers."""

from __future__ import annotations

import numpy as np
import pytest
from support.worst_pairs import variant_of

from aggregator.collectors.vectors import VectorAnswers
from aggregator.contract.registry import protocol
from aggregator.ensembles.worst_case import WorstParameters, WorstVotes
from aggregator.protocols.parameter_average import ParameterAverage
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from aggregator.trial.plan import PublicNumbers
from federation.features.feature_map import Ball
from scenarios.audits.auditor import audit_variant, perturbable

RUNS = 60_000
TIGHT = {
    "unit": ParameterAverage(),
    "clipped": ParameterAverage(average="clipped"),
    "plain": ParameterAverage(average="plain"),
    "unit shares": SoftVote(),
    "gaussian unit shares": SoftVote(noise="gaussian"),
    "shares": SoftVote(share="raw"),
    "probabilities": SoftVote(submit="votes", ballot="probabilities"),
    "gaussian shares": SoftVote(share="raw", noise="gaussian"),
}


def variant(chosen):
    kind = "parameter_average" if isinstance(chosen, ParameterAverage) else "soft_vote"
    assert protocol(kind) is type(chosen)
    return variant_of(kind, vars(chosen))


def audited(chosen, runs=RUNS, delta=0.01):
    return audit_variant(variant(chosen), 1.0, PublicNumbers(delta), runs)


def sides(chosen):
    """What is perturbed on either side of the worst case."""
    worst = chosen.worst_case(1, PublicNumbers(0.01))
    return [perturbable(worst, variant(chosen), 1.0, 0.01, there) for there in (False, True)]


@pytest.mark.parametrize("name", TIGHT)
def test_a_tight_variant_stands_close_to_its_claim_and_half_its_noise_is_caught(name):
    finding = audited(TIGHT[name])
    assert 0.5 < finding.result.lower_bound <= 1.0
    assert not finding.twin.passed


@pytest.mark.parametrize("sensitivity", ["published", "tight"])
def test_a_loose_bound_of_the_average_stands_too(sensitivity):
    finding = audited(ParameterAverage(average="plain", sensitivity=sensitivity), runs=20_000)
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


@pytest.mark.parametrize("name", TIGHT)
def test_the_pair_differs_by_the_charged_sensitivity(name):
    before, after = sides(TIGHT[name])
    assert before.sensitivity == after.sensitivity
    distance = np.linalg.norm(before.value - after.value)
    assert 0.999 * before.sensitivity < distance <= before.sensitivity
