"""Answers `statistic_sum` and `parameter_sum`: a party's vector, with its share of the noise that hides it in the sum.

A vector is computed as it would be for a trusted aggregator, and leaves the party with noise only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar

import numpy as np

from federation.contract.query import OFF, Submission
from federation.contract.randomness import NoiseBits
from federation.engines.codec import question_digest
from federation.queries.votes import ClassifierQuestion, ParameterSumQuestion, StatisticSumQuestion, VectorSumQuestion
from parties.answers import parameters, statistic
from parties.guard.answering import Arrays, NoisyAct
from parties.holdings.cohort import Cohort
from parties.holdings.isolation import FailedBefore
from parties.training.training import world_key

Q = TypeVar("Q", bound=ClassifierQuestion)

# By question, of the latest cohort and training only: a grid puts all questions of a world to one cohort in a row.
_latest: dict[str, dict[str, Submission]] = {}


def answer_statistic(cohort: Cohort, question: StatisticSumQuestion) -> NoisyAct:
    """Every party's share of the ensemble's statistic, in the ball, with its share of the noise."""
    return _noisy(cohort, question, lambda: _once(cohort, question.asked, statistic.answer))


def answer_parameters(cohort: Cohort, question: ParameterSumQuestion) -> NoisyAct:
    """The parameters of every party's classifier, in the ball, with its share of the noise."""
    return _noisy(cohort, question, lambda: _once(cohort, question.asked, parameters.answer))


def _noisy(cohort: Cohort, question: VectorSumQuestion, answered: Callable[[], Submission]) -> NoisyAct:
    exact = cache(answered)

    def act(party: int, bits: NoiseBits) -> Arrays:
        vector = _vector(exact(), party)
        if question.noise.kind == OFF:
            return {"vectors": np.repeat(question.ball.of(vector[None]), question.draws, axis=0)}
        return {"vectors": question.mechanism().release(vector, bits, question.draws)}

    return act


def _once(cohort: Cohort, asked: Q, answer: Callable[[Cohort, Q], Submission]) -> Submission:
    """The exact answers of all parties of a cohort, or those that an earlier question about them has had computed.

    Questions that differ in their noise only are so answered by one classifier, trained and applied once.
    """
    world, digest = f"{cohort.first}+{cohort.count}|{world_key(cohort, asked.training)}", question_digest(asked)
    if world not in _latest:
        _latest.clear()
        _latest[world] = {}
    if digest not in _latest[world]:
        _latest[world][digest] = answer(cohort, asked)
    return _latest[world][digest]


def _vector(answers: Submission, party: int) -> np.ndarray:
    """That of one party (D,); zero in place of what is no number, which tells nobody that there was none.

    Raises `FailedBefore` for a party that has none.
    """
    if party in answers.failures:
        raise FailedBefore(answers.failures[party])
    [array] = answers.arrays.values()
    vector = array[answers.parties == party].reshape(-1)
    return vector if np.isfinite(vector).all() else np.zeros_like(vector)
