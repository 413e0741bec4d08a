"""Parties with bags of which some send the most extreme values that are still of the declared form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from support.bagged import Parties

from federation.contract.query import Question, Submission


class Extreme(Parties):
    """Of the parties `hostile` the answers' field `name` is `largest` with alternating signs, and all else honest.

    Counts still sum to their bag's size, which may be `largest` itself.
    """

    def __init__(self, hostile: list[int], name: str, largest: float) -> None:
        super().__init__()
        self._hostile, self._name, self._largest = hostile, name, largest

    def sent(self, question: Question, submission: Submission) -> Submission:
        """The answers with those of the hostile parties replaced."""
        hostile = np.isin(submission.parties, self._hostile)
        arrays = {name: array.copy() for name, array in submission.arrays.items()}
        sizes = arrays["sizes"][hostile]
        if self._name == "sizes":
            arrays["sizes"][hostile] = self._largest
            if "counts" in arrays:
                arrays["counts"][hostile] *= (self._largest / sizes)[:, None, :, None]
        elif self._name in arrays:
            array = arrays[self._name]
            array[hostile] = self._largest * np.where(np.arange(array.shape[-1]) % 2, -1.0, 1.0)
            if self._name == "counts":
                array[hostile, ..., -1] = 0
                array[hostile, ..., -1] = sizes[:, None] - array[hostile].sum(axis=-1)
        return replace(submission, arrays=arrays)
