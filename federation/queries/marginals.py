"""Queries about the errors of a hypothesis on rows of two classes, counted in bins of features; and hypotheses.

A `Hypothesis` is a classifier in plain arrays that can cross between an aggregator and its parties. It is a ReLU
network, of which linear and constant classifiers are special cases. The receiver never unpickles anything.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit, holding, protected
from federation.contract.honest import BEYOND, REACH, Arrays, Honest, PartySize, Range, Spread
from federation.contract.query import Declared, Field, Noise, PrivateQuestion, whole, within
from federation.features.feature_map import FeatureMap
from federation.mechanisms.marginals import shared_noise
from federation.mechanisms.marginals.noise import MarginalNoise, calibrate
from federation.mechanisms.marginals.published import PublishedRates
from federation.mechanisms.marginals.shared_noise import SharedMarginalNoise
from federation.mechanisms.noise.reach import (
    entry_reach,
    gaussian_pair_tail,
    gaussian_tail,
    laplace_pair_tail,
    laplace_tail,
    norm_reach,
)
from federation.mechanisms.sums import shares
from federation.numerics.binning import Bins
from federation.numerics.rows import Booleans, Floats
from federation.queries.bags import LARGEST_COUNT

_GRID = 2.0**20  # published rates times rows are multiples of its inverse: their sum is the same in any order
_HALVES = 0.5  # what is scaled is rounded to these
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
    hypothesis: "Hypothesis"
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

    def honest(self, public: PartySize) -> "HonestMarginals":
        """Counts of as many rows as a party has at most."""
        return HonestMarginals(self, public.rows)

    def assumes(self) -> Declared:
        """How many parties share a noise."""
        return Declared(honest=self.contributors or None)

    def mechanism(self) -> ExchangeNoise:
        """The noise on each answer of the exchange. Raises `InputError` for numbers that it cannot work with."""
        known = (self.noise, len(self.bins.sizes), self.release.queries, self.protect, self.adjacency)
        return exchange_noise(*known, self.contributors)

    def noised(self, arrays: Arrays) -> np.ndarray:
        """Errors and, where these are private as well, correct rows in all cells; errors even where rates are sent."""
        rows = arrays["rows"]
        errors = np.rint(arrays["rates"] * rows) if "rates" in arrays else arrays["errors"]
        cells = errors if self.takes_features_as_public else np.stack([errors, rows - errors], axis=-1)
        return cells.reshape(len(cells), -1)

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


class HonestMarginals(Honest):
    """Numbers of errors and of rows per bin, of parties of at most `most` rows each.

    Noise takes a number of errors, or of correct rows, 40 standard deviations further than an honest one at most.
    Numbers of rows without noise are those of the same rows in the bins of every feature.

    Where numbers of rows are public, `parts` is "surplus": errors less half the rows, whose entries lie within half the
    rows of a bin without noise. Elsewhere errors and correct rows have independent noise, and parts are "surplus",
    errors less correct rows, and "rows", both together: in each the noise of an entry is the sum of two. A party's rows
    are in one bin of each feature, so that neither part is longer than `most` times the root of the number of features.
    Published rates are clipped anyway, and have no parts.
    """

    def __init__(self, query: MarginalsQuestion, most: int) -> None:
        self._query, self._most = query, most
        self._public, features = query.takes_features_as_public, len(query.bins.sizes)
        noise = query.mechanism() if query.noise.aims else None
        self._reach = 0.0 if noise is None else REACH * noise.deviation
        self.longest, self.most = math.sqrt(features), float(most)  # a row is in one bin of each feature
        if isinstance(noise, SharedMarginalNoise):
            self.variance = noise.deviation**2
        if isinstance(noise, MarginalNoise):
            self._noise, self._paired = noise, not self._public and query.asks == "errors"
            surplus = ("surplus",) if query.asks == "errors" else ()
            parts = (*surplus, *(() if self._public else ("rows",)))  # rows are public, or have noise
            self.widths = dict.fromkeys(parts, query.bins.total)
            self.variance = noise.deviation**2 * (2 if self._paired else 1)

    def plausible(self, arrays: Arrays) -> Booleans:
        """Those of whole numbers that so many rows and the noise can reach."""
        rows, errors = arrays.get("rows"), arrays.get("errors")
        fine = super().plausible(arrays)
        if rows is not None and (self._public or not self._reach):
            totals = np.add.reduceat(rows, self._query.bins.starts, axis=1)
            fine &= ((totals == totals[:, :1]) & (totals <= self._most)).all(axis=1) & self._possible(rows, 0.0)
        elif rows is not None and errors is None:
            fine &= self._possible(rows, self._reach)
        if rows is not None and errors is not None:
            fine &= self._possible(errors, self._reach) & self._possible(rows - errors, self._reach)
        return fine

    def added(self, arrays: Arrays) -> Arrays:
        """Numbers of errors in place of published rates, on a grid."""
        if "rates" not in arrays:
            return arrays
        return {**arrays, "rates": np.rint(arrays["rates"] * arrays["rows"] * _GRID) / _GRID}

    def bounded(self, arrays: Arrays) -> tuple[dict[str, Floats], Booleans]:
        """The parts within the range of honest ones."""
        rows, changed = arrays["rows"], np.zeros(len(arrays["rows"]), dtype=bool)
        entry, norm = self._reaches
        held = np.full(len(rows), self.most)
        honest, found = Range(held + entry, held * self.longest + norm), {"rows": rows}
        if self._paired:
            found["surplus"] = 2 * arrays["errors"] - rows
        elif self._public and "errors" in arrays:
            found["surplus"] = arrays["errors"] - rows / 2
            honest = Range(rows.max(axis=1) / 2 + entry, np.linalg.norm(rows, axis=1) / 2 + norm)
        for part in self.widths:
            kept, scaled = honest.bounded(found[part][:, None], _HALVES)
            found[part], changed = kept[:, 0], changed | scaled
        return found, changed

    def joined(self, parts: Mapping[str, Floats]) -> dict[str, Floats]:
        """Errors and rows from their parts, but rows that are public."""
        if self._public:
            return {} if "surplus" not in parts else {"errors": parts["surplus"] + parts.get("rows", 0.0) / 2}
        if self._paired:
            return {"errors": (parts["surplus"] + parts["rows"]) / 2, "rows": parts["rows"]}
        return {"rows": parts["rows"]}

    def spread(self, part: str, values: Floats, arrays: Arrays) -> Spread:
        """All of them, in proportion to public numbers of rows, or alike."""
        weights = np.full(len(values), self.most)
        if self._public and "errors" in arrays:
            weights = np.add.reduceat(arrays["rows"], self._query.bins.starts, axis=1)[:, 0]
        return Spread(values[:, None], np.maximum(weights, 1.0), np.ones(len(values), dtype=bool))

    def reachable(self, name: str, opened: Arrays, parties: int, wholes: float) -> tuple[float, float]:
        """As far as all rows reach, and the noise of all shares: rows are errors and corrects, with noise of each."""
        reach = REACH * math.sqrt(2 * wholes * self.variance)
        return -reach, parties * self._most + reach

    def _possible(self, counts: np.ndarray, reach: float) -> np.ndarray:
        """Which parties' whole numbers (P, K) lie within `reach` of numbers of rows, (P,)."""
        whole = counts == np.floor(counts)
        return np.asarray((whole & (counts >= -reach) & (counts <= self._most + reach)).all(axis=1))

    @property
    def _reaches(self) -> tuple[float, float]:
        """How far noise takes an entry of a part, and how far its norm."""
        beyond = BEYOND / 2 / max(len(self.widths), 1)
        return _reaches(self._noise, self._query.bins.total, beyond, paired=self._paired)


@lru_cache  # all queries of an exchange have the same
def _reaches(noise: MarginalNoise, cells: int, beyond: float, *, paired: bool) -> tuple[float, float]:
    """How far noise takes one of so many cells, or sums of two, and how far their norm."""
    single, pair = (gaussian_tail, gaussian_pair_tail) if noise.delta else (laplace_tail, laplace_pair_tail)
    tail = (pair if paired else single)(noise.scale)
    return entry_reach(tail, beyond / cells), norm_reach(tail, cells, beyond)


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
    def of(cls, matrices: Sequence[np.ndarray], offsets: Sequence[np.ndarray]) -> "Hypothesis":
        """From the matrices (in, out) and offsets (out,) of its layers. Raises `InputError` when they do not fit."""
        if not matrices or len(matrices) != len(offsets):
            raise InputError(f"a hypothesis needs one offset per matrix, got {len(matrices)} and {len(offsets)}")
        sizes = [matrices[0].shape[0], *(matrix.shape[1] for matrix in matrices)]
        parts = [np.ravel(part) for pair in zip(matrices, offsets, strict=True) for part in pair]
        return cls(np.array(sizes, dtype=np.int64), np.concatenate(parts).astype(np.float64))

    @classmethod
    def constant(cls, dimension: int, label: int) -> "Hypothesis":
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

    def with_share(self, rows: np.ndarray, weights: np.ndarray, share: float) -> "Hypothesis":
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
