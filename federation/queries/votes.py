"""Queries to locally trained classifiers: votes, shares of a statistic, parameters and scores, or sums of vectors.

A query derived from `VectorSumQuestion` asks for a vector with a share of noise, for a secure aggregation that reveals
only the sum. The vector is that of a query whose responses are for a trusted aggregator only. Here the aggregator does
not see it: the party itself brings the vector into a ball. The party then adds a share of the noise, which hides all
data of one party in the sum over the parties.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Keeper, Unit
from federation.contract.honest import REACH, ROUNDING, Arrays, Honest, PartySize
from federation.contract.query import (
    MOST_CLASSES,
    Declared,
    Field,
    Noise,
    PrivateQuestion,
    TrustedQuestion,
    whole,
    within,
)
from federation.features.feature_map import Ball, FeatureMap
from federation.mechanisms.sums import shared_sums as vector_sums
from federation.mechanisms.sums import shares
from federation.mechanisms.sums.shared_sums import VectorSumNoise
from federation.numerics.rows import equal_rows

BALLOT_PARTS = 255  # a probability on the wire is a whole number of these parts of one


@dataclass(frozen=True)
class Training:
    """How a party trains its local classifier: the public feature map, the classes, the classifier, the trial.

    `classifier` is `{"name": str, "parameters": dict}`; `trial` keys a party's own randomness. A logistic regression is
    trained over the classes that its party has seen, or over all that are `declared`; other classifiers know only
    those they have seen. Raises `InputError` for numbers of classes or trials that are none.

    Examples:
        >>> Training(FeatureMap(2, ()), classes=3, classifier={"name": "logistic", "parameters": {}}, trial=-1)
        Traceback (most recent call last):
        federation.contract.errors.InputError: trial must be a whole number from 0, got -1
    """

    feature_map: FeatureMap
    classes: int
    classifier: Mapping[str, Any]
    trial: int
    over: Literal["seen", "declared"] = "seen"

    def __post_init__(self) -> None:
        whole("classes", self.classes, 0, MOST_CLASSES)
        whole("trial", self.trial, 0)


@dataclass(frozen=True)
class ClassifierQuestion(TrustedQuestion):
    """Base of the questions that a party answers with a classifier that it has trained on its own rows."""

    training: Training

    def assumes(self) -> Declared:
        """The number of classes."""
        return Declared(classes=self.training.classes)

    def work(self) -> int:
        """Weights of one classifier, and contrasts of the classes."""
        classes = self.training.classes
        return classes * (self.training.feature_map.dimension + classes)


@dataclass(frozen=True)
class AuxiliaryQuestion(ClassifierQuestion):
    """Base of those about public auxiliary rows: `rows` (N, d) behind the public feature map.

    Raises `InputError` for rows of another form.
    """

    rows: np.ndarray

    def __post_init__(self) -> None:
        dimension = self.training.feature_map.dimension
        if self.rows.ndim != 2 or self.rows.shape[1] != dimension:
            raise InputError(f"rows must be (N, {dimension}) features, got shape {self.rows.shape}")


@dataclass(frozen=True)
class VotesQuestion(AuxiliaryQuestion):
    """Label each public auxiliary row with your local classifier: one class in 0..C-1 per row.

    The answer goes to a trusted aggregator only.

    Examples:
        >>> training = Training(FeatureMap(2, ()), 3, {"name": "logistic", "parameters": {}}, 0)
        >>> VotesQuestion(training, np.zeros((5, 2))).fields()["votes"]
        Field(shape=(5,), levels=3, minimum=-inf, maximum=inf)
        >>> VotesQuestion(training, np.zeros((5, 4)))
        Traceback (most recent call last):
        federation.contract.errors.InputError: rows must be (N, 2) features, got shape (5, 4)
    """

    kind: ClassVar[str] = "votes"

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        return {"votes": Field((len(self.rows),), levels=self.training.classes)}


@dataclass(frozen=True)
class ProbabilitiesQuestion(AuxiliaryQuestion):
    """Say how probable each class is on each public auxiliary row, in whole parts of 1/255.

    An answer holds, row after row, the parts of the classes 0..C-2; what they leave of
    `BALLOT_PARTS` belongs to the last class, so that every ballot sums to one exactly. For a trusted aggregator only.
    """

    kind: ClassVar[str] = "probabilities"

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        return {"parts": Field((len(self.rows) * (self.training.classes - 1),), levels=BALLOT_PARTS + 1)}


@dataclass(frozen=True)
class StatisticQuestion(AuxiliaryQuestion):
    """Vote on the public auxiliary rows and send only what the ensemble's statistic takes from your votes.

    That is z = B'V'Y/N, shape (C-1, r), at most `largest` long: B class contrasts, V (N, C) your votes on `rows`
    (N, d), Y (N, r) public `coordinates` of the same rows. With `share` "raw" it is sent as it is, and `ballot` says
    whether a row of V is one class (`labels`) or your `probabilities` of all. With another `share` it is scaled to norm
    1: that of your `probabilities`, that of your `scores` in place of votes, or the mean of `both` directions, again
    of norm 1. The answer goes to a trusted aggregator only.
    """

    kind: ClassVar[str] = "statistic"
    coordinates: np.ndarray
    largest: float
    ballot: Literal["labels", "probabilities"]
    share: Literal["both", "probabilities", "scores", "raw"] = "raw"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.coordinates.ndim != 2 or len(self.coordinates) != len(self.rows):
            raise InputError(f"coordinates must be ({len(self.rows)}, r) numbers, got shape {self.coordinates.shape}")
        if self.share != "raw" and self.training.over != "declared":
            raise InputError("shares of norm 1 are of classifiers over all declared classes; train over: declared")

    @cached_property
    def summed(self) -> tuple[np.ndarray, np.ndarray]:
        """The different rows (k, d) and, for each, the sum of the coordinates of all that equal it, (k, r).

        Any sum over all rows of what follows from a row times its coordinates is one over these.
        """
        first, twins = equal_rows(self.rows)
        if len(first) == len(twins):
            return self.rows, self.coordinates
        order = np.argsort(twins, kind="stable")
        starts = np.searchsorted(twins[order], np.arange(len(first)))
        return self.rows[first], np.add.reduceat(self.coordinates[order], starts)

    @cached_property
    def moments(self) -> np.ndarray:
        """X'Y/N of the rows and their coordinates, (d, r)."""
        return np.asarray(self.rows.T @ self.coordinates / len(self.rows))

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        return {"statistic": within(self.largest, self.training.classes - 1, self.coordinates.shape[1])}


@dataclass(frozen=True)
class ParametersQuestion(ClassifierQuestion):
    """Minimise your own regularised logistic risk over all declared classes, seen or not, and send the minimiser.

    Two classes: the weights w of binary logistic regression, shape (1, d). More: softmax weights W (C, d), whose
    rows sum to zero, as contrasts B'W (C-1, d). `gradient_tolerance` bounds the norm of your risk's gradient,
    `largest` the norm of any such minimiser. The answer goes to a trusted aggregator only.
    """

    kind: ClassVar[str] = "parameters"
    gradient_tolerance: float
    largest: float

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        training = self.training
        return {"parameters": within(self.largest, training.classes - 1, training.feature_map.dimension)}


@dataclass(frozen=True)
class IndividualQuestion(ClassifierQuestion):
    """Score your local classifier on evaluation rows that you hold yourself (simulation only, NON-PRIVATE).

    Only parties with an id below `first` answer. Of two classes the scores are also how well it orders rows.
    """

    kind: ClassVar[str] = "individual"
    first: int

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        ordering = ("auc",) if self.training.classes == 2 else ()
        return {name: Field((), minimum=0.0, maximum=1.0) for name in ("accuracy", "balanced_accuracy", *ordering)}


class HonestVectors(Honest):
    """Sums of vectors in a ball."""

    def __init__(self, query: "VectorSumQuestion") -> None:
        self.longest = query.ball.norm
        self.variance = shares.variance(query.mechanism().additive, query.contributors)

    def reachable(self, name: str, opened: Arrays, parties: int, wholes: float) -> tuple[float, float]:
        """As far as all vectors reach together, and the noise of all shares."""
        largest = parties * self.longest * (1 + ROUNDING) + REACH * math.sqrt(wholes * self.variance)
        return -largest, largest


_calibrated = lru_cache(vector_sums.calibrate_vector_sums)  # all parties of a release have the same
_LARGEST = 2.0**80  # of an entry, noise included


@dataclass(frozen=True)
class VectorNoise(Noise):
    """Noise of a sum of vectors: `pure` (L2-Gamma), `gaussian` (discrete Gaussian), or `off`, which hides nothing."""

    kind: Literal["pure", "gaussian", "off"]


@dataclass(frozen=True)
class VectorSumQuestion(PrivateQuestion):
    """Base: bring the vector that answers `asked` into the `ball`, and add a share of the noise on the sum of all.

    So many shares as `contributors` are the whole noise. Answers are for a summation that reveals the sum only.
    """

    noise: VectorNoise
    asked: ClassifierQuestion
    ball: Ball
    contributors: int

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("contributors", self.contributors, 1, shares.MOST)

    @property
    def numbers(self) -> int:
        """How many numbers the vector has."""
        [field] = self.asked.fields().values()
        return field.numbers

    def honest(self, public: PartySize) -> HonestVectors:
        """Vectors in the ball."""
        return HonestVectors(self)

    def fields(self) -> dict[str, Field]:
        """The arrays an answer carries: for each draw the vector with a share of noise."""
        return {"vectors": within(_LARGEST, self.draws, self.numbers)}

    def work(self) -> int:
        """That of the vector, which is held with its draws."""
        return self.asked.work() + self.numbers

    def assumes(self) -> Declared:
        """The number of classes, and how many parties share the noise."""
        return replace(self.asked.assumes(), honest=self.contributors)

    @property
    def steps(self) -> Mapping[str, float]:
        """That of the noise."""
        return {"vectors": self.mechanism().additive.step} if self.noise.aims else {}

    def mechanism(self) -> VectorSumNoise:
        """A party's share of the noise on the sum over parties. Raises `InputError`."""
        noise, known = self.noise, {"ball": self.ball, "dimension": self.numbers, "contributors": self.contributors}
        return _calibrated(noise.kind, **noise.target, **known)

    def _promised(self) -> Guarantee:
        """What the sum over all promises."""
        own = Assumption(
            f"every party's vector is {self.ball.told} by the party itself, before it adds its share; nobody else sees "
            "whether it is",
            Check.DECLARED,
            Keeper.SITE,
        )
        return self.mechanism().guarantee(Unit.PARTY, Adjacency.REPLACE, (own,))


@dataclass(frozen=True)
class StatisticSumQuestion(VectorSumQuestion):
    """The sum of the parties' shares of the ensemble's statistic.

    Examples:
        >>> import numpy as np
        >>> from federation.contract.query import ReleaseId
        >>> from federation.features.feature_map import FeatureMap
        >>> from federation.queries.votes import Training
        >>> training = Training(FeatureMap(2, ()), 3, {"name": "logistic", "parameters": {}}, 0)
        >>> asked = StatisticQuestion(training, np.ones((5, 2)), np.ones((5, 2)), 1.0, "labels")
        >>> noise, release = VectorNoise("pure", 1.0), ReleaseId("a release")
        >>> question = StatisticSumQuestion(noise, asked, Ball(1.0), contributors=80, release=release)
        >>> question.numbers, question.promise().mechanism, str(question.promise().unit)
        (4, 'vector_sum_l2_gamma', 'party')
    """

    kind: ClassVar[str] = "statistic_sum"
    asked: StatisticQuestion


@dataclass(frozen=True)
class ParameterSumQuestion(VectorSumQuestion):
    """The sum of the parameters of the parties' linear classifiers."""

    kind: ClassVar[str] = "parameter_sum"
    asked: ParametersQuestion
