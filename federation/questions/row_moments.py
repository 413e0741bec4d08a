"""What an aggregator may ask of rows with real labels for a linear regression: X'X, X'y and y'y, in one sum.

Noise hides whole rows, in all three, or labels of public rows, in X'y alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal

from federation.contract.declared import Declared
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, NoGuarantee, Unit
from federation.contract.limits import whole
from federation.contract.question import OFF, Field, Noise, within
from federation.mechanisms.moments import shares
from federation.mechanisms.moments.calibrated_moments import SumNoise, calibrate
from federation.mechanisms.moments.row_statistic import RowStatistic
from federation.questions.labels import LabelledRows
from federation.questions.moments import PUBLIC_FEATURES, SummedQuestion
from federation.questions.row_premises import holding, protected

_noise = lru_cache(RowStatistic.noise)  # all parties of a release have the same
_label_noise = lru_cache(calibrate)
_LARGEST = 2.0**80  # of a sum over a party's public rows
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
        >>> from federation.contract.question import ReleaseId
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
