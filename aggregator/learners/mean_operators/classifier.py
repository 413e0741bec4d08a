"""A linear classifier that sees labels only through the mean operator, as a scikit-learn estimator."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from aggregator.learners.inputs.validation import shaped
from aggregator.learners.linear_odd.catalogue import loss
from aggregator.learners.linear_odd.losses import LinearOddLoss, SymmetricProper
from aggregator.learners.linear_odd.minimiser import minimise_linear_odd
from aggregator.learners.mean_operators.moments import MomentEstimate, from_labels
from federation.contract.errors import InputError
from federation.mechanisms.sums import row_sums as bounds


class NotTwoClassesError(InputError):
    """Labels of one class, or of more than two; also a `ValueError`, which scikit-learn's tools expect."""


def _is_proper(classifier: MeanOperatorClassifier) -> bool:
    if isinstance(classifier._loss(), SymmetricProper):
        return True
    raise AttributeError(f"the scores of loss {classifier.loss!r} are not probabilities; use 'logistic' for that")


@dataclass(eq=False, repr=False)
class MeanOperatorClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc, unused-ignore]
    """Two classes by the sign of <w, x>, w = argmin mean_i even(<w, x_i>) - a/2 <w, mu> + lam |w|².

    mu is the mean operator mean_i y_i x_i, with y = +1 for the second class and -1 for the first, or any estimate of it
    (Patrini et al. 2015, Algorithm 1). There is no intercept, since mu has none: append a constant feature where one is
    wanted, before rows are scaled to the norm that a release assumes. A score of 0 is of the second class.

    Parameters:
        loss: the name of a linear-odd loss (`aggregator.learners.linear_odd.catalogue`).
        regularisation: lam > 0 of |w|²; by default max(1e-4, E|b|²/2) for noise b in mu, which presumes rows of norm
            about 1.
        rho: of the loss "rho", 1 by default.
        tolerance: as `minimise_linear_odd` takes it.

    "rho" and "perceptron" need an mu that no labels give: otherwise their risk is least at w = 0, which classifies
    nothing, and a warning says so.

    Attributes:
        classes_: (2,), those of y = -1 and y = +1.
        weights_: w (d,); as `coef_` (1, d), beside an `intercept_` of 0.
        distance_: to the exact minimiser at most.
        regularisation_: the lam that was used.
        estimate_: the mean operator (d,) and the variance of its error, a `MomentEstimate`.

    Examples:
        >>> rows = np.array([[1.0, 0.2], [0.8, -0.1], [-0.9, 0.1], [-1.0, -0.3]])
        >>> classifier = MeanOperatorClassifier(regularisation=0.1).fit(rows, ["b", "b", "a", "a"])
        >>> classifier.predict([[0.5, 0.0], [-0.5, 0.0]]).tolist()
        ['b', 'a']
        >>> classifier.fit_moment(rows, [0.9, 0.1], classes=("no", "yes")).predict([[0.5, 0.0]]).tolist()
        ['yes']
    """

    loss: str = "logistic"
    regularisation: float | None = None
    rho: float | None = None
    tolerance: float | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to rows X (n, d) and one label per row, which count by their `sample_weight` (n,), at least 0, if given.

        Raises `NotTwoClassesError` unless there are two classes, and `ValueError` for weights that cannot be used.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        classes, codes = np.unique(y, return_inverse=True)
        if kind != "binary" or len(classes) != 2:
            found = "1 class" if len(classes) == 1 else f"{len(classes)} classes"
            raise NotTwoClassesError(
                f"Only binary classification is supported. The type of the target is {kind}: y must hold two classes, "
                f"got {found}; leave out or merge the others"
            )
        if sample_weight is None:
            return self._minimise(X, self._estimated(X, codes), classes)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        weighted = X * (weights / weights.mean())[:, None]  # the mean operator is linear in rows
        return self._minimise(X, self._estimated(weighted, codes), classes, weights)

    def fit_moment(self, X: Any, moment: Any, noise_variance: float = 0.0, classes: Sequence[Any] = (0, 1)) -> Self:
        """Fit to rows X (n, d) without labels and an estimate of their mean operator, `moment` (d,).

        `noise_variance` is E|b|², the expected squared distance of the estimate from the truth, summed over the
        coordinates: d times the variance of one. The parameter `regularisation` takes its place unless None. `classes`
        are those of y = -1 and y = +1. Raises `InputError` unless shapes fit, values are finite and classes are two.
        """
        X = validate_data(self, X, dtype=np.float64)
        names = np.asarray(classes)
        if names.shape != (2,) or names[0] == names[1]:
            raise NotTwoClassesError(f"classes must be two different values, for y = -1 and y = +1; got {classes!r}")
        moment = shaped(moment, "moment", X.shape[1:], "one number per column")
        return self._minimise(X, MomentEstimate(moment, noise_variance), names)

    def _estimated(self, rows: np.ndarray, codes: np.ndarray) -> MomentEstimate:
        """The mean operator from rows (n, d) and codes (n,), 1 for labels of the second class and 0 for others."""
        return from_labels(rows, codes)

    def _loss(self) -> LinearOddLoss:
        return loss(self.loss) if self.rho is None else loss(self.loss, rho=self.rho)

    def _minimise(
        self, rows: np.ndarray, estimate: MomentEstimate, classes: np.ndarray, weights: np.ndarray | None = None
    ) -> Self:
        noise_variance = estimate.noise_variance
        if not 0 <= noise_variance < math.inf:
            raise InputError(f"noise_variance must be a finite number of at least 0, got {noise_variance}")
        lam = bounds.regularisation(noise_variance) if self.regularisation is None else self.regularisation
        if lam == 0 and noise_variance > 0:
            raise InputError("regularisation must be > 0 for a noisy mean operator, got 0; leave it out for a rule")
        known = self._loss(), rows, estimate.moment, lam
        found = minimise_linear_odd(*known, tolerance=self.tolerance, weights=weights)
        if not found.weights.any():
            warnings.warn(
                f"the risk of loss {self.loss!r} is least at weights of zero, which put every row in one class, "
                f"{classes[1]}; use another loss, such as 'logistic', and check that the mean operator is not zero",
                stacklevel=3,
            )
        self.classes_, self.estimate_, self.regularisation_ = classes, estimate, lam
        self.weights_, self.distance_ = found.weights, float(found.distance)
        return self

    @property
    def coef_(self) -> np.ndarray:
        """`weights_` as scikit-learn's linear classifiers have them, (1, d)."""
        return self.weights_[None]

    @property
    def intercept_(self) -> np.ndarray:
        """Zero, (1,)."""
        return np.zeros_like(self.weights_, shape=1)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores <w, x> (n,) of the second class."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(X @ self.weights_)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row (n,): the second one where the score is 0 or more."""
        codes = (self.decision_function(X) >= 0).astype(np.intp)
        return self.classes_[codes]

    @available_if(_is_proper)  # type: ignore[untyped-decorator, unused-ignore]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities (n, 2) of the classes, which the scores of symmetric proper losses stand for."""
        scores = self.decision_function(X)
        proper = self._loss()
        assert isinstance(proper, SymmetricProper)
        positive = proper.probability(scores)
        return np.column_stack([1 - positive, positive])
