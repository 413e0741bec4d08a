"""What an aggregator may ask about rows of two classes: their mean operator, the sum of y x with y = 1 or -1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from federation.bag_messages import Noising
from federation.features import FeatureMap
from federation.messages import Field

_LARGEST = 2.0**80  # of a sum over a party's rows, noise included


@dataclass(frozen=True)
class MomentQuestion:
    """Send the sum of y x over your rows x behind the public feature map, with noise (Patrini et al. 2015, Alg. 2).

    y is 1 for the second of two classes and -1 for the first. Rows longer than 1 are cut to norm 1; at most `most` rows
    are at a party. `protect` says whether one "label" is protected, features being public, or one whole "row".
    `contributors` 0 asks for a party's whole noise. Otherwise it asks for one share, so many of which hide what one
    whole noise hides: for a summation that reveals only the sum over the parties.
    """

    kind: ClassVar[str] = "mean_operator"
    feature_map: FeatureMap
    most: int
    protect: str
    contributors: int
    noising: Noising

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry: the party's public number of rows, and a sum for each draw."""
        shape = (self.noising.draws, self.feature_map.dimension)
        return {
            "size": Field((), minimum=1.0, maximum=float(self.most)),
            "sums": Field(shape, minimum=-_LARGEST, maximum=_LARGEST),
        }
