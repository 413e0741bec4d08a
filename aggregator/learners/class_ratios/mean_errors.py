"""What is known of the errors of class means that come from means of bags, and of what they do to distances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aggregator.learners.class_ratios.unmixing import Unmixing, given_labels


@dataclass(frozen=True, eq=False)
class MeanErrors:
    """Second moments of the errors E (D, C) of class means mu = sum_i B_i phi_i, B being the matrix of an `Unmixing`.

    - Sampling: E'WE is tr(W S) `sampling` in expectation for every metric W, with the `covariance` S (D, D) of the
      features of one row within bags and `sampling` = sum_i B_i B_i' / n_i (C, C). `freedom` are the degrees of
      freedom that S was estimated with from the rows of the bags themselves, None when it owes them nothing.
    - Noise of variance v_i per coordinate of the released mean i: tr(W) `release`, `release` = sum_i v_i B_i B_i'.
    - Noise in proportions: see `undistorted` for `distortion` and its T, `noise` (C, C).

    mu L mu' is the part of S that vanishes when the classes of rows are known, L = `label_covariance` (C, C).
    """

    covariance: np.ndarray
    freedom: int | None
    sampling: np.ndarray
    release: np.ndarray
    distortion: np.ndarray
    noise: np.ndarray
    label_covariance: np.ndarray

    @classmethod
    def of(
        cls, unmixing: Unmixing, covariance: np.ndarray, freedom: int | None, mean_noise: np.ndarray | float
    ) -> MeanErrors:
        """For S = `covariance` and its `freedom`, and v = `mean_noise`, (M,) or one number."""
        return cls(
            covariance=covariance,
            freedom=freedom,
            sampling=unmixing.squares(1 / unmixing.sizes),
            release=unmixing.squares(mean_noise),
            distortion=unmixing.distortion,
            noise=unmixing.mean_noise,
            label_covariance=unmixing.label_covariance,
        )

    def whitening(self, ridge: float) -> np.ndarray:
        """W = (S + n v I + `ridge` tr(S)/D I)^-1 (D, D), the metric that the errors themselves suggest.

        n v is the noise of released means in units of what one row adds. Where there are no errors, W = I.
        """
        dimension = len(self.covariance)
        noise = float(np.trace(self.release) / np.trace(self.sampling))
        level = noise + ridge * float(np.trace(self.covariance)) / dimension
        return np.linalg.inv(self.covariance + (level or 1.0) * np.eye(dimension))

    def debiased(self, products: np.ndarray, metric: np.ndarray | None) -> np.ndarray:
        """mu'W mu (..., C, C) without what sampling and release add to it; W is I for `metric` None, or `whitening`."""
        spread = self.spread(metric)
        level = len(self.covariance) if metric is None else np.trace(metric)
        unbiased = products - spread * self.sampling - level * self.release
        return given_labels(unbiased, self.sampling, self.label_covariance, spread)

    def spread(self, metric: np.ndarray | None) -> float:
        """Expected |W^(1/2) (phi(x) - E phi(x))|^2 of another row within a bag.

        For W = (S + c I)^-1 and S estimated with f degrees of freedom that is t / (1 - t/f), t = tr(W S) (by leaving
        rows out one by one; Ledoit and Peche 2011 for the limit).
        """
        if metric is None:
            return float(np.trace(self.covariance))
        seen = float(np.sum(metric * self.covariance))
        return seen if self.freedom is None else seen / (1 - seen / self.freedom)
