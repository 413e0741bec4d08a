"""Audits of the variants that ask for other answers than votes, on the worst pair of neighbouring answers."""

from __future__ import annotations

import numpy as np
import pytest

from aggregator.answers.vector_answers import VectorAnswers
from aggregator.audits.worst_answers import neighbours
from aggregator.parameter_average import ParameterAverage
from aggregator.soft_vote import SoftVote
from aggregator.contract.registry import protocol
from scenarios.audits.audit_scenario import audit_variant
from scenarios.settings.sweep import Variant

RUNS = 60_000
TIGHT = {
    "unit": ParameterAverage(),
    "clipped": ParameterAverage(average="clipped"),
    "plain": ParameterAverage(average="plain"),
    "shares": SoftVote(submit="statistic"),
    "probabilities": SoftVote(ballot="probabilities"),
    "gaussian shares": SoftVote(submit="statistic", noise="gaussian"),
}


def audited(chosen, runs=RUNS, delta=0.01):
    kind = "parameter_average" if isinstance(chosen, ParameterAverage) else "soft_vote"
    assert protocol(kind) is type(chosen)
    return audit_variant(Variant(kind, kind, vars(chosen), {}, False), 1.0, delta, runs)


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


def test_an_average_of_unclipped_parameters_is_refuted(monkeypatch):
    chosen = ParameterAverage(average="plain")
    claimed = chosen.prepare(neighbours(chosen)[0]).sensitivity

    def trusting(self, public, question, parties):
        return VectorAnswers(question, parties, norm=2 * question.largest)

    monkeypatch.setattr(ParameterAverage, "collector", trusting)
    monkeypatch.setattr(ParameterAverage, "_sensitivity", lambda self, answers: claimed)
    assert not audited(chosen).result.passed


@pytest.mark.parametrize("name", TIGHT)
def test_the_pair_differs_by_the_charged_sensitivity(name):
    before, after = (TIGHT[name].prepare(side) for side in neighbours(TIGHT[name]))
    assert before.sensitivity == after.sensitivity
    distance = np.linalg.norm(before.value - after.value)
    assert 0.999 * before.sensitivity < distance <= before.sensitivity
