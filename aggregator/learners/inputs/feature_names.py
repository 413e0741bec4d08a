"""Names of columns: rows of data frames must have those that an estimator was fitted with, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_feature_names


def remember_names(estimator: BaseEstimator, bags: Sequence[Any]) -> None:
    """Sets `feature_names_in_` from data frames, or removes it where these are arrays.

    Raises `ValueError`, as scikit-learn does, for bags whose columns are not those of the first one.

    Examples:
        >>> import pyarrow
        >>> estimator = BaseEstimator()
        >>> remember_names(estimator, [pyarrow.table({"a": [1.0], "b": [2.0]})])
        >>> estimator.feature_names_in_.tolist()
        ['a', 'b']
    """
    for number, bag in enumerate(bags):
        if number == 0 or not _nameless(estimator, bag):
            _check_feature_names(estimator, bag, reset=number == 0)


def require_same_names(estimator: BaseEstimator, rows: Any) -> None:
    """Raises `ValueError`, as scikit-learn does, for a data frame with other columns than bags had, or reordered ones.

    Examples:
        >>> import pyarrow
        >>> estimator = BaseEstimator()
        >>> remember_names(estimator, [pyarrow.table({"a": [1.0], "b": [2.0]})])
        >>> require_same_names(estimator, pyarrow.table({"b": [2.0], "a": [1.0]}))
        Traceback (most recent call last):
        ValueError: The feature names should match those that were passed during fit.
        Feature names must be in the same order as they were in fit.
    """
    if not _nameless(estimator, rows):
        _check_feature_names(estimator, rows, reset=False)


def _nameless(estimator: BaseEstimator, rows: Any) -> bool:
    """Whether there is nothing to compare; scikit-learn takes long to find that out, bag by bag."""
    return type(rows) is np.ndarray and not hasattr(estimator, "feature_names_in_")
