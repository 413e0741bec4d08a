"""Class means matched in the coordinates in which their errors are round."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from aggregator.learners.class_ratios.class_means import ClassMeans
from aggregator.learners.class_ratios.mean_errors import MeanErrors
from aggregator.learners.parameters import require_number


class WhitenedMeans(ClassMeans):
    """`ClassMeans` in the metric W = (S + ridge tr(S)/D I)^-1, S being the covariance of features within bags.

    Distances then count in units of what sampling adds to them, as in Fisher's discriminant: generalised least squares,
    with a ridge against what is not known of S. W is large where little is known, so that sampling adds more to mu'W mu
    than to mu'mu: without `debiased`, errors are up to three times as large for bags of some hundred rows. `ridge` is
    positive; from .3 to 3 it hardly matters.
    """

    name: ClassVar[str] = "whitened"
    kernels: ClassVar[tuple[str, ...]] = ("fourier", "nystrom", "linear")

    def __init__(
        self,
        kernel: str = "fourier",
        bandwidth: float | str = 1.0,
        features: int = 512,
        seed: int = 0,
        ridge: float = 1.0,
        debiased: bool = True,
        corrected: bool = True,
    ) -> None:
        super().__init__(kernel, bandwidth, features, seed, debiased, corrected)
        self.ridge = ridge

    def metric(self, errors: MeanErrors | None) -> np.ndarray | None:
        """W (D, D)."""
        return None if errors is None else errors.whitening(self.ridge)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_number("ridge", self.ridge, 1.0)

    @property
    def _needs_covariance(self) -> bool:
        return True
