"""Bins and strengths of regularisation from public numbers: rows, features, bins, and the noise of one count."""

from __future__ import annotations

import numpy as np

_ROWS_PER_DEVIATION = 4.0  # Lacombe et al. 2021, Section 4.2
_FEW_FEATURES, _MOST_BINS, _MOST_BINS_OF_MANY = 9, 30, 20
_VARIANCE = 0.2  # of a label given a bin, about


def bins_per_feature(rows: float, features: int, deviation: float) -> int:
    """Bins q with about four standard deviations of noise worth of rows each (Lacombe et al. 2021, Section 4.2).

    q = round(n_t / (4 deviation)), at least 2, and at most 30 (20 of more than 9 features), which is also taken without
    noise. `rows` is a public number of target rows n_t, `deviation` that of one released count.
    """
    most = _MOST_BINS if features <= _FEW_FEATURES else _MOST_BINS_OF_MANY
    if deviation == 0:
        return most
    return int(np.clip(round(rows / (_ROWS_PER_DEVIATION * deviation)), 2, most))


def importance_strength(rows: float, source_rows: int, bins: float, deviation: float) -> float:
    """alpha of Pb. 1 (Lacombe et al. 2021, Eq. 2): half the ratio of the variances of a marginal and of a weight.

    A share of the target's rows has about the variance tau^2 = (deviation / n_t)^2 + 1 / (2 q n_t), by noise and by
    chance, and a weight 1 / n^2 before any is seen. `bins` is q, `rows` n_t, `source_rows` n.
    """
    return 0.5 * ((deviation / rows) ** 2 + 1 / (2 * bins * rows)) * source_rows**2


def label_strength(rows: float, cells: int, features: int, deviation: float) -> float:
    """rho of Pb. 2: half the expected squared norm of what is wrong with the target's numbers of errors, over n_t^2.

    The K `cells` of d `features` have noise of `deviation` each, and the errors in the n_t / q rows of a bin vary from
    sample to sample by about 0.2 n_t / q.
    """
    return 0.5 * (cells * (deviation / rows) ** 2 + _VARIANCE * features / rows)
