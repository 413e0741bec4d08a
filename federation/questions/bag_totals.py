"""What an aggregator may ask about bags that are the same at all parties, for a sum that only shows itself.

A party adds its share of one noise to the label counts of every bag, its own or not: of a bag of which it has no row
zeros with a share, so that nobody sees which bags it has.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal

from federation.contract.declared import Declared
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Keeper, Unit
from federation.contract.limits import whole
from federation.contract.question import OFF, Field, Noise, PrivateQuestion, within
from federation.features.feature_map import FeatureMap
from federation.mechanisms.moments import bag_totals, shares
from federation.mechanisms.moments.bag_totals import SharedBagNoise
from federation.questions.bags import LARGEST_COUNT, SHORT_ROWS, BagQuestion, Bags, counted_once
from federation.questions.row_premises import UNTIMED, protected

SUM_STEP = 2.0**-26  # of sums of rows without noise: their total over the parties is exact, in any order

_counts = lru_cache(bag_totals.calibrate)  # all parties of a release have the same
_rows = lru_cache(bag_totals.calibrate_rows)

_ALL_BAGS = Assumption(
    "a party answers about every bag, with a share of the noise, whether it has rows of it or not", Check.ENFORCED
)
_PUBLIC_BAGS = Assumption(
    "which bags there are, how many rows all parties together have in each, and in which one a row lies, are public: "
    "only labels are protected",
    Check.DECLARED,
    Keeper.HOLDER,
)
_PUBLIC_NUMBER = Assumption(
    "which bags there are, how many rows a party has, and how many of a bag at most, are public; in which bag a row "
    "lies is not, and no number of rows is sent but in counts with noise",
    Check.DECLARED,
    Keeper.HOLDER,
)


@dataclass(frozen=True)
class TotalsNoise(Noise):
    """Noise of numbers of all bags: `pure` (discrete Laplace), `gaussian` (discrete), the less of both, or `off`."""

    kind: Literal["auto", "pure", "gaussian", "off"]


@dataclass(frozen=True)
class BagTotalsQuestion(BagQuestion, PrivateQuestion):
    """Base: send what you have of each bag, with shares of a noise of which `contributors` are the whole."""

    noise: TotalsNoise
    bags: Bags
    contributors: int

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("contributors", self.contributors, 1, shares.MOST)

    @property
    def protects_rows(self) -> bool:
        """Whether a whole row is protected, with the bag that it lies in."""
        return False

    @property
    def longest(self) -> float:
        """How much one row adds to a number at most."""
        return 1.0

    def fields(self) -> dict[str, Field]:
        """The arrays of an answer: noisy counts of each draw, and where labels alone are protected rows of each bag."""
        counts = {"counts": within(LARGEST_COUNT, self.draws, self.bags.count, self.bags.classes)}
        return counts if self.protects_rows else {**self.bags.fields(), **counts}

    def work(self) -> int:
        """The numbers of all bags."""
        return self.bags.count * self.bags.classes

    def assumes(self) -> Declared:
        """Classes, bags and persons, and how many parties share the noise."""
        return replace(self.bags.assumes(), honest=self.contributors)

    @property
    def steps(self) -> Mapping[str, float]:
        """All fields are summed unseen: those without noise, too, which say in which bags a party has rows."""
        if not self.noise.aims:
            return {}
        step = self.mechanism().step
        exact = {} if self.protects_rows else {"sizes": 1.0, "sums": SUM_STEP}
        return {name: exact.get(name, step) for name in self.fields()}

    @abstractmethod
    def mechanism(self) -> SharedBagNoise:
        """A party's share of the noise on the sum over parties. Raises `InputError`."""

    def _promised(self) -> Guarantee:
        """What the sum over all promises."""
        if self.protects_rows:
            premises = (*counted_once(self.bags), _ALL_BAGS, _PUBLIC_NUMBER, SHORT_ROWS, UNTIMED)
            return self.mechanism().guarantee(Unit.ROW, Adjacency.REPLACE, premises)
        unit = Unit.PERSON if self.bags.rows_per_person else Unit.LABEL
        premises = (*counted_once(self.bags), _ALL_BAGS, _PUBLIC_BAGS)
        return self.mechanism().guarantee(unit, Adjacency.REPLACE, premises)


@dataclass(frozen=True)
class CountTotalsQuestion(BagTotalsQuestion):
    """The label counts of every bag, and how many rows it has.

    Examples:
        >>> from federation.contract.question import ReleaseId
        >>> noise, release = TotalsNoise("pure", 1.0), ReleaseId("a release")
        >>> question = CountTotalsQuestion(noise, Bags(4, 2), contributors=80, release=release)
        >>> question.steps, question.hidden_numbers, str(question.promise().unit)
        ({'sizes': 1.0, 'counts': 3.0517578125e-05}, 12, 'label')
    """

    kind: ClassVar[str] = "count_totals"

    def mechanism(self) -> SharedBagNoise:
        """On each count of each bag."""
        noise, persons = self.noise, self.bags.shares
        return _counts(noise.kind, **noise.target, contributors=self.contributors, rows_per_person=persons)


@dataclass(frozen=True)
class EmbeddingTotalsQuestion(BagTotalsQuestion):
    """The label counts of every bag beside the sum of its rows behind a public feature map, of norm at most 1.

    Where a whole "row" is protected, Gaussian noise is on both, and on the counts times `label_weight`; how many rows a
    bag has is not sent. Where one "label" is, the weight is 0, and there is noise on the counts only.

    Raises `InputError` for rows of persons, under other noise or without a positive weight, and for labels with one.

    Examples:
        >>> from federation.contract.question import ReleaseId
        >>> known = {"feature_map": FeatureMap(3, ()), "contributors": 80, "release": ReleaseId("a release")}
        >>> noise = TotalsNoise("gaussian", 1.0, 1e-6)
        >>> rows = EmbeddingTotalsQuestion(noise, Bags(4, 2), protect="row", label_weight=1.0, **known)
        >>> {name: field.shape for name, field in rows.fields().items()}, str(rows.promise().unit)
        ({'counts': (1, 4, 2), 'sums': (1, 4, 3)}, 'row')
        >>> labels = EmbeddingTotalsQuestion(noise, Bags(4, 2), protect="label", label_weight=0.0, **known)
        >>> {name: field.shape for name, field in labels.fields().items()}, str(labels.promise().unit)
        ({'sizes': (4,), 'counts': (1, 4, 2), 'sums': (4, 3)}, 'label')
    """

    kind: ClassVar[str] = "embedding_totals"
    feature_map: FeatureMap
    protect: Literal["label", "row"]
    label_weight: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.protects_rows:
            if self.label_weight:
                raise InputError(f"label_weight is for protect: row, got {self.label_weight}; use 0 for labels")
            return
        if self.bags.rows_per_person:
            raise InputError("protect: row knows no persons; use protect: label, which then protects a person's labels")
        if self.noise.kind not in ("gaussian", OFF):
            raise InputError(f"protect: row takes gaussian noise, got {self.noise.kind}; it covers labels and features")
        if not 0 < self.label_weight < math.inf:
            raise InputError(f"label_weight must be a positive finite number, got {self.label_weight}")

    @property
    def protects_rows(self) -> bool:
        """As declared."""
        return protected(self.protect) is Unit.ROW

    @property
    def takes_features_as_public(self) -> bool:
        """Unless whole rows are protected."""
        return not self.protects_rows

    @property
    def longest(self) -> float:
        """To a weighted count or an entry of a sum."""
        return max(1.0, self.label_weight)

    def fields(self) -> dict[str, Field]:
        """Those of counts, and the sums of rows, of each draw where there is noise on them."""
        draws = (self.draws,) if self.protects_rows else ()
        return {**super().fields(), "sums": within(LARGEST_COUNT, *draws, self.bags.count, self.feature_map.dimension)}

    def work(self) -> int:
        """The numbers of all bags."""
        return self.bags.count * (self.bags.classes + self.feature_map.dimension)

    def mechanism(self) -> SharedBagNoise:
        """On each count of each bag or, of rows, on each weighted count and each entry of a sum."""
        noise, known = self.noise, {"contributors": self.contributors, **self.noise.target}
        if not self.protects_rows:
            return _counts(noise.kind, rows_per_person=self.bags.shares, **known)
        return _rows(label_weight=self.label_weight, numbers=self.bags.classes + self.feature_map.dimension, **known)
