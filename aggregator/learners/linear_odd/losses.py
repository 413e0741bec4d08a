"""Loss functions whose odd part is linear (Patrini et al. 2015, Theorem 3).

A loss f of the margin x with f(x) - f(-x) = -a x is even(x) - a/2 x, even(x) = (f(x) + f(-x)) / 2. Its mean over rows
x_i with labels y_i in {-1, +1} is then mean_i even(<w, x_i>) - a/2 <w, mu>: labels enter through the mean operator
mu = mean_i y_i x_i alone. Two kinds suffice: every smooth convex one is symmetric proper (`symmetric_proper`), and the
others in use have a piecewise linear even part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np


class LinearOddLoss(ABC):
    """A convex loss f of margins with f(x) - f(-x) = -a x.

    `slope` is a > 0. `smooth`: whether f has two derivatives everywhere. `bounded_slope`: whether the even part has
    bounded derivatives, so that -a/2 <w, mu> may win over it, and a risk without regularisation has no minimiser, when
    mu is a noisy estimate. Margins are arrays of any shape, at most 1e8 in absolute value.
    """

    name: str
    slope: float
    smooth: bool
    bounded_slope: bool

    @abstractmethod
    def value(self, margins: np.ndarray) -> np.ndarray:
        """f at the margins."""

    @abstractmethod
    def even(self, margins: np.ndarray) -> np.ndarray:
        """(f(x) + f(-x)) / 2 at the margins x."""


@dataclass(frozen=True)
class PiecewiseLinearLoss(LinearOddLoss):
    """f(x) = level + sum_k height_k |x - place_k| - a/2 x for `kinks` ((place_k, height_k), ...) symmetric around 0.

    Without kinks the loss is linear.
    """

    name: str
    slope: float
    kinks: tuple[tuple[float, float], ...]
    level: float
    smooth = False
    bounded_slope = True

    def value(self, margins: np.ndarray) -> np.ndarray:
        return self.even(margins) - self.slope / 2 * margins

    def even(self, margins: np.ndarray) -> np.ndarray:
        bends = (height * np.abs(margins - place) for place, height in self.kinks)
        return sum(bends, np.full(np.shape(margins), self.level))
