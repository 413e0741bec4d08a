"""Collects one vector per party and keeps only the mean of the clipped vectors."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np

from aggregator.answers.clipped_mean import ClippedMean
from aggregator.answers.roll import Roll
from federation.contract.guarantee import Assumption, Check
from federation.contract.question import Question
from federation.contract.submission import Submission, check_submission

VECTOR_CHECKS = ("answers were checked and clipped on arrival; refused and missing ones count as zero",)

Q = TypeVar("Q", bound=Question)


class VectorAnswers(Generic[Q]):
    """Answers to a question with one real field, whose mean over the declared parties is `mean`.

    `norm` and `normalised` as for `ClippedMean`. Memory does not grow with the parties but for one byte each.
    """

    def __init__(self, question: Q, parties: int, *, norm: float, normalised: bool = False) -> None:
        self.question = question
        self.recipe = (norm, normalised)
        ((self._name, self._field),) = question.fields().items()
        self.mean = ClippedMean(int(np.prod(self._field.shape)), norm, parties, normalised=normalised)
        self._roll = Roll(parties)

    @property
    def answered(self) -> int:
        """Number of parties counted so far."""
        return self._roll.answered

    @property
    def parties(self) -> int:
        """The declared, public number of parties M."""
        return self._roll.parties

    def add(self, submission: Submission) -> dict[int, str]:
        """Add the vectors of a submission; returns the parties refused and why.

        Unknown, repeated, not finite, or beyond the declared range: a refused party counts as missing, that is as
        the zero vector. Raises `InputError` when the submission as a whole is malformed.
        """
        check_submission(self.question, submission)
        vectors = submission.arrays[self._name]
        low, high = self._field.minimum, self._field.maximum
        faults = {f"sent a value that is not a number from {low:.4g} to {high:.4g}": self._field.invalid(vectors)}
        counted, refused = self._roll.admit(submission.parties, faults)
        self.mean.add(vectors.reshape(len(vectors), self.mean.dimension)[counted])
        return refused

    def value(self) -> np.ndarray:
        """The mean vector in the shape of the field."""
        return self.mean.value().reshape(self._field.shape)

    def assumptions(self) -> tuple[Assumption, ...]:
        """Why nothing that a party sends moves the mean further than its sensitivity."""
        how = "scales every answer to" if self.recipe[1] else "shortens every answer to at most"
        return (
            Assumption(
                f"the aggregator {how} norm {self.mean.norm:.9g} and sums whole multiples of a public step; nothing "
                "that a party sends, true to its data or not, counts for more", Check.ENFORCED),
            Assumption(
                "sensitivities use the declared number of parties; an answer that is missing, not finite or out of "
                "range is the zero vector, and a party that fails costs no other party its answer", Check.ENFORCED),
        )  # fmt: skip
