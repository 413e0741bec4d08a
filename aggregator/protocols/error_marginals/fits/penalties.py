"""Strictly convex penalties of single unknowns in an interval, with the derivatives of their conjugates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Penalty(Protocol):
    """h(y) >= 0 for y in [low, high], strictly convex, 0 at the centre; phi is its conjugate max_y t y - h(y).

    Arguments are arrays (n,). Inside the interval y is given by its distances from both ends, so that it keeps its
    accuracy where it is close to one.
    """

    @property
    def low(self) -> float:
        """The lower end of the interval."""

    @property
    def high(self) -> float:
        """The upper end of the interval, or infinity."""

    @property
    def centre(self) -> float:
        """The unpenalised y, inside the interval."""

    def gradient(self, below: np.ndarray, above: np.ndarray) -> np.ndarray:
        """h'(y) of y = low + below = high - above inside the interval."""

    def curvature(self, below: np.ndarray, above: np.ndarray) -> np.ndarray:
        """h''(y) > 0."""

    def unknowns(self, arguments: np.ndarray) -> np.ndarray:
        """phi'(t): the y that maximises t y - h(y)."""

    def slopes(self, arguments: np.ndarray) -> np.ndarray:
        """phi''(t) >= 0; that of one side where phi' has a kink."""


@dataclass(frozen=True)
class Quadratic:
    """(y - centre)^2 / 2 of y in [low, high], where low < centre < high."""

    centre: float
    low: float = 0.0
    high: float = math.inf

    def gradient(self, below: np.ndarray, above: np.ndarray) -> np.ndarray:
        """y - centre."""
        return below + (self.low - self.centre)

    def curvature(self, below: np.ndarray, above: np.ndarray) -> np.ndarray:
        """1."""
        return np.ones(below.shape)

    def unknowns(self, arguments: np.ndarray) -> np.ndarray:
        """centre + t, or the end of the interval that it lies beyond."""
        return np.clip(self.centre + arguments, self.low, self.high)

    def slopes(self, arguments: np.ndarray) -> np.ndarray:
        """1 inside the interval, 0 at its ends and beyond."""
        moved = self.centre + arguments
        return ((moved > self.low) & (moved < self.high)).astype(np.float64)


@dataclass(frozen=True)
class Entropy:
    """KL(y || 1/2) = y log 2y + (1 - y) log 2(1 - y) of y in [0, 1]: log 2 minus the entropy of a coin."""

    centre: float = 0.5
    low: float = 0.0
    high: float = 1.0

    def gradient(self, below: np.ndarray, above: np.ndarray) -> np.ndarray:
        """log(y / (1 - y))."""
        return np.log(below) - np.log(above)

    def curvature(self, below: np.ndarray, above: np.ndarray) -> np.ndarray:
        """1 / y + 1 / (1 - y)."""
        return 1 / below + 1 / above

    def unknowns(self, arguments: np.ndarray) -> np.ndarray:
        """1 / (1 + exp(-t))."""
        from scipy.special import expit

        return expit(arguments)

    def slopes(self, arguments: np.ndarray) -> np.ndarray:
        """y (1 - y)."""
        from scipy.special import expit

        return expit(arguments) * expit(-arguments)
