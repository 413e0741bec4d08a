"""The base class of estimators of class ratios: fitted on bags of rows with label proportions, asked about a set."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from aggregator.learners.inputs.validation import checked, doubles, remember_names, require_integer, require_same_names
from federation.contract.randomness import digest


class RatioEstimator(BaseEstimator, ABC):  # type: ignore[misc, unused-ignore]
    """Estimates the class ratios of unlabelled sets, from M bags of rows with label proportions.

    A subclass names in `fitted` the attributes that `fit` sets, each an array or a JSON value (None for what was not
    needed); with the constructor's parameters, which are JSON values too, they are all that it knows.
    """

    name: ClassVar[str]
    fitted: ClassVar[tuple[str, ...]]
    diagnostics_: Mapping[str, float] = MappingProxyType({})  # what an estimator found about the bags, by name
    seed: int

    def fit(self, bags: Sequence[np.ndarray], proportions: np.ndarray, noise: np.ndarray | None = None) -> Self:
        """Learn from M bags, each an array (n_i, d) of finite rows, and their label proportions (M, C), which sum to 1.

        `noise` (M, C, C) is the covariance of the proportions' known noise; with it they may leave the simplex.
        Raises `InputError` for parameters that cannot be used, and as `aggregator.learners.inputs.validation.checked`.
        Bags may be data frames of equal columns; `ValueError` says where they are not, and where a set has others.
        """
        checked_bags, shares, covariance = checked(bags, proportions, noise)
        remember_names(self, bags)
        self._check_parameters()
        self._fit(checked_bags, shares, covariance)
        return self

    @abstractmethod
    def embed(self, rows: np.ndarray) -> np.ndarray:
        """All that `estimate` needs to know about a set of rows (n, d): a vector, costly to find, cheap to use."""

    def estimate(self, embedding: np.ndarray) -> np.ndarray:
        """Class ratios (..., C) on the simplex of sets with embeddings (..., D), which may be these ratios."""
        return embedding

    def embedding_key(self) -> str:
        """Equal for estimators whose `embed` are the same function: by default the digest of all that is fitted."""
        check_is_fitted(self, self.fitted[0])
        description, arrays = self.to_arrays()
        return digest(json.dumps(description, sort_keys=True), arrays)

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """Class ratios (C,) on the simplex of the set of rows (n, d). Raises `InputError` for rows of another kind."""
        require_same_names(self, rows)
        return self.estimate(self.embed(doubles(rows, "a set")))

    def _fit(self, bags: list[np.ndarray], proportions: np.ndarray, noise: np.ndarray | None) -> None:
        """Set what is fitted, from checked bags and proportions; for subclasses that do not override `fit`."""
        raise NotImplementedError(f"{type(self).__name__} must define _fit or fit")

    def _check_parameters(self) -> None:
        """Raises `InputError` for parameters that cannot be used."""
        require_integer("seed", self.seed, 0, 0)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The estimator's name, parameters and fitted JSON values, and its fitted arrays; `load` is the inverse."""
        values = {name: getattr(self, name) for name in self.fitted}
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
        plain = {name: value for name, value in values.items() if name not in arrays}
        parameters = {
            name: value.item() if isinstance(value, np.generic) else value for name, value in self.get_params().items()
        }
        return {"estimator": self.name, "parameters": parameters, "values": plain}, arrays

    @classmethod
    def from_arrays(cls, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """The estimator that `to_arrays` described."""
        estimator = cls(**description["parameters"])
        for name, value in {**description["values"], **arrays}.items():
            if name in cls.fitted:
                setattr(estimator, name, value)
        return estimator
