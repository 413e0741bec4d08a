"""Local classifiers: regularised logistic regression, any scikit-learn classifier by name, or a mixture of these.

A classifier is `{"name": str, "parameters": dict}`. A mixture has the parameters
`{"members": [classifier, ...], "weights": [w, ...]}`: each party trains one member, drawn with these weights.

A classifier votes among the classes that its party has seen, the smallest index on ties. An unseen class would tie with
every other unseen class and leave the vote to rounding. `EstimatorGroup` puts a party's scikit-learn classifier behind
the interface of batched classifiers.
"""

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from federation.contract.errors import InputError, nearest_name
from federation.numerics.erm import attainable_tolerance, fit_labels
from parties.party_data.isolation import vote_type

LOGISTIC, MIXTURE = "logistic", "mixture"
DEFAULT_REGULARISATION = 1e-4
GRADIENT_TOLERANCE = 1e-8  # of a local minimiser; no privacy claim rests on it

Predict = Callable[[np.ndarray], np.ndarray]


def check_classifier(classifier: Mapping[str, Any]) -> None:
    """Refuse an unknown classifier or parameter. `classifier` is `{"name": str, "parameters": dict}`.

    Raises `InputError` with the nearest name, and for values that the classifier itself does not allow.

    Examples:
        >>> check_classifier({"name": "logistic", "parameters": {"regularisation": 0.01}})
        >>> check_classifier({"name": "logistic", "parameters": {"C": 1}})
        Traceback (most recent call last):
        federation.contract.errors.InputError: classifier 'logistic' has no parameter 'C'; allowed: regularisation
        >>> check_classifier({"name": "GausianNB", "parameters": {}})
        Traceback (most recent call last):
        federation.contract.errors.InputError: classifier 'GausianNB' is not 'logistic', 'mixture' or a scikit-learn
        classifier; did you mean 'GaussianNB'?
    """
    require_form(classifier)
    name, parameters = classifier["name"], classifier["parameters"]
    for member in parameters["members"] if name == MIXTURE else ():
        check_classifier(member)
    if name in _CHECKS:
        return
    known = scikit_learn_classifiers()
    if name not in known:
        hint = nearest_name(name, [*_CHECKS, *known])
        raise InputError(f"classifier '{name}' is not 'logistic', 'mixture' or a scikit-learn classifier{hint}")
    _check_parameters(name, known[name], parameters)


def require_form(classifier: Mapping[str, Any]) -> None:
    """Refuse what is no name with parameters, and parameters that a logistic regression or a mixture does not allow.

    What those of scikit-learn allow is left to them. Raises `InputError`.
    """
    name, parameters = classifier.get("name"), classifier.get("parameters")
    if not isinstance(name, str) or not isinstance(parameters, Mapping):
        raise InputError(f"a classifier must be a name with parameters, got {name!r:.100} with {parameters!r:.100}")
    if name in _CHECKS:
        _check_parameters(name, _CHECKS[name], parameters)


def _check_parameters(name: str, make: Callable[..., Any], parameters: Mapping[str, Any]) -> None:
    allowed = list(inspect.signature(make).parameters)
    for parameter in parameters:
        if parameter not in allowed:
            hint = nearest_name(parameter, allowed)
            raise InputError(f"classifier '{name}' has no parameter '{parameter}'; allowed: {', '.join(allowed)}{hint}")
    try:
        estimator = make(**parameters)
        getattr(estimator, "_validate_params", lambda: None)()
    except InputError:
        raise
    except (ValueError, TypeError) as error:
        problem = str(error).removesuffix(".").replace(". Got ", ", got ")
        raise InputError(f"classifier '{name}': {problem}") from error


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


def _check_logistic(regularisation: Any = DEFAULT_REGULARISATION) -> None:
    if not _positive(regularisation):
        raise InputError(f"regularisation must be a positive number, got {regularisation!r}")


def _check_mixture(members: Any = None, weights: Any = None) -> None:
    if not isinstance(members, list | tuple) or not members:
        raise InputError(f"a mixture needs a list of members, got {members!r}; name at least one classifier")
    if not isinstance(weights, list | tuple) or len(weights) != len(members) or not all(map(_positive, weights)):
        raise InputError(f"a mixture of {len(members)} needs as many positive weights, got {weights!r}")
    for member in members:
        if not isinstance(member, Mapping):
            raise InputError(f"a member of a mixture must be a classifier, got {member!r:.100}")
        if member.get("name") == MIXTURE:
            raise InputError("a member of a mixture cannot be a mixture; list its members in place of it")
        require_form(member)


_CHECKS: dict[str, Callable[..., Any]] = {LOGISTIC: _check_logistic, MIXTURE: _check_mixture}  # by their parameters


def drawn_member(mixture: Mapping[str, Any], random: np.random.Generator) -> int:
    """The index of one member of a mixture, drawn by the weights; takes one number from `random`.

    Examples:
        >>> members = [{"name": "logistic", "parameters": {}}, {"name": "GaussianNB", "parameters": {}}]
        >>> mixture = {"name": "mixture", "parameters": {"members": members, "weights": [3, 1]}}
        >>> [drawn_member(mixture, np.random.default_rng(seed)) for seed in range(6)]
        [0, 0, 0, 0, 1, 1]
    """
    ends = np.cumsum(np.asarray(mixture["parameters"]["weights"], dtype=np.float64))
    return min(int(np.searchsorted(ends, random.random() * ends[-1], side="right")), len(ends) - 1)


@dataclass(frozen=True)
class Fitted:
    """Maps rows (N, d) to class codes (N,); of two classes `ordering` gives numbers (N,) that rise towards the second.

    `ordering` is None where the classifier has no such numbers.
    """

    predict: Predict
    ordering: Predict | None = None

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        return self.predict(rows)


def fit(
    rows: np.ndarray,
    labels: np.ndarray,
    classifier: Mapping[str, Any],
    random: np.random.Generator,
    copies: np.ndarray | None = None,
) -> Fitted:
    """Train on rows (n, d) with class codes (n,). A logistic regression takes each as often as `copies` (n,) says.

    A mixture trains all its members, which vote with their weights; the smallest class on ties.

    Examples:
        >>> random = np.random.default_rng(0)
        >>> rows = random.normal(size=(60, 2))
        >>> classifier = {"name": "logistic", "parameters": {"regularisation": 0.01}}
        >>> predict = fit(rows, (rows[:, 0] > 0).astype(int), classifier, random)
        >>> predict(np.array([[2.0, 0.0], [-2.0, 0.0]]))
        array([1, 0])
    """
    seen, codes = np.unique(labels, return_inverse=True)
    if len(seen) == 1:
        return Fitted(lambda unlabelled: np.full(len(unlabelled), seen[0]))
    if classifier["name"] == MIXTURE:
        return Fitted(_mixture(rows, labels, classifier["parameters"], random))
    if classifier["name"] == LOGISTIC:
        regularisation = classifier["parameters"].get("regularisation", DEFAULT_REGULARISATION)
        return _logistic(rows, codes, seen, regularisation, copies)
    estimator = fit_estimator(rows, labels, classifier, random)
    if len(seen) > 2:
        return Fitted(estimator.predict)
    if hasattr(estimator, "decision_function"):
        return Fitted(estimator.predict, estimator.decision_function)
    if hasattr(estimator, "predict_proba"):
        return Fitted(estimator.predict, lambda unlabelled: estimator.predict_proba(unlabelled)[:, 1])
    return Fitted(estimator.predict)


def _logistic(
    rows: np.ndarray, codes: np.ndarray, seen: np.ndarray, regularisation: float, copies: np.ndarray | None
) -> Fitted:
    tolerance = attainable_tolerance(GRADIENT_TOLERANCE, rows, regularisation)
    weights = fit_labels(rows, codes, len(seen), regularisation, tolerance, copies)
    if weights.ndim == 1:
        return Fitted(
            lambda unlabelled: seen[(unlabelled @ weights > 0).astype(np.intp)], lambda unlabelled: unlabelled @ weights
        )
    return Fitted(lambda unlabelled: seen[np.argmax(unlabelled @ weights.T, axis=1)])


def _mixture(
    rows: np.ndarray, labels: np.ndarray, parameters: Mapping[str, Any], random: np.random.Generator
) -> Predict:
    members = [fit(rows, labels, member, random) for member in parameters["members"]]
    classes = np.arange(labels.max() + 1)

    def predict(unlabelled: np.ndarray) -> np.ndarray:
        ballots = zip(members, parameters["weights"], strict=True)
        support = sum(weight * (member(unlabelled)[:, None] == classes) for member, weight in ballots)
        return np.asarray(np.argmax(support, axis=1))

    return predict


@cache
def scikit_learn_classifiers() -> dict[str, type]:
    """Name -> class of every classifier that scikit-learn offers."""
    from sklearn.utils.discovery import all_estimators

    return dict(all_estimators(type_filter="classifier"))


def fit_estimator(
    rows: np.ndarray, labels: np.ndarray, classifier: Mapping[str, Any], random: np.random.Generator
) -> Any:
    """The scikit-learn classifier `{"name": str, "parameters": dict}`, trained on rows (n, d), class codes (n,)."""
    from sklearn.exceptions import ConvergenceWarning

    estimator_type = scikit_learn_classifiers()[classifier["name"]]
    parameters = dict(classifier["parameters"])
    if "random_state" in inspect.signature(estimator_type).parameters:
        parameters.setdefault("random_state", int(random.integers(2**31)))
    with warnings.catch_warnings():
        # One that its own limit of iterations stops is what was asked for; a warning per party would bury the rest.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator_type(**parameters).fit(rows, labels)


@dataclass(frozen=True, eq=False)
class EstimatorGroup:
    """One party's trained scikit-learn classifier of the `classes` declared classes."""

    parties: np.ndarray
    estimator: Any
    classes: int

    def part(self, chosen: np.ndarray) -> "EstimatorGroup":
        """The one party (`Group.part`)."""
        return replace(self, parties=self.parties[chosen])

    @property
    def gives_probabilities(self) -> bool:
        """Whether it has `predict_proba`."""
        return hasattr(self.estimator, "predict_proba")

    def votes(self, rows: np.ndarray) -> np.ndarray:
        """What it predicts (`Group.votes`). Raises `InputError` unless that is one declared class per row."""
        codes = np.asarray(self.estimator.predict(rows))
        if codes.shape != (len(rows),) or codes.dtype.kind not in "iu":
            raise InputError(f"the classifier must predict one class code per row, got {codes.dtype} of {codes.shape}")
        if codes.min(initial=0) < 0 or codes.max(initial=0) >= self.classes:
            raise InputError(f"the classifier predicted a class outside 0..{self.classes - 1}")
        return codes[None].astype(vote_type(self.classes))

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """What it finds probable (`Group.probabilities`).

        Raises `InputError` where the classifier has no `predict_proba`, or one that answers out of form.
        """
        name = type(self.estimator).__name__
        if not self.gives_probabilities:
            raise InputError(f"classifier '{name}' gives no probabilities; choose another, or let parties send votes")
        given = np.asarray(self.estimator.predict_proba(rows), dtype=np.float64)
        seen = np.asarray(self.estimator.classes_)
        if given.shape != (len(rows), len(seen)):
            raise InputError(f"classifier '{name}' must give {len(seen)} probabilities per row, got {given.shape}")
        out = np.zeros((1, len(rows), self.classes))
        out[0][:, seen] = given
        return out
