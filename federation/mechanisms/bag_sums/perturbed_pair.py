"""What one changed label does to the normal law that wtd-LBA releases about a bag, in four numbers, and its delta.

Given a bag, (sum w_i x_i, sum w_i y_i) is normal with covariance [X y]'[X y]. The sums of rows have the same law
whatever the labels; given them the label sum is normal with variance |residual|², the residual being that of y on the
columns of X. For a label that moves by dy, h the leverage of its row and r its residual, the two laws are those of
P: u, v ~ N(0, 1) and Q: u ~ N(0, 1), v | u ~ N(a u, b²), with a = dy sqrt(h/rss) and
b² = 1 + (2 dy r + dy² (1 - h))/rss, rss = |residual|².
"""

from __future__ import annotations

import math

import numpy as np

from federation.contract.numbers import required
from federation.numerics.arrays import Floats

# Least value and step of x = ln(distance from where the integrand begins)
_PRECISE, _COARSE = (-24.0, 0.05), (-8.0, 0.2)
_LARGEST = 40.0  # |u| beyond is impossible
_LARGEST_EPSILON = 700.0
_PAIRS = 256  # at a time: the work arrays stay in the processor's cache
_COLLAPSED = 1e-12  # below this b² the changed labels leave no residual


def pair_delta(
    epsilon: float, change: Floats, leverage: Floats, residual: Floats, rss: float, *, coarse: bool = False
) -> Floats:
    """The exact delta of the pair, in the worse of both orders, elementwise over (k,) arrays.

    `change`: dy; `leverage` in [0, 1] and `residual` of the changed record's row; `rss` > 0, the sum of squared
    residuals. 1 where the changed labels leave no residual. Relative error below 1e-8 as long as delta is above 1e-40;
    with `coarse` within some per cent above 1e-12, for a search. Raises `InputError` for epsilon outside [0, 700].

    Examples:
        >>> change, leverage, residual = np.array([0.1, 1.0]), np.array([0.2, 0.2]), np.array([0.3, 0.3])
        >>> pair_delta(0.5, change, leverage, residual, rss=4.0)
        array([6.421e-10, 0.02816])
    """
    required(
        "epsilon", epsilon, f"lie between 0 and {_LARGEST_EPSILON:g}", lambda given: 0 <= given <= _LARGEST_EPSILON
    )
    shift = np.abs(change) * np.sqrt(leverage / rss)
    square = 1 + (2 * change * residual + change**2 * (1 - leverage)) / rss
    collapsed = square <= _COLLAPSED
    spread = np.sqrt(np.where(collapsed, 1.0, square))
    result = np.empty(len(shift))
    low, step = _COARSE if coarse else _PRECISE
    x = np.arange(low, math.log(_LARGEST) + step, step)
    for start in range(0, len(shift), _PAIRS):
        part = slice(start, start + _PAIRS)
        a, b = shift[part], spread[part]
        # Seen from Q in units of its own spread, P is shifted by a/b and spread by 1/b.
        result[part] = np.maximum(_hockey_stick(epsilon, a, b, x), _hockey_stick(epsilon, a / b, 1 / b, x))
    return np.where(collapsed, 1.0, np.minimum(result, 1.0))


def _hockey_stick(epsilon: float, a: Floats, b: Floats, x: Floats) -> Floats:
    """E over u ~ N(0, 1) of the hockey-stick divergence of N(0, 1) from N(a u, b²), shape (k,).

    Twice the integral over u > 0, from where it begins to be positive; trapezoidal rule at equidistant ln(u - begin).
    """
    widened = np.maximum(epsilon - np.log(b), 0.0) * (b > 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        begin = np.where(widened > 0, np.sqrt(2 * (b**2 - 1) * widened) / a, 0.0)
    begin = np.minimum(begin, _LARGEST)[:, None]  # also where a = 0 makes it infinite
    u = begin + np.exp(x)
    density = np.exp(-0.5 * u * u + x) * ((x[1] - x[0]) * 2 / math.sqrt(2 * math.pi))
    integral: Floats = (density * _inner(epsilon, a[:, None] * u, b[:, None])).sum(axis=1)
    return integral


def _inner(epsilon: float, mean: Floats, b: Floats) -> Floats:
    """The hockey-stick divergence at e^epsilon of N(0, 1) from N(mean, b²), mean >= 0, broadcast.

    The log ratio of densities at v exceeds epsilon where A v² + B v + C > 0, with A = (1/b² - 1)/2, B = -mean/b² and
    C = mean²/2b² + ln b - epsilon: between the roots for b > 1, outside of them for b < 1, below one for b = 1.
    """
    from scipy.special import ndtr

    inverse = 1 / b
    half = (inverse - 1) * (inverse + 1) / 2
    linear = mean * inverse**2
    constant = (mean * inverse) ** 2 / 2 + np.log(b) - epsilon
    discriminant = (mean * inverse) ** 2 - 4 * half * (np.log(b) - epsilon)
    q = (linear + np.sqrt(np.maximum(discriminant, 0.0))) / 2
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        near = np.where(q > 0, constant / q, -np.inf)  # the root that stays where it is as b passes 1
        far = np.where(half == 0, np.inf, q / half)

    def mass(centre: Floats, scale: Floats) -> Floats:
        below: Floats = ndtr((near - centre) * scale)
        beyond: Floats = ndtr((far - centre) * np.where(b > 1, scale, -scale))
        return below + np.where(b > 1, -1, 1) * beyond

    seen = mass(np.zeros_like(mean), np.ones_like(b)) - math.exp(epsilon) * mass(mean, inverse)
    return np.where(discriminant > 0, np.maximum(seen, 0.0), 0.0)
