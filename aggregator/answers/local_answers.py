"""Collects answers that parties made private themselves, where all that a party says is of the declared form."""

from __future__ import annotations

import numpy as np

from aggregator.answers.collecting import Answers
from federation.contract.guarantee import Guarantee
from federation.contract.query import Question, Submission

CHECKED = "answers were checked on arrival; those out of form were left out"  # as a ledger puts it
_REFUSED = "answer refused: values outside the declared range"
_UNPROMISED = "answer refused: it lacks the guarantee asked for"
_PROMISED = ("epsilon", "delta", "unit", "adjacency", "mechanism")


class CheckedAnswers(Answers):
    """Answers of K parties to one question; `promise` is the guarantee that each must carry, None for those without."""

    def __init__(self, question: Question, parties: int, promise: Guarantee | None) -> None:
        super().__init__(question, parties)
        self._promise, self._fields = promise, question.fields()

    def _faults(self, submission: Submission) -> dict[str, np.ndarray]:
        unpromised = self._promise is not None and not _same(submission.guarantee, self._promise)
        return {_UNPROMISED: np.full(len(submission.parties), unpromised), _REFUSED: self._impossible(submission)}

    def _impossible(self, submission: Submission) -> np.ndarray:
        """Which parties' answers are out of range, or cannot be those of honest parties, (P,)."""
        fine = np.ones(len(submission.parties), dtype=bool)
        for name, declared in self._fields.items():
            fine &= ~declared.invalid(submission.arrays[name])
        fine[fine] = self._well_formed({name: array[fine] for name, array in submission.arrays.items()})
        return ~fine

    def _well_formed(self, arrays: dict[str, np.ndarray]) -> np.ndarray:
        """Which parties' answers, in range as they are, can be those of honest parties."""
        return np.ones(len(next(iter(arrays.values()))), dtype=bool)


class LocalAnswers(CheckedAnswers):
    """Keeps every answer by itself."""

    def __init__(self, question: Question, parties: int, promise: Guarantee | None) -> None:
        super().__init__(question, parties, promise)
        self._arrays = {name: np.zeros((parties, *field.shape), field.dtype) for name, field in self._fields.items()}

    def array(self, name: str) -> np.ndarray:
        """One field with the party axis (K, ...); zeros where a party has not answered."""
        return self._arrays[name]

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        for name, array in self._arrays.items():
            array[parties] = arrays[name]


class SummedAnswers(CheckedAnswers):
    """Keeps the sum of all answers only, however many parties there are.

    Entries are whole multiples of a step that is a power of two: their sum is exact, and the same in any order.
    """

    def __init__(self, question: Question, parties: int, promise: Guarantee | None) -> None:
        super().__init__(question, parties, promise)
        self._totals = {name: np.zeros(field.shape) for name, field in self._fields.items()}

    def total(self, name: str) -> np.ndarray:
        """One field, summed over the parties that answered."""
        return self._totals[name]

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        for name, total in self._totals.items():
            total += arrays[name].sum(axis=0)


def _same(guarantee: Guarantee | None, promise: Guarantee) -> bool:
    return guarantee is not None and all(getattr(guarantee, name) == getattr(promise, name) for name in _PROMISED)
