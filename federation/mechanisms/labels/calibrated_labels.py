"""The mechanism that a name and public numbers stand for; the same call rebuilds it wherever the labels are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from federation.contract.errors import InputError
from federation.mechanisms.labels import additive, binned_response, one_bit, unbiased_design
from federation.mechanisms.labels.bins import MAX_POINTS
from federation.mechanisms.labels.label_mechanism import LabelMechanism
from federation.mechanisms.labels.label_range import LabelRange, Outside
from federation.mechanisms.labels.private_prior import DEFAULT_POINTS, DEFAULT_SHARE, EstimatedBins
from federation.mechanisms.noise.checks import require_wanted, require_whole
from federation.numerics.arrays import numbers

LabelNoise = Literal["laplace", "gaussian", "one_bit", "unbiased", "bins", "estimated_bins"]


def calibrate(
    noise: LabelNoise,
    *,
    epsilon: float,
    delta: float,
    label_range: tuple[float, float],
    outside: Outside = "refuse",
    prior: Sequence[float] | None = None,
    points: int = DEFAULT_POINTS,
    share: float = DEFAULT_SHARE,
    debiased: bool = False,
) -> LabelMechanism:
    """The least noise of a kind that makes each label (epsilon, delta)-private within its declared range.

    `noise`: "laplace" and "gaussian" (discrete), "one_bit" (two values), "unbiased" (the unbiased answers of the least
    variance, for epsilon from .01 to 12; another version of the solver may find another table), "bins" (randomised
    response on the best bins for a public `prior`, weights of evenly spaced points from the low end to the high one, or
    without it for equal weights of `points` points), "estimated_bins" (the same, with `share` of epsilon for a private
    histogram on `points` points). `debiased` corrects the answers of bins. `delta` in [0, 1), above 0 for "gaussian";
    the others claim 0 whatever it is. All arguments are public numbers, and plain JSON. Raises `InputError` for
    arguments out of range, or of another kind.

    Examples:
        >>> kinds = get_args(LabelNoise)[:3]
        >>> made = [calibrate(kind, epsilon=1.0, delta=1e-5, label_range=(0.0, 1.0)) for kind in kinds]
        >>> [(noise.name, round(float(noise.variance()), 2)) for noise in made]
        [('label_laplace', 2.0), ('label_gaussian', 13.92), ('label_one_bit', 1.17)]
    """
    known = get_args(LabelNoise)
    require_wanted(noise, epsilon, delta, known=known, with_delta=("gaussian",), pure="laplace or one_bit")
    if prior is not None and noise != "bins":
        raise InputError(f"prior is for noise bins and for no other, got one for {noise}; leave it out")
    labels = LabelRange.of(label_range, outside)
    if noise == "gaussian":
        return additive.gaussian(labels, epsilon, delta)
    if noise == "laplace":
        return additive.laplace(labels, epsilon)
    if noise == "one_bit":
        return one_bit.calibrate(labels, epsilon)
    if noise == "unbiased":
        return unbiased_design.calibrate(labels, epsilon)
    if noise == "bins":
        if prior is None:
            require_whole("points", points, 2, MAX_POINTS)
        weights = np.full(points, 1 / points) if prior is None else numbers(prior, "prior")
        return binned_response.calibrate(labels, epsilon, weights, debiased)
    return EstimatedBins(labels, epsilon, points, share, debiased)
