"""A party's scikit-learn classifier, behind the interface of the groups."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from federation.contract.errors import InputError
from parties.holdings.groups import vote_type


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

    def part(self, chosen: np.ndarray) -> EstimatorGroup:
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
