"""What an aggregator may ask of a party's classifier for a sum that only shows itself: a vector with a share of noise.

The vector is that of a question whose answers are for a trusted aggregator only. Here nobody sees it: the party brings
it into a ball itself, and adds a share of the noise that hides all that one party holds in the sum over the parties.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal

from federation.contract.declared import Declared
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Keeper, Unit
from federation.contract.limits import whole
from federation.contract.question import Field, Noise, PrivateQuestion, within
from federation.features.ball import Ball
from federation.mechanisms.moments import shares, vector_sums
from federation.mechanisms.moments.vector_sums import VectorSumNoise
from federation.questions.votes import ClassifierQuestion, ParametersQuestion, StatisticQuestion

_calibrated = lru_cache(vector_sums.calibrate)  # all parties of a release have the same
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
        >>> from federation.contract.question import ReleaseId
        >>> from federation.features.feature_map import FeatureMap
        >>> from federation.questions.votes import Training
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
