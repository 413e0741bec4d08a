"""Loss functions whose odd part is linear, by name (Patrini et al. 2015, Theorem 3); other losses are refused.

A linear-odd loss f of the margin x has f(x) - f(-x) = -a x. It is even(x) - a/2 x with even(x) = (f(x) + f(-x)) / 2.
Its mean over rows x_i with labels y_i in {-1, +1} is mean_i even(<w, x_i>) - a/2 <w, mu>. Labels enter through the mean
operator mu = mean_i y_i x_i alone.

Two kinds of losses suffice. Every smooth convex linear-odd loss is symmetric proper (`SymmetricProper`). The others in
use have a piecewise linear even part (`PiecewiseLinearLoss`). `loss` returns a loss by its name.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from federation.contract.errors import InputError, nearest_name
from federation.numerics.rows import Floats

_GRID = np.concatenate([np.linspace(0, 4, 81), np.geomspace(4.5, 64, 20)])
_SCORES = np.concatenate([-_GRID, _GRID])
_STEP = 1e-4  # of central differences, whose error is then about 1e-8 times a third derivative
_DIFFERENCE = 1e-5


class LinearOddLoss(ABC):
    """A convex loss f of margins with f(x) - f(-x) = -a x.

    `slope` is a > 0. `bounded_slope`: whether the even part has bounded derivatives, so that -a/2 <w, mu> may win over
    it, and a risk without regularisation has no minimiser, when mu is a noisy estimate. Margins are arrays of any
    shape, at most 1e8 in absolute value.
    """

    name: str
    slope: float
    bounded_slope: bool

    @abstractmethod
    def value(self, margins: Floats) -> Floats:
        """f at the margins."""

    @abstractmethod
    def even(self, margins: Floats) -> Floats:
        """(f(x) + f(-x)) / 2 at the margins x."""


@dataclass(frozen=True)
class PiecewiseLinearLoss(LinearOddLoss):
    """f(x) = level + sum_k height_k |x - place_k| - a/2 x for `kinks` ((place_k, height_k), ...) symmetric around 0.

    Without kinks the loss is linear.

    Examples:
        >>> perceptron = PiecewiseLinearLoss("perceptron", slope=1.0, kinks=((0.0, 0.5),), level=0.0)
        >>> perceptron.value(np.array([-2.0, 0.0, 2.0]))  # the larger of -x and 0
        array([2., 0., 0.])
    """

    name: str
    slope: float
    kinks: tuple[tuple[float, float], ...]
    level: float
    bounded_slope = True

    def value(self, margins: Floats) -> Floats:
        return self.even(margins) - self.slope / 2 * margins

    def even(self, margins: Floats) -> Floats:
        bends = (height * np.abs(margins - place) for place, height in self.kinks)
        return sum(bends, np.full(np.shape(margins), self.level))


def _check_scale(scale: float) -> None:
    if not 0 < scale < math.inf:
        raise InputError(f"scale must be positive and finite, got {scale}; the usual loss of a generator needs none")


@dataclass(frozen=True)
class Generator:
    """A permissible generator phi, through its conjugate phi*.

    A permissible generator is strictly convex on [0, 1] and symmetric around 1/2. For its convex conjugate this
    symmetry reads phi*(-x) = phi*(x) - x.

    `conjugate`, `slope` and `curvature` are phi*, its derivative (which maps scores to probabilities) and its second
    derivative, elementwise functions of arrays. `curvature_range` bounds the second derivative. `scale` is the b that
    gives the usual loss. `bounded_slope`: whether the slope of phi* stays in [0, 1].

    Raises `InputError` unless, on a grid of scores up to 64, phi*(-x) = phi*(x) - x, the derivatives are what
    differences of phi* say, and the second lies in its range.
    """

    name: str
    conjugate: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    curvature: Callable[[Floats], Floats]
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
        right = self.conjugate(np.abs(_SCORES))
        excess = np.abs(self.conjugate(-np.abs(_SCORES)) - (right - np.abs(_SCORES)))
        self._require(excess, _ROUNDING * (1 + np.abs(right)), "phi*(-x) differs from phi*(x) - x")
        for function, derivative, what in (
            (self.conjugate, self.slope, "the slope differs from that of the conjugate"),
            (self.slope, self.curvature, "the curvature differs from the slope's derivative"),
        ):
            difference = (function(_SCORES + _STEP) - function(_SCORES - _STEP)) / (2 * _STEP)
            self._require(np.abs(derivative(_SCORES) - difference), _DIFFERENCE * (1 + np.abs(difference)), what)
        bent = self.curvature(_SCORES)
        self._require(np.maximum(low - bent, bent - high), _ROUNDING * high, f"the curvature leaves {(low, high)}")

    def _require(self, excess: Floats, allowed: Floats | float, what: str) -> None:
        holds = excess <= allowed
        if not holds.all():
            worst = int(np.argmax(np.where(holds, -1, np.nan_to_num(excess, nan=math.inf))))
            raise InputError(
                f"generator {self.name!r} is not permissible or its derivatives are wrong: at x = {_SCORES[worst]:.3g} "
                f"{what} by {excess[worst]:.3g}; give the conjugate of a function that is convex and symmetric around "
                "1/2"
            )


def _logistic_curvature(scores: Floats) -> Floats:
    tail = np.exp(-np.abs(scores))
    return np.asarray(tail / (1 + tail) ** 2)


def _matsushita_conjugate(scores: Floats) -> Floats:
    # For negative scores (x + sqrt(1 + x²)) / 2 would cancel; it is 1 / (2 (sqrt(1 + x²) - x)).
    far = np.hypot(1, scores) + np.abs(scores)
    return np.where(scores < 0, 0.5 / far, 0.5 * far)


_ROUNDING = 1e-9
GENERATORS = {
    generator.name: generator
    for generator in (
        # phi(u) = u log u + (1 - u) log(1 - u)
        Generator("entropy", lambda x: np.logaddexp(0, x), expit, _logistic_curvature, (0.0, 0.25)),
        # phi(u) = -u (1 - u) on all of R
        Generator(
            "gini", lambda x: (1 + x) ** 2 / 4, lambda x: (1 + x) / 2, lambda x: 0.0 * x + 0.5, (0.5, 0.5), 0.25, False
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

    Such losses come from the conjugates of their generators (Nock and Nielsen 2009; Patrini et al. 2015). They are
    linear-odd with a = 1 / b, and their scores are probabilities: the expected loss under P(y = +1) = p is least where
    (phi*)'(x) = p. Conversely every smooth convex linear-odd loss is of this form, with
    phi*(x) = (even(x) + a/2 x) / a and b = 1 / a.

    `generator`: one of these names or a `Generator`. `scale`: b > 0, the generator's own by default. `offset`: added to
    the loss, without influence on minimisers. `curvature_range`: bounds of the even part's second derivative.

    Examples:
        >>> logistic = SymmetricProper("entropy")
        >>> logistic.value(np.array([-1.0, 0.0, 1.0]))  # log(1 + exp(-x))
        array([1.31326169, 0.69314718, 0.31326169])
        >>> logistic.probability(np.array([-1.0, 0.0, 1.0]))  # 1 / (1 + exp(-x))
        array([0.26894142, 0.5       , 0.73105858])
    """

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

    def value(self, margins: Floats) -> Floats:
        return self.offset + self.generator.conjugate(-np.asarray(margins)) / self.scale

    def even(self, margins: Floats) -> Floats:
        margins = np.asarray(margins)
        both = self.generator.conjugate(margins) + self.generator.conjugate(-margins)
        return self.offset + both / (2 * self.scale)

    def even_slope(self, margins: Floats) -> Floats:
        """First derivative of the even part."""
        return (self.generator.slope(np.asarray(margins)) - 0.5) / self.scale

    def even_curvature(self, margins: Floats) -> Floats:
        """Second derivative of the even part."""
        return self.generator.curvature(np.asarray(margins)) / self.scale

    def probability(self, scores: Floats) -> Floats:
        """P(y = +1) for which a score has the least expected loss: (phi*)'(score), in [0, 1]."""
        return np.clip(self.generator.slope(np.asarray(scores)), 0.0, 1.0)


_MARGINS = np.array([1.0, 2.0, 0.5, 0.25, 0.75, 1.5, 3.0, 4.0, 8.0, 16.0, 0.1, 0.01])

NOT_LINEAR_ODD: dict[str, Callable[[Floats], Floats]] = {
    "hinge": lambda x: np.maximum(0, 1 - x),
    "squared_hinge": lambda x: np.maximum(0, 1 - x) ** 2,
    "exponential": lambda x: np.exp(-x),
    "zero_one": lambda x: (x < 0).astype(np.float64),
    "ramp": lambda x: np.clip((1 - x) / 2, 0, 1),
}


def _rho(rho: float = 1.0) -> LinearOddLoss:
    if not 0 < rho < math.inf:
        raise InputError(f"rho must be positive and finite, got {rho}; 1 is the default")
    return PiecewiseLinearLoss("rho", slope=2 * rho, kinks=((0.0, rho),), level=1.0)


# By name: what makes the loss, and the parameters that this takes. The even part of the double hinge
# max(-x, (1 - x)_+ / 2) is max(1, |x|) / 2 = (|x - 1| + |x + 1|) / 4.
_LOSSES: dict[str, tuple[Callable[..., LinearOddLoss], tuple[str, ...]]] = {
    "logistic": (partial(SymmetricProper, "entropy", name="logistic"), ()),
    "square": (partial(SymmetricProper, "gini", name="square"), ()),
    "matsushita": (partial(SymmetricProper, "matsushita"), ()),
    "symmetric_proper": (SymmetricProper, ("generator", "scale", "offset")),
    "rho": (_rho, ("rho",)),
    "linear": (partial(PiecewiseLinearLoss, "linear", 2.0, (), 0.0), ()),
    "unhinged": (partial(PiecewiseLinearLoss, "unhinged", 2.0, (), 1.0), ()),
    "perceptron": (partial(PiecewiseLinearLoss, "perceptron", 1.0, ((0.0, 0.5),), 0.0), ()),
    "double_hinge": (partial(PiecewiseLinearLoss, "double_hinge", 1.0, ((-1.0, 0.25), (1.0, 0.25)), 0.0), ()),
}
NAMES = tuple(_LOSSES)


def loss(name: str, **parameters: Any) -> LinearOddLoss:
    """The linear-odd loss of that name.

    logistic log(1 + e^-x), square (1 - x)², matsushita sqrt(1 + x²) - x, rho  rho|x| - rho x + 1 (parameter `rho`, 1 by
    default), linear -x, unhinged 1 - x, perceptron (-x)_+, double_hinge max(-x, (1 - x)_+ / 2), symmetric_proper
    (parameters `generator`, `scale`, `offset` of `SymmetricProper`). Raises `InputError` for other names, with the
    margin that breaks the condition for the losses in common use that are not linear-odd, and for parameters that the
    loss does not have.

    Examples:
        >>> for name in ("logistic", "square", "double_hinge"):
        ...     print(name, loss(name).value(np.array([-2.0, 0.0, 2.0])))
        logistic [2.126928 0.693147 0.126928]
        square [9. 1. 1.]
        double_hinge [2.  0.5 0. ]
        >>> loss("hinge")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        federation.contract.errors.InputError: loss 'hinge' is not linear-odd, ...
    """
    if name in NOT_LINEAR_ODD:
        require_linear_odd(NOT_LINEAR_ODD[name], f"loss {name!r}")
    if name not in _LOSSES:
        raise InputError(f"loss must be one of {', '.join(_LOSSES)}, got {name!r}{nearest_name(name, _LOSSES)}")
    factory, known = _LOSSES[name]
    for parameter in parameters:
        if parameter not in known:
            takes = f"takes {', '.join(known)}" if known else "takes no parameters"
            raise InputError(f"loss {name!r} {takes}, got {parameter!r}; leave it out")
    return factory(**parameters)


def require_linear_odd(loss: Callable[[Floats], Floats], name: str = "the loss") -> float:
    """The slope a > 0 of a `loss` f, an elementwise function, with f(x) - f(-x) = -a x (Patrini et al. 2015).

    The first of twelve margins from 0.01 to 16 gives a, the others test it, to 1e-9 of the values. Raises `InputError`
    that names the margin and by how much the condition fails there, and for losses that are not finite or do not fall
    with the margin (a <= 0).

    Examples:
        >>> require_linear_odd(lambda x: np.log1p(np.exp(-x)))
        1.0
    """
    x = _MARGINS
    above, below = (np.asarray(loss(side), dtype=np.float64) for side in (x, -x))
    if above.shape != x.shape or below.shape != x.shape or not (np.isfinite(above) & np.isfinite(below)).all():
        raise InputError(f"{name} must give one finite number per margin up to {x.max():g} in absolute value")
    slope = float(below[0] - above[0]) / float(x[0])
    excess = above - below + slope * x
    wrong = np.flatnonzero(np.abs(excess) > _ROUNDING * (1 + np.abs(above) + np.abs(below)))
    if len(wrong):
        first = wrong[0]
        raise InputError(
            f"{name} is not linear-odd, so the mean operator does not determine its minimiser: f(x) - f(-x) = -a x at "
            f"x = {x[0]:g} gives a = {slope:.4g}, which at x = {x[first]:g} is off by {abs(excess[first]):.4g}; choose "
            "a linear-odd loss such as 'logistic'"
        )
    if not 0 < slope < math.inf or slope <= _ROUNDING:
        raise InputError(
            f"{name} has f(x) - f(-x) = -a x with a = {slope:.4g}, so it does not prefer correct labels; a must be > 0"
        )
    return slope
