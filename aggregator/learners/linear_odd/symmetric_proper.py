"""Symmetric proper losses from the conjugates of their generators (Nock and Nielsen 2009; Patrini et al. 2015).

A permissible generator phi is strictly convex on [0, 1] and symmetric around 1/2, which for its convex conjugate reads
phi*(-x) = phi*(x) - x. The loss offset + phi*(-x) / b is linear-odd with a = 1 / b, and its scores are probabilities:
the expected loss under P(y = +1) = p is least where (phi*)'(x) = p. Conversely every smooth convex linear-odd loss is
of this form, with phi*(x) = (even(x) + a/2 x) / a and b = 1 / a.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from aggregator.learners.linear_odd.losses import LinearOddLoss
from federation.contract.errors import InputError, nearest_name

_GRID = np.concatenate([np.linspace(0, 4, 81), np.geomspace(4.5, 64, 20)])
_ROUNDING = 1e-9
_STEP = 1e-4  # of central differences, whose error is then about 1e-8 times a third derivative
_DIFFERENCE = 1e-5


def _check_scale(scale: float) -> None:
    if not 0 < scale < math.inf:
        raise InputError(f"scale must be positive and finite, got {scale}; the usual loss of a generator needs none")


@dataclass(frozen=True)
class Generator:
    """A permissible generator, through its conjugate phi*.

    `conjugate`, `slope` and `curvature` are phi*, its derivative (which maps scores to probabilities) and its second
    derivative, elementwise functions of arrays. `curvature_range` bounds the second derivative. `scale` is the b that
    gives the usual loss. `bounded_slope`: whether the slope of phi* stays in [0, 1].

    Raises `InputError` unless, on a grid of scores up to 64, phi*(-x) = phi*(x) - x, the derivatives are what
    differences of phi* say, and the second lies in its range.
    """

    name: str
    conjugate: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]
    curvature: Callable[[np.ndarray], np.ndarray]
    curvature_range: tuple[float, float]
    scale: float = 1.0
    bounded_slope: bool = True

    def __post_init__(self) -> None:
        low, high = self.curvature_range
        if not 0 <= low <= high < math.inf or high == 0:
            raise InputError(
                f"curvature_range of generator {self.name!r} must be finite bounds 0 <= low <= high, high > 0, of the "
                f"second derivative of its conjugate; got {self.curvature_range}"
            )
        _check_scale(self.scale)
        right, left = self.conjugate(_GRID), self.conjugate(-_GRID)
        excess = np.abs(left - (right - _GRID))
        self._require(excess <= _ROUNDING * (1 + np.abs(right)), excess, "phi*(-x) differs from phi*(x) - x")
        scores = np.concatenate([-_GRID, _GRID])
        for function, derivative, what in (
            (self.conjugate, self.slope, "the slope differs from that of the conjugate"),
            (self.slope, self.curvature, "the curvature differs from the slope's derivative"),
        ):
            difference = (function(scores + _STEP) - function(scores - _STEP)) / (2 * _STEP)
            excess = np.abs(derivative(scores) - difference)
            self._require(excess <= _DIFFERENCE * (1 + np.abs(difference)), excess, what)
        bent = self.curvature(scores)
        excess = np.maximum(low - bent, bent - high)
        self._require(excess <= _ROUNDING * high, excess, f"the curvature leaves {self.curvature_range}")

    def _require(self, holds: np.ndarray, excess: np.ndarray, what: str) -> None:
        if not holds.all():
            worst = int(np.argmax(np.where(holds, -1, np.nan_to_num(excess, nan=math.inf))))
            score = np.concatenate([_GRID if len(holds) == len(_GRID) else -_GRID, _GRID])[worst]
            raise InputError(
                f"generator {self.name!r} is not permissible or its derivatives are wrong: at x = {score:.3g} {what} "
                f"by {excess[worst]:.3g}; give the conjugate of a function that is convex and symmetric around 1/2"
            )


def _logistic_curvature(scores: np.ndarray) -> np.ndarray:
    tail = np.exp(-np.abs(scores))
    return tail / (1 + tail) ** 2


def _matsushita_conjugate(scores: np.ndarray) -> np.ndarray:
    # For negative scores (x + sqrt(1 + x²)) / 2 would cancel; it is 1 / (2 (sqrt(1 + x²) - x)).
    far = np.hypot(1, scores) + np.abs(scores)
    return np.where(scores < 0, 0.5 / far, 0.5 * far)


GENERATORS = {
    generator.name: generator
    for generator in (
        # phi(u) = u log u + (1 - u) log(1 - u)
        Generator("entropy", lambda x: np.logaddexp(0, x), expit, _logistic_curvature, (0.0, 0.25)),
        # phi(u) = -u (1 - u) on all of R
        Generator(
            "gini",
            lambda x: (1 + x) ** 2 / 4,
            lambda x: (1 + x) / 2,
            lambda x: np.full(np.shape(x), 0.5),
            (0.5, 0.5),
            scale=0.25,
            bounded_slope=False,
        ),
        # phi(u) = -sqrt(u (1 - u))
        Generator(
            "matsushita",
            _matsushita_conjugate,
            lambda x: (1 + x / np.hypot(1, x)) / 2,
            lambda x: np.hypot(1, x) ** -3.0 / 2,
            (0.0, 0.5),
            scale=0.5,
        ),
    )
}


class SymmetricProper(LinearOddLoss):
    """The loss offset + phi*(-x) / b of a generator phi: logistic for "entropy", square for "gini", "matsushita".

    `generator`: one of these names or a `Generator`. `scale`: b > 0, the generator's own by default. `offset`: added to
    the loss, without influence on minimisers. `curvature_range`: bounds of the even part's second derivative.
    """

    smooth = True

    def __init__(
        self,
        generator: str | Generator = "entropy",
        *,
        scale: float | None = None,
        offset: float = 0.0,
        name: str | None = None,
    ) -> None:
        if not isinstance(generator, Generator):
            if generator not in GENERATORS:
                raise InputError(
                    f"generator must be one of {', '.join(GENERATORS)}, or a Generator; got {generator!r}"
                    f"{nearest_name(generator, GENERATORS)}"
                )
            generator = GENERATORS[generator]
        scale = generator.scale if scale is None else scale
        _check_scale(scale)
        if not math.isfinite(offset):
            raise InputError(f"offset must be finite, got {offset}; leave it out for 0")
        self.generator, self.scale, self.offset = generator, scale, offset
        self.name = generator.name if name is None else name
        self.slope = 1 / scale
        self.bounded_slope = generator.bounded_slope
        low, high = generator.curvature_range
        self.curvature_range = low / scale, high / scale

    def value(self, margins: np.ndarray) -> np.ndarray:
        return self.offset + self.generator.conjugate(-np.asarray(margins)) / self.scale

    def even(self, margins: np.ndarray) -> np.ndarray:
        margins = np.asarray(margins)
        both = self.generator.conjugate(margins) + self.generator.conjugate(-margins)
        return self.offset + both / (2 * self.scale)

    def even_slope(self, margins: np.ndarray) -> np.ndarray:
        """First derivative of the even part."""
        return (self.generator.slope(np.asarray(margins)) - 0.5) / self.scale

    def even_curvature(self, margins: np.ndarray) -> np.ndarray:
        """Second derivative of the even part."""
        return self.generator.curvature(np.asarray(margins)) / self.scale

    def probability(self, scores: np.ndarray) -> np.ndarray:
        """P(y = +1) for which a score has the least expected loss: (phi*)'(score), in [0, 1]."""
        return np.clip(self.generator.slope(np.asarray(scores)), 0.0, 1.0)
