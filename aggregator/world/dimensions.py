"""How many whitened dimensions a release can afford: a rule in public numbers only.

A release of d dimensions predicts vote shares by least squares from d features of unit variance. Two things keep it
from the shares, and they pull d apart. In mean squares of a class's score, on average over public rows and classes:

- noise: E|noise|² / C. With sensitivity s, E|noise| is (C-1) d s/epsilon for L2-Gamma noise and about
  sigma sqrt((C-1) d) for Gaussian noise. On a minimiser it is d times that: rows of norm 1 have coordinates of size
  1/sqrt(d), which weights make up for and noise does not;
- what the omitted directions would have told: taken to be OMITTED u(d) / d^1.5, where u(d) is their share of the
  variance of the public rows. Directions of less variance tell less, each by itself as well.

Even without noise the last directions of many are left out: whitening makes them as loud as the first, and the parties
learn from few rows. The law and the constants were chosen on HAR and on Gaussian classes, then corrected on MNIST (the
share of the variance) and on census data (faint directions); `benchmarks.dimensions` compares with fixed choices.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import require_epsilon
from federation.mechanisms.accounting import sensitivity
from federation.mechanisms.noise import gaussian

OMITTED = 0.7
ROWS_PER_DIMENSION = 4  # with fewer public rows the smallest of the whitened directions are made of chance
FAINT = 0.25  # of the mean variance; fainter directions are left out ...
FEW = 32  # ... but not among so many, where noise is all that they cost
_NEGLIGIBLE_VARIANCE = 1e-10  # of the largest: rounding errors
SIZES = (3, 4, 6, 8, 10, 16, 24, 32, 40, 48, 56, 64, 80, 96)  # a ladder, so that many epsilons need few trainings


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The public rows that are to be whitened: how many, and their principal variances (r,), largest first, above 0."""

    rows: int
    variances: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> Spectrum:
        """The spectrum of public rows (N, d); r is their rank. Raises `InputError` when no two rows differ."""
        centred = rows - rows.mean(axis=0) if rows.size else rows
        moments = centred.T @ centred if rows.shape[1] <= len(rows) else centred @ centred.T
        variances = np.linalg.eigvalsh(moments)[::-1] / max(1, len(rows))
        if not (variances > 0).any():
            raise InputError(f"the {len(rows)} public rows are all equal, so none of them varies; raise data.auxiliary")
        return cls(len(rows), variances[variances > _NEGLIGIBLE_VARIANCE * variances[0]])

    def omitted(self) -> np.ndarray:
        """u(d) in [0, 1], shape (r,): the share of the variance beyond the first d = 1..r directions."""
        beyond = np.append(np.cumsum(self.variances[:0:-1])[::-1], 0.0)
        return np.asarray(beyond / self.variances.sum())

    def usable(self) -> int:
        """How many directions are worth whitening, noise or not: those that are not faint, `FEW` at least.

        At most r, and a quarter of the number of rows; 0 for fewer than 4 rows.
        """
        loud = int(np.sum(self.variances >= FAINT * self.variances.mean()))
        return min(len(self.variances), self.rows // ROWS_PER_DIMENSION, max(FEW, loud))


def errors(
    noise: str,
    spectrum: Spectrum,
    *,
    classes: int,
    parties: int,
    epsilon: float,
    delta: float,
    minimiser: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean squared errors (r,) of a class's score with d = 1..r dimensions: by noise, and by what is omitted.

    `noise` is "pure" (L2-Gamma) or "gaussian", of the whitened vote statistic, which one of the declared `parties`
    moves by at most s = sqrt(2)/M, or with `minimiser` of a minimiser; `delta` is for Gaussian noise only. Raises
    `InputError` for another noise, fewer than 2 classes or 1 party, and epsilon or delta out of range.
    """
    if classes < 2:
        raise InputError(f"classes must be at least 2, got {classes}")
    require_epsilon(epsilon)
    moved = sensitivity.statistic(parties)
    dimensions = np.arange(1, len(spectrum.variances) + 1)
    if noise == "pure":
        with np.errstate(over="ignore"):  # of an epsilon so small that nothing but one dimension is affordable
            squared = ((classes - 1) * dimensions * moved / epsilon) ** 2
    elif noise == "gaussian":
        squared = (classes - 1) * dimensions * (moved / gaussian.mu(epsilon, delta)) ** 2
    else:
        raise InputError(f"noise must be 'pure' or 'gaussian', got {noise!r}")
    if minimiser:
        squared = squared * dimensions
    return squared / classes, OMITTED * spectrum.omitted() / dimensions**1.5


def affordable(
    noise: str,
    spectrum: Spectrum,
    *,
    classes: int,
    parties: int,
    epsilon: float,
    delta: float,
    minimiser: bool = False,
) -> int:
    """The d of least total error, or all usable directions where they are fewer, rounded down to one of `SIZES`.

    All r directions are taken where that is what d says, and `SIZES[0]` at least, if there are so many. `noise` is
    "pure", "gaussian", or "off", which takes the usable directions whatever the other numbers. Rounding is downwards
    because too much noise costs more than too few directions. Raises `InputError` as `errors`.
    """
    most = spectrum.usable()
    if noise != "off":
        found = errors(
            noise, spectrum, classes=classes, parties=parties, epsilon=epsilon, delta=delta, minimiser=minimiser
        )
        most = min(most, 1 + int(np.argmin(sum(found))))
    rank = len(spectrum.variances)
    if most == rank < SIZES[-1]:
        return rank
    return min(rank, SIZES[max(0, bisect_right(SIZES, most) - 1)])
