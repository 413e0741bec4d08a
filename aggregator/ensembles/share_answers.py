"""The ensemble's statistic from the parties' own shares of it: the aggregator never sees a vote."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from aggregator.answers.vector_answers import VECTOR_CHECKS, VectorAnswers
from aggregator.contract.perturbable import Decoder, Perturbable
from aggregator.contract.premises import ATTENDANCE, COUNTED_ONCE
from aggregator.ensembles.decoding import PUBLIC_ROWS
from aggregator.world.public_rows import Coordinates, PublicRows
from federation.features.feature_map import Ball
from federation.queries.votes import StatisticQuestion, Training

Ballot = Literal["labels", "probabilities"]
Share = Literal["both", "probabilities", "scores", "raw"]
_ROUNDING = 1 + 1e-9  # what a party's double precision may add to an entry


def share_norm(coordinates: Coordinates, classes: int) -> float:
    """The largest norm of B'V'Y/N over all votes V (N, C): sqrt(1 - 1/C) times the reach of the rows Y.

    B' of a one-hot or probability row has norm at most sqrt(1 - 1/C), since B B' = I - 11'/C.
    """
    return math.sqrt(1 - 1 / classes) * coordinates.reach


def share_question(
    training: Training, public: PublicRows, coordinates: Coordinates, ballot: Ballot, share: Share
) -> StatisticQuestion:
    """Ask each party for its own share of the statistic in these coordinates.

    Shares of norm 1 come from classifiers over all declared classes: one that has seen a single class would vote for
    that everywhere, and many of them are louder than what the others know.
    """
    if share == "raw":
        largest = share_norm(coordinates, training.classes) * _ROUNDING
        return StatisticQuestion(training, public.rows, coordinates.rows, largest, ballot)
    training = replace(training, over="declared")
    return StatisticQuestion(training, public.rows, coordinates.rows, _ROUNDING, "probabilities", share)


def share_ball(coordinates: Coordinates, question: StatisticQuestion) -> Ball:
    """Where the answers to a question are: shares of norm 1, or raw ones of votes."""
    if question.share == "raw":
        return Ball(share_norm(coordinates, question.training.classes))
    return Ball(1.0, scaled=True)


class ShareAnswers(VectorAnswers[StatisticQuestion]):
    """Collects shares of the statistic; a missing party's is zero, which is that of the uniform vote."""

    def __init__(self, coordinates: Coordinates, question: StatisticQuestion, parties: int) -> None:
        super().__init__(question, parties, share_ball(coordinates, question))
        self.coordinates = coordinates

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return self.question.training.classes


def perturb_shares(answers: ShareAnswers, decoder: Decoder) -> Perturbable:
    """Noise on the mean of the parties' shares, which is the statistic of their votes where shares are raw.

    Shares of norm 1 have sensitivity 2/M, attained by opposite ones, whatever parties send. A raw share may be any
    vector of norm at most sqrt(1-1/C) reach, as the aggregator cannot see that it comes from votes: the sensitivity
    2 sqrt(1-1/C) reach/M is that of well-formed votes for two classes and below sqrt(2) times it for more, and trusts
    nobody.
    """
    return Perturbable(
        answers.value().ravel(),
        answers.mean.sensitivity,
        decoder.decode,
        (*answers.assumptions(), COUNTED_ONCE, ATTENDANCE, PUBLIC_ROWS),
        VECTOR_CHECKS,
        largest_norm=answers.mean.norm,
        scores=decoder.scores,
    )
