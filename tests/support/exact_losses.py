"""Exact losses of single numbers: oracles for mechanisms that are calibrated by bounds."""

import math
from typing import Literal

import numpy as np


def delta_one_coordinate(epsilon: float, sensitivity: int, sigma: int) -> float:
    """The exact delta of one integer that moves by s = `sensitivity` (Canonne et al. 2020, Theorem 7).

    delta = P[K > epsilon sigma²/s - s/2] - e^epsilon P[K > epsilon sigma²/s + s/2].
    """
    reach = 40 * sigma + sensitivity
    mass = np.exp(-0.5 * np.square(np.arange(-reach, reach + 1) / sigma))
    above = np.cumsum(mass[::-1])[::-1] / math.fsum(mass)  # above[i] = P[K >= i - reach]

    def exceeds(threshold: float) -> float:
        first = math.floor(threshold) + 1 + reach
        return float(above[max(first, 0)]) if first < len(above) else 0.0

    centre, half = epsilon * sigma**2 / sensitivity, sensitivity / 2
    beyond = exceeds(centre + half)
    return exceeds(centre - half) - (math.exp(epsilon) * beyond if beyond else 0.0)


def published_loss(
    rows: int,
    errors: int,
    scale: float,
    kind: Literal["correct", "error"],
    empty: Literal["fixed", "floored"] = "fixed",
) -> float:
    """The largest privacy loss of one published rate about one row of its bin that is added or removed.

    `rows` = n and `errors` = U are those without this row, which is of `kind`; `scale` = lambda of continuous Laplace
    noise. For a correct row (n, U) meets (n + 1, U). On 0 < c < 1 the log ratio of their densities,
    log((n+1)/n) + (|n c - U| - |(n+1) c - U|)/lambda, is at most

        log((n+1)/n) + U/((n+1) lambda),  at c = U/(n+1),

    and in the other direction at most 1/lambda - log((n+1)/n), towards c = 1. The atoms at c = 1 have the log ratio
    1/lambda, those at c = 0 are equal; the loss is the larger. For an error, (n + 1, U + 1), exchange errors and
    correct rows: n - U takes the place of U. Without other rows in the bin (n = 0) it is infinite where an `empty` bin
    has a "fixed" rate; with the denominator "floored" at 1 it is 1/lambda for an error and 0 for a correct row.

    The claim for this rate is 1/lambda. At lambda = 44 (claim .0227) a correct row loses .705 beside one error (n = 1,
    U = 1), and so does an error beside one correct row (n = 1, U = 0); n = 20, U = 10 lose .060; n = 100, U = 50 keep
    the claim. Integer noise gives away more: rates are multiples of 1/n. What one row loses in the bins of all
    features, and in all queries, adds up.
    """
    if rows == 0:
        return math.inf if empty == "fixed" else (1 / scale if kind == "error" else 0.0)
    peak = errors if kind == "correct" else rows - errors
    return max(math.log1p(1 / rows) + peak / ((rows + 1) * scale), 1 / scale)


def beta_divergence(epsilon: float, p: np.ndarray, q: np.ndarray) -> float:
    """∫ max(0, f - e^epsilon f') over log odds of two Beta laws, on a grid that reaches the tails of both."""
    centres = [np.log(law[0] / law[1]) for law in (p, q)]
    reach = 40 / min(p.min(), q.min(), 1.0)
    t = np.linspace(min(centres) - reach, max(centres) + reach, 4_000_001)
    logs = [
        -law[0] * np.logaddexp(0, -t)
        - law[1] * np.logaddexp(0, t)
        - (math.lgamma(law[0]) + math.lgamma(law[1]) - math.lgamma(law.sum()))
        for law in (p, q)
    ]
    excess = np.maximum(0, np.exp(logs[0]) - np.exp(epsilon + logs[1]))
    return float(excess.sum() * (t[1] - t[0]))
