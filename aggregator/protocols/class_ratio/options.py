"""Options of `class_ratio`, the rules between them, and measures of how well bags tell classes apart.

The measures are the singular values and the condition number of the proportions.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from aggregator.contract.protocol import refuse_misplaced, require_positive
from federation.contract.errors import InputError
from federation.contract.query import require_waves

CORRECTED = ("whitened", "class_means", "energy")  # for the known noise of proportions
KERNELLED = ("whitened", "class_means", "mmd", "regression")  # of which the kernel can be chosen
_OF_EMBEDDINGS = ("auto", "whitened", "class_means", "regression")


@dataclass(frozen=True)
class RatioOptions:
    """What parties send of their bags, under which noise, and what is estimated from it.

    estimator: `auto` checks whether bags differ in more than their ratios; it is `bag_classifier` where they do not,
        and where they do what predicts bags from other bags best (a mixture of estimators, or the mean of all bags),
        with a remark that says so. Or one of these, whatever the bags: `bag_classifier` (forward-corrected, with moment
        matching), `bag_classifier_em` (its EM form, which takes the classifier's probabilities for true and can be far
        off where they are not), `whitened` (class means in whitened coordinates of random features), `class_means`
        (without whitening), `regression` (of the bags' ratios on their means: needs many bags), `mmd` (as published),
        `energy` (distances for a kernel) or `proportion_svm`.
    noise: of the label counts: `auto` (by public numbers, the less distorting of the next two), `gaussian` (discrete
        Gaussian), `laplace` (lattice Laplace at epsilon and delta), `pure` (lattice Laplace at delta 0),
        `independent_laplace`, `dirichlet_floor`, `dirichlet_shifted`, the baselines `published_laplace`,
        `published_gaussian` and `laplace_prior`, `published_dirichlet` (NON-PRIVATE: it does not hold what it
        claims) or `off` (NON-PRIVATE).
    submit: of each bag all `rows` without their labels, or for `auto`, `whitened`, `class_means` and `regression` only
        its `embedding`, the mean of random Fourier features.
    protect: one `label`, features being public; or with `submit: embedding` and Gaussian noise one whole `row`.
    kernel: of `submit: rows`: `fourier`, `nystrom` or `exact`, or for `regression` also `linear`, the rows themselves.
    dimensions: of the random features, which `proportion_svm` has where its `bandwidth` is said.
    bandwidth: gamma of the kernel exp(-gamma |x-y|^2) times the median squared distance, or with `submit: rows` `auto`
        for the published selection by held-out bags and their released counts; null for the choice of the estimator: 1,
        for `mmd` that selection, for `proportion_svm` no kernel but the rows themselves.
    corrected: of `whitened`, `class_means` and `energy`: account for the known noise of the counts.
    label_share: of `protect: row`, the part of the noise's budget that labels get.
    floor: of `dirichlet_floor`: every class has so many rows in every bag, which is declared, not checked.
    pseudo_count: of `dirichlet_shifted`: added to every count.
    """

    estimator: Literal[
        "auto", "bag_classifier", "bag_classifier_em", "whitened", "class_means", "regression", "mmd", "energy",
        "proportion_svm",
    ] = "auto"  # fmt: skip
    noise: Literal[
        "auto", "gaussian", "laplace", "pure", "independent_laplace", "dirichlet_floor", "dirichlet_shifted",
        "published_laplace", "published_gaussian", "laplace_prior", "published_dirichlet", "off",
    ] = "auto"  # fmt: skip
    submit: Literal["rows", "embedding"] = "rows"
    protect: Literal["label", "row"] = "label"
    kernel: Literal["fourier", "nystrom", "exact", "linear"] = "fourier"
    dimensions: int = 512
    bandwidth: float | Literal["auto"] | None = None
    corrected: bool = True
    label_share: float = 0.5
    floor: int | None = None
    pseudo_count: int | None = None

    def __post_init__(self) -> None:
        require_waves(self.dimensions)
        if self.bandwidth is not None and self.bandwidth != "auto":
            require_positive("bandwidth", self.bandwidth)
        if not 0 < self.label_share < 1:
            raise InputError(f"label_share must lie between 0 and 1, got {self.label_share}")
        self._check_noise()
        if self.submit == "embedding" and self.estimator not in _OF_EMBEDDINGS:
            raise InputError(
                f"estimator: {self.estimator} needs the rows of bags; use submit: rows, or estimator: "
                f"{', '.join(_OF_EMBEDDINGS[:-1])} or {_OF_EMBEDDINGS[-1]}"
            )
        self._check_kernel()
        corrected = self.estimator in CORRECTED
        refuse_misplaced(self, ("corrected",), "estimator: whitened, class_means or energy", corrected)
        refuse_misplaced(self, ("label_share",), "protect: row", self.protect == "row")

    @property
    def embedded_bandwidth(self) -> float:
        """Of the random features whose means parties send, which are drawn before anything is known of bags."""
        assert self.bandwidth != "auto"
        return self.bandwidth or 1.0

    def _check_kernel(self) -> None:
        embedded, kernelled = self.submit == "embedding", self.estimator in KERNELLED
        refuse_misplaced(self, ("kernel",), "submit: rows", not embedded)
        if self.estimator in ("whitened", "regression") and self.kernel == "exact":
            raise InputError(f"estimator: {self.estimator} needs explicit features; use kernel: fourier or nystrom")
        if self.kernel == "linear" and self.estimator != "regression":
            raise InputError("kernel: linear is for estimator: regression; use kernel: fourier or nystrom")
        home, machine = "estimator: whitened, class_means, mmd or regression", self.estimator == "proportion_svm"
        refuse_misplaced(self, ("kernel",), home, embedded or kernelled)
        refuse_misplaced(self, ("bandwidth",), f"{home}, or proportion_svm", embedded or kernelled or machine)
        refuse_misplaced(self, ("bandwidth",), "kernel: fourier, nystrom or exact", self.kernel != "linear")
        if self.bandwidth == "auto" and embedded:
            raise InputError("bandwidth: auto needs the rows of bags; use submit: rows, or give a number")
        explicit = kernelled and self.kernel in ("fourier", "nystrom")
        featured = embedded or explicit or (machine and self.bandwidth is not None)
        refuse_misplaced(self, ("dimensions",), f"{home} with features, or proportion_svm with a bandwidth", featured)

    def _check_noise(self) -> None:
        for name, noise in (("floor", "dirichlet_floor"), ("pseudo_count", "dirichlet_shifted")):
            value = getattr(self, name)
            if (value is not None) != (self.noise == noise):
                text = f"noise: {noise} needs {name}" if value is None else f"{name} is for noise: {noise}"
                raise InputError(f"{text}; give both or neither")
            if value is not None and value < 1:
                raise InputError(f"{name} must be a whole number from 1, got {value}")
        if self.protect == "row" and (self.submit == "rows" or self.noise != "gaussian"):
            raise InputError(
                "protect: row needs submit: embedding and noise: gaussian, which covers labels and features together"
            )


def conditioning(proportions: np.ndarray) -> dict[str, float]:
    """Smallest singular value and condition number of the proportions (M, C), as released.

    Noise in the proportions is multiplied by up to the inverse of the first. 0 and infinite for fewer bags than
    classes.

    Examples:
        >>> conditioning(np.array([[0.9, 0.1], [0.1, 0.9]]))
        {'smallest singular value': 0.8, 'condition number': 1.25}
    """
    shares = np.asarray(proportions, dtype=np.float64)
    values = np.linalg.svd(shares, compute_uv=False)
    smallest = float(values[-1]) if len(shares) >= shares.shape[1] else 0.0
    number = float(values[0]) / smallest if smallest > 0 else math.inf
    return {"smallest singular value": smallest, "condition number": number}
