"""What an aggregator may ask about rows of two classes: their mean operator, the sum of y x with y = 1 or -1."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

from federation.contract.declared import Declared
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, NoGuarantee, Unit
from federation.contract.limits import MOST_ROWS, whole
from federation.contract.question import Field, Noise, PrivateQuestion, within
from federation.features.feature_map import FeatureMap
from federation.mechanisms.moments import shares
from federation.mechanisms.moments.calibrated_moments import SumNoise, SumNoiseKind, calibrate
from federation.questions.row_premises import holding, protected

_sum_noise = lru_cache(calibrate)  # all parties of a release have the same
_LARGEST = 2.0**80  # of a sum over a party's rows, noise included
_SHORT_ROWS = Assumption(
    "rows behind the public feature map, their constant feature included, are cut to norm 1", Check.ENFORCED
)
_PUBLIC_FEATURES = Assumption("features are public: only labels are protected", Check.DECLARED)
_PUBLIC_EVEN_TERM = Assumption(
    "how many rows a party has is public; no private row is used but in the sum that gets the noise", Check.ENFORCED
)


@dataclass(frozen=True)
class MomentNoise(Noise):
    """Noise of a sum of y x; rows are cut to `l1_bound` in the L1 norm, too, if there is one."""

    kind: SumNoiseKind | Literal["off"]
    l1_bound: float | None = None


@dataclass(frozen=True)
class MomentQuestion(PrivateQuestion):
    """Send the sum of y x over your rows x behind the public feature map, with noise (Patrini et al. 2015, Alg. 2).

    y is 1 for the second of two classes and -1 for the first. Rows longer than 1 are cut to norm 1; at most `most` rows
    are at a party. `protect` says whether one "label" is protected, features being public, or one whole "row".
    `contributors` 0 asks for a party's whole noise. Otherwise it asks for one share, so many of which hide what one
    whole noise hides: for a summation that reveals only the sum over the parties.

    Examples:
        >>> from federation.contract.question import ReleaseId
        >>> noise, known = MomentNoise("auto", 1.0, 1e-6), {"release": ReleaseId("a release"), "protect": "row"}
        >>> question = MomentQuestion(noise, FeatureMap(2, ()), most=100, contributors=0, **known)
        >>> question.promise().mechanism, str(question.promise().unit)
        ('sum_l2_gamma', 'row')
        >>> shares = MomentQuestion(noise, FeatureMap(2, ()), most=100, contributors=9, **known)
        >>> shares.simulated_only()
        'this node has no secure summation, and a share of the noise hides nothing by itself'
    """

    kind: ClassVar[str] = "mean_operator"
    noise: MomentNoise
    feature_map: FeatureMap
    most: int
    protect: Literal["label", "row"]
    contributors: int

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("most rows", self.most, 1, MOST_ROWS)
        whole("contributors", self.contributors, 0, shares.MOST)

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry: the party's public number of rows, and a sum for each draw."""
        sums = within(_LARGEST, self.draws, self.feature_map.dimension)
        return {"size": Field((), minimum=1.0, maximum=float(self.most)), "sums": sums}

    def assumes(self) -> Declared:
        """The most rows, and how many parties share a noise."""
        return Declared(most_rows=self.most, honest=self.contributors or None)

    @property
    def shared(self) -> bool:
        """Whether an answer has a share of a noise only."""
        return self.contributors > 0

    def simulated_only(self) -> str | None:
        """Shares need a secure summation."""
        if not self.shared:
            return None
        return "this node has no secure summation, and a share of the noise hides nothing by itself"

    def mechanism(self) -> SumNoise:
        """The noise on the sum of one party, or its share of the noise on the sum over parties. Raises `InputError`."""
        noise, known = self.noise, {"rows": self.most, "contributors": self.contributors}
        dimension = self.feature_map.dimension
        return _sum_noise(noise.kind, dimension=dimension, l1_bound=noise.l1_bound, **noise.target, **known)

    def _promised(self) -> Guarantee | NoGuarantee:
        """With contributors what the sum over all promises."""
        unit = protected(self.protect)
        own = _PUBLIC_FEATURES if unit is Unit.LABEL else _PUBLIC_EVEN_TERM
        return self.mechanism().guarantee(unit, Adjacency.REPLACE, (*holding(unit), own, _SHORT_ROWS))
