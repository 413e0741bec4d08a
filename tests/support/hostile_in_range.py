"""Parties of two classes of which some answer the opposite of all others, as far as an answer is accepted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from support.two_class_parties import Parties

from federation.contract.query import Question, Submission
from federation.queries.marginals import MarginalsQuestion
from federation.queries.row_sums import MomentQuestion

_DEVIATIONS = 39.0


class Opposed(Parties):
    """The parties `hostile` send the negative of their own answer, stretched to 39 deviations of noise in an entry."""

    def __init__(self, hostile: list[int]) -> None:
        super().__init__()
        self._hostile = hostile

    def sent(self, question: Question, submission: Submission) -> Submission:
        """The answers with those of the hostile parties replaced."""
        hostile = np.isin(submission.parties, self._hostile)
        arrays = {name: array.copy() for name, array in submission.arrays.items()}
        if isinstance(question, MomentQuestion):
            reach = _DEVIATIONS * question.mechanism().variance() ** 0.5
            if question.label_noise() is not None:
                reach = min(reach, arrays["size"].min() * question.response().reach)
            arrays["sums"][hostile] = _stretched(arrays["sums"][hostile], reach)
        elif isinstance(question, MarginalsQuestion) and "errors" in arrays:
            surplus = _stretched(2 * arrays["errors"] - arrays["rows"], _DEVIATIONS * question.mechanism().deviation)
            arrays["errors"][hostile] = np.rint((arrays["rows"] + surplus) / 2)[hostile]
        return replace(submission, arrays=arrays)


def _stretched(answers: np.ndarray, reach: float) -> np.ndarray:
    """Of the opposite sign, with the largest entry of each this far."""
    return -answers * (reach / np.abs(answers).max(axis=-1, keepdims=True))
