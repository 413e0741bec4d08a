"""What every collector of answers is: it knows which of the declared parties have answered, and counts each once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from federation.contract.query import Question, Submission, check_submission


class Answers(ABC):
    """Answers of the declared parties 0..K-1 to one question, K = `parties`; one byte for each party.

    Parties that did not answer well count as missing; a refused one may still answer well. A subclass says which
    answers are malformed and what it keeps of the others.
    """

    recipe: tuple[Any, ...] = ()

    def __init__(self, question: Question, parties: int) -> None:
        self.question, self.parties = question, parties
        self._answered = np.zeros(parties, dtype=bool)

    @property
    def answered(self) -> int:
        """Number of parties whose answer was accepted so far."""
        return int(self._answered.sum())

    @property
    def present(self) -> np.ndarray:
        """Ids of the parties whose answer was accepted so far, ascending."""
        return np.flatnonzero(self._answered)

    def add(self, submission: Submission) -> dict[int, str]:
        """Take a submission in; returns the first cause of each refusal by party.

        Raises `InputError`, and takes nothing in, when the submission as a whole is malformed.
        """
        check_submission(self.question, submission)
        parties = submission.parties
        unknown = parties >= self.parties
        known = np.where(unknown, 0, parties)
        refused = {
            f"not one of the {self.parties} declared parties": unknown,
            "answered twice; only its first answer counts": ~unknown & self._answered[known],
            **self._faults(submission),
        }
        counted = ~np.logical_or.reduce(list(refused.values()))
        chosen = slice(None) if counted.all() else counted  # a slice copies nothing
        self._keep(parties[chosen], {name: array[chosen] for name, array in submission.arrays.items()})
        self._answered[parties[counted]] = True  # once they are kept: what cannot be kept must not make a quorum
        return {int(p): cause for cause, bad in reversed(refused.items()) for p in parties[bad]}

    @abstractmethod
    def _faults(self, submission: Submission) -> Mapping[str, np.ndarray]:
        """Which answers are malformed, boolean (P,), by cause in words."""

    @abstractmethod
    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        """Take in the accepted answers of parties (P,)."""
