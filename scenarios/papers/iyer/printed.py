"""What the two printed distortions of Figure 1 say of how they were made."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaln, xlogy

from federation.mechanisms.counts.calibration import sigma_for_counts, true_delta
from federation.mechanisms.counts.dirichlet_loss import delta_eq9, delta_exact
from federation.numerics.rows import Floats, Integers
from scenarios.papers.iyer.distortions import MECHANISMS, Bag, releases_as_published
from scenarios.reproductions.paper import EXACT, Observation

POINT = 20  # releases of a point of the paper's Figure 1
PRINTED = 0.06  # distortion of the Scaled Dirichlet
BY_EQ_9, AS_PRINTED = "sigma of Eq. 9", "sigma of the printed .06"
_ENDS = {"from": 0.025, "to": 0.975}
_RUNS = 2**16


def points(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Between what lie 95 % of the means of twenty releases at five classes, of every published mechanism."""
    for series, roles in MECHANISMS.items():
        if "published" in roles:
            means = releases_as_published(series, quick).reshape(-1, POINT).mean(axis=1)
            for end, level in _ENDS.items():
                yield Observation(series, end, "published", "", EXACT, float(np.quantile(means, level)))


def sigmas(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """The sigma that Eq. 9 allows at five classes, and the one whose distortion is printed; what follows from each."""
    bag = Bag()
    counts = bag.counts()
    allowed = sigma_for_counts(counts, bag.epsilon, bag.delta)
    assert allowed is not None
    drawn = float(brentq(lambda sigma: expected_distortion(counts, sigma) - PRINTED, allowed, 10.0))
    a, b = np.array([*permutations(counts.tolist(), 2)]).T
    for setting, sigma in {BY_EQ_9: allowed, AS_PRINTED: drawn}.items():
        found = {
            "sigma": sigma,
            "distortion": expected_distortion(counts, sigma),
            "delta of Eq. 9": float(delta_eq9(bag.epsilon, a, b, sigma).max()),
            "least delta at one sigma": float(delta_exact(bag.epsilon, a, b, sigma).max()),
        }
        for series, value in found.items():
            yield Observation(setting, series, "published", "", EXACT, value)
    yield Observation(BY_EQ_9, "delta with each its own sigma", "published", "", EXACT, _delta_kept(bag))


def expected_distortion(counts: Integers, sigma: float) -> float:
    """The mean L1 distance of a draw from Dir(sigma counts) to its mean, by the mean deviations of its Beta shares.

    Examples:
        >>> round(expected_distortion(np.array([50, 50, 50, 50, 800]), 0.00818), 3)
        0.308
    """
    a: Floats = sigma * counts.astype(np.float64)
    b: Floats = a.sum() - a
    logs = xlogy(a, a) + xlogy(b, b) - betaln(a, b) - xlogy(a + b + 1, a + b)
    return float(2 * np.exp(logs).sum())


def _delta_kept(bag: Bag) -> float:
    """The largest true delta from the bag to a neighbour with another sigma, or back."""
    counts = bag.counts()
    found = []
    for lost, gained in ((0, 1), (0, bag.classes - 1), (bag.classes - 1, 0)):  # of equal counts one says all
        neighbour = counts.copy()
        neighbour[[lost, gained]] += -1, 1
        for here, there in ((counts, neighbour), (neighbour, counts)):
            found.append(true_delta(here, there, bag.epsilon, bag.delta, runs=_RUNS).value)
    return max(found)
