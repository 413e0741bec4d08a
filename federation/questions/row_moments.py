"""What an aggregator may ask of private rows with real labels for a linear regression: X'X, X'y and y'y, in one sum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal

from federation.contract.declared import Declared
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, NoGuarantee, Unit
from federation.contract.limits import whole
from federation.contract.question import Noise
from federation.mechanisms.moments import shares
from federation.mechanisms.moments.calibrated_moments import SumNoise
from federation.mechanisms.moments.row_statistic import RowStatistic
from federation.questions.labels import LabelledRows
from federation.questions.moments import SummedQuestion
from federation.questions.row_premises import holding

_noise = lru_cache(RowStatistic.noise)  # all parties of a release have the same
_PREMISES = (
    *holding(Unit.ROW),
    Assumption(
        "how many rows a party has is public; no private row is used but in the sums that get the noise", Check.ENFORCED
    ),
    Assumption("rows behind the public feature map are cut to norm 1", Check.ENFORCED),
    Assumption("labels outside the declared range are moved to its nearer end", Check.ENFORCED),
)


@dataclass(frozen=True)
class RowMomentsNoise(Noise):
    """Noise of the sums that a regression needs."""

    kind: Literal["gaussian", "off"]


@dataclass(frozen=True)
class RowMomentsQuestion(SummedQuestion):
    """Send the sums of x x', y x and y^2 over your rows x and labels y, with noise that hides a whole row.

    Rows behind the public feature map are cut to norm 1, and labels go from -1 to 1 as their declared range does. The
    answer is one vector (`RowStatistic`); without `second` it lacks the sum of x x'. `contributors` as for any
    `SummedQuestion`.

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

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("contributors", self.contributors, 0, shares.MOST)

    @property
    def statistic(self) -> RowStatistic:
        """What is summed."""
        return RowStatistic(self.rows.feature_map.dimension, self.second)

    @property
    def numbers(self) -> int:
        """Those of the statistic."""
        return self.statistic.dimension

    @property
    def most_rows(self) -> int:
        """As declared."""
        return self.rows.most

    @property
    def longest(self) -> float:
        """That of the statistic."""
        return self.statistic.longest

    def work(self) -> int:
        """X'X, whole, and where the numbers of its triangle lie in it."""
        return 3 * self.rows.feature_map.dimension**2 if self.second else 0

    def assumes(self) -> Declared:
        """The most rows, the range of labels, and how many parties share a noise."""
        return replace(self.rows.assumes(), honest=self.contributors or None)

    def mechanism(self) -> SumNoise:
        """As `SummedQuestion.mechanism`."""
        known = {"rows": self.rows.most, "contributors": self.contributors}
        return _noise(self.statistic, **self.noise.target, **known)

    def _promised(self) -> Guarantee | NoGuarantee:
        """With contributors what the sum over all promises."""
        return self.mechanism().guarantee(Unit.ROW, Adjacency.REPLACE, _PREMISES)
