"""Protocols that learn from votes: their queries, and the statistic of the votes that gets the noise.

`ShareAnswers` adds up the parties' own normalised contributions to the statistic; the aggregator never sees a vote.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import EllipsisType
from typing import Any, Literal

import numpy as np

from aggregator.collectors.vectors import VECTOR_CHECKS, VectorAnswers
from aggregator.contract.ledger import ATTENDANCE, COUNTED_ONCE
from aggregator.contract.protocol import Sent
from aggregator.contract.session import Decoder, Perturbable
from aggregator.ensembles.output import Ensemble, ProbabilityTally, Protect, VoteTally
from aggregator.ensembles.sessions import PUBLIC_ROWS, CollectedProtocol, Summand
from aggregator.trial.plan import PublicNumbers, product
from aggregator.trial.public_rows import Coordinates, PublicRows, Shape, refuse_fitted
from federation.contract.guarantee import Unit
from federation.features.feature_map import Ball
from federation.queries.votes import (
    ProbabilitiesQuestion,
    StatisticQuestion,
    StatisticSumQuestion,
    Training,
    VotesQuestion,
)

Submit = Literal["votes", "statistic"]
VoteQuestion = VotesQuestion | ProbabilitiesQuestion | StatisticQuestion


class VoteProtocol(CollectedProtocol):
    """Base of the vote protocols: one question per world, counted in one tally; options may ask for another answer.

    submit: what a party sends, its `votes` or only its `share` of the `statistic` in coordinates of `shape`.
    ballot: what a vote is, one of the `labels` or the `probabilities` of all classes.
    """

    submit: Submit = "votes"
    ballot: "Ballot" = "labels"
    share: "Share" = "raw"
    shape: Shape = "whitened"
    protect: Protect = "party"
    perturb: str

    @property
    def on_minimiser(self) -> bool:
        """Whether it is a minimiser that gets the noise."""
        return self.perturb == "output"

    def width(self, public: PublicRows) -> int | None:
        """The rank of the public rows, for a statistic."""
        return public.coordinates(self.shape).rows.shape[1] if self.perturb == "statistic" else None

    @property
    def by_shares(self) -> bool:
        """Whether parties send shares of the statistic, and not votes."""
        return self.submit == "statistic" and self.perturb == "statistic"

    @property
    def unsummed(self) -> str:
        """Votes are counted; shares of the statistic may be added up."""
        if self.by_shares:
            return ""
        return (
            "votes are counted exactly before they get noise, and whoever counts them must be trusted; choose "
            "soft_vote with perturb: statistic and submit: statistic, or trust: aggregator"
        )

    @property
    def unit(self) -> Unit:
        """A party, or with it an auxiliary row."""
        return Unit(self.protect)

    def sends(self, public: PublicNumbers) -> Sent:
        """Votes on all public rows, or a share of their statistic."""
        if self.by_shares:
            return Sent(
                "a summary of what its classifier says of the public rows",
                product(contrasts_of(public), public.features),
                False,
            )
        if self.ballot == "probabilities":
            return Sent(
                "class probabilities on every public row", product(public.public_rows, contrasts_of(public)), False
            )
        return Sent("one vote on every public row", public.public_rows, False)

    def check_setting(self, features: Sequence[str | Mapping[str, Any]], classifier: Mapping[str, Any]) -> None:
        """Refuse features and classifiers that these options cannot work with; raises `InputError`."""
        if self.protect == "party_and_auxiliary_row":
            refuse_fitted(features)

    def question(self, public: PublicRows, training: Training) -> VoteQuestion:
        """Ask each party about the auxiliary rows.

        Raises `InputError` when one of them is to be protected and the feature map is fitted on them.
        """
        if self.protect == "party_and_auxiliary_row":
            public.require_unfitted()
        if self.by_shares:
            share = "probabilities" if self.share == "both" and not public.whitened else self.share
            return share_question(training, public, public.coordinates(self.shape), self.ballot, share)
        if self.ballot == "probabilities":
            return ProbabilitiesQuestion(training, self._voted_on(public)[0])
        return VotesQuestion(training, self._voted_on(public)[0])

    def _voted_on(self, public: PublicRows) -> tuple[np.ndarray, np.ndarray | EllipsisType]:
        """The rows that parties vote on, and which of them each public row is: each once, unless that says something.

        Where an auxiliary row is protected, how many of them differ is nobody's business.
        """
        return (public.rows, ...) if self.protect == "party_and_auxiliary_row" else public.different

    def summand(self, public: PublicRows, question: StatisticQuestion) -> Summand:
        """Its share of the statistic, in the ball that the aggregator would bring it into."""
        coordinates = public.coordinates(self.shape)
        ball = share_ball(coordinates, question)
        decoder = replace(self.decoded(coordinates, question.training.classes), largest_norm=ball.norm)
        return Summand(StatisticSumQuestion, question, ball, decoder, coordinates.rows.shape[1])

    def decoded(self, coordinates: Coordinates, classes: int) -> Decoder:
        """What turns noisy statistics in these coordinates into models; of protocols that release them."""
        raise NotImplementedError(f"{type(self).__name__} releases no statistic")

    def collector(self, public: PublicRows, question: VoteQuestion, parties: int) -> "Ensemble | ShareAnswers":
        """Where the answers go; what `prepare` is called with."""
        if isinstance(question, StatisticQuestion):
            return ShareAnswers(public.coordinates(self.shape), question, parties)
        tally = ProbabilityTally if isinstance(question, ProbabilitiesQuestion) else VoteTally
        return Ensemble(public, tally(question, parties), self._voted_on(public)[1])


def contrasts_of(public: PublicNumbers) -> int | None:
    """How many contrasts tell the classes apart: C - 1; None where C is not known yet."""
    return None if public.classes is None else max(0, public.classes - 1)


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
