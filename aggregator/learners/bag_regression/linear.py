"""Linear regression from weighted sums of rows and labels of bags: in closed form, or trained by Adam.

`trained` uses Adam, with steps that count rows (Brahmbhatt et al. 2023, Appendix K.1).
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import qr
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from aggregator.learners.bag_regression.network import Adam, cosine_decay
from federation.contract.errors import FederationError, InputError

_DEPENDENT = 1e-10  # singular values below this share of the largest, of columns of norm 1, are zero


@dataclass(eq=False, repr=False)
class BagLeastSquares(RegressorMixin, BaseEstimator):  # type: ignore[misc, unused-ignore]
    """Minimises (1/(mk)) sum_j (r'xbar_j - ybar_j)^2 + (lam/(mk)) sum_c r_c^2 sum_j xbar_jc^2 over r.

    X (m, d) are the weighted sums xbar_j of the rows of m bags of k, y (m,) those of their labels. With independent
    weights of mean 0 and variance 1 the first term is an unbiased estimate of mean (r'x - y)^2 over the rows
    (Brahmbhatt et al. 2023, Section 3.2), and the penalty one of lam sum_c r_c^2 mean x_c^2. So lam = `regularisation`
    >= 0 has no unit and means the same for bags of every size; k drops out.

    Without it, where columns depend on each other, the solution is the one of least norm in units of each column's
    norm. Dividing a column by a number changes no prediction. There is no intercept: append a constant 1 to the rows
    before they are summed. Bags of one row with weight 1 give ordinary least squares.

    Parameters:
        regularisation: lam >= 0.

    Attributes:
        weights_: r (d,); also as `coef_`, beside an `intercept_` of 0.
        rank_: of the sums.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> rows, signs = rng.normal(size=(50, 8, 2)), rng.choice([-1.0, 1.0], size=(50, 8))  # 50 bags of 8 rows
        >>> labels = rows @ [2.0, -1.0] + 0.1 * rng.normal(size=(50, 8))
        >>> sums_of_rows, sums_of_labels = np.einsum("mk,mkd->md", signs, rows), (signs * labels).sum(axis=1)
        >>> BagLeastSquares().fit(sums_of_rows, sums_of_labels).weights_.round(1)
        array([ 2., -1.])
    """

    regularisation: float = 0.0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to sums of rows X (m, d) and of labels y (m,) of bags.

        They count by their `sample_weight` (m,), at least 0, if given: a weight of 2 as if a bag were there twice.
        Raises `InputError` for a negative regularisation, and `ValueError` for data or weights that cannot be used.
        """
        if not 0 <= self.regularisation < np.inf:
            raise InputError(f"regularisation must be a finite number from 0, got {self.regularisation!r}")
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            X, y = X * np.sqrt(weights)[:, None], y * np.sqrt(weights)
        norms = np.abs(X).max(axis=0)
        norms[norms == 0] = 1.0
        norms *= np.linalg.norm(X / norms, axis=0)
        norms[norms == 0] = 1.0
        # Least squares depends on [X y] through its triangle alone, which is small; normal equations would cancel.
        triangle = qr(np.column_stack([X / norms, y]), mode="r", overwrite_a=True)[0][: X.shape[1] + 1]
        left, values, right = np.linalg.svd(triangle[:, :-1], full_matrices=False)
        self.rank_ = int(np.count_nonzero(values > _DEPENDENT * values[0]))
        kept = slice(self.rank_)
        shrunk = values[kept] / (values[kept] ** 2 + self.regularisation)
        self.weights_ = right[kept].T @ (shrunk * (left[:, kept].T @ triangle[:, -1])) / norms
        return self

    @property
    def coef_(self) -> np.ndarray:
        """`weights_`, as scikit-learn's linear regressions call them."""
        return np.asarray(self.weights_)

    @property
    def intercept_(self) -> float:
        """Zero."""
        return 0.0

    def predict(self, X: Any) -> np.ndarray:
        """r'x of rows X (n, d), shape (n,)."""
        check_is_fitted(self, "weights_")
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False) @ self.weights_)


EPOCHS, RATE, BATCH_ROWS = 200, 1e-3, 1024  # as published; batches are of 8192 rows for the census
LAST = 1e-3  # share of the rate that is left in the end


def trained(
    row_sums: np.ndarray,
    label_sums: np.ndarray,
    size: int,
    random: np.random.Generator,
    *,
    epochs: int = EPOCHS,
    learning_rate: float = RATE,
    batch_rows: int = BATCH_ROWS,
) -> np.ndarray:
    """Weights (D, d) that Adam reaches from 0 on D draws of sums of rows (D, m, d) and labels (D, m), each by itself.

    The loss is the mean of (r'x - y)^2 / k over m bags of k = `size` rows. A step takes the bags that have `batch_rows`
    rows, rounded down to whole bags but at least one, so that there are more steps the larger the bags are; each moves
    a weight by about the rate at most, in units of the label over those of the feature. Until there are enough of them
    the weights are far from least squares. Rates decay as a cosine, from `learning_rate` to a thousandth of it, over
    `epochs` passes in an order drawn from `random`. Early stopping, of which the paper does not say what it watches,
    is left out. Raises `FederationError` where sums are too large for their squares.
    """
    bags = row_sums.shape[1]
    batch = max(1, batch_rows // size)
    steps, step = -(-bags // batch) * epochs, 0
    weights = np.zeros((len(row_sums), row_sums.shape[2]))
    adam = Adam(weights)
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        for _ in range(epochs):
            order = random.permutation(bags)
            shuffled, wanted = row_sums[:, order], label_sums[:, order]
            for start in range(0, bags, batch):
                part = shuffled[:, start : start + batch]
                misses = np.matmul(part, weights[:, :, None])[:, :, 0] - wanted[:, start : start + batch]
                gradient = np.matmul(misses[:, None, :], part)[:, 0] * (2 / (size * part.shape[1]))
                adam.step(gradient, cosine_decay(step, steps, learning_rate, LAST))
                step += 1
    if not np.isfinite(weights).all():
        raise FederationError("sums of rows are too large to train on; scale the features, or use solver: exact")
    return weights
