"""Estimates of the mean operator, the mean of y x with y = 1 or -1, from labels or from label proportions of bags.

With the mean operator and unlabelled rows every linear-odd loss can be minimised (Patrini et al. 2015, Theorem 3).

- `from_labels` takes the labels of the rows; these may be all rows or some.
- `from_noisy_labels` and `from_randomised_response` take labels that were flipped at random.
- `mean_map` takes label proportions of bags, with class means that are equal in all bags.
- `laplacian_mean_map` takes label proportions of bags, with class means that vary smoothly from bag to bag.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve
from scipy.spatial.distance import pdist, squareform

from aggregator.learners.inputs.validation import checked, require_number
from federation.contract.errors import InputError
from federation.contract.validation import apart
from federation.features.steps import finite_rows


@dataclass(frozen=True, eq=False)
class MomentEstimate:
    """An estimate `moment` (d,) of mean y x over n rows.

    `noise_variance` is the expected square of its distance from mean y x, summed over coordinates, or an estimate or
    bound of it, as the function says that made it: how much a learner should regularise.
    """

    moment: np.ndarray
    noise_variance: float


def from_labels(rows: np.ndarray, labels: np.ndarray) -> MomentEstimate:
    """Mean y x of rows (n, d) with labels (n,): class codes, 1 for y = 1 and 0 for y = -1.

    Raises `InputError` unless rows are finite, labels are 0 or 1, and there is one for each of at least one row.

    Examples:
        >>> from_labels([[1.0, 0.0], [0.0, 2.0]], [1, 0]).moment
        array([ 0.5, -1. ])
    """
    rows, signs = labelled(rows, labels, "rows")
    return MomentEstimate(signs @ rows / len(rows), 0.0)


def from_noisy_labels(
    rows: np.ndarray, labels: np.ndarray, flipped_positive: float, flipped_negative: float
) -> MomentEstimate:
    """Unbiased estimate from labels (n,) that were flipped at random, by probabilities that are known per class.

    p = `flipped_positive` is the probability that a label 1 came out as 0, q = `flipped_negative` that a 0 came out as
    1. A noisy y~ has expectation (1 - p - q) y + q - p, so (mean y~ x - (q - p) mean x) / (1 - p - q) is right on
    average (Natarajan et al. 2013; Patrini et al. 2015, Section 3). Its parts (y~ - q + p) / (1 - p - q) may leave
    [-1, 1], and clipping would bias them. The variance is estimated without bias, from the same labels.

    Raises `InputError` as `from_labels`, and unless p and q are from 0 and p + q is below 1.

    Examples:
        >>> found = from_noisy_labels([[1.0], [2.0]], [1, 0], flipped_positive=0.1, flipped_negative=0.1)
        >>> found.moment.round(3), round(found.noise_variance, 3)
        (array([-0.625]), 0.703)
    """
    rows, noisy = labelled(rows, labels, "rows")
    for name, value in (("flipped_positive", flipped_positive), ("flipped_negative", flipped_negative)):
        if not 0 <= value < 1:
            raise InputError(f"{name} must be a probability from 0 to below 1, got {value}")
    kept = 1.0 - flipped_positive - flipped_negative
    if kept <= 0:
        raise InputError(
            f"flipped_positive + flipped_negative must be below 1, got {flipped_positive:g} + {flipped_negative:g}: "
            "such labels tell nothing, or the opposite; swap them if they are inverted"
        )
    unbiased = (noisy - (flipped_negative - flipped_positive)) / kept
    of_positive = 4 * flipped_positive * (1 - flipped_positive) / kept**2
    of_negative = 4 * flipped_negative * (1 - flipped_negative) / kept**2
    of_labels = (of_positive + of_negative) / 2 + unbiased * (of_positive - of_negative) / 2
    variance = float(_squares(rows) @ of_labels) / len(rows) ** 2
    return MomentEstimate(unbiased @ rows / len(rows), max(0.0, variance))


def from_randomised_response(rows: np.ndarray, labels: np.ndarray, epsilon: float) -> MomentEstimate:
    """Unbiased estimate from labels (n,) by randomised response: each flipped with probability 1 / (1 + e^epsilon).

    The answers are mean y~ x / tanh(epsilon / 2), and their variance (1 / tanh^2 - 1) mean |x|^2 / n is known exactly
    (Warner 1965). Raises `InputError` as `from_labels`, and unless epsilon is positive.

    Examples:
        >>> found = from_randomised_response([[1.0], [2.0]], [1, 0], epsilon=1.0)
        >>> found.moment.round(3), round(found.noise_variance, 3)
        (array([-1.082]), 4.603)
    """
    rows, noisy = labelled(rows, labels, "rows")
    if not epsilon > 0:
        raise InputError(f"epsilon must be positive, got {epsilon}; labels that are right need from_labels")
    kept = math.tanh(epsilon / 2)
    if kept == 0:
        raise InputError(f"epsilon must be larger than {epsilon:g}: labels at this level tell nothing")
    variance = (1 / kept**2 - 1) * float(_squares(rows).mean()) / len(rows)
    return MomentEstimate(noisy @ rows / (kept * len(rows)), variance)


def labelled(rows: np.ndarray, labels: np.ndarray, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, d) as float64 and y (n,), 1.0 or -1.0. Raises `InputError`."""
    rows, codes = finite_rows(rows, what), np.asarray(labels)
    if 0 in rows.shape:
        raise InputError(f"{what} must have at least one row and one column, got shape {rows.shape}")
    if codes.shape != (len(rows),):
        raise InputError(f"labels must be one for each of {len(rows)} {what}, got shape {codes.shape}")
    if codes.dtype.kind not in "iufb" or not np.isin(codes, (0, 1)).all():
        odd = codes[~np.isin(codes, (0, 1))] if codes.dtype.kind in "iufb" else codes
        raise InputError(f"labels must be class codes, 0 or 1, got {odd[0]}; 1 stands for y = 1 and 0 for y = -1")
    return rows, np.where(codes == 1, 1.0, -1.0)


def _squares(rows: np.ndarray) -> np.ndarray:
    """|x|^2 of each row, (n,)."""
    return np.asarray(np.einsum("nd,nd->n", rows, rows))


LARGEST_CONDITION = 1e3
MOST_BAGS = 3000  # two unknowns for each, in a dense system
GAMMA = 0.1
MEAN_MAP_RIDGE = 1e-9


@dataclass(frozen=True, eq=False)
class BagMeans:
    """What Mean Map sees of M bags: means (M, d), `shares` (M,) of the rows, and `positive` (M,), the shares of y = 1.

    `scatter` is the trace of the covariance of all rows, over the number of rows: the variance of their mean.
    """

    means: np.ndarray
    shares: np.ndarray
    positive: np.ndarray
    scatter: float

    @classmethod
    def of(cls, bags: Sequence[np.ndarray], proportions: np.ndarray) -> "BagMeans":
        """From bags (n_i, d) and their label proportions (M, 2), that of y = 1 second.

        Raises `InputError` for bags or proportions that cannot be used (as `checked`), for other than two classes, and
        where proportions are so nearly equal that the condition number of the equations for the two class means, bags
        weighted by their sizes, is above 1,000: for classes of equal sizes where they deviate by less than 0.0005.
        """
        arrays, proportions, _ = checked(bags, proportions)
        if proportions.shape[1] != 2:
            raise InputError(
                f"the mean operator is for two classes, got proportions of {proportions.shape[1]}; put classes together"
            )
        sizes = np.array([len(bag) for bag in arrays], dtype=np.float64)
        shares, positive = sizes / sizes.sum(), np.clip(proportions[:, 1], 0.0, 1.0)
        condition = np.linalg.cond(np.sqrt(shares)[:, None] * np.column_stack([positive, 1 - positive]))
        if condition > LARGEST_CONDITION:
            low, high = apart(float(positive.min()), float(positive.max()))
            grow, most = apart(float(condition), LARGEST_CONDITION)
            raise InputError(
                f"proportions are too nearly equal to tell the classes apart: they lie from {low} to "
                f"{high}, and errors of the bags' means grow {grow} times, at most "
                f"{most} is allowed; use bags whose proportions differ more"
            )
        rows = np.concatenate(arrays)
        means = np.stack([bag.mean(axis=0) for bag in arrays])
        return cls(means, shares, positive, float(rows.var(axis=0).sum()) / len(rows))

    def combined(self, coefficients: np.ndarray) -> MomentEstimate:
        """The estimate sum_j c_j b_j of the mean operator from the bags' means b_j, coefficients (M,).

        Its variance: a class's rows in a bag of n rows, pi n of them positive, have a mean that varies by s / (pi n),
        and the estimate gives it the weight c pi where it should have p pi (p - c and 1 - pi for negative ones, p + c),
        p the bag's share of all rows. The trace s of the covariance within classes is bounded by that of all rows.
        Deviations from homogeneity are not in it.
        """
        errors = self.positive * (coefficients - self.shares) ** 2
        errors += (1 - self.positive) * (coefficients + self.shares) ** 2
        return MomentEstimate(coefficients @ self.means, self.scatter * float(np.sum(errors / self.shares)))


def mean_map(bags: Sequence[np.ndarray], proportions: np.ndarray) -> MomentEstimate:
    """Mean Map (Quadrianto et al. 2009): the mean operator of the rows of M bags from their label proportions.

    bags: arrays (n_i, d). proportions: (M, 2), those of y = -1 and of y = 1.

    Assumes homogeneity: rows of a class have the same mean in every bag, E[x | y, bag] = E[x | y]. Then the bags' means
    are pi_i C+ + (1 - pi_i) C-; least squares, bags weighted by their sizes, gives the class means, and the estimate is
    p C+ - (1 - p) C- with p the share of y = 1 in all rows. It is exact where every bag has one class. For its variance
    see `BagMeans.combined`.

    Raises `InputError` as `BagMeans.of`: in particular for equal proportions, which do not identify the class means.

    Examples:
        >>> bags = [np.array([[1.0], [3.0]]), np.array([[-2.0], [0.0]])]
        >>> mean_map(bags, np.array([[0.25, 0.75], [0.75, 0.25]])).moment
        array([3.])
    """
    known = BagMeans.of(bags, proportions)
    design = np.column_stack([known.positive, 1 - known.positive])
    overall = float(known.shares @ known.positive)
    weights = np.linalg.pinv(np.sqrt(known.shares)[:, None] * design) * np.sqrt(known.shares)
    return known.combined(overall * weights[0] - (1 - overall) * weights[1])


def laplacian_mean_map(
    bags: Sequence[np.ndarray],
    proportions: np.ndarray,
    gamma: float = GAMMA,
    bandwidth: float | None = None,
    ridge: float = MEAN_MAP_RIDGE,
) -> MomentEstimate:
    """Laplacian Mean Map (Patrini et al. 2014): class means c+_j, c-_j of each bag, alike in bags whose means are near.

    bags: arrays (n_i, d). proportions: (M, 2), those of y = -1 and of y = 1. With b_j the mean of bag j, pi_j its share
    of y = 1 and p_j its share of all rows, minimises

        sum_j p_j |b_j - pi_j c+_j - (1 - pi_j) c-_j|^2
        + gamma sum_{i<j} p_i p_j V_ij (|c+_i - c+_j|^2 + |c-_i - c-_j|^2)
        + gamma ridge sum_j p_j (|c+_j|^2 + |c-_j|^2),   V_ij = exp(-|b_i - b_j| / bandwidth),

    and estimates sum_j p_j (pi_j c+_j - (1 - pi_j) c-_j). Every sum weights bags by their sizes, so a bag that is cut
    in two alike ones changes nothing; for M bags of equal size the published gamma is gamma / M, and the published
    ridge is M ridge. As gamma grows, and gamma times the ridge vanishes, all bags get the same class means, those of
    `mean_map`; as gamma vanishes, every bag's class means fit its own mean, and only smoothness tells the two apart.
    Exact where the bags' means are homogeneous, whatever gamma, but for the ridge.

    `bandwidth` None takes the median distance between the bags' means. Without gradual changes from bag to bag
    `mean_map` is better; see `BagMeans.combined` for the variance, which says nothing of the bias.

    Raises `InputError` as `BagMeans.of`, for parameters that are not positive and for more than 3,000 bags.

    Examples:
        >>> bags = [np.array([[1.0], [3.0]]), np.array([[-2.0], [0.0]])]
        >>> laplacian_mean_map(bags, np.array([[0.25, 0.75], [0.75, 0.25]]), gamma=10.0).moment.round(2)
        array([3.])
    """
    require_number("gamma", gamma, GAMMA)
    require_number("ridge", ridge, MEAN_MAP_RIDGE)
    known = BagMeans.of(bags, proportions)
    if len(known.shares) > MOST_BAGS:
        raise InputError(
            f"laplacian_mean_map takes at most {MOST_BAGS} bags, got {len(known.shares)}; merge bags or use mean_map"
        )
    distances = pdist(known.means)
    if bandwidth is None:
        apart = distances[distances > 0]
        bandwidth = float(np.median(apart)) if len(apart) else 1.0
    require_number("bandwidth", bandwidth, 1.0)
    similar = np.outer(known.shares, known.shares) * squareform(np.exp(-distances / bandwidth))
    smoothness = np.diag(similar.sum(axis=1) + ridge * known.shares) - similar
    return known.combined(_coefficients(known, gamma * smoothness))


def _coefficients(known: BagMeans, penalty: np.ndarray) -> np.ndarray:
    """The weights (M,) of the bags' means in the estimate, by the adjoint of the system for the class means.

    The class means are A^-1 Pi D b, with Pi (2M, M) the proportions on two diagonals and D the shares; the estimate is
    q' of them, and so the weights are D Pi' A^-1 q.
    """
    bags, shares, positive = len(known.shares), known.shares, known.positive
    system = np.zeros((2 * bags, 2 * bags))
    system[:bags, :bags] = system[bags:, bags:] = penalty
    first = np.arange(bags)
    second = first + bags
    system[first, first] += shares * positive**2
    system[second, second] += shares * (1 - positive) ** 2
    system[first, second] = system[second, first] = shares * positive * (1 - positive)
    target = np.concatenate([shares * positive, -shares * (1 - positive)])
    adjoint = solve(system, target, assume_a="pos", overwrite_a=True)
    return np.asarray(shares * (positive * adjoint[:bags] + (1 - positive) * adjoint[bags:]))
