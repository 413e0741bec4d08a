"""What an aggregator may ask about bags of rows: private label counts, mean embeddings, rows.

A party holds one or several bags, a bag has a public number of rows, and a row is in one bag. Noise and promise follow
from a question alone, so both sides come to the same mechanism without a word about private data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal

from federation.contract.declared import Declared
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, NoGuarantee, Unit
from federation.contract.limits import MOST_BAGS, MOST_CLASSES, MOST_ROWS, whole
from federation.contract.question import OFF, Field, Noise, PrivateQuestion, PublicQuestion
from federation.features.feature_map import FeatureMap
from federation.mechanisms.counts.calibration import CountNoise
from federation.mechanisms.counts.calibration import calibrate as calibrate_counts
from federation.mechanisms.counts.mechanism import CountMechanism
from federation.mechanisms.counts.published_dirichlet import published_guarantee
from federation.mechanisms.noise.additive import AdditiveMechanism, calibrate
from federation.questions.row_premises import UNTIMED

PUBLISHED = "published_dirichlet"  # not differentially private, and drawn by a function of its own
LARGEST_COUNT = 2.0**40  # of rows in a bag, noise included
LARGEST_FEATURE = 2.0**100  # of a row; the squares of much larger ones overflow

_DISJOINT = Assumption("a row lies in one bag of one party", Check.ENFORCED)
_ONE_HOLDER = Assumption("no two parties hold the same row or person", Check.DECLARED)
_SIZES_PUBLIC = Assumption("bag sizes, and which replaced row lies in which bag, are public knowledge", Check.DECLARED)
_DIFFERENT_PEOPLE = Assumption(
    "every row is about another person: what is protected is one row's label", Check.DECLARED
)
_SHORT_ROWS = Assumption("rows behind the public feature map have norm at most 1", Check.ENFORCED)

_ROUNDING = 1e-6  # charged for, relative: norms and sums of rows, and products with the label weight, are rounded


@dataclass(frozen=True)
class Bags:
    """How the rows of a party lie in bags: at most `count` of them, whose sizes are public, over C `classes`.

    `rows_per_person` 0 says that every row is another person's. Otherwise a person's rows count in so many bags at
    most, once in each; its further rows are left out everywhere.

    Raises `InputError` for anything but whole numbers: a person's noise is divided by `rows_per_person`, and of 1.5
    bags a person would be in two. There are 2^20 bags at most, and as many cells of classes in bags.
    """

    count: int
    classes: int
    rows_per_person: int = 0

    def __post_init__(self) -> None:
        whole("count of bags", self.count, 1, MOST_BAGS)
        whole("classes of bags", self.classes, 1, MOST_CLASSES)
        whole("rows_per_person of bags", self.rows_per_person, 0, MOST_BAGS)
        if self.count * self.classes > MOST_BAGS:
            raise InputError(
                f"bags times classes must be at most {MOST_BAGS}, got {self.count} bags of {self.classes} classes"
            )

    def fields(self) -> dict[str, Field]:
        """The number of rows of each bag, 0 for bags that the party does not have."""
        return {"sizes": Field((self.count,), minimum=0.0, maximum=LARGEST_COUNT)}

    def assumes(self) -> Declared:
        """What a question about these bags takes for granted."""
        return Declared(classes=self.classes, bags=self.count, rows_per_person=self.rows_per_person)


@dataclass(frozen=True)
class CountsNoise(Noise):
    """Noise of label counts; `floor` and `pseudo_count` as in `federation.mechanisms.counts.calibration.calibrate`."""

    kind: CountNoise | Literal["published_dirichlet", "off"]
    floor: int | None = None
    pseudo_count: int | None = None


@dataclass(frozen=True)
class CountsQuestion(PrivateQuestion):
    """Release the label counts of your bags under label privacy.

    `counts` of an answer are `draws` estimates of the counts of every bag, each summing to the bag's size.
    """

    kind: ClassVar[str] = "counts"
    noise: CountsNoise
    bags: Bags

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        shape = (self.draws, self.bags.count, self.bags.classes)
        return {**self.bags.fields(), "counts": Field(shape, minimum=-LARGEST_COUNT, maximum=LARGEST_COUNT)}

    def work(self) -> int:
        """The covariance of a bag's counts, and cells of all bags."""
        return self.bags.classes**2 + self.bags.count * self.bags.classes

    def assumes(self) -> Declared:
        """Classes, bags and persons."""
        return self.bags.assumes()

    def simulated_only(self) -> str | None:
        """A floor protects only where it is true."""
        if self.noise.floor is None:
            return None
        return (
            "a floor protects only where it is true, which whoever asks cannot know; outside a simulation use "
            "dirichlet_shifted"
        )

    def mechanism(self) -> CountMechanism:
        """The mechanism of one bag; a person in r bags leaves each of them (epsilon / r, delta / r).

        Raises `InputError` for numbers that the mechanism cannot work with.
        """
        return _counts(self.noise, self.bags)

    def _promised(self) -> Guarantee | NoGuarantee:
        if self.noise.kind == OFF:
            return NoGuarantee("noise is off")
        if self.noise.kind == PUBLISHED:
            return published_guarantee(self.noise.epsilon, self.noise.delta)
        unit = Unit.PERSON if self.bags.rows_per_person else Unit.LABEL
        return _of_all_bags(self.mechanism().guarantee(unit, Adjacency.REPLACE, _holding(self.bags)), self.bags)


@dataclass(frozen=True)
class EmbeddingsQuestion(PublicQuestion):
    """Send the mean of each of your bags behind a public feature map whose rows have norm at most 1.

    No noise: for parties whose features are public, as label privacy takes them to be.
    """

    kind: ClassVar[str] = "embeddings"
    bags: Bags
    feature_map: FeatureMap

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        shape = (self.bags.count, self.feature_map.dimension)
        return {**self.bags.fields(), "means": Field(shape, minimum=-1.0, maximum=1.0)}

    def assumes(self) -> Declared:
        """Classes, bags and persons."""
        return self.bags.assumes()


@dataclass(frozen=True)
class JointNoise(Noise):
    """Gaussian noise on counts and embeddings together."""

    kind: Literal["gaussian"]


@dataclass(frozen=True)
class NoisyEmbeddingsQuestion(PrivateQuestion):
    """Release the label counts and the mean embedding of each of your bags together, under row privacy.

    The Gaussian mechanism of `noise` takes a bag's counts times `label_weight` beside the sum of its rows behind
    the feature map, whose rows have norm at most 1. An answer is that in units of counts and of means.
    """

    kind: ClassVar[str] = "noisy_embeddings"
    noise: JointNoise
    bags: Bags
    feature_map: FeatureMap
    label_weight: float

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        shape = (self.draws, self.bags.count)
        counts, dimension = self.bags.classes, self.feature_map.dimension
        return {
            **self.bags.fields(),
            "counts": Field((*shape, counts), minimum=-LARGEST_COUNT, maximum=LARGEST_COUNT),
            "means": Field((*shape, dimension), minimum=-LARGEST_COUNT, maximum=LARGEST_COUNT),
        }

    def work(self) -> int:
        """The noise of one bag in all draws."""
        return self.draws * (self.bags.classes + self.feature_map.dimension)

    def assumes(self) -> Declared:
        """Classes, bags and persons."""
        return self.bags.assumes()

    def mechanism(self) -> AdditiveMechanism:
        """Gaussian noise on a bag's weighted counts beside the sum of its rows.

        A replaced row moves the sum of rows of norm at most 1 by 2, whatever the bag's size, and the counts by sqrt 2.
        Raises `InputError` for persons in several bags, whose rows this does not protect together.
        """
        if self.bags.rows_per_person:
            raise InputError("protect: row knows no persons; use protect: label, which then protects a person's labels")
        if not 0 < self.label_weight < math.inf:
            raise InputError(f"label_weight must be a positive finite number, got {self.label_weight}")
        return calibrate(
            "gaussian",
            sensitivity=(1 + _ROUNDING) * math.hypot(math.sqrt(2) * self.label_weight, 2),
            dimension=self.bags.classes + self.feature_map.dimension,
            epsilon=self.noise.epsilon,
            delta=self.noise.delta,
        )

    def _promised(self) -> Guarantee:
        premises = (*_holding(self.bags), _SIZES_PUBLIC, _SHORT_ROWS, UNTIMED)
        return _of_all_bags(self.mechanism().guarantee(Unit.ROW, Adjacency.REPLACE, premises), self.bags)


@dataclass(frozen=True)
class RowsQuestion(PublicQuestion):
    """Send the rows of your bags behind a public feature map, without their labels.

    No noise: for parties whose features are public, as label privacy takes them to be. Bags of fewer than `largest`
    rows are filled up with zeros.
    """

    kind: ClassVar[str] = "rows"
    bags: Bags
    feature_map: FeatureMap
    largest: int

    def __post_init__(self) -> None:
        whole("largest, the rows of a bag,", self.largest, 0, MOST_ROWS)

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        shape = (self.bags.count, self.largest, self.feature_map.dimension)
        return {**self.bags.fields(), "rows": Field(shape, minimum=-LARGEST_FEATURE, maximum=LARGEST_FEATURE)}

    def assumes(self) -> Declared:
        """Classes, bags and persons."""
        return self.bags.assumes()


def largest_bag(tile: int) -> int:
    """How many rows of norm 1 may be summed, `tile` at a time, so that the rounding of the sum is charged for.

    In a sum over n rows each passes through less than tile + n / tile + 2 additions, so that the sum errs by n times as
    many 2^-53 (Higham 2002, Section 3.1); for each of two neighbours that is to be 1e-6 of a row.
    """
    most, half = _ROUNDING * 2.0**53 / 1.01, tile / 2 + 1
    return int(tile * (math.sqrt(half**2 + most / tile) - half))


@lru_cache  # all parties of a release have the same
def _counts(noise: CountsNoise, bags: Bags) -> CountMechanism:
    shares = max(1, bags.rows_per_person)
    return calibrate_counts(
        noise.kind,  # type: ignore[arg-type]  # the others have no mechanism
        classes=bags.classes,
        epsilon=noise.epsilon / shares,
        delta=noise.delta / shares,
        floor=noise.floor,
        pseudo_count=noise.pseudo_count,
    )


def _holding(bags: Bags) -> tuple[Assumption, ...]:
    if not bags.rows_per_person:
        return (_DISJOINT, _ONE_HOLDER, _DIFFERENT_PEOPLE)
    text = f"of a person's rows one counts in each of at most {bags.rows_per_person} bags, whatever the labels"
    return (_DISJOINT, _ONE_HOLDER, Assumption(text, Check.ENFORCED))


def _of_all_bags(guarantee: Guarantee, bags: Bags) -> Guarantee:
    """The guarantee of a bag as that of all bags, in all of which one unit can be."""
    shares = max(1, bags.rows_per_person)
    if shares == 1:
        return guarantee
    return replace(
        guarantee,
        epsilon=guarantee.epsilon * shares,
        delta=guarantee.delta * shares,
        parameters={**guarantee.parameters, "bags_per_person": shares},
        gaussian_mu=None,
    )
