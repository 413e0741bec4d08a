"""Where along a direction the slope of a convex risk has halved: what Newton's methods for many parties have in common.

The risk is convex along a direction, so the root of its slope lies between a length where it falls and one where it
rises. Looking for that root, not for a smaller risk, is immune to rounding near the minimum, and lengths above 1 save
steps while the weights of separable rows still grow.
"""

from __future__ import annotations

import numpy as np

from federation.numerics.rows import Floats

NEWTON_STEPS = 60
TRIALS = 20  # of a length
SLOPE_REDUCTION = 0.5
LIVE_SHARE = 0.75  # a batch is packed when no more of it than this still works


def further(
    lengths: Floats, slopes: Floats, curvatures: Floats, low: Floats, high: Floats
) -> tuple[Floats, Floats, Floats]:
    """The next lengths (T,) to try after those at which the slopes and second derivatives of the risk are known.

    The root lies between `low` and `high` (T,), which come back nearer to it. A Newton step on the slope is taken where
    it stays between them, half the way elsewhere, and never more than four times the length.

    Examples:
        >>> slopes, curvatures, nowhere = np.array([-1.0, 0.2]), np.array([0.4, 0.4]), np.full(2, np.inf)
        >>> further(np.ones(2), slopes, curvatures, np.zeros(2), nowhere)
        (array([3.5, 0.5]), array([1., 0.]), array([inf,  1.]))
    """
    below, above = np.where(slopes < 0, lengths, low), np.where(slopes > 0, lengths, high)
    newton = lengths - slopes / curvatures
    middle = (below + np.minimum(above, 4 * below + 1)) / 2
    tried = np.minimum(np.where((below < newton) & (newton < above), newton, middle), 4 * lengths)
    return tried, below, above
