"""What an aggregator may ask about errors of a hypothesis on rows of two classes: their numbers in bins of features.

Hypotheses in plain arrays: classifiers that may cross between an aggregator and its parties.

Nothing is ever unpickled: a hypothesis is a ReLU network, of which linear and constant ones are special cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit, holding, protected
from federation.contract.query import Declared, Field, Noise, PrivateQuestion, whole, within
from federation.features.feature_map import FeatureMap
from federation.mechanisms.marginals import shared_noise
from federation.mechanisms.marginals.noise import MarginalNoise, calibrate
from federation.mechanisms.marginals.published import PublishedRates
from federation.mechanisms.marginals.shared_noise import SharedMarginalNoise
from federation.mechanisms.sums import shares
from federation.numerics.binning import Bins
from federation.queries.bags import LARGEST_COUNT

_MOST_PARAMETERS = 2**24
_WIDEST = 2**12  # what a tile of rows needs in memory


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A classifier of features (n, d): class 1 where the output of a ReLU network is 0 or more, else class 0.

    `sizes` (L + 1,) int64 are d, the widths of the hidden layers, and 1. `parameters` (P,) float64 hold for each of the
    L layers its matrix (in, out) row by row, then its offsets (out,). A row's class is the same whatever rows come with
    it. Raises `InputError` when these do not fit, a hidden layer is wider than 4096 or a parameter is not finite.

    Examples:
        >>> linear = Hypothesis.of([np.array([[1.0], [-1.0]])], [np.array([0.5])])
        >>> linear
        Hypothesis(2 -> 1)
        >>> linear.predict(np.array([[0.0, 0.0], [0.0, 1.0]]))
        array([1, 0])
    """

    sizes: np.ndarray
    parameters: np.ndarray

    def __post_init__(self) -> None:
        sizes, parameters = self.sizes, self.parameters
        if sizes.ndim != 1 or len(sizes) < 2 or sizes.dtype.kind not in "iu" or sizes.min() < 1 or sizes[-1] != 1:
            raise InputError(
                f"sizes of a hypothesis must be whole numbers from 1 that end with 1, got {sizes.tolist()}"
            )
        if sizes[1:].max() > _WIDEST:
            raise InputError(f"a hidden layer may be {_WIDEST} wide, got {sizes[1:].max()}; use smaller layers")
        needed = sum((inputs + 1) * outputs for inputs, outputs in pairwise(sizes.tolist()))
        if needed > _MOST_PARAMETERS:
            raise InputError(f"a hypothesis may have {_MOST_PARAMETERS} parameters, got {needed}; use smaller layers")
        if parameters.shape != (needed,) or parameters.dtype != np.float64:
            raise InputError(f"a hypothesis of sizes {sizes.tolist()} has {needed} parameters, got {parameters.shape}")
        if not np.isfinite(parameters).all():
            raise InputError(
                "parameters of a hypothesis must be finite, got NaN or infinity: its training has diverged"
            )

    def __repr__(self) -> str:
        return f"Hypothesis({' -> '.join(map(str, self.sizes.tolist()))})"

    @classmethod
    def of(cls, matrices: Sequence[np.ndarray], offsets: Sequence[np.ndarray]) -> Hypothesis:
        """From the matrices (in, out) and offsets (out,) of its layers. Raises `InputError` when they do not fit."""
        if not matrices or len(matrices) != len(offsets):
            raise InputError(f"a hypothesis needs one offset per matrix, got {len(matrices)} and {len(offsets)}")
        sizes = [matrices[0].shape[0], *(matrix.shape[1] for matrix in matrices)]
        parts = [np.ravel(part) for pair in zip(matrices, offsets, strict=True) for part in pair]
        return cls(np.array(sizes, dtype=np.int64), np.concatenate(parts).astype(np.float64))

    @classmethod
    def constant(cls, dimension: int, label: int) -> Hypothesis:
        """The hypothesis that says `label`, 0 or 1, of every row of `dimension` features."""
        return cls.of([np.zeros((dimension, 1))], [np.array([1.0 if label else -1.0])])

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """The network's output (n,) for features (n, d). Raises `InputError` for another number of features."""
        if rows.ndim != 2 or rows.shape[1] != self.sizes[0]:
            raise InputError(f"the hypothesis takes {self.sizes[0]} features, got rows of shape {rows.shape}")
        values, start = np.asarray(rows, dtype=np.float64), 0
        for layer, (inputs, outputs) in enumerate(pairwise(self.sizes.tolist())):
            matrix = self.parameters[start : start + inputs * outputs].reshape(inputs, outputs)
            start += (inputs + 1) * outputs
            with np.errstate(over="ignore", invalid="ignore"):
                # One product per row: in one of all rows their number decides how sums are rounded, and a bit more or
                # less could turn the class of every row, so that a count of errors would tell how many rows there are.
                values = np.matmul(values[:, None, :], matrix)[:, 0, :] + self.parameters[start - outputs : start]
            if layer < len(self.sizes) - 2:
                values = np.maximum(values, 0.0)
        return values[:, 0]

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """Classes 0 or 1 (n,) int64 of features (n, d); 0 where the output is no number. Raises as `scores`."""
        return (self.scores(rows) >= 0).astype(np.int64)

    def with_share(self, rows: np.ndarray, weights: np.ndarray, share: float) -> Hypothesis:
        """With the last offset moved so that rows (n, d) of about that share of the weights (n,) are of class 1.

        Those of the largest outputs; rows of equal outputs stay together. `share` in (0, 1). The hypothesis itself
        where that is no row or all, and where outputs are not finite.
        """
        scores = self.scores(rows)
        falling = np.argsort(-scores, kind="stable")
        above = int(np.searchsorted(np.cumsum(weights[falling]), share))
        if not (0 < above < len(falling) and np.isfinite(scores).all()):
            return self
        parameters = self.parameters.copy()
        parameters[-1] -= scores[falling[above - 1]] / 2 + scores[falling[above]] / 2
        return Hypothesis(self.sizes, parameters)


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
        >>> from federation.contract.query import ReleaseId
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
