"""Votes counted as they arrive: memory for N x C counts and one byte of bookkeeping per party, never the votes."""

from __future__ import annotations

import numpy as np

from aggregator.answers.collecting import Answers
from federation.contract.errors import InputError
from federation.contract.query import Submission
from federation.numerics.rows import keep_freed_memory
from federation.queries.votes import BALLOT_PARTS, ProbabilitiesQuestion, VotesQuestion

_PARTIES_PER_BYTE = 255  # so many votes are counted in a byte without overflow
_ROWS = 1 << 16  # rows counted at a time, and
_TILE = 1 << 19  # votes compared at a time, so that what is read again stays in cache


class VoteTally(Answers):
    """Counts of one-hot votes of at most `parties` declared parties on the N rows of one question, C classes.

    Attributes:
        counts: (N, C), how many parties have voted for each class on each row.

    Examples:
        >>> from aggregator.world.fitting import fit
        >>> from federation.queries.votes import Training
        >>> rows = np.eye(2)
        >>> asked = VotesQuestion(Training(fit([], rows), 3, {"name": "logistic"}, trial=0), rows)
        >>> tally = VoteTally(asked, parties=4)
        >>> votes = np.array([[0, 2], [1, 2]], dtype=np.uint8)
        >>> tally.add(Submission("votes", np.array([0, 3]), {"votes": votes}))  # nobody is refused
        {}
        >>> tally.shares().round(2)  # two parties are missing, and count as uniform
        array([[0.42, 0.42, 0.17],
               [0.17, 0.17, 0.67]])
    """

    question: VotesQuestion | ProbabilitiesQuestion
    whole = 1  # what the counts of one party add up to on each row

    def __init__(self, question: VotesQuestion | ProbabilitiesQuestion, parties: int) -> None:
        keep_freed_memory()
        super().__init__(question, parties)
        most = np.iinfo(np.int32).max // self.whole
        shape = len(question.rows), question.training.classes
        # By column, because votes for one class are counted on many rows at a time.
        self.counts = np.zeros(shape, dtype=np.int32 if parties <= most else np.int64, order="F")

    def _faults(self, submission: Submission) -> dict[str, np.ndarray]:
        invalid = self.question.fields()["votes"].invalid(submission.arrays["votes"])
        return {f"voted for a class outside 0..{self.counts.shape[1] - 1}": invalid}

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        rows, classes = self.counts.shape
        for first in range(0, len(parties), _PARTIES_PER_BYTE):
            some = arrays["votes"][first : first + _PARTIES_PER_BYTE]
            for start in range(0, rows, _ROWS):
                counts = self.counts[start : start + _ROWS]
                sums = _votes_by_class(some[:, start : start + _ROWS], classes)
                counts[:, 1:] += sums.T
                counts[:, 0] += len(some) - sums.sum(axis=0, dtype=counts.dtype)

    def shares(self) -> np.ndarray:
        """Soft labels (N, C): the fraction of the declared parties that voted for each class (Hamm, Eq. 12).

        A missing party counts as the uniform vote, so that the sensitivity rests on the declared number alone.
        """
        missing = self.parties - self.answered
        return (self.counts + missing * self.whole / self.counts.shape[1]) / (self.parties * self.whole)

    def majority(self) -> np.ndarray:
        """Majority labels as shares (N, C), one-hot; the smallest index on ties (Hamm, Eq. 6)."""
        if self.answered == 0:
            raise InputError("no party has voted, so there is no majority")
        return np.asarray(np.eye(self.counts.shape[1])[np.argmax(self.counts, axis=1)])


def _votes_by_class(votes: np.ndarray, classes: int) -> np.ndarray:
    """How often each class but the first occurs in the columns of votes (p, n): (C-1, n) bytes, p at most 255."""
    if classes == 2:
        return np.asarray(np.add.reduce(votes, axis=0, dtype=np.uint8)[None])
    sums = np.zeros((classes - 1, votes.shape[1]), dtype=np.uint8)
    step = max(1, _TILE // votes.shape[1])
    for first in range(0, len(votes), step):
        tile = votes[first : first + step]
        for label in range(1, classes):
            # A view as bytes: booleans would be cast before they are added.
            sums[label - 1] += np.add.reduce((tile == label).view(np.uint8), axis=0, dtype=np.uint8)
    return sums


class ProbabilityTally(VoteTally):
    """Sums of votes that are distributions over the classes, in whole parts (`ProbabilitiesQuestion`)."""

    whole = BALLOT_PARTS

    def _faults(self, submission: Submission) -> dict[str, np.ndarray]:
        rows, classes = self.counts.shape
        ballots = submission.arrays["parts"]
        given = ballots.reshape(len(ballots), rows, classes - 1).sum(axis=2, dtype=np.int32)
        return {f"gave classes more than {self.whole} parts of a row": (given > self.whole).any(axis=1)}

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        rows, classes = self.counts.shape
        given = arrays["parts"].sum(axis=0, dtype=self.counts.dtype).reshape(rows, classes - 1)
        self.counts[:, :-1] += given
        self.counts[:, -1] += len(parties) * self.whole - given.sum(axis=1, dtype=self.counts.dtype)
