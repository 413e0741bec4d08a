"""What is left of a promise where more of those who share a noise collude than it counts on.

Of m shares that are the whole noise, h = r m come from honest parties, r < 1; who sees the sum takes all others off.
The laws are the continuous ones behind the grid. With Gaussian noise the sum is Gaussian of r times the variance. Of
the others the sum has, along one coordinate or as a function of the norm, a density proportional to z^v K_v(z), z =
|x|/s, with v = r - 1/2 for Laplace noise in a coordinate and v = ((D + 1) r - D)/2 for L2-Gamma noise. As K_v = K_{-v},

    z^v K_v(z) = const * integral over t >= 1 of exp(-z t) (t^2 - 1)^(-v - 1/2) dt,    v <= 1/2,

which is a mixture of exponentials, so that its logarithm is convex in z >= 0 and falls the fastest at 0. The largest
loss of a move is therefore that at 0; and of Laplace noise, where losses of coordinates add up and each is concave in
how far it moves, the worst of all moves of an L1 norm is the one that is shared alike by all D of them. At v <= 0 the
density is unbounded at 0, and there is no pure promise left; there is one at a delta (`fewer_shares`).
"""

from __future__ import annotations

import math

from scipy.special import kve

from federation.contract.errors import InputError
from federation.mechanisms.moments import fewer_shares
from federation.mechanisms.noise import gaussian
from federation.mechanisms.noise.additive import AdditiveMechanism


def weakened(whole: AdditiveMechanism, left: float, delta: float = 0.0) -> float:
    """The epsilon where honest shares are `left` times the whole noise, in (0, 1].

    It is at the delta that was promised; where that is 0, at this `delta`, or the pure one at 0, which is infinite
    where nothing pure is left. Of Laplace noise in several coordinates it is the pure one, whatever delta is: which
    move is the worst at a delta is not known. Raises `InputError` for a part out of range.

    Examples:
        >>> from federation.mechanisms.noise.additive import calibrate
        >>> normal = calibrate("gaussian", sensitivity=1.0, dimension=50, epsilon=1.0, delta=1e-6)
        >>> pure = calibrate("pure", sensitivity=1.0, dimension=5, epsilon=1.0)
        >>> [round(weakened(normal, left), 3) for left in (1.0, 0.9, 0.5)]
        [1.0, 1.058, 1.455]
        >>> [round(weakened(pure, left), 3) for left in (1.0, 0.95, 0.9, 0.8)]
        [1.0, 1.304, 1.82, inf]
        >>> [round(weakened(pure, left, delta=1e-6), 3) for left in (1.0, 0.95, 0.9, 0.8)]
        [0.986, 1.052, 1.196, 1.722]
    """
    if not 0 < left <= 1:
        raise InputError(f"left must be a part of the noise, above 0 and at most 1, got {left:g}")
    if whole.name == "discrete_gaussian":
        return gaussian.epsilon(whole.delta, whole.charged / whole.scale / math.sqrt(left))
    moved, dimension = whole.charged / whole.scale, whole.dimension
    if delta and (whole.name == "l2_gamma" or dimension == 1):  # in one dimension they are one
        return fewer_shares.epsilon(delta, moved, dimension, left)
    if whole.name == "discrete_laplace":
        return dimension * _loss(left - 0.5, moved / dimension)
    return _loss(((dimension + 1) * left - dimension) / 2, moved)


def _loss(order: float, moved: float) -> float:
    """log of z^v K_v(z) at 0, over that at z = `moved`."""
    if order <= 0:
        return math.inf
    peak = math.lgamma(order) + (order - 1) * math.log(2)
    return peak - (order * math.log(moved) + math.log(float(kve(order, moved))) - moved)
