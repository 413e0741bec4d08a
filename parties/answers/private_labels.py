"""Answers `private_labels` and `label_sums`: rows with labels made private, one by one or in one sum X'y."""

from __future__ import annotations

import numpy as np

from federation.contract.query import OFF
from federation.contract.randomness import NoiseBits
from federation.queries.labels import LabelSumsQuestion, PrivateLabelsQuestion
from parties.answers.rows import labelled
from parties.guard.answering import Arrays, NoisyAct
from parties.holdings.cohort import Cohort


def answer(cohort: Cohort, question: PrivateLabelsQuestion) -> NoisyAct:
    """All rows of every party with a private label each; zeros where there is no row."""
    mechanism = None if question.noise.kind == OFF else question.mechanism()

    def act(party: int, bits: NoiseBits) -> Arrays:
        rows, labels = labelled(cohort, party, question.rows)
        fields, size = question.fields(), len(rows)
        sent = {name: np.zeros(declared.shape) for name, declared in fields.items()}
        sent["size"], sent["rows"][:size] = np.asarray(float(size)), rows
        for draw in range(question.draws):
            sent["labels"][draw, :size] = labels if mechanism is None else mechanism.release(labels, bits)
        return sent

    return act


def answer_in_sum(cohort: Cohort, question: LabelSumsQuestion) -> NoisyAct:
    """X'X and noisy X'y of every party, whose noise is shaped by its own public rows, and what is known of it."""

    def act(party: int, bits: NoiseBits) -> Arrays:
        rows, labels = labelled(cohort, party, question.rows)
        sent = {"size": np.asarray(float(len(rows))), "gram": rows.T @ rows}
        if question.noise.kind == OFF:
            return {**sent, "moment": np.tile(rows.T @ labels, (question.draws, 1))}
        mechanism = question.mechanism(rows)
        moment = mechanism.release(rows, labels, bits, question.draws)
        return {**sent, "moment": moment, "row_sum": rows.sum(axis=0), "covariance": mechanism.covariance()}

    return act
