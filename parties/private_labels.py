"""Answers `private_labels` and `label_sums`: rows with labels made private, one by one or in one sum X'y."""

from __future__ import annotations

import numpy as np

from federation.bag_releases import OFF
from federation.label_messages import LabelSumsQuestion, PrivateLabelsQuestion
from federation.label_releases import guarantee_of, labels_mechanism, sums_mechanism
from federation.messages import Submission
from federation.randomness import NoiseBits
from parties.holdings import Cohort
from parties.labelled import labelled
from parties.noising import noised, require_deployable, require_public_features


def answer(cohort: Cohort, question: PrivateLabelsQuestion) -> Submission:
    """All rows of every party with a private label each; zeros where there is no row.

    A party whose data fails is named among the failures, and costs no other party. Raises `InputError` for a
    question that only a simulation may ask, and at a deployed node whose features are not declared public.
    """
    require_public_features(cohort)
    guarantee = guarantee_of(question)
    require_deployable(cohort, question.noising, guarantee)
    mechanism = None if question.noising.mechanism["noise"] == OFF else labels_mechanism(question)

    def act(party: int, bits: NoiseBits) -> dict[str, np.ndarray]:
        rows, labels = labelled(cohort, party, question.rows)
        fields, size = question.fields(), len(rows)
        sent = {name: np.zeros(declared.shape) for name, declared in fields.items()}
        sent["size"], sent["rows"][:size] = np.asarray(float(size)), rows
        for draw in range(question.noising.draws):
            sent["labels"][draw, :size] = labels if mechanism is None else mechanism.release(labels, bits)
        return sent

    return noised(cohort, question, act, guarantee)


def answer_in_sum(cohort: Cohort, question: LabelSumsQuestion) -> Submission:
    """X'X and the noisy X'y of every party, its noise shaped by its own public rows; failures as in `answer`.

    Raises `InputError` as `answer`.
    """
    require_public_features(cohort)
    guarantee = guarantee_of(question)
    require_deployable(cohort, question.noising, guarantee)

    def act(party: int, bits: NoiseBits) -> dict[str, np.ndarray]:
        draws = question.noising.draws
        rows, labels = labelled(cohort, party, question.rows)
        if question.noising.mechanism["noise"] == OFF:
            moment = np.tile(rows.T @ labels, (draws, 1))
        else:
            moment = sums_mechanism(question, rows).release(rows, labels, bits, draws)
        return {"size": np.asarray(float(len(rows))), "gram": rows.T @ rows, "moment": moment}

    return noised(cohort, question, act, guarantee)
