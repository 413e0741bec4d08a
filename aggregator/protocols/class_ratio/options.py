"""Options of `class_ratio`, the rules between them, and measures of how well bags tell classes apart.

The measures are singular values, condition numbers, and the published bound on the error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aggregator.contract.protocol import refuse_misplaced, require_positive
from aggregator.learners.class_ratios.class_means import ClassMeans, centred
from aggregator.learners.class_ratios.kernel_means import MMD
from federation.contract.errors import InputError
from federation.contract.query import require_waves


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
    return _described(values[0], values[-1] if len(shares) >= shares.shape[1] else 0.0)


def separation(estimator: ClassMeans) -> dict[str, float]:
    """Singular values of the class means mu on vectors that sum to zero, in the estimator's metric and debiased.

    An error of length e in the mean of a set moves its ratios by at most e over the smallest; 0 where two mixtures of
    classes look the same. Of two classes there is one value and the condition number is 1.

    Examples:
        >>> bags, shares = [np.array([[0.0], [2.0]]), np.array([[6.0], [8.0]])], np.array([[0.9, 0.1], [0.1, 0.9]])
        >>> separation(ClassMeans("linear", debiased=False).fit(bags, shares))
        {'smallest singular value': 5.30, 'condition number': 1.0}
    """
    check_is_fitted(estimator, "operator_")
    values = np.sqrt(np.maximum(np.linalg.eigvalsh(centred(estimator.quadratic_))[1:], 0.0))
    return _described(values[-1], values[0])


def _described(largest: float, smallest: float) -> dict[str, float]:
    number = float(largest) / float(smallest) if smallest > 0 else math.inf
    return {"smallest singular value": float(smallest), "condition number": number}


class PublishedBound(NamedTuple):
    """Iyer et al. 2016, Theorem 1, corrected, at the estimated matrices: a diagnostic, never an error bar.

    `bound` on the L2 error exceeds 1, hence says nothing, below many thousands of rows per bag, where actual errors are
    a hundredth of it. `q` is the published condition number of the training bags, the largest singular value of the
    proportions over the smallest of the mean embeddings, `smallest`.
    """

    q: float
    smallest: float
    bound: float


def published_bound(estimator: MMD, target_size: int, failure: float = 0.05) -> PublishedBound:
    """|rho^ - rho| <= a F + Q (a F + C(n_u)) with probability 1 - `failure`, for a set of n_u = `target_size` rows.

        C(n) = 2/sqrt(n) + sqrt(ln(2 (2M+1)/failure) / (2n)),  F^2 = sum_i C(n_i)^2,  a = 1/s,  Q = |P|/s,

    s being the smallest singular value of [phi_1 .. phi_M]. Where the paper's Lemma 2 has sqrt(x/s), sqrt(x)/s is
    meant; the theorem wants s of the populations, of which that of the samples is an estimate. With more bags than
    classes s is 0 in the populations: `q` and `bound` are infinite.

    Raises `InputError` unless `target_size` is at least 1 and `failure` between 0 and 1.

    Examples:
        >>> rng, shares = np.random.default_rng(0), np.array([[0.9, 0.1], [0.1, 0.9]])
        >>> bags = [rng.normal(3.0 * (np.arange(200) < 200 * share))[:, None] for share in shares[:, 1]]
        >>> round(published_bound(MMD().fit(bags, shares), 200).bound, 1)
        2.4
    """
    check_is_fitted(estimator, "operator_")
    if target_size < 1 or not 0 < failure < 1:
        raise InputError(f"target_size must be at least 1 and failure between 0 and 1, got {target_size} and {failure}")
    bags, classes = len(estimator.sizes_), estimator.operator_.shape[1]
    smallest = float(estimator.means_singular_values_[-1]) if bags == classes else 0.0
    if smallest == 0:
        return PublishedBound(math.inf, 0.0, math.inf)

    def confidence(rows: np.ndarray | int) -> np.ndarray:
        return 2 / np.sqrt(rows) + np.sqrt(math.log(2 * (2 * bags + 1) / failure) / (2 * np.asarray(rows)))

    of_bags = float(np.linalg.norm(confidence(estimator.sizes_))) / smallest
    q = float(estimator.proportions_singular_values_[0]) / smallest
    return PublishedBound(q, smallest, of_bags + q * (of_bags + float(confidence(target_size))))


_CORRECTED = ("whitened", "class_means", "energy")
_KERNELLED = ("whitened", "class_means", "mmd", "regression")
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
        corrected = self.estimator in _CORRECTED
        refuse_misplaced(self, ("corrected",), "estimator: whitened, class_means or energy", corrected)
        refuse_misplaced(self, ("label_share",), "protect: row", self.protect == "row")

    @property
    def embedded_bandwidth(self) -> float:
        """Of the random features whose means parties send, which are drawn before anything is known of bags."""
        assert self.bandwidth != "auto"
        return self.bandwidth or 1.0

    def _check_kernel(self) -> None:
        embedded, kernelled = self.submit == "embedding", self.estimator in _KERNELLED
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
