"""What an aggregator may ask about rows with real labels: bag sums, weighted sums, private labels, a noisy sum X'y.

Features are public, labels lie in a declared public range, and a row is at one party.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from federation.bag_messages import LARGEST_FEATURE, Noising
from federation.features import FeatureMap
from federation.messages import Field

_LARGEST = 2.0**80  # of sums over a party's rows, noise included
_LARGEST_WEIGHT = 9.0  # normal weights are drawn by 52 bits, and none is beyond 8.3


@dataclass(frozen=True)
class LabelledRows:
    """Rows behind a public feature map with labels in [lowest, highest], both public; at most `most` at a party."""

    feature_map: FeatureMap
    lowest: float
    highest: float
    most: int

    @property
    def label_range(self) -> tuple[float, float]:
        """(lowest, highest)."""
        return self.lowest, self.highest


@dataclass(frozen=True)
class BagSums:
    """How a party forms bags: m = `bags` disjoint ones of k = `size` rows, with `weights` "signs" or "gaussian".

    Of its rows the first `records` take part, as many as every party has. Where that is 0, a party forms as many bags
    as it can, up to m, and all rows that take part are in bags. `per_bag` labels of each bag get noise, or, where that
    is 0, the same `noisy` rows of all, drawn without labels.
    """

    records: int
    bags: int
    size: int
    weights: str
    per_bag: int
    noisy: int

    def formed(self, rows: int) -> int:
        """How many bags a party with so many rows forms; 0 where they are too few."""
        if self.records:
            return self.bags if rows >= self.records else 0
        return min(rows // self.size, self.bags)

    def taking_part(self, formed: int) -> int:
        """How many rows of a party that forms so many bags take part."""
        return self.records or formed * self.size

    def fields(self) -> dict[str, Field]:
        """How many bags there are; the others are filled up with zeros."""
        return {"formed": Field((), minimum=1.0, maximum=float(self.bags))}


@dataclass(frozen=True)
class BagSumsQuestion:
    """Form bags, weigh their rows, and send rows, weights and noisy weighted label sums (Brahmbhatt et al., Fig. 2).

    Bags are the same for all draws of `noising`, weights and noise are fresh in each.
    """

    kind: ClassVar[str] = "bag_sums"
    rows: LabelledRows
    design: BagSums
    noising: Noising

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        design, draws = self.design, self.noising.draws
        rows = Field(
            (design.bags, design.size, self.rows.feature_map.dimension),
            minimum=-LARGEST_FEATURE,
            maximum=LARGEST_FEATURE,
        )
        largest = 1.0 if design.weights == "signs" else _LARGEST_WEIGHT
        weights = Field((draws, design.bags, design.size), minimum=-largest, maximum=largest)
        return {**design.fields(), "rows": rows, "weights": weights, "sums": _real(draws, design.bags)}


@dataclass(frozen=True)
class WeightedSumsQuestion:
    """Form bags, weigh their rows with secret Gaussian weights, and send sums of rows and labels (ibid., Fig. 1).

    Bags and weights are fresh in each draw of `noising`, and nobody learns them.
    """

    kind: ClassVar[str] = "weighted_sums"
    rows: LabelledRows
    design: BagSums
    noising: Noising

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        shape = (self.noising.draws, self.design.bags)
        sums = {"row_sums": _real(*shape, self.rows.feature_map.dimension), "label_sums": _real(*shape)}
        return {**self.design.fields(), **sums}


@dataclass(frozen=True)
class PrivateLabelsQuestion:
    """Send your rows with labels that are made private one by one; fewer than `rows.most` are filled up with zeros."""

    kind: ClassVar[str] = "private_labels"
    rows: LabelledRows
    noising: Noising

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        most, dimension = self.rows.most, self.rows.feature_map.dimension
        rows = Field((most, dimension), minimum=-LARGEST_FEATURE, maximum=LARGEST_FEATURE)
        return {"size": Field((), minimum=1.0, maximum=most), "rows": rows, "labels": _real(self.noising.draws, most)}


@dataclass(frozen=True)
class LabelSumsQuestion:
    """Send X'X of your public rows and X'y with noise in a `shape` that hides every label."""

    kind: ClassVar[str] = "label_sums"
    rows: LabelledRows
    shape: str
    noising: Noising

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry."""
        dimension = self.rows.feature_map.dimension
        return {
            "size": Field((), minimum=1.0, maximum=self.rows.most),
            "gram": _real(dimension, dimension),
            "moment": _real(self.noising.draws, dimension),
        }


def _real(*shape: int) -> Field:
    return Field(shape, minimum=-_LARGEST, maximum=_LARGEST)
