"""How many whitened dimensions a release can afford: a rule in public numbers only.

A release of d dimensions is a least-squares prediction of vote shares from d features of unit variance. Two things
keep it from the shares, and they pull d apart:

- noise: its expected norm is spread over the scores of C classes, whose noise has standard deviation E|noise|/sqrt(C)
  on an average row. With sensitivity s, E|noise| is (C-1) d s/epsilon for L2-Gamma noise and about
  sigma sqrt((C-1) d) for Gaussian noise;
- what the omitted directions would have told: taken to be OMITTED/d, a law of diminishing returns.

The sum of the two squares has its minimum in closed form. The one constant and the law were chosen on HAR (1000
parties of 6 rows) and on Gaussian classes; KDD-99, digits, MNIST and Adult confirmed them (`benchmarks.dimensions`).
"""

from __future__ import annotations

import math
from bisect import bisect_right

from federation.errors import InputError
from federation.privacy import gaussian, sensitivity

OMITTED = 0.65
ROWS_PER_DIMENSION = 4  # with fewer public rows the smallest of the whitened directions are made of chance
SIZES = (3, 4, 6, 8, 12, 16, 24, 32, 40, 48, 56, 64, 80, 96)  # a ladder, so that many epsilons need few trainings


def balanced(noise: str, *, classes: int, parties: int, epsilon: float, delta: float) -> float:
    """The d > 0, a real number, that minimises noise² / C + (OMITTED / d)², whatever the number of public rows.

    Pure: d⁴ = C (OMITTED epsilon / ((C-1) s))², so d grows like sqrt(M epsilon). Gaussian: d³ = 2 C OMITTED² /
    ((C-1) sigma²). `noise` is "pure" or "gaussian"; s = sqrt(2)/M. `delta` is for Gaussian noise only. Raises
    `InputError` for another noise and for numbers out of range.
    """
    if classes < 2:
        raise InputError(f"classes must be at least 2, got {classes}")
    moved = sensitivity.statistic(parties)
    if noise == "gaussian":
        sigma = moved / gaussian.mu(epsilon, delta)
        return float((2 * classes * OMITTED**2 / ((classes - 1) * sigma**2)) ** (1 / 3))
    if noise != "pure":
        raise InputError(f"noise must be 'pure' or 'gaussian', got {noise!r}")
    if not 0 < epsilon < math.inf:
        raise InputError(f"epsilon must be a positive finite number, got {epsilon}")
    return float(classes**0.25 * math.sqrt(OMITTED * epsilon / ((classes - 1) * moved)))


def affordable(noise: str, *, classes: int, parties: int, rows: int, epsilon: float, delta: float) -> int:
    """The largest of `SIZES` (the first at least) up to `balanced` and to a quarter of the `rows` public rows.

    `noise` is "pure", "gaussian", or "off", which takes the largest that the rows allow whatever the other numbers.
    The feature map keeps fewer when the rank of the public rows is smaller. Raises `InputError` as `balanced` and
    for rows < 1.
    """
    if rows < 1:
        raise InputError(f"public rows must be at least 1, got {rows}; raise data.auxiliary")
    most = rows / ROWS_PER_DIMENSION
    if noise != "off":
        most = min(most, balanced(noise, classes=classes, parties=parties, epsilon=epsilon, delta=delta))
    return SIZES[max(0, bisect_right(SIZES, most) - 1)]
