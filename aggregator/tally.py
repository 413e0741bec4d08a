"""Votes counted as they arrive: memory for N x C counts and one bit of bookkeeping per party, never the votes."""

from __future__ import annotations

import numpy as np

from federation.errors import InputError
from federation.messages import Submission, VotesQuestion, check_submission


class VoteTally:
    """Counts of one-hot votes of at most `parties` declared parties on the rows of one question."""

    def __init__(self, question: VotesQuestion, parties: int) -> None:
        self.question = question
        self.parties = parties
        self.counts = np.zeros((len(question.rows), question.training.classes), dtype=np.int32)
        self._answered = np.zeros(parties, dtype=bool)

    @property
    def answered(self) -> int:
        """Number of parties counted so far."""
        return int(self._answered.sum())

    def add(self, submission: Submission) -> dict[int, str]:
        """Count a submission; returns the parties refused and why: malformed, unknown, or counted before.

        A refused party counts as missing. Raises `InputError` when the submission as a whole is malformed.
        """
        check_submission(self.question, submission)
        parties, votes = submission.parties, submission.arrays["votes"]
        classes = self.counts.shape[1]
        unknown = parties >= self.parties
        known = np.where(unknown, 0, parties)
        refused = {
            f"not one of the {self.parties} declared parties": unknown,
            "answered twice; only its first answer counts": ~unknown & self._answered[known],
            f"voted for a class outside 0..{classes - 1}": self.question.fields()["votes"].invalid(votes),
        }
        rejected = np.logical_or.reduce(list(refused.values()))
        if rejected.any():
            parties, votes = parties[~rejected], votes[~rejected]
        for label in range(classes):
            self.counts[:, label] += (votes == label).sum(axis=0, dtype=np.int32)
        self._answered[parties] = True
        return {int(party): cause for cause, bad in reversed(refused.items()) for party in submission.parties[bad]}

    def shares(self) -> np.ndarray:
        """Soft labels (N, C): the fraction of the declared parties that voted for each class (Hamm, Eq. 12).

        A missing party counts as the uniform vote, so that the sensitivity rests on the declared number alone.
        """
        missing = self.parties - self.answered
        return (self.counts + missing / self.counts.shape[1]) / self.parties

    def majority(self) -> np.ndarray:
        """Majority labels as shares (N, C), one-hot; the smallest index on ties (Hamm, Eq. 6)."""
        if self.answered == 0:
            raise InputError("no party has voted, so there is no majority")
        return np.eye(self.counts.shape[1])[np.argmax(self.counts, axis=1)]
