"""Linear-odd losses by name, and why other losses are refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from aggregator.learners.linear_odd.condition import require_linear_odd
from aggregator.learners.linear_odd.losses import LinearOddLoss, PiecewiseLinearLoss
from aggregator.learners.linear_odd.symmetric_proper import Generator, SymmetricProper
from federation.contract.errors import InputError, nearest_name


def _logistic() -> LinearOddLoss:
    return SymmetricProper("entropy", name="logistic")


def _square() -> LinearOddLoss:
    return SymmetricProper("gini", name="square")


def _matsushita() -> LinearOddLoss:
    return SymmetricProper("matsushita")


def _symmetric_proper(
    generator: str | Generator = "entropy", scale: float | None = None, offset: float = 0.0
) -> LinearOddLoss:
    return SymmetricProper(generator, scale=scale, offset=offset)


def _rho(rho: float = 1.0) -> LinearOddLoss:
    if not 0 < rho < math.inf:
        raise InputError(f"rho must be positive and finite, got {rho}; 1 is the default")
    return PiecewiseLinearLoss("rho", slope=2 * rho, kinks=((0.0, rho),), level=1.0)


def _linear() -> LinearOddLoss:
    return PiecewiseLinearLoss("linear", slope=2.0, kinks=(), level=0.0)


def _unhinged() -> LinearOddLoss:
    return PiecewiseLinearLoss("unhinged", slope=2.0, kinks=(), level=1.0)


def _perceptron() -> LinearOddLoss:
    return PiecewiseLinearLoss("perceptron", slope=1.0, kinks=((0.0, 0.5),), level=0.0)


def _double_hinge() -> LinearOddLoss:
    # max(-x, (1 - x)_+ / 2) has the even part max(1, |x|) / 2 = (|x - 1| + |x + 1|) / 4.
    return PiecewiseLinearLoss("double_hinge", slope=1.0, kinks=((-1.0, 0.25), (1.0, 0.25)), level=0.0)


_LOSSES: dict[str, Callable[..., LinearOddLoss]] = {
    "logistic": _logistic,
    "square": _square,
    "matsushita": _matsushita,
    "symmetric_proper": _symmetric_proper,
    "rho": _rho,
    "linear": _linear,
    "unhinged": _unhinged,
    "perceptron": _perceptron,
    "double_hinge": _double_hinge,
}
NAMES = tuple(_LOSSES)

NOT_LINEAR_ODD: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "hinge": lambda x: np.maximum(0, 1 - x),
    "squared_hinge": lambda x: np.maximum(0, 1 - x) ** 2,
    "exponential": lambda x: np.exp(-x),
    "zero_one": lambda x: (x < 0).astype(np.float64),
    "ramp": lambda x: np.clip((1 - x) / 2, 0, 1),
}


def loss(name: str, **parameters: Any) -> LinearOddLoss:
    """The linear-odd loss of that name.

    logistic log(1 + e^-x), square (1 - x)², matsushita sqrt(1 + x²) - x, rho  rho|x| - rho x + 1 (parameter `rho`, 1 by
    default), linear -x, unhinged 1 - x, perceptron (-x)_+, double_hinge max(-x, (1 - x)_+ / 2), symmetric_proper
    (parameters `generator`, `scale`, `offset` of `SymmetricProper`). Raises `InputError` for other names, with the
    margin that breaks the condition for the losses in common use that are not linear-odd, and for parameters that the
    loss does not have.
    """
    if name in NOT_LINEAR_ODD:
        require_linear_odd(NOT_LINEAR_ODD[name], f"loss {name!r}")
    if name not in _LOSSES:
        raise InputError(f"loss must be one of {', '.join(_LOSSES)}, got {name!r}{nearest_name(name, _LOSSES)}")
    factory = _LOSSES[name]
    known = signature(factory).parameters
    for parameter in parameters:
        if parameter not in known:
            takes = f"takes {', '.join(known)}" if known else "takes no parameters"
            raise InputError(f"loss {name!r} {takes}, got {parameter!r}; leave it out")
    return factory(**parameters)
