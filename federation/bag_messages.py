"""What an aggregator may ask about bags of rows: private label counts, mean embeddings, rows.

A party holds one or several bags, a bag has a public number of rows, and a row is in one bag.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from federation.errors import InputError
from federation.features import FeatureMap
from federation.messages import Field

LARGEST_COUNT = 2.0**40  # of rows in a bag, noise included
LARGEST_FEATURE = 2.0**100  # of a row; the squares of much larger ones overflow


@dataclass(frozen=True)
class Bags:
    """How the rows of a party lie in bags: at most `count` of them, whose sizes are public, over C `classes`.

    `rows_per_person` 0 says that every row is another person's. Otherwise a person's rows count in so many bags at
    most, once in each; its further rows are left out everywhere.

    Raises `InputError` for anything but whole numbers: a person's noise is divided by `rows_per_person`, and of 1.5
    bags a person would be in two.
    """

    count: int
    classes: int
    rows_per_person: int = 0

    def __post_init__(self) -> None:
        for name, least in (("count", 1), ("classes", 1), ("rows_per_person", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(f"{name} of bags must be a whole number from {least}, got {value!r}")

    def fields(self) -> dict[str, Field]:
        """The number of rows of each bag, 0 for bags that the party does not have."""
        return {"sizes": Field((self.count,), minimum=0.0, maximum=LARGEST_COUNT)}


@dataclass(frozen=True)
class Noising:
    """How a party makes its answer private: numbers for its mechanism, all of them public, and how often.

    `mechanism` holds the arguments of the mechanism's calibration. `draws` independent answers are asked for, more
    than one in a simulation only. `purpose` names the release: with the party's number it keys the noise of a
    simulation; `seeded` false asks for noise from the operating system there too.
    """

    mechanism: Mapping[str, Any]
    draws: int
    purpose: str
    seeded: bool


@dataclass(frozen=True)
class CountsQuestion:
    """Release the label counts of your bags under label privacy.

    `counts` of an answer are `noising.draws` estimates of the counts of every bag, each summing to the bag's size.
    """

    kind: ClassVar[str] = "counts"
    bags: Bags
    noising: Noising

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        shape = (self.noising.draws, self.bags.count, self.bags.classes)
        return {**self.bags.fields(), "counts": Field(shape, minimum=-LARGEST_COUNT, maximum=LARGEST_COUNT)}


@dataclass(frozen=True)
class EmbeddingsQuestion:
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


@dataclass(frozen=True)
class NoisyEmbeddingsQuestion:
    """Release the label counts and the mean embedding of each of your bags together, under row privacy.

    The Gaussian mechanism of `noising` takes a bag's counts times `label_weight` beside the sum of its rows behind
    the feature map, whose rows have norm at most 1. An answer is that in units of counts and of means.
    """

    kind: ClassVar[str] = "noisy_embeddings"
    bags: Bags
    feature_map: FeatureMap
    label_weight: float
    noising: Noising

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        shape = (self.noising.draws, self.bags.count)
        counts, dimension = self.bags.classes, self.feature_map.dimension
        return {
            **self.bags.fields(),
            "counts": Field((*shape, counts), minimum=-LARGEST_COUNT, maximum=LARGEST_COUNT),
            "means": Field((*shape, dimension), minimum=-LARGEST_COUNT, maximum=LARGEST_COUNT),
        }


@dataclass(frozen=True)
class RowsQuestion:
    """Send the rows of your bags behind a public feature map, without their labels.

    No noise: for parties whose features are public, as label privacy takes them to be. Bags of fewer than `largest`
    rows are filled up with zeros.
    """

    kind: ClassVar[str] = "rows"
    bags: Bags
    feature_map: FeatureMap
    largest: int

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        shape = (self.bags.count, self.largest, self.feature_map.dimension)
        return {**self.bags.fields(), "rows": Field(shape, minimum=-LARGEST_FEATURE, maximum=LARGEST_FEATURE)}
