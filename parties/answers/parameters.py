"""Answers `parameters`: each party's regularised minimiser over all declared classes (Pathak et al. 2010)."""

from __future__ import annotations

import numpy as np

from federation.contract.submission import Submission
from federation.numerics.contrasts import contrasts
from federation.questions.votes import ParametersQuestion
from parties.holdings.cohort import Cohort
from parties.holdings.isolation import jointly
from parties.training.batched import attainable_tolerances, fit_many
from parties.training.loading import Loaded, load


def answer(cohort: Cohort, question: ParametersQuestion) -> Submission:
    """The minimiser of every party, of shape (1, d) or as contrasts (C-1, d); a trusted-only submission.

    A class that a party has not seen counts like any other: the risk is over all declared classes. A party whose
    data or training fails is named among the failures, and costs no other party.
    """
    loaded, failures = load(cohort, question.training)

    def fit(positions: np.ndarray) -> np.ndarray:
        chosen = np.zeros(len(loaded.parties), dtype=bool)
        chosen[positions] = True
        return _minimisers(question, loaded.part(chosen))

    fitted, failed = jointly(cohort, loaded.parties, fit)
    ((name, declared),) = question.fields().items()
    vectors = [vectors.reshape(-1, *declared.shape) for _, vectors in fitted]
    answered = np.concatenate([np.empty(0, np.intp), *(positions for positions, _ in fitted)])
    arrays = {name: np.concatenate([np.empty((0, *declared.shape)), *vectors])}
    return Submission(question.kind, loaded.parties[answered], arrays, None, failures | failed)


def _minimisers(question: ParametersQuestion, loaded: Loaded) -> np.ndarray:
    """Minimisers (P, d) of two classes, contrasts (P, C-1, d) of more; each party's bits are its own.

    The tolerance is the question's, or what double precision can certify where a party's rows are long.
    """
    training = question.training
    regularisation = training.classifier["parameters"]["regularisation"]
    tolerances = attainable_tolerances(question.gradient_tolerance, loaded.rows, loaded.counts, regularisation)
    weights = fit_many(loaded.rows, loaded.labels, loaded.counts, training.classes, regularisation, tolerances)
    return weights if training.classes == 2 else contrasts(training.classes).T @ weights
