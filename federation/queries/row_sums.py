"""Queries for one sum over all rows of a party: the mean operator of two classes, or what a linear regression needs.

`MomentQuestion` asks for the mean operator, the sum of y x. `RowMomentsQuestion` asks for X'X, X'y and y'y of rows with
real labels. Its noise hides whole rows, in all three sums, or labels of public rows, in X'y alone.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import ClassVar, Literal

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import (
    Adjacency,
    Assumption,
    Check,
    Guarantee,
    Keeper,
    NoGuarantee,
    Unit,
    holding,
    protected,
)
from federation.contract.honest import BEYOND, REACH, ROUNDING, Arrays, Honest, PartySize, Range, Spread
from federation.contract.query import MOST_ROWS, OFF, Declared, Field, Noise, PrivateQuestion, whole, within
from federation.features.feature_map import FeatureMap
from federation.mechanisms.noise.reach import additive_reaches
from federation.mechanisms.sums import row_sums as summed_response
from federation.mechanisms.sums import shares
from federation.mechanisms.sums.row_sums import RowStatistic, SummedResponse, SumNoise, SumNoiseKind
from federation.mechanisms.sums.row_sums import calibrate_row_sums as calibrate
from federation.numerics.rows import Booleans, Floats
from federation.queries.labels import LabelledRows

MomentKind = Literal[SumNoiseKind, "sums", "randomised_response", "off"]

RESPONSE: Literal["randomised_response"] = "randomised_response"

_sum_noise = lru_cache(calibrate)  # all parties of a release have the same
_response = lru_cache(summed_response.calibrate_summed_response)
LARGEST_WEIGHT = 1e6
_ROUNDED = 2.0**-25  # what parties may have rounded entries of public sums by
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
    noisy = ("sums",)

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

    def honest(self, public: PartySize) -> "HonestSums":
        """Sums of as many rows as a party says that it has."""
        return HonestSums(self)

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry: the party's public number of rows, and a sum for each draw."""
        sums = within(_LARGEST, self.draws, self.numbers)
        return {"size": Field((), minimum=float(self.least_rows), maximum=float(self.most_rows)), "sums": sums}

    @property
    def steps(self) -> Mapping[str, float]:
        """That of the noise which is shared, if any is."""
        return {"sums": self.mechanism().additive.step} if self.contributors and self.noise.aims else {}


class HonestSums(Honest):
    """Sums over n rows which add a vector of norm `longest` each, beside the public number n.

    Entries are at most n `longest`, and noise takes them 40 standard deviations further at most; with randomised
    response they are at most n times a released label. Which of the two a party responds by follows from n. What is
    within that, but longer than an honest sum is by its noise with probability 1e-6, is scaled.
    """

    def __init__(self, query: SummedQuestion) -> None:
        self._query, self.longest = query, query.longest
        self._noise, self._response = query.sum_noise(), query.label_noise()
        self.variance = 0.0 if self._noise is None else self._noise.variance()
        self.widths = {"sums": query.numbers} if query.noise.aims else {}

    def plausible(self, arrays: Arrays) -> Booleans:
        """Those of whole numbers of rows, with sums that these and the noise can reach."""
        sizes = arrays["size"]
        fine = np.asarray(sizes == np.floor(sizes))
        if "sums" not in arrays:
            return fine
        responding = self._query.responding(sizes)
        reach, spread = 1.0 if self._response is None else self._response.reach, REACH * np.sqrt(self.variance)
        longest = self.longest * np.where(responding, reach, 1.0)
        largest = sizes * (1 + ROUNDING) * longest + np.where(responding, 0.0, spread)
        fine &= (np.abs(arrays["sums"]) <= largest[:, None, None]).all(axis=(1, 2))
        return fine & (arrays["response"] == responding) if "response" in arrays else fine

    def bounded(self, arrays: Arrays) -> tuple[dict[str, Floats], Booleans]:
        """The sums, within the range of those of as many rows."""
        sums, scaled = self.range_of(arrays["size"]).bounded(arrays["sums"], self.step)
        return {"sums": sums}, scaled

    def spread(self, part: str, values: Floats, arrays: Arrays) -> Spread:
        """Those with noise on the sum, in proportion to rows."""
        summing = ~self._query.responding(arrays["size"])
        return Spread(values[summing], arrays["size"][summing], summing)

    def counted(self, arrays: Arrays) -> dict[str, float]:
        """How many parties add noise to their sums, and the rows of those that respond by randomised response."""
        responding = self._query.responding(arrays["size"])
        rows = float(arrays["size"][responding].sum())
        return {"noises": float(np.count_nonzero(~responding)), "responding_rows": rows}

    def reachable(self, name: str, opened: Arrays, parties: int, wholes: float) -> tuple[float, float]:
        """As far as all rows reach, and the noise of all shares."""
        largest = float(opened["size"]) * self.longest * (1 + ROUNDING) + REACH * math.sqrt(wholes * self.variance)
        return -largest, largest

    @property
    def step(self) -> float:
        """That of the grid of sums."""
        noises = (None if self._noise is None else self._noise.additive, self._response)
        return min(noise.step for noise in noises if noise is not None)

    def range_of(self, rows: Floats) -> Range:
        """Of parties with these numbers of rows (P,): each adds a vector of norm `longest` at most.

        Noise on the sum goes as far as its law says, and randomised response as `SummedResponse.reaches` says.
        """
        exact = rows * self.longest * (1 + ROUNDING)
        entries, norms = (exact + reach for reach in self._reaches)
        if self._response is not None:
            responding = self._query.responding(rows)
            own = self._response.reaches(rows, self._query.numbers, BEYOND)
            entries, norms = (
                np.where(responding, reach * (1 + ROUNDING), other)
                for reach, other in zip(own, (entries, norms), strict=True)
            )
        return Range(entries, norms)

    @cached_property
    def _reaches(self) -> tuple[float, float]:
        return (0.0, 0.0) if self._noise is None else additive_reaches(self._noise.additive, BEYOND)


class HonestLabelSums(HonestSums):
    """As `HonestSums`; what each party says openly of its public rows is checked: X'X is one, of weights up to 1."""

    def plausible(self, arrays: Arrays) -> Booleans:
        """Those whose rows can be as they say."""
        fine, size = super().plausible(arrays), arrays["size"] * (1 + ROUNDING)
        fine &= (arrays["weight"] <= size) & (np.linalg.norm(arrays["row_sum"], axis=1) <= size)
        gram = arrays["gram"]
        fine &= (gram == gram.swapaxes(1, 2)).all(axis=(1, 2))
        kept = np.flatnonzero(fine)
        least = np.linalg.eigvalsh(gram[kept])[:, 0]
        trace = np.trace(gram[kept], axis1=1, axis2=2)
        fine[kept] = least >= -gram.shape[1] * (_ROUNDED + ROUNDING * trace)
        return fine


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
        >>> from federation.contract.query import ReleaseId
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
    longest = 1.0  # rows are cut to norm 1

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

    def log_ratio(self, seen: Arrays, here: Arrays, there: Arrays) -> np.ndarray:
        """As `PrivateQuestion.log_ratio`; where some answer by randomised response, by the `size` of each run's party.

        Exact responses are those of as many parties as are seen by turns.
        """
        response, sums = self.label_noise(), seen["sums"]
        if response is None:
            return super().log_ratio(seen, here, there)
        before, after = (np.resize(side["sums"], sums.shape) for side in (here, there))
        few, found = self.responding(seen["size"]), np.empty(len(sums))
        found[few] = response.log_ratio(sums[few], before[few], after[few], seen["size"][few])
        if not few.all():
            found[~few] = self.mechanism().additive.log_ratio(sums[~few], before[~few], after[~few])
        return found

    def _promised(self) -> Guarantee | NoGuarantee:
        """With contributors what the sum over all promises."""
        unit, below = protected(self.protect), self.response_below
        own = PUBLIC_FEATURES if unit is Unit.LABEL else _PUBLIC_EVEN_TERM
        response, noise = self.label_noise(), self.sum_noise()
        if noise is None:
            return self.response().labels.guarantee(unit, Adjacency.REPLACE, (*holding(unit), own))
        found = noise.guarantee(unit, Adjacency.REPLACE, (*holding(unit), own, _SHORT_ROWS))
        if response is None:
            return found
        few = Assumption(_FEW_ROWS.format(below), Check.ENFORCED)
        either = (*found.assumptions, few, *response.labels.assumptions)
        parameters = {**found.parameters, "response_below": below}
        return replace(found, mechanism="sum_or_response", parameters=parameters, assumptions=either, gaussian_mu=None)


_LARGEST = 2.0**80  # of a sum over a party's rows, noise included
_noise = lru_cache(RowStatistic.noise)  # all parties of a release have the same
_label_noise = lru_cache(calibrate)
# of a sum over a party's public rows
_CLIPPED = Assumption("labels outside the declared range are moved to its nearer end", Check.ENFORCED)
_LABEL_PREMISES = (
    *holding(Unit.LABEL),
    PUBLIC_FEATURES,
    Assumption(
        "rows behind the public feature map that are longer than 1 weigh less, by as much as they are longer",
        Check.ENFORCED,
    ),
    _CLIPPED,
)
_PREMISES = (
    *holding(Unit.ROW),
    Assumption(
        "how many rows a party has is public; no private row is used but in the sums that get the noise", Check.ENFORCED
    ),
    Assumption("rows behind the public feature map are cut to norm 1", Check.ENFORCED),
    _CLIPPED,
)


@dataclass(frozen=True)
class RowMomentsNoise(Noise):
    """Noise of the sums that a regression needs: what hides rows is Gaussian; `auto` is the less of `pure` and that."""

    kind: Literal["auto", "gaussian", "pure", "off"]


@dataclass(frozen=True)
class RowMomentsQuestion(SummedQuestion):
    """Send sums over your rows x and labels y, of which labels go from -1 to 1 as their declared range does.

    Where a whole "row" is what to `protect`, rows behind the public feature map are cut to norm 1, and the sums of
    x x', y x and y^2 are one vector with noise (`RowStatistic`); without `second` it lacks the sum of x x'.

    Where one "label" is, features are public. Every row behind the map has the weight w = 1, or 1/|x| where it is
    longer than 1, and the sum of w y x gets noise; beside it come those of w x x' (`gram`), w x and w as they are. So
    the noise has one shape at all parties, that of the map, and weighted least squares are right whatever rows weigh.

    `contributors` as for any `SummedQuestion`. Raises `InputError` for noise on whole rows that is not Gaussian, and
    for noise on a sum of x x' that is public.

    Examples:
        >>> from federation.contract.query import ReleaseId
        >>> from federation.features.feature_map import FeatureMap
        >>> rows, known = LabelledRows(FeatureMap(2, ()), 0.0, 5.0, most=40), {"release": ReleaseId("a release")}
        >>> question = RowMomentsQuestion(RowMomentsNoise("gaussian", 1.0, 1e-6), rows, 0, True, **known)
        >>> {name: field.shape for name, field in question.fields().items()}
        {'size': (), 'sums': (1, 6)}
        >>> question.promise().mechanism, str(question.promise().unit)
        ('sum_discrete_gaussian', 'row')
    """

    kind: ClassVar[str] = "row_moments"
    noise: RowMomentsNoise
    rows: LabelledRows
    contributors: int
    second: bool
    protect: Literal["row", "label"] = "row"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("contributors", self.contributors, 0, shares.MOST)
        if self.labels_only and self.second:
            raise InputError("noise on x x' is for whole rows, and protect is label; ask without second")
        if not self.labels_only and self.noise.kind not in ("gaussian", OFF):
            raise InputError(f"noise that hides whole rows must be gaussian, got {self.noise.kind!r}; or protect label")

    @property
    def labels_only(self) -> bool:
        """Whether labels are protected, and no rows."""
        return protected(self.protect) is Unit.LABEL

    @property
    def takes_features_as_public(self) -> bool:
        """Unless whole rows are protected."""
        return self.labels_only

    @property
    def statistic(self) -> RowStatistic:
        """What is summed."""
        return RowStatistic(self.rows.feature_map.dimension, self.second)

    @property
    def numbers(self) -> int:
        """Those of the statistic; of labels one for each feature."""
        return self.rows.feature_map.dimension if self.labels_only else self.statistic.dimension

    @property
    def most_rows(self) -> int:
        """As declared."""
        return self.rows.most

    @property
    def longest(self) -> float:
        """That of the statistic; of labels 1."""
        return 1.0 if self.labels_only else self.statistic.longest

    def fields(self) -> dict[str, Field]:
        """Those of a sum and, where features are public, what they say by themselves."""
        if not self.labels_only:
            return super().fields()
        width = self.rows.feature_map.dimension
        weight = Field((), minimum=0.0, maximum=float(self.rows.most))
        public = {"gram": within(_LARGEST, width, width), "row_sum": within(_LARGEST, width), "weight": weight}
        return {**super().fields(), **public}

    def honest(self, public: PartySize) -> HonestSums:
        """Sums of as many rows as a party says that it has, and where features are public what these are."""
        return HonestLabelSums(self) if self.labels_only else HonestSums(self)

    def work(self) -> int:
        """X'X, whole, and where the numbers of its triangle lie in it; of labels the features of all rows."""
        if self.labels_only:
            return 2 * self.rows.most * self.rows.feature_map.dimension
        return 3 * self.rows.feature_map.dimension**2 if self.second else 0

    def assumes(self) -> Declared:
        """The most rows, the range of labels, and how many parties share a noise."""
        return replace(self.rows.assumes(), honest=self.contributors or None)

    def mechanism(self) -> SumNoise:
        """As `SummedQuestion.mechanism`."""
        known = {"rows": self.rows.most, "contributors": self.contributors}
        if not self.labels_only:
            return _noise(self.statistic, **self.noise.target, **known)
        return _label_noise(self.noise.kind, dimension=self.numbers, **self.noise.target, **known)

    def _promised(self) -> Guarantee | NoGuarantee:
        """With contributors what the sum over all promises."""
        if self.labels_only:
            return self.mechanism().guarantee(Unit.LABEL, Adjacency.REPLACE, _LABEL_PREMISES)
        return self.mechanism().guarantee(Unit.ROW, Adjacency.REPLACE, _PREMISES)
