"""The noise on the sum s = sum_i y_i x_i of rows of norm 1 at most and labels y = 1 or -1, by name or chosen by size.

One replaced label moves s by 2 x_i, one replaced row by y x - y' x': by 2 at most in the L2 norm, and in the L1 norm by
2 sqrt(d), or by less where the rows have a smaller public L1 bound. Patrini, Nielsen and Nock (2015, Algorithm 2) add
Laplace noise for an L1 norm of 1, whatever the rows' norm; `published_laplace` is that, with the epsilon it gives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.moments import shares
from federation.mechanisms.noise.additive import AdditiveMechanism, OnAdditive, calibrate_laplace, summation_error
from federation.mechanisms.noise.additive import calibrate as calibrate_additive
from federation.mechanisms.noise.checks import require_positive, require_wanted, require_whole
from federation.mechanisms.noise.mechanism import Parameters
from federation.numerics.arrays import Floats

_Kind = Literal["laplace", "pure", "gaussian", "published_laplace"]
SumNoiseKind = Literal["auto", _Kind]

_LONGER = 1e-9  # by so much may rounding make a row's norm exceed its bound; charged
_MOST_STEPS = 2.0**51  # of the noise's grid, in a sum


@dataclass(frozen=True)
class SumNoise(OnAdditive):
    """Noise that makes one release of a sum of y x over at most `rows` rows x (epsilon, delta)-private.

    With `contributors` = 0 a release has the whole noise. Otherwise it has one share of it, and what is private is the
    sum of the releases of so many parties or more, each of them for the rows of its own; further shares only add
    independent noise. `l1_bound` is the rows' public L1 bound where the noise makes use of it, else None; `claimed` the
    epsilon that a published mechanism claims, else None. What one row adds to the sum has norm `longest` at most.
    Everything is made of public numbers.
    """

    additive: AdditiveMechanism
    rows: int
    contributors: int = 0
    l1_bound: float | None = None
    claimed: float | None = None
    longest: float = 1.0

    units: ClassVar[tuple[Unit, ...]] = (Unit.LABEL, Unit.ROW)

    @property
    def name(self) -> str:
        """The mechanism's name in its guarantee."""
        return f"sum_{'published_laplace' if self.claimed is not None else self.additive.name}"

    @property
    def parameters(self) -> dict[str, float | int | str]:
        """Public numbers of the mechanism, as its guarantee lists them."""
        own: Parameters = {"rows": self.rows, "contributors": self.contributors}
        optional = {"l1_bound": self.l1_bound, "claimed_epsilon": self.claimed}
        return {**self.additive.parameters, **own, **{k: v for k, v in optional.items() if v is not None}}

    def variance(self) -> float:
        """Of the whole noise in each coordinate of the sum, over all `contributors` where there are shares."""
        if self.contributors:
            return shares.variance(self.additive, self.contributors)
        return self.additive.variance()

    def noise_norm(self) -> float:
        """The root mean square L2 norm of the whole noise: sqrt(d variance)."""
        return math.sqrt(self.additive.dimension * self.variance())

    def release(self, total: Floats, bits: NoiseBits, draws: int = 1) -> Floats:
        """Noisy sums, shape (draws, d) float64, in whole multiples of the grid's step, so that they add up exactly.

        `total` (d,): the sum over rows cut to their norm bounds. Raises `InputError` for another shape, NaN, infinities
        or a sum that no `rows` rows of norm 1 have (or of `longest`): some were not cut.
        """
        if np.linalg.norm(total) > self.rows * self.longest * (1 + _LONGER) * (1 + summation_error(self.rows)):
            raise InputError(
                f"total must be a sum over at most {self.rows} rows of norm {self.longest:.3g}, and is longer; cut the "
                "rows"
            )
        if not self.contributors:
            return self.additive.release(total, bits, draws)
        return shares.release(self.additive, self.contributors, total, bits, draws)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the guarantee rests on, but for why rows keep their bounds."""
        if not self.contributors:
            return self.additive.assumptions
        return shares.assumptions(self.additive, self.contributors)


def calibrate(
    noise: SumNoiseKind,
    *,
    dimension: int,
    epsilon: float,
    delta: float = 0.0,
    l1_bound: float | None = None,
    rows: int,
    contributors: int = 0,
) -> SumNoise:
    """The least noise of a kind that makes a sum over at most `rows` rows (epsilon, delta)-private.

    `noise`: "pure" (L2-Gamma; in one dimension the discrete Laplace), "laplace" (discrete Laplace in each coordinate),
    "gaussian" (discrete Gaussian), "auto" (the smallest root mean square norm of these, Gaussian if delta > 0 only), or
    "published_laplace" (scale 2/epsilon in each coordinate, which gives epsilon times the rows' L1 bound, and claims
    epsilon). `delta` in [0, 1); pure kinds claim 0 whatever it is. `l1_bound`: a public bound on the L1 norm of rows
    that somebody enforces; sqrt(d) without it, or where it is larger. `rows`: the most that one release sums.
    `contributors`: how many honest parties share the noise of their sum; 0 for whole noise. Raises `InputError` for
    arguments out of range, or that do not fit the grid.

    Charged beyond 2 are rows that rounding makes longer than their bound, and summation in double precision, whose
    error for each neighbour is below (n + 2) 2^-53 sum_i |x_i| (Higham 2002, Section 3.1).

    Examples:
        >>> noise = calibrate("auto", dimension=5, epsilon=1.0, delta=1e-6, rows=1000)
        >>> noise.name, noise.noise_norm()
        ('sum_l2_gamma', 10.95)
        >>> noise.release(np.full(5, 100.0), NoiseBits(1, "example")).round(2)
        array([[ 99.2 , 100.9, 101.5,  98.71, 100.8]])
        >>> shared = calibrate("laplace", dimension=5, epsilon=1.0, rows=1000, contributors=20)
        >>> shared.name, shared.noise_norm()
        ('sum_discrete_laplace', 14.14)
    """
    kinds = get_args(SumNoiseKind)
    require_wanted(noise, epsilon, delta, known=kinds, with_delta=("gaussian",), pure="auto, pure or laplace")
    _require_sizes(dimension, rows, contributors)
    if l1_bound is not None:
        require_positive("l1_bound", l1_bound)
    longer = (1 + _LONGER) * (1 + summation_error(rows))
    widest = math.sqrt(dimension)
    bound = widest if l1_bound is None else min(l1_bound, widest)

    def noised(additive: AdditiveMechanism, l1: float | None = None, claimed: float | None = None) -> SumNoise:
        return _fitting(SumNoise(additive, rows, contributors, l1, claimed))

    def laplace(honest: float) -> AdditiveMechanism:
        return calibrate_laplace(l1_sensitivity=2 * bound * longer, dimension=dimension, epsilon=honest)

    def of(kind: _Kind) -> SumNoise:
        if kind == "published_laplace":
            return noised(laplace(epsilon * bound), bound, epsilon)
        if kind == "laplace":
            return noised(laplace(epsilon), bound)
        return noised(
            calibrate_additive(kind, sensitivity=2 * longer, dimension=dimension, epsilon=epsilon, delta=delta)
        )

    if noise != "auto":
        return of(noise)
    candidates: list[_Kind] = ["pure", "laplace", "gaussian"]
    return min(map(of, candidates[: 3 if delta > 0 else 2]), key=SumNoise.noise_norm)


def calibrate_gaussian(
    *, longest: float, moved: float, dimension: int, epsilon: float, delta: float, rows: int, contributors: int = 0
) -> SumNoise:
    """The least Gaussian noise for a sum to which a row adds a vector of norm `longest` at most, other than y x.

    A replaced row moves the sum by `moved` in the L2 norm, at most. All else, the errors too, is as for `calibrate`.

    Examples:
        >>> known = {"dimension": 5, "epsilon": 1.0, "delta": 1e-6, "rows": 1000}
        >>> calibrate_gaussian(longest=1.0, moved=2.0, **known) == calibrate("gaussian", **known)
        True
    """
    _require_sizes(dimension, rows, contributors)
    sensitivity = moved * (1 + _LONGER) * (1 + 2 * longest / moved * summation_error(rows))
    target = {"epsilon": epsilon, "delta": delta}
    additive = calibrate_additive("gaussian", sensitivity=sensitivity, dimension=dimension, **target)
    return _fitting(SumNoise(additive, rows, contributors, longest=longest))


def _require_sizes(dimension: int, rows: int, contributors: int) -> None:
    require_whole("dimension", dimension, 1)
    require_whole("rows", rows, 1)
    require_whole("contributors", contributors, 0)
    if contributors > shares.MOST:
        raise InputError(f"contributors must be at most {shares.MOST}, got {contributors}; sum in groups")


def _fitting(noise: SumNoise) -> SumNoise:
    """The same noise, refused by public numbers where a release would not fit the grid: a late refusal would tell."""
    rows, contributors, additive = noise.rows, noise.contributors, noise.additive
    longest = noise.longest * (1 + _LONGER) * (1 + summation_error(rows))
    if rows * max(contributors, 1) * longest > additive.step * _MOST_STEPS:
        raise InputError(
            f"a sum over {rows} rows does not fit the grid of noise as little as epsilon={additive.epsilon:g} needs; "
            "lower epsilon or use fewer rows"
        )
    if contributors:
        shares.check(additive, contributors)
    return noise
