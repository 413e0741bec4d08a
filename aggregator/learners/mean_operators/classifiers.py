"""Linear classifiers, as scikit-learn estimators, that see labels only through the mean operator.

- `MeanOperatorClassifier` takes the mean operator itself.
- `NoisyLabelClassifier` takes labels that were flipped at random with known probabilities.
- `ProportionClassifier` takes bags of rows and the class proportions of each bag.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from aggregator.learners.inputs.validation import remember_names, require_one_of, shaped
from aggregator.learners.linear_odd.losses import LinearOddLoss, SymmetricProper, loss
from aggregator.learners.linear_odd.minimiser import minimise_linear_odd
from aggregator.learners.mean_operators.moments import (
    GAMMA,
    MomentEstimate,
    from_labels,
    from_noisy_labels,
    from_randomised_response,
    laplacian_mean_map,
    mean_map,
)
from federation.contract.errors import InputError
from federation.mechanisms.sums import row_sums as bounds


class NotTwoClassesError(InputError):
    """Labels of one class, or of more than two; also a `ValueError`, which scikit-learn's tools expect."""


def _is_proper(classifier: "MeanOperatorClassifier") -> bool:
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
        loss: the name of a linear-odd loss (`aggregator.learners.linear_odd.losses`).
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


Method = Literal["mean_map", "laplacian"]


@dataclass(eq=False, repr=False)
class ProportionClassifier(MeanOperatorClassifier):
    """Learning from label proportions through the mean operator (Patrini et al. 2015, Algorithm 1).

    The mean operator is estimated from the bags, and any linear-odd loss minimised with it.

    Parameters, besides those of `MeanOperatorClassifier`:
        method: "mean_map" where a class has the same mean in every bag (`mean_map.mean_map`), "laplacian" where its
            means are alike in bags whose own means are near (`mean_map.laplacian_mean_map`).
        gamma: > 0, of the Laplacian: how smooth class means are from bag to bag.
        bandwidth: > 0, of the Laplacian, in units of the rows; None for the median distance between the bags' means.

    The rule for the regularisation sees what the sampling of bags does to the estimate.

    Attributes: those of `MeanOperatorClassifier`.

    Examples:
        >>> rng, shares = np.random.default_rng(0), np.array([[0.8, 0.2], [0.5, 0.5], [0.1, 0.9]])
        >>> labels = [(np.arange(300) < 300 * share).astype(int) for share in shares[:, 1]]
        >>> bags = [np.column_stack([y - 0.5 + rng.normal(0, 0.2, 300), rng.normal(0, 0.2, 300)]) for y in labels]
        >>> ProportionClassifier().fit(bags, shares).score(np.concatenate(bags), np.concatenate(labels))
        0.99
    """

    method: Method = "mean_map"
    gamma: float = GAMMA
    bandwidth: float | None = None

    def fit(self, bags: Sequence[np.ndarray], proportions: np.ndarray, classes: Sequence[Any] = (0, 1)) -> Self:
        """Learn from M bags, arrays (n_i, d), and their label proportions (M, 2), a column for each of `classes`.

        Raises `InputError` for what `mean_map`, `laplacian_mean_map` or the classifier cannot use, equal proportions
        above all, and for an unknown method; `ValueError` for data frames whose columns are not those of the first.
        """
        require_one_of("method", self.method, get_args(Method))
        if self.method == "mean_map":
            estimate = mean_map(bags, proportions)
        else:
            estimate = laplacian_mean_map(bags, proportions, self.gamma, self.bandwidth)
        self.fit_moment(np.concatenate(bags), estimate.moment, estimate.noise_variance, classes)
        remember_names(self, bags)
        return self


@dataclass(eq=False, repr=False)
class NoisyLabelClassifier(MeanOperatorClassifier):
    """Learning from noisy labels through an unbiased mean operator (Patrini et al. 2015; Natarajan et al. 2013).

    Parameters, besides those of `MeanOperatorClassifier`, which it is without noise:
        flipped_positive: probability, from 0, that a label of the second class came out as the first.
        flipped_negative: that one of the first came out as the second (`moments.from_noisy_labels`); the two sum to
            less than 1.
        epsilon: instead of them the level > 0 of randomised response, which flips both alike
            (`moments.from_randomised_response`).

    The rule for the regularisation sees what the noise does to the estimate. `fit` raises `InputError` for
    probabilities that leave no signal or that are given beside `epsilon`.

    Attributes: those of `MeanOperatorClassifier`.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> rows = rng.normal(size=(2000, 2)) / 3
        >>> labels = (rows[:, 0] > 0).astype(int)
        >>> noisy = np.where(rng.random(2000) < 0.4, 1 - labels, labels)
        >>> classifier = NoisyLabelClassifier(flipped_positive=0.4, flipped_negative=0.4).fit(rows, noisy)
        >>> classifier.score(rows, labels)
        0.995
    """

    flipped_positive: float = 0.0
    flipped_negative: float = 0.0
    epsilon: float | None = None

    def _estimated(self, rows: np.ndarray, codes: np.ndarray) -> MomentEstimate:
        if self.epsilon is None:
            return from_noisy_labels(rows, codes, self.flipped_positive, self.flipped_negative)
        if self.flipped_positive or self.flipped_negative:
            raise InputError(
                f"epsilon {self.epsilon:g} decides how labels are flipped; leave out flipped_positive and "
                f"flipped_negative, got {self.flipped_positive:g} and {self.flipped_negative:g}"
            )
        return from_randomised_response(rows, codes, self.epsilon)
