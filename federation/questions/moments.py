"""What an aggregator may ask of all rows of a party in one sum; of two classes the mean operator: the sum of y x."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from federation.contract.declared import Declared
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Keeper, NoGuarantee, Unit
from federation.contract.limits import MOST_ROWS, whole
from federation.contract.question import Field, Noise, PrivateQuestion, within
from federation.features.feature_map import FeatureMap
from federation.mechanisms.moments import shares, summed_response
from federation.mechanisms.moments.calibrated_moments import SumNoise, SumNoiseKind, calibrate
from federation.mechanisms.moments.summed_response import SummedResponse
from federation.questions.row_premises import holding, protected

MomentKind = Literal[SumNoiseKind, "sums", "randomised_response", "off"]

RESPONSE: Literal["randomised_response"] = "randomised_response"

_sum_noise = lru_cache(calibrate)  # all parties of a release have the same
_response = lru_cache(summed_response.calibrate)
LARGEST_WEIGHT = 1e6
_LARGEST = 2.0**80  # of a sum over a party's rows, noise included
_SHORT_ROWS = Assumption(
    "rows behind the public feature map, their constant feature included, are cut to norm 1", Check.ENFORCED
)
PUBLIC_FEATURES = Assumption("features are public: only labels are protected", Check.DECLARED, Keeper.HOLDER)
_FEW_ROWS = (
    "a party with fewer than {} rows, a public number, answers by randomised response of every label in its sum, which "
    "is pure; all others add noise to the sum"
)
_PUBLIC_EVEN_TERM = Assumption(
    "how many rows a party has is public; no private row is used but in the sum that gets the noise", Check.ENFORCED
)


class SummedQuestion(PrivateQuestion):
    """Base of the questions about one sum over a party's rows.

    `contributors` 0 asks for a party's whole noise. Otherwise it asks for one share, so many of which hide what one
    whole noise hides: for a summation that reveals only the sum over the parties.
    """

    contributors: int

    @property
    @abstractmethod
    def numbers(self) -> int:
        """How many numbers the sum has."""

    @property
    def least_rows(self) -> int:
        """How many rows a party has at least."""
        return 1

    @property
    @abstractmethod
    def most_rows(self) -> int:
        """How many rows a party has at most."""

    @property
    @abstractmethod
    def longest(self) -> float:
        """The norm of what one row adds to the sum, at most."""

    @abstractmethod
    def mechanism(self) -> SumNoise:
        """The noise on the sum of one party, or its share of the noise on the sum over parties. Raises `InputError`."""

    @property
    def response_below(self) -> int:
        """Parties with fewer rows answer by randomised response of every label, others by noise on the sum."""
        return 0

    def responding(self, rows: np.ndarray) -> np.ndarray:
        """Which parties with these numbers of rows (P,) answer by randomised response, boolean (P,)."""
        return np.asarray(rows < self.response_below)

    def sum_noise(self) -> SumNoise | None:
        """That of `mechanism`, where there are numbers of rows with it. Raises `InputError`."""
        return self.mechanism() if self.noise.aims and self.response_below <= self.most_rows else None

    def label_noise(self) -> SummedResponse | None:
        """Randomised response, where there are numbers of rows with it. Raises `InputError`."""
        return self.response() if self.response_below > self.least_rows else None

    def response(self) -> SummedResponse:
        """Randomised response of every label of one party. Raises `InputError`."""
        return _response(self.noise.epsilon)

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry: the party's public number of rows, and a sum for each draw."""
        sums = within(_LARGEST, self.draws, self.numbers)
        return {"size": Field((), minimum=float(self.least_rows), maximum=float(self.most_rows)), "sums": sums}

    @property
    def steps(self) -> Mapping[str, float]:
        """That of the noise which is shared, if any is."""
        return {"sums": self.mechanism().additive.step} if self.contributors and self.noise.aims else {}


@dataclass(frozen=True)
class MomentNoise(Noise):
    """Noise of a sum of y x; rows are cut to `l1_bound` in the L1 norm, too, if there is one.

    `sums` is the least of `laplace`, `pure` and `gaussian`, and `randomised_response` is of every label in the sum.
    `auto` is the less of these two by the number of a party's rows, where each party has noise of its own for labels,
    and `sums` elsewhere.
    """

    kind: MomentKind
    l1_bound: float | None = None


@dataclass(frozen=True)
class MomentQuestion(SummedQuestion):
    """Send the sum of y x over your rows x behind the public feature map, with noise (Patrini et al. 2015, Alg. 2).

    y is 1 for the second of two classes and -1 for the first. Rows longer than 1 are cut to norm 1; from `least` to
    `most` rows are at a party. `protect` says whether one "label" is protected, features being public, or one whole
    "row". `contributors` 0 asks for a party's whole noise. Otherwise it asks for one share, so many of which hide what
    one whole noise hides: for a summation that reveals only the sum over the parties.

    Where the noise is `auto`, each party has its own, and labels are protected, both sides know from the public number
    of a party's rows whether its labels or their sum got the noise, and an answer says it, too: `response`. `weight` is
    how much an error of randomised response counts against noise on the sum of the same size.

    Examples:
        >>> from federation.contract.question import ReleaseId
        >>> noise, known = MomentNoise("auto", 1.0, 1e-6), {"release": ReleaseId("a release"), "least": 1, "most": 100}
        >>> question = MomentQuestion(noise, FeatureMap(2, ()), protect="label", contributors=0, **known)
        >>> question.response_below, question.responding(np.array([6, 7]))
        (7, array([ True, False]))
        >>> question.promise().mechanism, str(question.promise().unit)
        ('sum_or_response', 'label')
        >>> shares = MomentQuestion(noise, FeatureMap(2, ()), protect="row", contributors=9, **known)
        >>> shares.simulated_only()
        'this node has no secure summation, and a share of the noise hides nothing by itself'
    """

    kind: ClassVar[str] = "mean_operator"
    noise: MomentNoise
    feature_map: FeatureMap
    least: int
    most: int
    protect: Literal["label", "row"]
    contributors: int
    weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("most rows", self.most, 1, MOST_ROWS)
        whole("least rows", self.least, 1, self.most)
        whole("contributors", self.contributors, 0, shares.MOST)
        if not 1 / LARGEST_WEIGHT <= self.weight <= LARGEST_WEIGHT:
            raise InputError(
                f"weight must be from {1 / LARGEST_WEIGHT:g} to {LARGEST_WEIGHT:g}, got {self.weight}; 1 compares sizes"
            )
        if self.noise.kind == RESPONSE and (self.contributors or self.protect != "label"):
            raise InputError(
                "randomised response hides every label by itself, and no row: ask for protect label and contributors "
                f"0, got {self.protect} and {self.contributors}"
            )

    @property
    def numbers(self) -> int:
        """One for each feature."""
        return self.feature_map.dimension

    @property
    def least_rows(self) -> int:
        """As declared."""
        return self.least

    @property
    def most_rows(self) -> int:
        """As declared."""
        return self.most

    @property
    def longest(self) -> float:
        """Rows are cut to norm 1."""
        return 1.0

    @property
    def takes_features_as_public(self) -> bool:
        """Unless whole rows are protected."""
        return protected(self.protect) is Unit.LABEL

    def fields(self) -> dict[str, Field]:
        """Those of a sum and, where the number of rows decides, whether labels or their sum got the noise."""
        known = super().fields()
        return {**known, "response": Field((), minimum=0.0, maximum=1.0)} if self.by_size else known

    def assumes(self) -> Declared:
        """The most rows, and how many parties share a noise."""
        return Declared(most_rows=self.most, honest=self.contributors or None)

    @property
    def by_size(self) -> bool:
        """Whether the number of a party's rows decides which noise it adds."""
        own = self.noise.kind == "auto" and self.protect == "label" and not self.shared
        return own and self.noise.epsilon >= summed_response.LEAST_EPSILON

    @property
    def response_below(self) -> int:
        """As `SummedQuestion.response_below`."""
        if self.noise.kind == RESPONSE:
            return summed_response.ANY
        return self.response().rows_for(self.mechanism(), self.weight) if self.by_size else 0

    def mechanism(self) -> SumNoise:
        """The noise on the sum of one party, or its share of the noise on the sum over parties. Raises `InputError`."""
        noise, known = self.noise, {"rows": self.most, "contributors": self.contributors}
        kind, dimension = "auto" if noise.kind == "sums" else noise.kind, self.feature_map.dimension
        return _sum_noise(kind, dimension=dimension, l1_bound=noise.l1_bound, **noise.target, **known)

    def _promised(self) -> Guarantee | NoGuarantee:
        """With contributors what the sum over all promises."""
        unit, below = protected(self.protect), self.response_below
        own = PUBLIC_FEATURES if unit is Unit.LABEL else _PUBLIC_EVEN_TERM
        response, noise = self.label_noise(), self.sum_noise()
        if noise is None:
            return self.response().guarantee(unit, Adjacency.REPLACE, (*holding(unit), own))
        found = noise.guarantee(unit, Adjacency.REPLACE, (*holding(unit), own, _SHORT_ROWS))
        if response is None:
            return found
        few = Assumption(_FEW_ROWS.format(below), Check.ENFORCED)
        either = (*found.assumptions, few, *response.labels.assumptions)
        parameters = {**found.parameters, "response_below": below}
        return replace(found, mechanism="sum_or_response", parameters=parameters, assumptions=either, gaussian_mu=None)
