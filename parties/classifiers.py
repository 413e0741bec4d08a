"""Local classifiers: regularised logistic regression, or any scikit-learn classifier by name.

A classifier votes among the classes that its party has seen, the smallest index on ties: an unseen class would
tie with every other unseen one and leave the vote to rounding.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from federation.errors import InputError, nearest_name
from federation.numerics.erm import attainable_tolerance, fit_labels

LOGISTIC = "logistic"
_GRADIENT_TOLERANCE = 1e-8  # of the local minimiser; no privacy claim rests on it

Predict = Callable[[np.ndarray], np.ndarray]


@cache
def scikit_learn_classifiers() -> dict[str, type]:
    """Name -> class of every classifier that scikit-learn offers."""
    from sklearn.utils.discovery import all_estimators

    return dict(all_estimators(type_filter="classifier"))


def check_classifier(classifier: Mapping[str, Any]) -> None:
    """Refuse an unknown classifier or parameter. `classifier` is `{"name": str, "parameters": dict}`.

    Raises `InputError` with the nearest name, and for values that the classifier itself does not allow.
    """
    name, parameters = classifier["name"], classifier["parameters"]
    if name == LOGISTIC:
        allowed: list[str] = ["regularisation"]
    else:
        known = scikit_learn_classifiers()
        if name not in known:
            hint = nearest_name(name, [LOGISTIC, *known])
            raise InputError(f"classifier '{name}' is neither 'logistic' nor a scikit-learn classifier{hint}")
        allowed = list(inspect.signature(known[name]).parameters)
    for parameter in parameters:
        if parameter not in allowed:
            hint = nearest_name(parameter, allowed)
            raise InputError(f"classifier '{name}' has no parameter '{parameter}'; allowed: {', '.join(allowed)}{hint}")
    if name == LOGISTIC:
        value = parameters.get("regularisation", 1.0)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < float("inf"):
            raise InputError(f"regularisation must be a positive number, got {value!r}")
        return
    try:
        estimator = scikit_learn_classifiers()[name](**parameters)
        getattr(estimator, "_validate_params", lambda: None)()
    except (ValueError, TypeError) as error:
        problem = str(error).removesuffix(".").replace(". Got ", ", got ")
        raise InputError(f"classifier '{name}': {problem}") from error


def fit(rows: np.ndarray, labels: np.ndarray, classifier: Mapping[str, Any], random: np.random.Generator) -> Predict:
    """Train on rows (n, d) with class codes (n,); returns the function from rows (N, d) to codes (N,)."""
    seen, codes = np.unique(labels, return_inverse=True)
    if len(seen) == 1:
        return lambda unlabelled: np.full(len(unlabelled), seen[0])
    if classifier["name"] == LOGISTIC:
        return _logistic(rows, codes, seen, classifier["parameters"].get("regularisation", 1e-4))
    return _scikit_learn(rows, labels, classifier, random)


def _logistic(rows: np.ndarray, codes: np.ndarray, seen: np.ndarray, regularisation: float) -> Predict:
    tolerance = attainable_tolerance(_GRADIENT_TOLERANCE, rows, regularisation)
    weights = fit_labels(rows, codes, len(seen), regularisation, tolerance)
    if weights.ndim == 1:
        return lambda unlabelled: seen[(unlabelled @ weights > 0).astype(np.intp)]
    return lambda unlabelled: seen[np.argmax(unlabelled @ weights.T, axis=1)]


def _scikit_learn(
    rows: np.ndarray, labels: np.ndarray, classifier: Mapping[str, Any], random: np.random.Generator
) -> Predict:
    estimator_type = scikit_learn_classifiers()[classifier["name"]]
    parameters = dict(classifier["parameters"])
    if "random_state" in inspect.signature(estimator_type).parameters:
        parameters.setdefault("random_state", int(random.integers(2**31)))
    return estimator_type(**parameters).fit(rows, labels).predict
