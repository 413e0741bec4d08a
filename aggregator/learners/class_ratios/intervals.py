"""Intervals for the class ratios of a set that account for all errors whose sizes are known."""

from __future__ import annotations

import numpy as np

from aggregator.learners.class_ratios.class_means import ClassMeans
from aggregator.learners.class_ratios.unmixing import centred
from aggregator.learners.inputs.feature_names import require_same_names
from aggregator.learners.inputs.validation import checked_set
from aggregator.learners.kernels.features import FeatureKernel
from federation.contract.errors import InputError
from federation.contract.randomness import generator
from federation.numerics import simplex

_ENTRIES = 1 << 21  # of the class means drawn together


def intervals(
    estimator: ClassMeans, rows: np.ndarray, level: float = 0.9, draws: int = 400, seed: int = 0
) -> np.ndarray:
    """Lower and upper ends (C, 2) of intervals that hold each class's ratio in a set of rows (n, d) with about `level`.

    They account for which rows of every class the bags and the set happened to get, for the noise in proportions and
    for that in released means, but not for class-conditional distributions that differ between bags and set. What they
    cover are the ratios of the set itself, not of a population that it was drawn from.

    A parametric bootstrap: in a world whose class means are as far apart as the debiased estimate says and whose set
    has the estimated ratios, the class means and the set's mean get Gaussian errors of the known covariances; the
    estimator is applied to each of `draws` such worlds. A few arrays of 16 MiB, or of D C numbers if that is more.

    Raises `InputError` unless the estimator is debiased, has a kernel with features, and knows the covariance of those;
    unless `level` is between 0 and 1 and there are at least 20 draws; and for rows as `predict` does.

    Examples:
        >>> rng, shares = np.random.default_rng(0), np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
        >>> draw = lambda share, n: rng.normal(4.0 * (np.arange(n) < share * n))[:, None]  # share of class 1
        >>> estimator = ClassMeans(features=32).fit([draw(share, 200) for share in shares[:, 1]], shares)
        >>> intervals(estimator, draw(0.7, 500)).round(2)
        array([[0.27, 0.3 ],
               [0.7 , 0.73]])
    """
    errors, space, means = estimator.errors(), estimator.space_, estimator.class_means_
    if errors is None or means is None or not isinstance(space, FeatureKernel) or not estimator.debiased:
        raise InputError(
            "intervals need an estimator with kernel fourier, nystrom or linear, debiased: true and the covariance of "
            "features"
        )
    require_same_names(estimator, rows)
    if not 0 < level < 1 or draws < 20:
        raise InputError(f"level must lie between 0 and 1 and draws be at least 20, got {level} and {draws}")
    moments = space.moments(checked_set(rows, estimator.n_features_in_), scatter=True)
    assert moments.scatter is not None
    metric = estimator.metric(errors)
    ratios = estimator.estimate(moments.mean)
    apart = _as_far_apart(means, metric, estimator.quadratic_)
    of_row = _root(errors.covariance - apart @ errors.label_covariance @ apart.T)
    of_set = errors.covariance if len(rows) < 2 else moments.scatter / (len(rows) - 1)
    of_set = _root((of_set - apart @ (np.diag(ratios) - np.outer(ratios, ratios)) @ apart.T) / len(rows))
    roots = {name: _root(getattr(errors, name)) for name in ("sampling", "release", "noise", "distortion")}
    rng = generator(seed, "intervals")
    found = np.empty((draws, len(ratios)))
    step = max(1, _ENTRIES // means.size)
    for start in range(0, draws, step):
        count = min(step, draws - start)
        drawn = apart + of_row @ rng.normal(size=(count, *means.shape)) @ roots["sampling"]
        drawn += rng.normal(size=(count, *means.shape)) @ roots["release"]
        twisted = roots["noise"] @ rng.normal(size=(count, len(ratios), len(ratios))) @ roots["distortion"]
        drawn -= apart @ twisted
        embedding = apart @ ratios + rng.normal(size=(count, len(of_set))) @ of_set
        operator, quadratic = estimator.solution(drawn, errors, metric)
        linear = np.einsum("rdc,rd->rc", operator, embedding)
        found[start : start + count] = simplex.least_squares(quadratic, linear)
    tail = (1 - level) / 2
    return np.quantile(found, [tail, 1 - tail], axis=0).T


def _as_far_apart(means: np.ndarray, metric: np.ndarray | None, quadratic: np.ndarray) -> np.ndarray:
    """Class means (D, C) about zero with the products `quadratic` in the metric, in the span of `means`.

    Estimated class means are farther apart than the true ones, by their errors.
    """
    about = means - means.mean(axis=1, keepdims=True)
    root = _root(about.T @ (about if metric is None else metric @ about))
    inverse = np.linalg.pinv(root, rcond=1e-9, hermitian=True)
    # The symmetric G with G (root root) G = quadratic: the least rotation.
    return np.asarray(about @ (inverse @ _root(root @ centred(quadratic) @ root) @ inverse))


def _root(matrix: np.ndarray) -> np.ndarray:
    """The symmetric square root of the nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
