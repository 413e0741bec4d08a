"""A test whether bags differ in more than their class ratios, and intervals for the class ratios of a set.

`drift_test` is a test of over-identifying restrictions on a `Sketch` of the bags. `intervals` account for all errors
whose sizes are known.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.stats import chi2
from sklearn.decomposition import PCA

from aggregator.learners.class_ratios.class_means import ClassMeans, Unmixing, centred
from aggregator.learners.class_ratios.kernel_means import thinned
from aggregator.learners.inputs.validation import checked_set, require_same_names
from aggregator.learners.kernels.features import FeatureKernel, LinearKernel
from federation.contract.errors import InputError
from federation.contract.randomness import generator
from federation.numerics import simplex

_DIRECTIONS = 5  # more of them find drift that hardly matters, and miss that of few bags
_NEGLIGIBLE = 1e-6  # of the variance along a direction: rows of a bag differ by that much at least
_OPTIONS = {"maxiter": 1000, "maxfun": 2000, "maxcor": 30, "ftol": 1e-12, "gtol": 1e-8}


class Sketch(NamedTuple):
    """A few features of M bags: their `means` (M, q) and the `covariance` (q, q) of one row's within a bag.

    `variance` (M,) is that of noise in each coordinate of the means, beside what sampling adds.
    """

    means: np.ndarray
    covariance: np.ndarray
    variance: np.ndarray

    @classmethod
    def of_rows(cls, bags: Sequence[np.ndarray], seed: int) -> "Sketch":
        """Of rows in their five largest principal components, or as many as they have.

        Raises `InputError` where no bag has two rows.
        """
        rows = np.concatenate(thinned(bags))
        components = PCA(min(_DIRECTIONS, *rows.shape), random_state=seed).fit(rows)
        kept = components.explained_variance_ > _NEGLIGIBLE * components.explained_variance_[0]
        axes = components.components_[kept].T
        found = LinearKernel().support([(bag - components.mean_) @ axes for bag in bags], covariance=True)
        least = np.diag(_NEGLIGIBLE * components.explained_variance_[kept])
        return cls(found.means, found.covariance() + least, np.zeros(len(bags)))

    @classmethod
    def of_means(cls, means: np.ndarray, covariance: np.ndarray, variance: np.ndarray) -> "Sketch":
        """Of mean features (M, D) along the five directions in which rows differ most, by their covariance (D, D)."""
        values, vectors = np.linalg.eigh(covariance)
        kept = values > _NEGLIGIBLE * values[-1]
        axes = vectors[:, kept][:, -_DIRECTIONS:]
        return cls((means - means.mean(axis=0)) @ axes, np.diag(values[kept][-_DIRECTIONS:]), variance)


class DriftTest(NamedTuple):
    """`statistic` J, chi-squared with `freedom` degrees of freedom where bags differ in their ratios alone.

    `p_value` is the probability of a larger one there.
    """

    statistic: float
    freedom: int
    p_value: float

    @property
    def ratio(self) -> float:
        """J over its degrees of freedom: about 1 or less without drift, however many bags there are."""
        return self.statistic / self.freedom


def drift_test(
    sketch: Sketch, sizes: np.ndarray, proportions: np.ndarray, noise: np.ndarray | None = None
) -> DriftTest:
    """Tests whether class means A (C, q) exist that explain the means F_i of M > C bags by their proportions P_i.

    J = min over A of sum_i e_i'Q_i^-1 e_i with e_i = F_i - A'P_i and Q_i = S/n_i + A'N_i A: the residuals of M means
    beside what sampling and the known `noise` N (M, C, C) of the proportions (M, C) add to them, chi-squared with
    q (M - C) degrees of freedom (Sargan 1958; Hansen 1982; with errors in the proportions Fuller 1987, section 4.1).
    The minimum is over A in Q too: at the A of plain least squares, which noise shrinks, J is far too large. S holds
    what the classes of rows explain, which known proportions do not leave to chance, so the test errs on the side of
    no drift.

    Raises `InputError` unless there are more bags than classes, whose `sizes` are (M,).

    Examples:
        >>> rng, shares = np.random.default_rng(0), np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1], [0.7, 0.3]])
        >>> bags = [rng.normal(4.0 * (np.arange(200) < 200 * share))[:, None] for share in shares[:, 1]]
        >>> drift_test(Sketch.of_rows(bags, 0), np.full(4, 200), shares).p_value > 0.1
        True
        >>> bags[0] += 1.0
        >>> drift_test(Sketch.of_rows(bags, 0), np.full(4, 200), shares).p_value < 0.01
        True
    """
    bags, classes = proportions.shape
    if bags <= classes:
        raise InputError(f"drift can be tested with more bags than classes, got {bags} bags for {classes} classes")
    root = np.linalg.inv(np.linalg.cholesky(sketch.covariance))
    means = sketch.means @ root.T  # whose rows have the covariance I within a bag
    sampling = np.eye(means.shape[1]) / np.asarray(sizes)[:, None, None]
    sampling = sampling + sketch.variance[:, None, None] * (root @ root.T)
    starts = [Unmixing(proportions, sizes).matrix.T @ means]
    if noise is not None:
        starts.append(Unmixing(proportions, sizes, noise).matrix.T @ means)
    covariance = np.zeros((bags, classes, classes)) if noise is None else noise
    least = min(_least_misfit(start, means, proportions, sampling, covariance) for start in starts)
    freedom = means.shape[1] * (bags - classes)
    return DriftTest(least, freedom, float(chi2.sf(least, freedom)))


def misfit(
    class_means: np.ndarray, means: np.ndarray, proportions: np.ndarray, sampling: np.ndarray, noise: np.ndarray
) -> tuple[float, np.ndarray]:
    """sum_i e_i'Q_i^-1 e_i and its gradient (C, q) at class means A (C, q); see `drift_test`.

    `sampling` (M, q, q) are the covariances of the means (M, q), `noise` (M, C, C) those of the proportions (M, C).

    Examples:
        >>> A, F, P = np.array([[0.0], [2.0]]), np.array([[1.5]]), np.array([[0.5, 0.5]])
        >>> value, gradient = misfit(A, F, P, sampling=np.array([[[0.25]]]), noise=np.zeros((1, 2, 2)))
        >>> value, gradient.ravel().tolist()
        (1.0, [-2.0, -2.0])
    """
    spread = noise @ class_means  # N_i A
    residuals = means - proportions @ class_means
    scaled = np.linalg.solve(sampling + class_means.T @ spread, residuals[..., None])[..., 0]
    # P_i + N_i A Q_i^-1 e_i are the proportions that are likeliest at A.
    likeliest = proportions + np.einsum("icq,iq->ic", spread, scaled)
    return float(np.sum(residuals * scaled)), -2 * likeliest.T @ scaled


def _least_misfit(start: np.ndarray, *known: np.ndarray) -> float:
    def flat(values: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = misfit(values.reshape(start.shape), *known)
        return value, gradient.ravel()

    return float(minimize(flat, start.ravel(), jac=True, method="L-BFGS-B", options=_OPTIONS).fun)


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
