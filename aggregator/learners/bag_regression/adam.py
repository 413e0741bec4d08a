"""Adam with a learning rate that decays as a cosine."""

from __future__ import annotations

import math

import numpy as np

_FIRST, _SECOND, _LEAST = 0.9, 0.999, 1e-7  # decay of both moments, and what keeps their ratio finite


def cosine_decay(step: int, steps: int, initial: float, alpha: float) -> float:
    """The learning rate of `step` 0..steps: from `initial` to alpha times it (Loshchilov and Hutter 2017, Eq. 5)."""
    return initial * (alpha + (1 - alpha) * 0.5 * (1 + math.cos(math.pi * min(step / steps, 1.0))))


class Adam:
    """Steps of Adam (Kingma and Ba 2015, Algorithm 1) on parameters (P,), which are changed in place."""

    def __init__(self, parameters: np.ndarray) -> None:
        self._parameters = parameters
        self._mean, self._square = np.zeros_like(parameters), np.zeros_like(parameters)
        self._steps = 0

    def step(self, gradient: np.ndarray, rate: float) -> None:
        """Moves the parameters by at most about `rate` each, against the `gradient` (P,)."""
        self._steps += 1
        self._mean += (1 - _FIRST) * (gradient - self._mean)
        self._square += (1 - _SECOND) * (gradient * gradient - self._square)
        size = rate / (1 - _FIRST**self._steps)
        spread = np.sqrt(self._square / (1 - _SECOND**self._steps))
        spread += _LEAST
        self._parameters -= size * self._mean / spread
