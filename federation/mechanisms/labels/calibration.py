"""Mechanisms for single labels by name, and integer noise on labels that are rounded to a public grid.

`calibrate` builds the mechanism that a name and public numbers stand for. The same call rebuilds it at the party that
has the labels.

The grid of `AdditiveLabels` spans the declared range. A label becomes the number of the nearest of 2^20 + 1 evenly
spaced points, so one replaced label moves it by at most 2^20 steps. The mechanism rounds before it adds noise, so
rounding is not charged for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Check
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels import randomised_response
from federation.mechanisms.labels import unbiased_response as unbiased_design
from federation.mechanisms.labels.mechanism import LabelMechanism, LabelRange, LabelReplacement, Outside
from federation.mechanisms.labels.randomised_response import DEFAULT_POINTS, DEFAULT_SHARE, MAX_POINTS, EstimatedBins
from federation.mechanisms.noise import discrete
from federation.mechanisms.noise.mechanism import Parameters, require_epsilon_from_zero, require_wanted, require_whole
from federation.numerics.rows import Floats, numbers

STEPS = 2**20


@dataclass(frozen=True)
class AdditiveLabels(LabelReplacement):
    """Exact integer noise of the given scale, in steps of the grid; unbiased, but for rounding by half a step at most.

    `epsilon` and `delta` are what one release claims. At delta 0 the noise has P[k] ∝ exp(-|k|/scale), which is pure;
    else P[k] ∝ exp(-k²/(2 scale²)). Made by `laplace` and `gaussian`.
    """

    labels: LabelRange
    epsilon: float
    delta: float
    scale: int

    @property
    def name(self) -> str:
        """The mechanism's name in its guarantee."""
        return "label_gaussian" if self.delta else "label_laplace"

    @property
    def gaussian_mu(self) -> float | None:
        """Width of the range over the standard deviation of Gaussian noise, for composition."""
        return STEPS / self.scale if self.delta else None

    @property
    def parameters(self) -> Parameters:
        """Public numbers. Composition reads `dimension` and `grid_scale`, the scale in steps."""
        labels: Parameters = {"low": self.labels.low, "high": self.labels.high, "step": self._step}
        return labels | {"scale": self.scale * self._step, "grid_scale": self.scale, "dimension": 1}

    def release(self, labels: Floats, bits: NoiseBits) -> Floats:
        """Noisy labels (n,), which may lie outside the range. Raises `InputError` as `LabelRange.checked`."""
        positions = self.labels.positions(labels, STEPS)
        sample = discrete.sample_discrete_gaussian if self.delta else discrete.sample_discrete_laplace
        return self.labels.points(positions + sample(bits, self.scale, len(positions)), STEPS)

    def variance(self, labels: Floats | None = None) -> Floats | float:
        """The same for all labels: (n,) copies of it, or the number. For Gaussian noise but for e^{-2 pi² scale²}."""
        steps = float(self.scale) ** 2 if self.delta else discrete.variance(self.scale)
        value = steps * self._step**2
        return value if labels is None else np.full(len(self.labels.checked(labels)), value)

    def bias(self, labels: Floats | None = None) -> Floats | float:
        """That of rounding: half a step at most."""
        if labels is None:
            return self._step / 2
        return self.labels.points(self.labels.positions(labels, STEPS), STEPS) - self.labels.checked(labels)

    def log_ratio(self, released: Floats, here: Floats, there: Floats) -> Floats:
        """As `LabelMechanism.log_ratio`: the log likelihood ratio, up to scale."""
        if self.delta:
            return super().log_ratio(released, here, there)
        return np.asarray((np.abs(released - here) - np.abs(released - there)).sum(axis=1))

    def delta_at(self, epsilon: float) -> float:
        """Delta of one release at another epsilon >= 0: exact, for Gaussian noise but for about 1e-9 of itself."""
        epsilon = require_epsilon_from_zero(epsilon)
        if self.gaussian_mu is None:
            return discrete.delta(epsilon, STEPS, self.scale)
        return discrete.delta_bound(epsilon, self.gaussian_mu, 1, self.scale)

    @property
    def _own_assumptions(self) -> tuple[Assumption, ...]:
        law = "Gaussian of standard deviation" if self.delta else "Laplace of parameter"
        noise = (
            f"labels are rounded to {STEPS + 1} points of the range, and the noise is the discrete {law} `grid_scale` "
            "steps, independent for each label and drawn exactly in integer arithmetic"
        )
        return (Assumption(noise, Check.ENFORCED),)

    @property
    def _step(self) -> float:
        return self.labels.width / STEPS


def laplace(labels: LabelRange, epsilon: float) -> AdditiveLabels:
    """The least discrete Laplace noise that makes a label epsilon-private; t = 2^20/epsilon steps of the grid.

    Raises `InputError` at the first release where epsilon is so small that t exceeds 2^40.

    Examples:
        >>> noise = laplace(LabelRange(0.0, 10.0), epsilon=1.0)
        >>> noise.release(np.array([2.0, 9.0]), NoiseBits(1, "example"))
        array([15.43, 11.61])
        >>> noise.variance()
        200.0
    """
    return AdditiveLabels(labels, epsilon, 0.0, discrete.calibrate_discrete_laplace(STEPS, epsilon))


def gaussian(labels: LabelRange, epsilon: float, delta: float) -> AdditiveLabels:
    """The least discrete Gaussian noise that makes a label (epsilon, delta)-private: by `delta_bound`.

    Raises `InputError` unless epsilon >= 0 and 0 < delta < 1.

    Examples:
        >>> noise = gaussian(LabelRange(0.0, 10.0), epsilon=1.0, delta=1e-5)
        >>> noise.gaussian_mu, noise.variance()
        (0.2681, 1391.8)
    """
    return AdditiveLabels(labels, epsilon, delta, discrete.calibrate_discrete_gaussian(float(STEPS), 1, epsilon, delta))


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
        return gaussian(labels, epsilon, delta)
    if noise == "laplace":
        return laplace(labels, epsilon)
    if noise == "one_bit":
        return randomised_response.calibrate_one_bit(labels, epsilon)
    if noise == "unbiased":
        return unbiased_design.calibrate(labels, epsilon)
    if noise == "bins":
        if prior is None:
            require_whole("points", points, 2, MAX_POINTS)
        weights = np.full(points, 1 / points) if prior is None else numbers(prior, "prior")
        return randomised_response.calibrate(labels, epsilon, weights, debiased)
    return EstimatedBins(labels, epsilon, points, share, debiased)
