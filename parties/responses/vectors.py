"""Responses with one vector per party: the parameters of its classifier, or a vector with a share of the noise.

The kinds of queries are

- `parameters`: each party's regularised minimiser over all declared classes (Pathak et al. 2010);
- `statistic_sum` and `parameter_sum`: a party's vector, with its share of the noise that hides it in the sum. The party
  computes its vector as for a trusted aggregator; the vector leaves the party with noise only.
"""

from collections.abc import Callable
from functools import cache
from typing import TypeVar

import numpy as np

from federation.contract.errors import InputError
from federation.contract.query import OFF, Submission
from federation.contract.randomness import NoiseBits
from federation.engines.codec import question_digest
from federation.numerics.rows import contrasts
from federation.queries.votes import (
    ClassifierQuestion,
    ParametersQuestion,
    ParameterSumQuestion,
    StatisticSumQuestion,
    VectorSumQuestion,
)
from parties.guard.answering import Arrays, NoisyAct
from parties.party_data.cohort import Cohort
from parties.party_data.isolation import FailedBefore, jointly, stacked
from parties.responses import votes as statistic
from parties.training.classifiers import DEFAULT_REGULARISATION, LOGISTIC, require_form
from parties.training.linear import fit
from parties.training.training import load, world_key

Q = TypeVar("Q", bound=ClassifierQuestion)

# By question, of the latest cohort and training only: a grid puts all questions of a world to one cohort in a row.
_latest: dict[str, dict[str, Submission]] = {}


def respond_statistic_sum(cohort: Cohort, question: StatisticSumQuestion) -> NoisyAct:
    """Every party's share of the ensemble's statistic, in the ball, with its share of the noise."""
    return _noisy(cohort, question, lambda: _once(cohort, question.asked, statistic.respond_statistic))


def respond_parameter_sum(cohort: Cohort, question: ParameterSumQuestion) -> NoisyAct:
    """The parameters of every party's classifier, in the ball, with its share of the noise."""
    return _noisy(cohort, question, lambda: _once(cohort, question.asked, respond_parameters))


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
    """Return the vector of one party (D,), or zeros where it is not finite: that stays hidden.

    Raises `FailedBefore` for a party that has none.
    """
    if party in answers.failures:
        raise FailedBefore(answers.failures[party])
    [array] = answers.arrays.values()
    vector = array[answers.parties == party].reshape(-1)
    return vector if np.isfinite(vector).all() else np.zeros_like(vector)


def respond_parameters(cohort: Cohort, question: ParametersQuestion) -> Submission:
    """The minimiser of every party, of shape (1, d) or as contrasts (C-1, d); a trusted-only submission.

    A class that a party has not seen counts like any other: the risk is over all declared classes. A party whose
    data or training fails is named among the failures, and costs no other party.
    """
    training = question.training
    require_form(training.classifier)
    if training.classifier["name"] != LOGISTIC:
        raise InputError(f"only a logistic regression has parameters, got {training.classifier['name']!r:.100}")
    loaded, failures = load(cohort, training)

    def minimisers(positions: np.ndarray) -> np.ndarray:
        regularisation = training.classifier["parameters"].get("regularisation", DEFAULT_REGULARISATION)
        weights = fit(loaded.part(positions), training.classes, regularisation, question.gradient_tolerance)
        return weights if training.classes == 2 else contrasts(training.classes).T @ weights

    fitted, failed = jointly(cohort, loaded.parties, minimisers)
    parts = [(loaded.parties[positions], {"parameters": found}) for positions, found in fitted]
    return stacked(question, parts, failures | failed)
