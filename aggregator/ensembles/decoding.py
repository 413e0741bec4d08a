"""What protocols of votes and parameters have in common when they decode noisy values, and what they rest on."""

from __future__ import annotations

import numpy as np

from aggregator.contract.premises import ATTENDANCE, COUNTED_ONCE
from federation.contract.guarantee import Assumption, Check, Keeper

VOTE_ASSUMPTIONS = (
    Assumption("every party casts one vote on every auxiliary row, for one of the declared classes or a distribution "
               "over them; an answer that does not is replaced by the uniform vote", Check.ENFORCED),
    COUNTED_ONCE,
    Assumption("sensitivities use the declared number of parties; a missing party is a uniform vote, "
               "and a party that fails costs no other party its vote", Check.ENFORCED),
    ATTENDANCE,
)  # fmt: skip
PUBLIC_ROWS = Assumption(
    "auxiliary rows are public whoever they come from, and with the feature map and all options "
    "were chosen without private data",
    Check.DECLARED,
    Keeper.COORDINATOR,
)
VOTE_CHECKS = ("votes were checked on arrival; refused and missing ones count as uniform",)


def two_rows(weights: np.ndarray) -> np.ndarray:
    """Binary weights (..., d) as one row per class (..., 2, d), with the same decisions.

    Examples:
        >>> two_rows(np.array([2.0, -4.0]))
        array([[-1.,  2.],
               [ 1., -2.]])
    """
    return np.stack([-weights / 2, weights / 2], axis=-2)
