"""What a party adds to a sum of vectors: the trusted answer in the ball, computed once, with a share of the noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.questions import QUESTIONS

from aggregator.trial.feature_fitting import fit
from federation.contract.plugins import Reference
from federation.contract.query import ReleaseId, check_submission
from federation.contract.randomness import NoiseBits
from federation.features.feature_map import Ball
from federation.queries.votes import VectorNoise
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort, DroppedOut, Holdings
from parties.responses import vectors as parameters
from parties.responses import vectors as vector_sums
from parties.responses import votes as statistic

MAP = fit(["standardise", "unit_norm"], np.random.default_rng(0).normal(size=(60, 4)))
KINDS = {"statistic_sum": statistic, "parameter_sum": parameters}


class Unwilling:
    """Party 1 stays away, party 2 holds nothing; the others hold classes of their own."""

    def holdings(self, party):
        if party == 1:
            raise DroppedOut
        rows = np.random.default_rng(party).normal(size=(0 if party == 2 else 6, 4))
        return Holdings(party, rows, np.arange(len(rows)) % 3)


def question(kind, noise="pure", **changes):
    found = QUESTIONS[kind]
    training = replace(found.asked.training, feature_map=MAP)
    rows = np.random.default_rng(1).normal(size=(30, 4))
    parts = {"rows": rows, "coordinates": rows[:, :2]} if kind == "statistic_sum" else {}
    asked = replace(found.asked, training=training, **parts)
    known = {"noise": VectorNoise(noise, 1.0, 1e-6 if noise == "gaussian" else 0.0), "seeded": True, **changes}
    return replace(found, asked=asked, **known)


def exact(kind, asked):
    """The trusted answers (P, D) by party."""
    found = KINDS[kind].answer(cohort(), asked)
    [array] = found.arrays.values()
    return array.reshape(len(array), -1)[np.argsort(found.parties)]


def cohort(count=5, provider="support.synthetic:Parties"):
    return Cohort(Reference(provider).to_json(), 0, count, seed=1)


@pytest.fixture(autouse=True)
def fresh():
    vector_sums._latest.clear()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ball", [Ball(0.1), Ball(1.0, scaled=True)])
def test_without_noise_it_is_the_trusted_answer_in_the_ball(kind, ball):
    asked = question(kind, "off", ball=ball, draws=2)
    found = answered(cohort(), asked)
    check_submission(asked, found)
    expected = ball.of(exact(kind, asked.asked))
    for draw in range(2):
        np.testing.assert_array_equal(found.arrays["vectors"][:, draw], expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", ["pure", "gaussian"])
def test_with_noise_it_is_that_and_the_partys_own_share(kind, noise):
    asked = question(kind, noise, draws=3)
    found = answered(cohort(), asked)
    assert found.guarantee is None  # of one share nothing is promised
    for party, vector in enumerate(exact(kind, asked.asked)):
        own = asked.mechanism().release(vector, NoiseBits(1, asked.release.key, party), 3)
        np.testing.assert_array_equal(found.arrays["vectors"][party], own)
    steps = found.arrays["vectors"] / asked.steps["vectors"]
    assert (steps == np.rint(steps)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_questions_of_equal_training_are_answered_by_vectors_that_are_computed_once(kind, monkeypatch):
    calls, module = [], KINDS[kind]
    computed = module.answer

    def counted(node, asked):
        calls.append(node.first)
        return computed(node, asked)

    monkeypatch.setattr(module, "answer", counted)
    first = question(kind)
    others = [replace(first, noise=VectorNoise("pure", float(e)), release=ReleaseId(f"{e}")) for e in (2, 3)]
    for asked in (first, *others):
        answered(cohort(), asked)
    assert calls == [0]
    between = replace(first.asked, training=replace(first.asked.training, trial=1))
    answered(cohort(), replace(first, asked=between))
    assert len(calls) == 2
    answered(replace(cohort(), first=5), first)
    assert len(calls) == 3
    assert len(vector_sums._latest) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_parties_that_cannot_answer_say_why_and_cost_no_other(kind):
    found = answered(cohort(4, f"{__name__}:Unwilling"), question(kind))
    assert found.parties.tolist() == [0, 3]
    assert found.failures[1] == "dropped out"
    assert found.failures[2].startswith("InputError: party 2 holds no rows")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_number_is_the_zero_vector(kind, monkeypatch):
    asked = question(kind, "off")
    broken = KINDS[kind].answer(cohort(), asked.asked)
    [array] = broken.arrays.values()
    array[broken.parties == 2, 0, 0] = np.inf
    monkeypatch.setattr(KINDS[kind], "answer", lambda node, asked: broken)
    vectors = answered(cohort(), asked).arrays["vectors"]
    assert np.isfinite(vectors).all()
    assert not vectors[2].any()
    assert vectors[1].any()
