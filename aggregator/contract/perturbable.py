"""What becomes of noisy vectors, and what a session hands over where the aggregator makes the noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from federation.contract.guarantee import Assumption, Unit
from federation.mechanisms.noise.additive import AdditiveMechanism, Noise

Decode = Callable[[np.ndarray, AdditiveMechanism | None], np.ndarray]


@dataclass(frozen=True, eq=False)
class LinearScores:
    """Class scores of the auxiliary rows as a linear function of the perturbed vector, seen as blocks of r coordinates.

    `of` maps one noisy vector (D,) to scores (N, C), of which the largest in a row is the predicted class. `spread`
    maps noise variances (r,) of a block's coordinates, the same in all blocks, to (N,): the differences of row i's
    scores then vary like those of independent noise of that standard deviation in each class. `profile` (r,) says how
    the variance of the value itself may be expected to go over the coordinates, up to a factor.
    """

    of: Callable[[np.ndarray], np.ndarray]
    spread: Callable[[np.ndarray], np.ndarray]
    profile: np.ndarray

    @classmethod
    def of_features(cls, features: np.ndarray, mixing: np.ndarray, profile: np.ndarray) -> LinearScores:
        """Scores F V' M' of values V (blocks, r) for features F (N, r) and an M (C, blocks).

        Rows of M must differ from each other by the same distance; class contrasts differ by sqrt(2).
        """
        apart = float(np.linalg.norm(mixing[0] - mixing[1])) / np.sqrt(2)
        squares = features**2

        def of(value: np.ndarray) -> np.ndarray:
            return np.asarray(features @ value.reshape(-1, features.shape[1]).T @ mixing.T)

        return cls(of, lambda variances: apart * np.sqrt(squares @ variances), profile)


@dataclass(frozen=True, eq=False)
class Decoder:
    """What turns noisy values (draws, D) into models, and what diagnostics know of the value without noise.

    As for `Perturbable`, whose value nobody has here: parties made the noise.
    """

    decode: Decode
    scores: LinearScores | None = None
    largest_norm: float | None = None


@dataclass(frozen=True)
class Perturbable:
    """A private vector, how far one unit can move it, the law of its noise, and what turns noisy copies into models.

    `value` (D,) has L2 sensitivity `sensitivity` when one `unit` is replaced. `decode` maps noisy values (draws, D),
    with the mechanism that made them (None without noise), to weights (draws, C, d); it sees public data only
    (for a protected auxiliary row, its own arguments only). For diagnostics: `largest_norm` is the largest norm that
    any votes can give the value, of a mean over the declared parties only, whose noise falls as their number grows;
    `scores` is its linear effect on the auxiliary rows where there is one.
    """

    value: np.ndarray
    sensitivity: float
    decode: Decode
    assumptions: tuple[Assumption, ...]
    checks: tuple[str, ...]
    unit: Unit = Unit.PARTY
    largest_norm: float | None = None
    scores: LinearScores | None = None
    noise: Noise = "pure"
