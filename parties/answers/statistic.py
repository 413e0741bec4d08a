"""Answers `statistic`: each party's own share of the ensemble's statistic, computed from its votes, which stay home."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from federation.contract.submission import Submission
from federation.numerics.contrasts import contrasts
from federation.questions.votes import StatisticQuestion
from parties.answers.probabilities import row_tiles
from parties.holdings.cohort import Cohort
from parties.holdings.groups import Group, asked
from parties.training.training import trained


def answer(cohort: Cohort, question: StatisticQuestion) -> Submission:
    """z = B'V'Y/N of every party, shape (C-1, r), V its votes or probabilities; a trusted-only submission.

    A party whose data, training or prediction fails is named among the failures, and costs no other party.
    """
    outcome = trained(cohort, question.training)
    ((name, declared),) = question.fields().items()
    ballots = _probabilities if question.ballot == "probabilities" else _labels

    def share(group: Group) -> np.ndarray:
        sums = np.zeros((len(group.parties), *declared.shape))
        for tile, votes in ballots(group, question):
            # One product per party and tile: its bits must not depend on who is computed with it.
            for total, vote in zip(sums, votes, strict=True):
                total += vote.T @ question.coordinates[tile]
        return sums / len(question.rows)

    shares, failures = asked(cohort, outcome.groups, share)
    parties = np.concatenate([np.empty(0, np.int64), *(group.parties for group, _ in shares)])
    arrays = {name: np.concatenate([np.empty((0, *declared.shape)), *(found for _, found in shares)])}
    return Submission(question.kind, parties, arrays, None, outcome.failures | failures)


Ballots = Iterator[tuple[slice, Iterator[np.ndarray]]]


def _labels(group: Group, question: StatisticQuestion) -> Ballots:
    """All rows at once, with VB (N, C-1) of one party after another, V one-hot votes."""
    basis = contrasts(question.training.classes)
    votes = group.votes(question.rows)
    yield slice(None), (basis[codes] for codes in votes)


def _probabilities(group: Group, question: StatisticQuestion) -> Ballots:
    """Tiles of rows, with VB (n, C-1) of one party after another, V probabilities."""
    basis = contrasts(question.training.classes)
    for tile in row_tiles(len(question.rows), question.training.classes):
        yield tile, (given @ basis for given in group.probabilities(question.rows[tile]))
