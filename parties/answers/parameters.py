"""Answers `parameters`: each party's regularised minimiser over all declared classes (Pathak et al. 2010)."""

from __future__ import annotations

import numpy as np

from federation.contract.errors import InputError
from federation.contract.query import Submission
from federation.numerics.rows import contrasts
from federation.queries.votes import ParametersQuestion
from parties.holdings.cohort import Cohort
from parties.holdings.groups import stacked
from parties.holdings.isolation import jointly
from parties.training.classifiers import DEFAULT_REGULARISATION, LOGISTIC, require_form
from parties.training.linear import fit
from parties.training.loading import load


def answer(cohort: Cohort, question: ParametersQuestion) -> Submission:
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
