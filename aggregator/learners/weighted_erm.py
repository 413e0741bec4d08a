"""The aggregator's learner as a scikit-learn classifier, for use outside the framework; it adds no noise."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from aggregator.learners.inputs.validation import shaped
from federation.contract.errors import InputError
from federation.numerics.erm import attainable_tolerance, risk_minimiser


@dataclass(eq=False, repr=False)
class WeightedERM(ClassifierMixin, BaseEstimator):  # type: ignore[misc, unused-ignore]
    """Regularised logistic (2 classes) or softmax risk of label shares, without intercept (Hamm, Eq. 19; App. B).

    Minimises mean_i sum_k alpha_ik loss(w, x_i, k) + lam/2 |w|^2 to a certified gradient norm, the mean being weighted
    where rows have weights. Append a constant
    feature where an intercept is wanted, so that it is regularised too.

    Parameters:
        regularisation: lam > 0.
        gradient_tolerance: the certified norm > 0; raised to the floating-point floor of the rows.

    Attributes:
        classes_: (C,), sorted or as given.
        weights_: (d,) for two classes, (C, d) for more; as `coef_` (1, d) or (C, d), beside an `intercept_` of 0.

    Examples:
        >>> rows = np.array([[1.0, 0.2], [0.8, -0.1], [-0.9, 0.1], [-1.0, -0.3]])
        >>> WeightedERM(regularisation=0.01).fit(rows, ["b", "b", "a", "a"]).predict([[0.5, 0.0]]).tolist()
        ['b']
        >>> shares = np.array([[0.1, 0.9], [0.2, 0.8], [0.6, 0.4], [0.9, 0.1]])  # of votes of an ensemble
        >>> WeightedERM(regularisation=0.01).fit_shares(rows, shares, [0, 1]).decision_function([[0.5, 0.0]]).round(2)
        array([0.68])
    """

    regularisation: float = 1e-4
    gradient_tolerance: float = 1e-8

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "WeightedERM":
        """Fit to rows X (N, d) and one label per row, which count by their `sample_weight` (N,), at least 0, if given.

        Raises `ValueError` for fewer than two classes, and for weights that cannot be used.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError("WeightedERM needs two or more classes, got 1 class")
        return self._minimise(X, np.eye(len(classes))[codes], classes, sample_weight)

    def fit_shares(self, X: Any, shares: Any, classes: Any, sample_weight: Any = None) -> "WeightedERM":
        """Fit to rows X (N, d) and label shares (N, C) on the simplex, column k for classes[k].

        Rows count by their `sample_weight` (N,) as in `fit`. Raises `InputError` when shapes differ or a row of shares
        is not a distribution.
        """
        X = validate_data(self, X, dtype=np.float64)
        classes = np.asarray(classes)
        shares = shaped(shares, "shares", (len(X), len(classes)), "one row for each of X, one column for each class")
        if len(classes) < 2 or (shares < 0).any() or not np.allclose(shares.sum(axis=1), 1, atol=1e-9):
            raise InputError("each row of shares must be >= 0 and sum to 1 over 2 classes or more; normalise the votes")
        return self._minimise(X, shares, classes, sample_weight)

    def _minimise(self, rows: np.ndarray, shares: np.ndarray, classes: np.ndarray, sample_weight: Any) -> "WeightedERM":
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
        tolerance = attainable_tolerance(self.gradient_tolerance, rows, self.regularisation)
        self.classes_ = classes
        self.weights_ = risk_minimiser(rows, shares, self.regularisation, tolerance, weights)
        return self

    @property
    def coef_(self) -> np.ndarray:
        """`weights_` as scikit-learn's linear classifiers have them: (1, d) for two classes, (C, d) for more."""
        return np.atleast_2d(self.weights_)

    @property
    def intercept_(self) -> np.ndarray:
        """Zeros, one for each row of `coef_`."""
        return np.zeros(len(self.coef_))

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: (n,) of the second class for two classes, (n, C) for more."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(X @ self.weights_.T)

    def predict(self, X: Any) -> np.ndarray:
        """Most probable class of each row, the smallest on ties."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities (n, C) of the classes by the model whose likelihood was fitted: of the label shares, if any."""
        scores = self.decision_function(X)
        if scores.ndim > 1:
            return np.asarray(softmax(scores, axis=1))
        second = expit(scores)
        return np.column_stack([1 - second, second])
