"""Shares of noise at quorums in between: what the sum of any so many honest ones hides, of fewer does not, and spreads.

Six parties of whom four are a quorum, and one may collude: three shares are the whole noise. Whoever sees the sum over
all that answered knows the shares of colluders and takes them off, so what is left is the sum of the honest ones'.
"""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from support.two_class_questions import moment
from support.worst_pairs import audited, mistake_mechanism, pair_of, sum_of

from aggregator.collectors.collectors import Secure, Summed
from aggregator.protocols.mean_operator.session import RowTotals
from aggregator.trial.plan import PublicNumbers
from federation.contract.plugins import Reference
from federation.contract.query import Submission
from federation.contract.randomness import NoiseBits
from federation.contract.trust import TrustTerms
from federation.features.feature_map import Ball
from federation.mechanisms.noise.additive import calibrate, calibrate_laplace
from federation.mechanisms.noise.gaussian import delta as gaussian_delta
from federation.mechanisms.sums import shares
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort

RUNS = 30_000
KINDS = ("laplace", "pure", "gaussian")
CASES = {  # sums of rows under each kind of noise, and sums of vectors
    **{noise: ("mean_operator", {"noise": noise}) for noise in KINDS},
    "shares": ("soft_vote", {}),
    "parameters": ("parameter_average", {"average": "clipped", "clip": 1.0, "noise": "gaussian"}),
}
ENOUGH, PARTIES = 3, 6
each = pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow if case in ("laplace", "pure") else ()) for case in CASES]
)


def pair(case):
    kind, options = CASES[case]
    found = pair_of(kind, {**options, "trust": "secure"}, PublicNumbers(0.01))
    assert found.question.contributors == ENOUGH
    return found


def judged(found, honest, runs=RUNS):
    return audited(sum_of(found, honest), runs)


@each
def test_any_quorum_of_honest_parties_is_enough_and_fewer_are_refuted(case):
    """Two parties are absent, and one tells what it sent."""
    assert 0.5 < judged(pair(case), (0, 2, 5)).lower_bound <= 1.0
    honest, runs = ((0, 5), 2 * RUNS) if case in KINDS else ((0,), RUNS)  # two of three are found out by more runs
    assert not judged(pair(case), honest, runs).passed


@pytest.mark.slow
@each
def test_all_parties_hide_as_much_at_least(case):
    assert judged(pair(case), tuple(range(PARTIES))).passed


@each
def test_noise_that_counts_on_all_parties_is_refuted_where_a_quorum_answers_and_one_colludes(case):
    found = pair(case)
    careless = replace(found, question=replace(found.question, contributors=PARTIES))
    assert not judged(careless, (0, 2, 5)).passed


@pytest.mark.parametrize("case", ["shares", "parameters"])
def test_vectors_with_half_of_the_noise_are_refuted(case, monkeypatch):
    def halved(question):
        return replace(question, ball=Ball(question.ball.norm / 2)).mechanism().additive

    mistake_mechanism(monkeypatch, lambda question: replace(question.mechanism(), additive=halved(question)))
    assert not judged(pair(case), (0, 2, 5)).passed


def test_a_party_that_does_not_cut_its_vector_is_refuted(monkeypatch):
    mistake_mechanism(monkeypatch, lambda question: replace(question.mechanism(), ball=Ball(1e6)))
    assert not judged(pair("parameters"), (0, 2, 5)).passed


@pytest.mark.parametrize(("answered", "contributors"), [(2, 3), (3, 3), (7, 5)])
@pytest.mark.parametrize("noise", KINDS)
def test_the_sum_of_so_many_shares_has_the_law_that_is_claimed(noise, answered, contributors):
    """In units of the noise's scale, where `contributors` shares are the whole."""
    size, seed = 20_000, np.random.default_rng(answered)
    part = answered / contributors
    whole, law = {
        "laplace": (
            calibrate_laplace(l1_sensitivity=3.0, dimension=3, epsilon=1.0),
            lambda: np.subtract(*seed.gamma(part, size=(2, size))),
        ),
        "pure": (
            calibrate("pure", sensitivity=2.0, dimension=3, epsilon=1.0),
            lambda: np.sqrt(2 * seed.gamma(2 * part, size=size)) * seed.normal(size=size),
        ),
        "gaussian": (
            calibrate("gaussian", sensitivity=2.0, dimension=3, epsilon=1.0, delta=1e-6),
            lambda: math.sqrt(part) * seed.normal(size=size),
        ),
    }[noise]
    drawn = sum(shares.draw(whole, contributors, NoiseBits(1, "law", party), size) for party in range(answered))
    scale = whole.parameters["scale"] / whole.step
    for coordinate in range(3):
        assert stats.ks_2samp(drawn[:, coordinate] / scale, law()).pvalue > 1e-4


@pytest.mark.parametrize(("answered", "holds"), [(2, False), (3, True), (5, True)])
def test_gaussian_shares_are_as_private_from_the_quorum_on(answered, holds):
    whole = calibrate("gaussian", sensitivity=2.0, dimension=3, epsilon=1.0, delta=1e-6)
    sigma = math.sqrt(answered * shares.variance(whole, 3) / 3)
    charged = whole.parameters["charged_sensitivity"]
    assert (gaussian_delta(1.0, charged / sigma) <= 1e-6) == holds


@pytest.mark.parametrize("present", [3, 4, 6])
@pytest.mark.parametrize("noise", KINDS)
def test_the_variance_that_is_reported_is_that_of_the_shares_that_came(noise, present):
    draws = 6000
    reference = Reference("support.two_class_parties:Parties", {"broken": list(range(present, PARTIES))})
    cohort = Cohort(reference.to_json(), 0, PARTIES, 3)

    plan = SimpleNamespace(
        run=SimpleNamespace(summation=""),
        public=SimpleNamespace(bags=1, largest_bag=100),
        terms=TrustTerms(PARTIES, 0.5, 0.1),
    )

    def asked(kind, draws):
        question = moment(kind, contributors=3)
        question = replace(question, most=100, draws=draws)
        collected = Secure(question, plan) if question.shared else Summed(question, PARTIES, None)
        sent: Submission = answered(cohort, question)
        assert not collected.add(sent)
        assert collected.answered == present
        return RowTotals(question, collected)

    noisy, exact = asked(noise, draws), asked("off", 1)
    spread = np.square(noisy.moments - exact.moments).mean(axis=0)
    kurtosis = 6.0  # of Laplace noise, the heaviest
    assert np.abs(spread / noisy.noise_variance - 1).max() < 5 * math.sqrt((kurtosis + 2) / draws)
