"""One bit per label: two values, far enough apart to be unbiased (Duchi, Jordan, Wainwright 2018, Section 3.2).

The label becomes one of the range's ends at random, with its own mean; randomised response answers with that end or
the other. Both steps are exact, and so is their law: high with probability 1/2 + (1 - lambda) (y - middle)/width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from federation.contract.guarantee import Assumption, Check
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels import response
from federation.mechanisms.labels.label_mechanism import LabelReplacement
from federation.mechanisms.labels.label_range import LabelRange
from federation.mechanisms.noise.checks import require_epsilon_from_zero
from federation.mechanisms.noise.mechanism import Parameters
from federation.numerics.arrays import Floats

_STEPS = 2**52  # places of a label between the ends


@dataclass(frozen=True)
class OneBitLabels(LabelReplacement):
    """middle ± reach, reach = width / (2 (1 - lambda)) = width/2 (e^epsilon + 1)/(e^epsilon - 1); unbiased and pure."""

    labels: LabelRange
    epsilon: float
    redraw: int

    name: ClassVar[str] = "label_one_bit"
    delta: ClassVar[float] = 0.0

    @property
    def parameters(self) -> Parameters:
        """Public numbers; `flip` is the probability of the wrong end."""
        _, flip = response.probabilities(2, self.redraw)
        return {"low": self.labels.low, "high": self.labels.high, "reach": self.reach, "flip": flip}

    @property
    def reach(self) -> float:
        """Distance of the two values to the middle of the range."""
        return self.labels.width / 2 * (response.WORDS / (response.WORDS - self.redraw))

    def release(self, labels: Floats, bits: NoiseBits) -> Floats:
        """middle ± reach, (n,) float64. Raises `InputError` as `LabelRange.checked`."""
        places = self.labels.positions(labels, _STEPS)
        ends = ((bits.words(len(places)) >> np.uint64(12)) < places.astype(np.uint64)).astype(np.int64)
        signs = 2 * response.respond(ends, 2, self.redraw, bits).astype(np.float64) - 1
        return self.labels.middle + self.reach * signs

    def variance(self, labels: Floats | None = None) -> Floats | float:
        """reach² - (y - middle)²: largest in the middle of the range."""
        if labels is None:
            return self.reach**2
        return self.reach**2 - np.square(self.labels.checked(labels) - self.labels.middle)

    def bias(self, labels: Floats | None = None) -> Floats | float:
        """E released - label: 0 for each of the given labels (n,), or the number 0; answers are unbiased."""
        return 0.0 if labels is None else np.zeros(len(self.labels.checked(labels)))

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0: that of the two ends, the worst pair."""
        epsilon = require_epsilon_from_zero(epsilon)
        return response.delta(epsilon, 2, self.redraw)

    @property
    def _own_assumptions(self) -> tuple[Assumption, ...]:
        return (Assumption("each label has two random words of its own, compared as integers", Check.ENFORCED),)


def calibrate(labels: LabelRange, epsilon: float) -> OneBitLabels:
    """The two values nearest to each other that make a label epsilon-private without bias.

    Raises `InputError` for epsilon below 1e-6.

    Examples:
        >>> noise = calibrate(LabelRange(0.0, 1.0), epsilon=1.0)
        >>> noise.reach, noise.variance()
        (1.082, 1.171)
        >>> noise.release(np.array([0.1, 0.9, 0.5]), NoiseBits(1, "example"))
        array([ 1.582,  1.582, -0.582])
    """
    return OneBitLabels(labels, epsilon, response.calibrate(2, epsilon))
