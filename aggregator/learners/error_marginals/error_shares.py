"""Shares of errors per bin from noisy numbers of errors and rows, without a value that tells of an empty bin."""

from __future__ import annotations

import numpy as np

from federation.numerics.rows import Floats

_FEWEST_ROWS = 1.0  # of a bin whose share of errors is looked at


Totals = tuple[Floats, Floats]  # means and variances (K,) of rows per bin


def expected_totals(shares: Floats, rows: float, source_rows: int, deviation: float) -> Totals:
    """What the source says of the target's rows per bin before any answer: means and variances (K,), in rows.

    For n_t target `rows`, from the source's weighted shares of rows per bin (K,), within [0, 1] but for rounding.
    Shares of n = `source_rows` and of n_t rows of one distribution differ by chance; weights that were fitted to noisy
    marginals add about the noise of one count, `deviation`, which is 0 without such weights.

    Examples:
        >>> expected_totals(np.array([0.5, 0.5]), rows=100, source_rows=1000, deviation=2.0)
        (array([50., 50.]), array([31.5, 31.5]))
    """
    shares = np.clip(shares, 0.0, 1.0)
    chance = rows * shares * (1 - shares) * (1 + rows / source_rows)
    return rows * shares, chance + deviation**2


def error_shares(
    errors: Floats, totals: Floats, features: np.ndarray, *, rows: float, deviation: float, expected: Totals | None
) -> Floats:
    """Shares of errors in [0, 1] per query and bin (t, K); post-processing of the answers to t queries about K bins.

    Args:
        errors: noisy numbers of errors (t, K), any finite numbers.
        totals: numbers of rows (t, K); noisy ones are the sum of noisy errors and noisy corrects.
        features: the feature of every bin (K,), 0..d-1.
        rows: n_t, the rows of every feature's bins together.
        deviation: standard deviation of one noisy number of errors or of corrects.
        expected: what else is known of the totals (`expected_totals`); None where they are exact.

    With U errors and V corrects of a bin, U + V and U - V have independent noise. All queries have one U + V: what they
    say of it and what the source says are averaged by precision, and shifted so that every feature has n_t rows. U is
    then half the sum of that and of U - V, whose noise has half the variance of U's alone. A bin with less than one row
    gets the share of errors of all bins.

    Examples:
        >>> errors, totals = np.array([[2.0, 6.0]]), np.array([[10.0, 10.0]])
        >>> error_shares(errors, totals, np.array([0, 0]), rows=20.0, deviation=0.0, expected=None)
        array([[0.2, 0.6]])
    """
    if expected is None:
        rows_per_bin = totals
    else:
        corrects = totals - errors
        rows_per_bin = _combined_totals(totals, features, rows, deviation, expected)
        errors = (rows_per_bin + errors - corrects) / 2
    overall = errors.sum(axis=1, keepdims=True) / np.maximum(rows * (features.max() + 1), _FEWEST_ROWS)
    shares = np.where(rows_per_bin < _FEWEST_ROWS, overall, errors / np.maximum(rows_per_bin, _FEWEST_ROWS))
    return np.clip(shares, 0.0, 1.0)


def _combined_totals(totals: Floats, features: np.ndarray, rows: float, deviation: float, expected: Totals) -> Floats:
    """Rows per bin (K,) from the totals (t, K) of t queries and what is expected, d features of n_t rows each."""
    mean = totals.mean(axis=0)
    noise = 2 * deviation**2 / len(totals)
    means, variances = expected
    trust = variances + noise
    share = np.divide(noise, trust, out=np.zeros_like(trust), where=trust > 0)
    combined = (1 - share) * mean + share * means
    counts = np.bincount(features)
    return np.asarray(combined + ((rows - np.bincount(features, combined)) / counts)[features])
