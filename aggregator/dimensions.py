"""How many whitened dimensions a release can afford: a rule in public numbers only."""

from __future__ import annotations

import math

from federation.privacy import gaussian, sensitivity

TOLERABLE_NOISE = 0.07  # expected norm of the noise, where the statistic has norm 1 at most
FEWEST, MOST = 5, 80


def affordable(noise: str, *, classes: int, parties: int, rows: int, epsilon: float, delta: float) -> int:
    """The most dimensions d whose expected noise stays below `TOLERABLE_NOISE`, within 5..80 and a tenth of the rows.

    The whitened vote statistic has (C-1) d coordinates and sensitivity s = sqrt(2)/M: the noise norm is about
    (C-1) d s / epsilon for L2-Gamma noise and sigma sqrt((C-1) d) for Gaussian noise. `noise` "off" takes the most.
    """
    most = max(FEWEST, min(MOST, rows // 10))
    if noise == "off":
        return most
    reach = sensitivity.statistic(parties)
    if noise == "gaussian":
        found = (TOLERABLE_NOISE * gaussian.mu(epsilon, delta) / reach) ** 2 / (classes - 1)
    else:
        found = TOLERABLE_NOISE * epsilon / (reach * (classes - 1))
    return max(FEWEST, min(most, math.floor(found)))
