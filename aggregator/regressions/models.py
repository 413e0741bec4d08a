"""Regressions learned from the responses of all parties, and predictions of their excess risk.

`from_labels`, `from_bags`, `from_sums`, `by_steps` and `from_moments` make models for release. `shrunk_sums` and
`shrunk` take the known noise into account.

The other functions predict excess risks of linear models that are learned from private labels. They need public numbers
only. Rows are public, and labels are y = x'w + e with E e² = s² (`residual`). The excess is E (x'w_hat - x'w)² over
rows like those that were learned from, r their rank (`rank`), N their number (`rows`). All formulas are first-order in
r/N, which they take to be small, and ignore that real residuals depend on x.
"""

import math
from typing import Any, Literal

import numpy as np

from aggregator.collectors.collectors import Kept
from aggregator.contract.expectations import Expected
from aggregator.learners.bag_regression.linear import BagLeastSquares, trained
from aggregator.learners.bag_regression.network import BagNetwork
from aggregator.learners.shrinkage import shrink
from aggregator.releases.estimator_models import linear, neural
from aggregator.releases.models import Described
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.randomness import generator
from federation.features.feature_map import FeatureMap
from federation.features.steps import Append
from federation.mechanisms.bag_sums.noisy_labels import LaplaceBagSums
from federation.mechanisms.bag_sums.weighted_sums import RepairedBagSums
from federation.mechanisms.labels.mechanism import LabelMechanism
from federation.numerics.rows import whitening
from federation.queries.labels import BagSumsQuestion, WeightedSumsQuestion

Learner = Literal["linear", "network"]
Ends = tuple[float, float]
BagQuestion = BagSumsQuestion | WeightedSumsQuestion

_PLACES = 101
_DROWNED = 1e6


def formed_bags(answers: Kept) -> np.ndarray:
    """Which bags of the parties that answered are there, bool (P, m)."""
    question = answers.question
    assert isinstance(question, BagSumsQuestion | WeightedSumsQuestion)
    return np.asarray(np.arange(question.design.bags) < answers.array("formed")[answers.present][:, None])


def from_sums(
    row_sums: np.ndarray, label_sums: np.ndarray, label_range: Ends, noise: BagQuestion | None = None
) -> Described:
    """A linear model of sums of rows (M, d) and of labels (M,), shrunk where the question of their `noise` is given.

    Raises `InputError` for fewer than two sums.
    """
    _require_two(label_sums)
    weights = None if noise is None else shrunk_sums(row_sums, label_sums, noise)
    if weights is not None:
        return linear(weights, label_range)
    return linear(BagLeastSquares().fit(row_sums, label_sums).weights_, label_range)


def by_steps(
    row_sums: np.ndarray, label_sums: np.ndarray, label_range: Ends, size: int, seed: int, **steps: Any
) -> Described:
    """A linear model that Adam reaches on sums of rows (M, d) and labels (M,) of bags of `size` rows.

    `steps` are epochs, learning_rate and batch_rows of `trained`; the order of bags follows from the seed. Raises
    `InputError` for fewer than two sums, and `FederationError` for sums too large to train on.
    """
    _require_two(label_sums)
    [weights] = trained(row_sums[None], label_sums[None], size, generator(seed, "order of bags"), **steps)
    return linear(weights, label_range)


def from_bags(
    learner: Learner,
    rows: np.ndarray,
    weights: np.ndarray,
    sums: np.ndarray,
    label_range: Ends,
    seed: int,
    noise: BagQuestion | None = None,
) -> Described:
    """A model from bags of rows (M, k, d) with weights (M, k) and label sums (M,); `noise` as of `from_sums`."""
    if learner == "linear":
        return from_sums(np.einsum("mk,mkd->md", weights, rows), sums, label_range, noise)
    bags = np.arange(weights.size).reshape(weights.shape)
    return neural(BagNetwork(label_range, seed=seed).fit(rows.reshape(-1, rows.shape[-1]), bags, weights, sums))


def from_labels(
    learner: Learner,
    rows: np.ndarray,
    labels: np.ndarray,
    label_range: Ends,
    seed: int,
    noise: LabelMechanism | None = None,
) -> Described:
    """A model from rows (n, d) and private labels (n,); a linear one is shrunk where their `noise` is given."""
    if learner == "network":
        return neural(BagNetwork(label_range, seed=seed).fit_labels(rows, labels))
    if noise is None:
        return from_sums(rows, labels, label_range)
    gram, moment = rows.T @ rows, rows.T @ labels
    # The mean noise variance of a label, over labels along the whole range. It is capped where it hides every label.
    ends = noise.labels
    known = float(np.mean(noise.variance(np.linspace(ends.low, ends.high, _PLACES))))
    covariance = variance(rows, labels, min(known, _DROWNED * ends.width**2)) * gram
    return shrunk(gram, moment, covariance, rows.sum(axis=0), len(rows), label_range)


def from_moments(gram: np.ndarray, moment: np.ndarray, label_range: Ends | None = None) -> Described:
    """Least squares from X'X (d, d) and a noisy X'y (d,), of least norm in units of each column's."""
    whiten, _ = whitening(gram)
    return linear(whiten @ (whiten.T @ moment), label_range)


def shrunk(
    gram: np.ndarray, moment: np.ndarray, noise: np.ndarray, row_sum: np.ndarray, rows: float, label_range: Ends
) -> Described:
    """The mean of what is known of the weights, given X'X, X'y with `noise` of known covariance, and X'1 of n rows."""
    found = shrink(gram, moment, noise, ones=row_sum, rows=rows, label_range=label_range)
    return linear(found.weights, label_range)


def _require_two(label_sums: np.ndarray) -> None:
    if len(label_sums) < 2:
        raise InputError(f"a regression needs two sums or more, got {len(label_sums)}; use more or smaller bags")


Shape = Literal["optimal", "whitened"]

# Times sqrt(N/r): a trace over the least one. Four real tables, N/r from 30 to 3700, have 0.4 to 0.8 and 0.9 to 27.
_TYPICAL = {"optimal": 0.5, "whitened": 2.0}

_SIGNAL = 0.02  # of the squared width of the range: what rows explain of labels, where nobody knows it
_MIDDLE = 1 / 12  # the same of the mean label around the middle of the range, uniform over it


def least_squares(rank: int, rows: int, residual: float) -> float:
    """r s²/N: of least squares on the true labels, the part of every excess that is not for privacy.

    Examples:
        >>> least_squares(rank=10, rows=1000, residual=0.25)
        0.0025
    """
    return rank * residual / rows


def private_labels(rank: int, rows: int, residual: float, noise: float) -> float:
    """r (s² + v)/N for labels that are made private one by one.

    `noise` is the mean variance v of a private label. The cost of a bias of private labels is to be added.

    Examples:
        >>> private_labels(rank=10, rows=1000, residual=0.25, noise=2.0)
        0.0225
    """
    return rank * (residual + noise) / rows


def least_trace(rank: int, rows: int) -> float:
    """r²/N: no shape of noise that hides every row has less (whitened rows z have sum z z' = 1, so tr C^{-1} <= N).

    Examples:
        >>> least_trace(rank=10, rows=1000)
        0.1
    """
    return rank**2 / rows


def typical_trace(rank: int, rows: int, shape: Shape) -> float:
    """A shape's trace on real tables: a multiple of the least one that grows as sqrt(N/r), as tails are heavy.

    Between the least trace and r, which rows of leverage 1 need.
    For rows at hand `federation.mechanisms.labels.shaped_gaussian.fit_shape` gives the trace itself.

    Examples:
        >>> typical_trace(rank=10, rows=1000, shape="optimal"), typical_trace(rank=10, rows=1000, shape="whitened")
        (0.5, 2.0)
    """
    factor = max(1.0, _TYPICAL[shape] * math.sqrt(rows / rank))
    return min(float(rank), factor * least_trace(rank, rows))


def shrunk_risk(rank: int, rows: int, noise: float, width: float) -> float:
    """E |A (A + S)^{-1} z - w|²/N of a model that knows the covariance S = s I of the noise in whitened coordinates.

    `noise` is s, `width` D that of the labels' range. A is what `aggregator.learners.shrinkage` takes labels for before
    it has seen any, with the rows explaining .02 D^2 of them: N D^2/12 along the constant, and in every other of the r
    directions N .02 D^2/(r - 1). The answers w are as large as A says but along the constant, where their variance is
    half of it: a mean label is nearer to the middle of its range than any place of it, and with less than half more
    noise would be expected to err less. Where noise is faint this is the r s/N of least squares, and never more than
    (1/24 + .02) D^2.

    Examples:
        >>> [shrunk_risk(rank=10, rows=1000, noise=noise, width=1.0) for noise in (2.0, 2000.0)]
        [0.01, 0.06]
    """
    around = rows * _SIGNAL * width**2 / max(1, rank - 1)
    constant = rows * _MIDDLE * width**2
    along = (constant / 2 * noise**2 + constant**2 * noise) / (constant + noise) ** 2
    kept = along + (rank - 1) * around * noise / (around + noise)
    return kept / rows


def residual(public: PublicNumbers, width: float) -> float:
    """The variance of labels around the best linear model, as far as it is known: else that of labels of any value."""
    return (_MIDDLE - _SIGNAL) * width**2 if public.residual is None else public.residual


def expected(error: float, noise: float, width: float, exact: bool, assuming: str) -> Expected:
    """An excess risk as an expectation beside the answer that is the same for all rows.

    `noise` is its standard deviation over predictions. That answer knows the mean label and leaves what rows explain.

    Examples:
        >>> found = expected(0.03, 0.1, 1.0, True, "rows are as usual")
        >>> found.constant, found.noise, found.hopeless
        (0.02, 0.7071, True)
    """
    constant = _SIGNAL * width**2
    usual = f"{assuming}, and the rows explain {_SIGNAL:g} of the squared width of the labels' range"
    return Expected(error, noise / math.sqrt(constant), "exact" if exact else "guess", usual, constant)


FREE = 10  # sums beyond the rank of the rows that are enough to tell how noisy they are

_UNIFORM = 1 / 12  # variance of labels, in squared widths of their range


def shrunk_sums(
    row_sums: np.ndarray, label_sums: np.ndarray, question: BagSumsQuestion | WeightedSumsQuestion
) -> np.ndarray | None:
    """Weights (d,) from sums of rows (M, d) and noisy sums of labels (M,); None where features end in no constant.

    Without one, nobody can know how sums of rows would move if all labels did.

    The weights are shrunk by the variance of the label sums. With independent weights of mean 0 and variance 1, sums
    over bags have, in the mean, the second moment of all rows in bags: the sums take the place of rows.
    """
    constant = constant_answer(question.rows.feature_map)
    if constant is None:
        return None
    low, high = question.rows.label_range
    middle = (low + high) / 2
    beyond = label_sums - middle * (row_sums @ constant)  # so that the prior's mean is 0, in directions that lack, too
    gram, moment = row_sums.T @ row_sums, row_sums.T @ beyond
    found = shrink(
        gram,
        moment,
        variance(row_sums, beyond, sum_variance(question)) * gram,
        ones=gram @ constant,
        rows=len(row_sums) * question.design.size,
        label_range=(low - middle, high - middle),
    )
    return np.asarray(found.weights + middle * constant)


def variance(rows: np.ndarray, labels: np.ndarray, known: float) -> float:
    """Of noise and residuals together: what labels (n,) vary by around least squares on rows (n, d).

    Where there are hardly more labels than the rank of the rows, what is `known` of the noise.
    """
    whiten, _ = whitening(rows.T @ rows)
    free = len(labels) - whiten.shape[1]
    if free < FREE:
        return known
    return float(np.square(labels - rows @ (whiten @ (whiten.T @ (rows.T @ labels)))).sum() / free)


def sum_variance(question: BagSumsQuestion | WeightedSumsQuestion) -> float:
    """Of the sum of labels of one bag at most, its weights and labels included, for labels all along the range."""
    mechanism, size = question.mechanism(), question.design.size
    low, high = question.rows.label_range
    if isinstance(mechanism, RepairedBagSums):
        noise = mechanism.tau**2
    else:
        noise = 2 * mechanism.scale**2 if isinstance(mechanism, LaplaceBagSums) else mechanism.sigma**2 * size
    return noise + _UNIFORM * size * (high - low) ** 2


def constant_answer(feature_map: FeatureMap) -> np.ndarray | None:
    """The weights (d,) that say 1 of every row, where a constant is the last feature; None where there is none.

    Examples:
        >>> constant_answer(FeatureMap(2, (Append(4.0),)))
        array([0.  , 0.  , 0.25])
    """
    last = feature_map.steps[-1] if feature_map.steps else None
    if not isinstance(last, Append) or last.value == 0:
        return None
    return np.append(np.zeros(feature_map.dimension - 1), 1 / last.value)
