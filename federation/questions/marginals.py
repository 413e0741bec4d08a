"""What an aggregator may ask about errors of a hypothesis on rows of two classes: their numbers in bins of features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal

from federation.contract.declared import Declared
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from federation.contract.limits import whole
from federation.contract.question import Field, Noise, PrivateQuestion, within
from federation.features.feature_map import FeatureMap
from federation.mechanisms.marginals import shared_noise
from federation.mechanisms.marginals.noise import MarginalNoise, calibrate
from federation.mechanisms.marginals.published import PublishedRates
from federation.mechanisms.marginals.shared_noise import SharedMarginalNoise
from federation.mechanisms.moments import shares
from federation.numerics.binning import Bins
from federation.questions.bags import LARGEST_COUNT
from federation.questions.hypotheses import Hypothesis
from federation.questions.row_premises import holding, protected

PUBLISHED = "published"

ExchangeNoise = MarginalNoise | PublishedRates | SharedMarginalNoise


@dataclass(frozen=True)
class MarginalsNoise(Noise):
    """Noise of counts in bins; epsilon and delta are those of all queries of a release together."""

    kind: Literal["auto", "pure", "gaussian", "published", "off"]


@dataclass(frozen=True)
class MarginalsQuestion(PrivateQuestion):
    """Count rows, and errors of a hypothesis, in the bins of each public feature (Lacombe et al. 2021, Sec. 3).

    `asks` is "rows" for the former alone, or "errors" for both. Protected is one whole "row", which is added or removed
    or replaced as `adjacency` says, or one "label"; features are then public, and so are numbers of rows. It is one
    query of its release, an exchange. `contributors` 0 asks for a party's whole noise. Otherwise it asks for one share,
    so many of which hide what one whole noise hides: for a summation that reveals only the sum over the parties.

    Raises `InputError` when map, bins and hypothesis are not of one number of features (found out at the rows, it would
    tell that there are some), and for shares of published rates.

    Examples:
        >>> import numpy as np
        >>> from federation.contract.question import ReleaseId
        >>> rows = np.random.default_rng(0).normal(size=(100, 2))
        >>> question = MarginalsQuestion(
        ...     MarginalsNoise("auto", 1.0, 1e-6), FeatureMap(2, ()), Bins.fit(rows, 5), "errors",
        ...     Hypothesis.constant(2, 1), "row", "add_remove", release=ReleaseId("an exchange", queries=4, query=0),
        ... )
        >>> question.fields()["errors"].shape  # of both features
        (10,)
        >>> question.payment().epsilon > question.promise().epsilon  # of all four queries, and of this one
        True
    """

    kind: ClassVar[str] = "error_marginals"
    in_rounds: ClassVar[bool] = True
    varies: ClassVar[tuple[str, ...]] = ("hypothesis", "release.query", "asks")
    noise: MarginalsNoise
    feature_map: FeatureMap
    bins: Bins
    asks: Literal["rows", "errors"]
    hypothesis: Hypothesis
    protect: Literal["row", "label"]
    adjacency: Literal["add_remove", "replace"]
    contributors: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("contributors", self.contributors, 0, shares.MOST)
        if self.contributors and self.noise.kind == PUBLISHED:
            raise InputError(
                f"published rates are of one party's rows and cannot be added, got contributors {self.contributors}; "
                "ask for counts with noise auto, pure or gaussian"
            )
        if self.draws != 1:
            raise InputError(f"a query is answered once, got {self.draws} draws; begin a release for each")
        features = (self.feature_map.dimension, len(self.bins.sizes), int(self.hypothesis.sizes[0]))
        if len(set(features)) > 1:
            raise InputError(
                "feature map, bins and hypothesis of a query must be of one number of features, got {}, {} and {}; ask "
                "about the same features".format(*features)
            )

    @property
    def takes_features_as_public(self) -> bool:
        """Unless whole rows are protected."""
        return protected(self.protect) is Unit.LABEL

    def fields(self) -> dict[str, Field]:
        """The arrays an answer may carry, of as many entries as there are bins; as published, errors are rates."""
        counts = within(LARGEST_COUNT, self.bins.total)
        if self.asks == "rows":
            return {"rows": counts}
        if self.noise.kind == PUBLISHED:
            return {"rates": Field(counts.shape, minimum=0.0, maximum=1.0), "rows": counts}
        return {"errors": counts, "rows": counts}

    @property
    def steps(self) -> Mapping[str, float]:
        """That of the noise which is shared, if any is; numbers of rows are public where labels are protected."""
        noise = self.mechanism() if self.contributors and self.noise.aims else None
        if not isinstance(noise, SharedMarginalNoise):
            return {}
        return {name: noise.step for name in self.fields() if name == "errors" or noise.unit is Unit.ROW}

    def assumes(self) -> Declared:
        """How many parties share a noise."""
        return Declared(honest=self.contributors or None)

    def mechanism(self) -> ExchangeNoise:
        """The noise on each answer of the exchange. Raises `InputError` for numbers that it cannot work with."""
        known = (self.noise, len(self.bins.sizes), self.release.queries, self.protect, self.adjacency)
        return exchange_noise(*known, self.contributors)

    def _promised(self) -> Guarantee | NoGuarantee:
        """What this one answer promises."""
        promised = self.mechanism().per_query(holding(protected(self.protect)))
        release = self.release
        known: dict[str, float | int | str] = {"exchange": release.name, "query": release.query}
        known["queries"] = release.queries
        return replace(promised, parameters=promised.parameters | known)

    def _paid(self) -> Guarantee | NoGuarantee:
        """What all answers of the exchange promise together."""
        return self.mechanism().guarantee(holding(protected(self.protect)))


@lru_cache  # all parties of an exchange have the same
def exchange_noise(
    noise: MarginalsNoise, features: int, queries: int, protect: str, adjacency: str, contributors: int = 0
) -> ExchangeNoise:
    """The noise on each answer, before anything is asked. Raises `InputError` as `MarginalsQuestion.mechanism`."""
    unit = protected(protect)
    if adjacency not in tuple(Adjacency):
        raise InputError(f"adjacency must be {' or '.join(Adjacency)}, got {adjacency!r}")
    if noise.kind == PUBLISHED:
        rates = PublishedRates(features, queries, noise.epsilon)
        rates.guarantee(unit=unit, adjacency=Adjacency(adjacency))  # refuses units that it does not protect
        return rates
    known = {"features": features, "queries": queries, **noise.target, "unit": unit, "adjacency": Adjacency(adjacency)}
    if contributors:
        return shared_noise.calibrate(noise.kind, contributors=contributors, **known)
    return calibrate(noise.kind, **known)  # type: ignore[arg-type]  # there is none of "off"
