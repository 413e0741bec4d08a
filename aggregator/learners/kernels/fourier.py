"""Random Fourier features of the Gaussian kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from aggregator.learners.kernels.features import FeatureKernel
from federation.features.steps import Fourier, waves


@dataclass(frozen=True, eq=False)
class FourierKernel(FeatureKernel):
    """phi(x) = [cos(x'F), sin(x'F)] / sqrt(D/2) with frequencies F (d, D/2); |phi(x)| = 1.

    With columns of F drawn from N(0, 2 gamma I), E phi(x)'phi(y) = exp(-gamma |x - y|^2), with a standard error of at
    most 1/sqrt(D) (Rahimi and Recht 2007; Sutherland and Schneider 2015 for pairs). The features of a row are those of
    the step `federation.features.steps.Fourier`, up to rounding: tiles of rows share one matrix product here.
    """

    kind: ClassVar[str] = "fourier"
    frequencies: np.ndarray

    @classmethod
    def draw(cls, columns: int, gamma: float, features: int, seed: int) -> FourierKernel:
        """D = `features` random features for rows with so many columns; refuses what `Fourier.draw` refuses."""
        return cls(Fourier.draw(columns, gamma, features, seed).frequencies)

    def _tile_features(self, tile: np.ndarray) -> np.ndarray:
        return np.hstack(waves(tile @ self.frequencies))

    def _tile_sums(self, tile: np.ndarray) -> tuple[np.ndarray, float]:
        """Without the features side by side, and with norms of 1: half the time."""
        ones = np.ones(len(tile))
        return np.concatenate([ones @ each for each in waves(tile @ self.frequencies)]), float(len(tile))

    def _columns(self) -> int:
        return len(self.frequencies)
