"""Linear-odd losses by name, and why other losses are refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from aggregator.learners.linear_odd.losses import LinearOddLoss, PiecewiseLinearLoss, SymmetricProper
from federation.contract.errors import InputError, nearest_name
from federation.numerics.rows import Floats

_MARGINS = np.array([1.0, 2.0, 0.5, 0.25, 0.75, 1.5, 3.0, 4.0, 8.0, 16.0, 0.1, 0.01])
_ROUNDING = 1e-9
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
