"""Audits of vectors that parties add up unseen: what a quorum less its colluders hides, and twins with one mistake.

Six parties of whom four are a quorum, and one may collude: three shares are the whole noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from support.worst_pairs import audited, mistake_mechanism, pair_of

from aggregator.contract.worst_case import Seen
from aggregator.ensembles.worst_case import WorstVectors
from aggregator.trial.plan import PublicNumbers
from federation.contract.query import PrivateQuestion, Submission
from federation.features.feature_map import Ball

RUNS = 60_000
ENOUGH, PARTIES = 3, 6
CASES = {
    "shares": ("soft_vote", {}),
    "parameters": ("parameter_average", {"average": "clipped", "clip": 1.0, "noise": "gaussian"}),
}
each = pytest.mark.parametrize("case", CASES)


@dataclass(frozen=True, eq=False)
class SumOf(WorstVectors):
    """Of a sum that is seen over some parties, the first among them."""

    summed: tuple[int, ...] = (0,)

    def parties(self, question: PrivateQuestion, runs: int) -> int:
        """All up to the last of these, who hold the rows of the side by turns."""
        assert [party for party in self.summed if party % len(self.summed) == 0] == [0]
        return max(self.summed) + 1

    def added(self, question) -> int:
        return len(self.summed)

    def seen(self, submissions: Sequence[Submission]) -> Seen:
        [sent] = submissions
        return super().seen([replace(sent, arrays={"vectors": sent.arrays["vectors"][list(self.summed)]})])


def pair(case):
    kind, options = CASES[case]
    found = pair_of(kind, {**options, "trust": "secure"}, PublicNumbers(0.01))
    assert found.question.contributors == ENOUGH
    return found


def summed(found, honest):
    return audited(replace(found, worst=SumOf(**{**vars(found.worst), "summed": honest})), RUNS)


@each
def test_any_quorum_less_its_colluders_is_enough_and_hardly_more(case):
    """Two parties are absent, and one tells what it sent."""
    assert 0.5 < summed(pair(case), (0, 2, 5)).lower_bound <= 1.0


@each
def test_fewer_are_refuted(case):
    assert not summed(pair(case), (0,)).passed


@each
def test_noise_that_counts_on_all_parties_is_refuted(case):
    found = pair(case)
    careless = replace(found, question=replace(found.question, contributors=PARTIES))
    assert not summed(careless, (0, 2, 5)).passed


@each
def test_half_of_the_noise_is_refuted(case, monkeypatch):
    def halved(question):
        return replace(question, ball=Ball(question.ball.norm / 2)).mechanism().additive

    mistake_mechanism(monkeypatch, lambda question: replace(question.mechanism(), additive=halved(question)))
    assert not summed(pair(case), (0, 2, 5)).passed


def test_a_party_that_does_not_cut_its_vector_is_refuted(monkeypatch):
    mistake_mechanism(monkeypatch, lambda question: replace(question.mechanism(), ball=Ball(1e6)))
    assert not summed(pair("parameters"), (0, 2, 5)).passed
