"""What an aggregator may ask in rounds: how many rows, and how many errors of a hypothesis, lie in each bin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from federation.bag_messages import LARGEST_COUNT, Noising
from federation.errors import InputError
from federation.features import FeatureMap
from federation.hypotheses import Hypothesis
from federation.messages import Field
from federation.numerics.binning import Bins

PUBLISHED = "published"
_LONGEST_NAME = 1000


@dataclass(frozen=True)
class Exchange:
    """Queries whose number is agreed beforehand; this is the one numbered `query` of 0..`queries`-1.

    `name` is that of the exchange, with which a party counts its queries. Raises `InputError` for a query beyond the
    last: noise is for so many, and no further one is answered.
    """

    name: str
    queries: int
    query: int

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not 0 < len(self.name) <= _LONGEST_NAME:
            raise InputError(f"an exchange needs a name of 1 to {_LONGEST_NAME} characters; give it one")
        for name, value in (("queries", self.queries), ("query", self.query)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise InputError(f"{name} of an exchange must be a whole number, got {value!r}")
        if not 0 <= self.query < self.queries:
            raise InputError(
                f"query {self.query + 1} is refused: {self.queries} were agreed on for this exchange; begin a new one, "
                "whose noise is paid for again"
            )


@dataclass(frozen=True)
class MarginalsQuestion:
    """Count rows, and errors of a hypothesis, in the bins of each public feature (Lacombe et al. 2021, Sec. 3).

    `asks` is "rows" for the former alone, or "errors" for both. Protected is one whole "row", which is added or removed
    or replaced as `adjacency` says, or one "label"; features are then public, and so are numbers of rows.
    `noising.mechanism` holds the epsilon and delta of all queries of the `exchange` together.

    Raises `InputError` when map, bins and hypothesis are not of one number of features: found out at the rows, it would
    tell that there are some.
    """

    kind: ClassVar[str] = "error_marginals"
    feature_map: FeatureMap
    bins: Bins
    asks: str
    hypothesis: Hypothesis
    exchange: Exchange
    protect: str
    adjacency: str
    noising: Noising

    def __post_init__(self) -> None:
        features = (self.feature_map.dimension, len(self.bins.sizes), int(self.hypothesis.sizes[0]))
        if len(set(features)) > 1:
            raise InputError(
                "feature map, bins and hypothesis of a query must be of one number of features, got {}, {} and {}; ask "
                "about the same features".format(*features)
            )

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry, of as many entries as there are bins; as published, errors are rates."""
        counts = Field((self.bins.total,), minimum=-LARGEST_COUNT, maximum=LARGEST_COUNT)
        if self.asks == "rows":
            return {"rows": counts}
        if self.noising.mechanism["noise"] == PUBLISHED:
            return {"rates": Field(counts.shape, minimum=0.0, maximum=1.0), "rows": counts}
        return {"errors": counts, "rows": counts}
