"""Parties with real labels of which some send values that are extreme, or do not fit each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from support.linear_labels import Parties

from federation.contract.query import Question, Submission


class Extreme(Parties):
    """Of the parties `hostile` every entry of the answers' field `name` is `factor` times the honest one, plus `more`.

    Where `signed`, signs alternate along the last axis.
    """

    def __init__(self, hostile: list[int], name: str, factor: float, more: float, signed: bool = False) -> None:
        super().__init__()
        self._hostile, self._name, self._factor, self._more, self._signed = hostile, name, factor, more, signed

    def sent(self, question: Question, submission: Submission) -> Submission:
        """The answers with those of the hostile parties replaced."""
        if self._name not in submission.arrays:
            return submission
        hostile = np.isin(submission.parties, self._hostile)
        array = submission.arrays[self._name].copy()
        signs = np.where(np.arange(array.shape[-1]) % 2, -1.0, 1.0) if self._signed and array.ndim > 1 else 1.0
        array[hostile] = (self._factor * array + self._more * signs)[hostile]
        return replace(submission, arrays={**submission.arrays, self._name: array})
