"""Error rates as EXPRIL publishes them, and how much they reveal about a row that is added or removed.

Lacombe et al. 2021 (Section 3.4, Algorithm 1) release C = clip((U + Laplace(lambda))/n, 0, 1) for the U errors among
the n rows of a bin, lambda = d Q / epsilon. They claim epsilon for one added or removed row. The claim holds for one
changed label only, where n is public: a row that is added or removed changes the denominator too.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.marginals.noise import MarginalNoise, calibrate
from federation.numerics.rows import Floats, Integers

EMPTY_RATE = 0.5  # of a bin without rows; that there are none is public, so it tells nothing

_RATES = Assumption(
    "noisy errors are divided by the public number of rows of their bin and clipped to [0, 1]; an empty bin has rate "
    f"{EMPTY_RATE}",
    Check.ENFORCED,
)


@dataclass(frozen=True)
class PublishedRates:
    """Clipped noisy error rates of bins whose numbers of rows are public, for `queries` queries on `features` features.

    The noise is the discrete Laplace of scale lambda = d Q / epsilon on the number of errors; `epsilon` is what all Q
    answers claim together for one changed label. Raises `InputError` as `noise.calibrate`.

    Examples:
        >>> rates = PublishedRates(features=4, queries=10, epsilon=10.0)
        >>> rates.scale
        4.0
        >>> rates.release(np.array([30, 0]), np.array([100, 0]), NoiseBits(1, "example"))
        array([0.35, 0.5 ])
    """

    features: int
    queries: int
    epsilon: float

    name: ClassVar[str] = "published_rates"
    delta: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        _ = self.additive

    @cached_property
    def additive(self) -> MarginalNoise:
        """That on the numbers of errors; the rates are computed from those, which can only lower its delta."""
        size = {"features": self.features, "queries": self.queries}
        return calibrate("pure", **size, epsilon=self.epsilon, delta=0.0, unit=Unit.LABEL, adjacency=Adjacency.REPLACE)

    @property
    def scale(self) -> float:
        """lambda, the parameter of the Laplace noise on each number of errors, in rows."""
        return float(self.additive.scale)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise on a number of errors, in rows: divide it by a bin's rows for its rate's."""
        return self.additive.deviation

    def release(self, errors: Integers, counts: Integers, bits: NoiseBits) -> Floats:
        """Rates in [0, 1], float64 in the shape of `errors`: whole numbers of errors among the `counts` of their bins.

        `counts` (K,) are those of the last axis of `errors`, whose first axes are repetitions. An empty bin has the
        rate 1/2. Raises `InputError` for other shapes, or errors outside 0..counts.
        """
        errors, counts = np.asarray(errors), np.asarray(counts)
        fits = counts.ndim == 1 and errors.shape[-1:] == counts.shape and counts.dtype.kind in "iu"
        if not fits or np.any(errors > counts):
            raise InputError(
                "counts must be whole numbers of rows for each bin of the last axis of errors, none below its errors, "
                f"got shape {counts.shape} of {counts.dtype} for errors of shape {errors.shape}"
            )
        noisy = self.additive.release(errors, bits)
        return np.where(counts > 0, np.clip(noisy / np.maximum(counts, 1), 0.0, 1.0), EMPTY_RATE)

    def guarantee(
        self, further: tuple[Assumption, ...] = (), unit: Unit = Unit.LABEL, adjacency: Adjacency = Adjacency.REPLACE
    ) -> Guarantee:
        """What all Q answers promise together; `further` assumptions come before its own.

        Raises `InputError` unless labels are replaced, with what it would lose.
        """
        if unit is not Unit.LABEL or adjacency is not Adjacency.REPLACE:
            raise InputError(
                f"published error rates protect a replaced label only, got {unit} by {adjacency}: a row changes the "
                "denominator n of its bin to n + 1, which costs up to log((n+1)/n) + U/((n+1) lambda), and everything "
                "if the bin was empty; choose pure or gaussian, which release noisy errors and noisy corrects"
            )
        return self._promised(self.additive.guarantee(further))

    def per_query(self, further: tuple[Assumption, ...] = ()) -> Guarantee:
        """What one answer promises by itself: epsilon / Q."""
        return self._promised(self.additive.per_query(further))

    def _promised(self, noisy: Guarantee) -> Guarantee:
        return replace(noisy, mechanism=self.name, assumptions=(*noisy.assumptions, _RATES))
