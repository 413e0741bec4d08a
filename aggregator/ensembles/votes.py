"""What the protocols that learn from votes ask, and where they collect the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import EllipsisType
from typing import Any, Literal

import numpy as np

from aggregator.contract.perturbable import Decoder
from aggregator.contract.promise import Sent
from aggregator.ensembles.collected import CollectedProtocol
from aggregator.ensembles.ensemble import Ensemble
from aggregator.ensembles.output import Protect
from aggregator.ensembles.share_answers import Ballot, Share, ShareAnswers, share_ball, share_question
from aggregator.ensembles.summed import Summand
from aggregator.ensembles.tally import ProbabilityTally, VoteTally
from aggregator.world.public_numbers import PublicNumbers, product
from aggregator.world.public_rows import Coordinates, PublicRows, Shape, refuse_fitted
from federation.contract.guarantee import Unit
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
    ballot: Ballot = "labels"
    share: Share = "raw"
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

    def collector(self, public: PublicRows, question: VoteQuestion, parties: int) -> Ensemble | ShareAnswers:
        """Where the answers go; what `prepare` is called with."""
        if isinstance(question, StatisticQuestion):
            return ShareAnswers(public.coordinates(self.shape), question, parties)
        tally = ProbabilityTally if isinstance(question, ProbabilitiesQuestion) else VoteTally
        return Ensemble(public, tally(question, parties), self._voted_on(public)[1])


def contrasts_of(public: PublicNumbers) -> int | None:
    """How many contrasts tell the classes apart: C - 1; None where C is not known yet."""
    return None if public.classes is None else max(0, public.classes - 1)
