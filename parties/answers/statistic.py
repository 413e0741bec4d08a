"""Answers `statistic`: each party's own share of the ensemble's statistic, computed from its votes, which stay home."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from federation.contract.submission import Submission
from federation.numerics.contrasts import contrasts
from federation.questions.votes import StatisticQuestion
from parties.answers.probabilities import row_tiles
from parties.holdings.cohort import Cohort
from parties.holdings.groups import Group
from parties.training.training import answered_by_groups


def answer(cohort: Cohort, question: StatisticQuestion) -> Submission:
    """z = B'V'Y/N of every party, shape (C-1, r), V its votes or probabilities; a trusted-only submission."""
    shape = question.fields()["statistic"].shape

    def share(group: Group) -> dict[str, np.ndarray]:
        sums = np.zeros((len(group.parties), *shape))
        for tile, votes in _ballots(group, question):
            # One product per party and tile: its bits must not depend on who is computed with it.
            for total, vote in zip(sums, votes, strict=True):
                total += vote.T @ question.coordinates[tile]
        return {"statistic": sums / len(question.rows)}

    return answered_by_groups(cohort, question, share)


def _ballots(group: Group, question: StatisticQuestion) -> Iterator[tuple[slice, Iterator[np.ndarray]]]:
    """Rows with VB (n, C-1) of one party after another: of one-hot votes V all at once, of probabilities in tiles."""
    basis = contrasts(question.training.classes)
    if question.ballot == "labels":
        yield slice(None), (basis[codes] for codes in group.votes(question.rows))
        return
    for tile in row_tiles(len(question.rows), question.training.classes):
        yield tile, (given @ basis for given in group.probabilities(question.rows[tile]))
