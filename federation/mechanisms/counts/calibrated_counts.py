"""The mechanism that a name and public numbers stand for; the same call rebuilds it wherever the counts are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from federation.contract.errors import InputError
from federation.mechanisms.counts import baselines, dirichlet, discrete_gaussian, independent_laplace, lattice_laplace
from federation.mechanisms.counts.additive import AdditiveCounts
from federation.mechanisms.counts.count_mechanism import CountMechanism
from federation.mechanisms.noise.checks import require_wanted, require_whole

CountNoise = Literal[
    "auto",
    "gaussian",
    "laplace",
    "pure",
    "independent_laplace",
    "published_laplace",
    "published_gaussian",
    "laplace_prior",
    "dirichlet_floor",
    "dirichlet_shifted",
]
_MOST_CLASSES = 2**20
_FREE = 1.001  # at so little more error than with delta, a pure guarantee is preferred
_NEED_DELTA = ("gaussian", "published_gaussian", "dirichlet_floor", "dirichlet_shifted")


def calibrate(
    noise: CountNoise,
    *,
    classes: int,
    epsilon: float,
    delta: float,
    floor: int | None = None,
    pseudo_count: int | None = None,
) -> CountMechanism:
    """The least noise of a kind that makes one release of label counts (epsilon, delta)-private.

    `noise`: "auto" (the smallest expected L1 error of gaussian, laplace and, within 0.1 %, pure), "gaussian"
    (independent discrete Gaussian), "laplace" (discrete Laplace of sum zero, using delta), "pure" (the same at
    delta 0), "independent_laplace"; for comparison "published_laplace", "published_gaussian", "laplace_prior",
    "dirichlet_floor" (needs `floor`: a promise that every class has so many records in both neighbours) and
    "dirichlet_shifted" (needs `pseudo_count`). `delta` in [0, 1); pure kinds claim 0 whatever it is. All
    arguments are public numbers, and plain JSON. Raises `InputError` for arguments out of range, missing, or of
    another kind.

    Examples:
        >>> import numpy as np
        >>> from federation.contract.randomness import NoiseBits
        >>> noise = calibrate("auto", classes=3, epsilon=0.5, delta=1e-6)
        >>> noise.name, float(noise.scale)
        ('lattice_laplace', 4.0)
        >>> noise.release(np.array([50, 30, 20]), NoiseBits(3, "example"), draws=2).round(1)
        array([[49., 31., 20.],
               [49., 32., 19.]])
    """
    require_wanted(noise, epsilon, delta, known=get_args(CountNoise), with_delta=_NEED_DELTA, pure="laplace or pure")
    require_whole("classes", classes, 2, _MOST_CLASSES)
    _check_extra("floor", floor, noise, "dirichlet_floor")
    _check_extra("pseudo_count", pseudo_count, noise, "dirichlet_shifted")
    if floor is not None:
        return dirichlet.calibrate_floor(classes, epsilon, delta, floor)
    if pseudo_count is not None:
        return dirichlet.calibrate_shifted(classes, epsilon, delta, pseudo_count)
    kinds: dict[str, Callable[[], CountMechanism]] = {
        "auto": lambda: _automatic(classes, epsilon, delta),
        "gaussian": lambda: discrete_gaussian.calibrate(classes, epsilon, delta),
        "laplace": lambda: lattice_laplace.calibrate(classes, epsilon, delta),
        "pure": lambda: lattice_laplace.calibrate(classes, epsilon, 0.0),
        "independent_laplace": lambda: independent_laplace.calibrate(classes, epsilon, delta),
        "published_laplace": lambda: baselines.published_laplace(classes, epsilon),
        "published_gaussian": lambda: baselines.published_gaussian(classes, epsilon, delta),
        "laplace_prior": lambda: baselines.LaplacePrior(baselines.published_laplace(classes, epsilon)),
    }
    return kinds[noise]()


def _automatic(classes: int, epsilon: float, delta: float) -> AdditiveCounts:
    """By expected L1 error before any projection, which depends on (classes, epsilon, delta) only."""
    pure = lattice_laplace.calibrate(classes, epsilon, 0.0)
    if delta == 0:
        return pure
    laplace = lattice_laplace.calibrate(classes, epsilon, delta)
    gaussian = discrete_gaussian.calibrate(classes, epsilon, delta)
    best = min(laplace, gaussian, key=lambda mechanism: mechanism.expected_l1())
    return pure if pure.expected_l1() <= _FREE * best.expected_l1() else best


def _check_extra(parameter: str, value: int | None, noise: str, owner: str) -> None:
    if (value is None) == (noise == owner):
        raise InputError(
            f"{parameter} must be given for noise {owner} and for no other, got {value} for {noise}; "
            f"{'name a public number' if value is None else 'leave it out'}"
        )
