"""Bins and strengths of regularisation from public numbers: rows, features, bins, and the noise of one count."""

from __future__ import annotations

import numpy as np

_ROWS_PER_DEVIATION = 4.0  # Lacombe et al. 2021, Section 4.2
_PIECES = 2  # straight ones, of the errors along a feature
_FEW_FEATURES, _MOST_BINS, _MOST_BINS_OF_MANY = 9, 30, 20
_SHARE_VARIANCE, _ERROR_VARIANCE = 0.5, 0.2  # over the bins of a feature, of whether a row is in one, and errs in it


def published_bins(rows: float, features: int, deviation: float) -> int:
    """Bins q with about four standard deviations of noise worth of rows each (Lacombe et al. 2021, Section 4.2).

    q = round(n_t / (4 deviation)), at least 2, and at most 30 (20 of more than 9 features), which is also taken without
    noise. `rows` is a public number of target rows n_t, `deviation` that of one released count.

    Examples:
        >>> published_bins(rows=1000, features=5, deviation=20.0)
        12
    """
    most = _MOST_BINS if features <= _FEW_FEATURES else _MOST_BINS_OF_MANY
    if deviation == 0:
        return most
    return int(np.clip(round(rows / (_ROWS_PER_DEVIATION * deviation)), 2, most))


def bins_per_feature(rows: float, features: int, deviation: float) -> int:
    """Of 2 to `published_bins` bins as many as tell most of errors that rise and fall once along a feature.

    Each of q bins has a q-th of the rows and the whole noise, so that more bins are a finer picture under more noise.
    They keep 1 - 4/q^2 of the variance of such errors, as two straight lines do, and tell it with the squared ratio of
    signal to noise n_t (1 - 4/q^2) / (q deviation^2 / n_t + 0.2), in which 0.2 is what chance adds for every row. That
    is 4 bins where noise prevails, and as many as there may be without noise. Chosen among rules of this kind on data
    that nothing else was chosen on (`benchmarks.unseen`). Arguments as there.

    Examples:
        >>> [bins_per_feature(rows=1000, features=5, deviation=deviation) for deviation in (0.0, 5.0, 20.0)]
        [30, 5, 4]
    """
    counts = np.arange(2, published_bins(rows, features, deviation) + 1)
    told = (1 - _PIECES**2 / counts**2) / (counts * deviation**2 / rows + _ERROR_VARIANCE)
    return int(counts[np.argmax(told)])


def importance_strength(rows: float, cells: int, features: int, source_rows: int, deviation: float) -> float:
    """alpha of Pb. 1 (Lacombe et al. 2021, Eq. 2): n / 2 times half the squared error of the target's marginals.

    With weights in units of 1/n, for `source_rows` n, the penalty is that half times the mean of (w_i - 1)^2 / 2. The
    `cells` K of d `features` have noise of `deviation` each, and shares of n_t `rows` vary by chance as well.

    Examples:
        >>> importance_strength(rows=1000, cells=20, features=5, source_rows=500, deviation=10.0)
        0.5625000000000001
    """
    return source_rows / 2 * _half_squared_error(rows, cells, features, deviation, _SHARE_VARIANCE)


def label_strength(rows: float, cells: int, features: int, deviation: float) -> float:
    """rho of Pb. 2: half the squared error of one answer about a hypothesis.

    The `cells` K of d `features` have noise of `deviation` each, and errors in n_t `rows` vary by chance as well.

    Examples:
        >>> label_strength(rows=1000, cells=20, features=5, deviation=10.0)
        0.0015
    """
    return _half_squared_error(rows, cells, features, deviation, _ERROR_VARIANCE)


def _half_squared_error(rows: float, cells: int, features: int, deviation: float, variance: float) -> float:
    """Half the expected squared norm of the error of K counts over n_t: from noise, and the `variance` of one row."""
    return 0.5 * (cells * (deviation / rows) ** 2 + variance * features / rows)
