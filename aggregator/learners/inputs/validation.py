"""Checks of an estimator's inputs: bags, label proportions, their noise, parameters, and names of columns.

Rows of a data frame must have the columns that the estimator was fitted with, in the same order.
"""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_feature_names

from federation.contract.errors import InputError, nearest_name, refusing
from federation.contract.validation import apart

_ROUNDING = 1e-6  # how far proportions may miss the simplex
_DEPENDENT = 1e-8  # singular values below this share of the largest are zero


def require_number(name: str, value: Any, usual: float) -> None:
    """Raises `InputError` unless `value` is a positive finite number.

    Examples:
        >>> require_number("ridge", -1.0, usual=1.0)
        Traceback (most recent call last):
        federation.contract.errors.InputError: ridge must be a positive and finite number, got -1.0; 1 is usual
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise InputError(f"{name} must be a positive and finite number, got {value!r}; {usual:g} is usual")


def require_integer(name: str, value: Any, least: int, usual: int, most: int | None = None) -> None:
    """Raises `InputError` unless `value` is an integer from `least`, and at most `most` if that is given.

    Examples:
        >>> require_integer("folds", 1, least=2, usual=5)
        Traceback (most recent call last):
        federation.contract.errors.InputError: folds must be an integer from 2, got 1; 5 is usual
    """
    small = isinstance(value, bool) or not isinstance(value, Integral) or value < least
    if small or (most is not None and value > most):
        allowed = f"from {least}" if most is None else f"from {least} to {most}"
        raise InputError(f"{name} must be an integer {allowed}, got {value!r}; {usual} is usual")


def require_flag(name: str, value: Any) -> None:
    """Raises `InputError` unless `value` is true or false.

    Examples:
        >>> require_flag("debiased", True)
        >>> require_flag("debiased", 1)
        Traceback (most recent call last):
        federation.contract.errors.InputError: debiased must be True or False, got 1
    """
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {value!r}")


def require_one_of(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Raises `InputError`, with the nearest name, unless `value` is one of the names `allowed`.

    Examples:
        >>> require_one_of("method", "moments", ("mean_map", "laplacian"))
        Traceback (most recent call last):
        federation.contract.errors.InputError: method must be one of mean_map, laplacian, got 'moments'
    """
    if value not in allowed:
        raise InputError(
            f"{name} must be one of {', '.join(allowed)}, got {value!r}{nearest_name(str(value), allowed)}"
        )


def checked(
    bags: Sequence[np.ndarray], proportions: np.ndarray, noise: np.ndarray | None = None
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray | None]:
    """The bags as M arrays (n_i, d), the proportions (M, C) and the noise's covariance (M, C, C), all float64.

    Raises `InputError` unless the bags are not empty, finite and of equal width, and the proportions pass
    `checked_proportions`.

    Examples:
        >>> bags, shares, noise = checked([[[1], [2]], [[3]]], [[1, 0], [0, 1]])
        >>> [bag.shape for bag in bags], shares.dtype
        ([(2, 1), (1, 1)], dtype('float64'))
    """
    if not hasattr(bags, "__len__"):
        raise InputError(f"bags must be a list of arrays, one (rows, columns) for each bag, got {type(bags).__name__}")
    if not len(bags):
        raise InputError("bags must not be empty: at least one bag per class is needed")
    arrays = [matrix(bag, f"bag {i}") for i, bag in enumerate(bags)]
    widths = [bag.shape[1] for bag in arrays]
    if len(set(widths)) > 1:
        odd = next(i for i, width in enumerate(widths) if width != widths[0])
        raise InputError(f"bags must have equal numbers of columns; bag {odd} has {widths[odd]}, bag 0 has {widths[0]}")
    return arrays, *checked_proportions(proportions, noise, len(arrays))


def checked_proportions(
    proportions: np.ndarray, noise: np.ndarray | None, bags: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Label proportions (M, C) and the covariance of their noise (M, C, C) as float64.

    Raises `InputError` unless there is one row per bag, rows sum to 1 and, without noise, lie on the simplex; unless
    covariances are symmetric with columns that sum to 0 and no negative variances; and unless the classes can be
    identified (assumption A0 of Iyer et al. 2016: the affine hull of the proportions contains the simplex).
    """
    shares = finite(proportions, "proportions")
    if shares.ndim != 2 or len(shares) != bags or shares.shape[1] < 2:
        raise InputError(
            f"proportions must have one row for each of {bags} bags and one column per class, at least 2; got shape "
            f"{shares.shape}"
        )
    off = np.abs(shares.sum(axis=1) - 1)
    if off.max() > _ROUNDING:
        worst = int(np.argmax(off))
        total, one = apart(shares[worst].sum(), 1)
        raise InputError(
            f"proportions must sum to {one} in each bag; those of bag {worst} sum to {total}: divide "
            "counts by the size of the bag"
        )
    if noise is None and (shares.min() < -_ROUNDING or shares.max() > 1 + _ROUNDING):
        worst = int(np.argmin(shares.min(axis=1)))
        least, most, zero, one = apart(shares[worst].min(), shares[worst].max(), 0, 1)
        raise InputError(
            f"proportions must lie from {zero} to {one}; those of bag {worst} lie from {least} to {most}: project "
            "noisy ones onto the simplex, or give the covariance of their noise"
        )
    _identifiable(shares)
    return shares, None if noise is None else _covariance(noise, shares.shape)


def checked_set(rows: np.ndarray, columns: int) -> np.ndarray:
    """Rows (n, d) of an unlabelled set as they came. Raises `InputError` unless there are any, with d = `columns`.

    Examples:
        >>> checked_set([[1.0, 2.0]], columns=2)
        array([[1., 2.]])
    """
    rows = np.asanyarray(rows)
    if rows.ndim != 2 or len(rows) == 0 or rows.shape[1] != columns:
        raise InputError(
            f"a set must have at least one row and {columns} columns, as the bags had; got shape {rows.shape}"
        )
    return rows


def checked_means(
    means: np.ndarray, sizes: np.ndarray, mean_noise: np.ndarray | float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean features (M, D), sizes (M,) and variances of noise (M,), one per bag, as float64.

    Raises `InputError` unless sizes are at least 1, variances not negative, and all are finite.
    """
    found, counts, variances = matrix(means, "means"), finite(sizes, "sizes"), finite(mean_noise, "mean_noise")
    if counts.shape != (len(found),) or counts.min() < 1:
        raise InputError(f"sizes must be one number from 1 for each of {len(found)} means, got {np.asarray(sizes)!r}")
    if variances.shape not in ((), (len(found),)) or variances.min() < 0:
        raise InputError(
            f"mean_noise must be a variance of at least 0, or one for each of {len(found)} means; got {mean_noise!r}"
        )
    return found, counts, np.broadcast_to(variances, counts.shape)


def checked_covariance(covariance: np.ndarray, dimension: int, rows: int | None) -> np.ndarray:
    """Covariance of features (D, D) as float64, estimated from so many `rows`, or exact if None.

    Raises `InputError` unless it is symmetric and positive semidefinite, and of a rank that so many rows allow.
    """
    found = shaped(covariance, "covariance", (dimension, dimension), "one row and column for each column of the means")
    if not _semidefinite(found):
        raise InputError("covariance must be symmetric and positive semidefinite; use numpy.cov of the features")
    if rows is not None and np.linalg.matrix_rank(found, hermitian=True) > rows - 1:
        raise InputError(
            f"covariance_rows must exceed the rank of the covariance, got {rows}; give the number of rows that it is of"
        )
    return found


def _semidefinite(matrices: np.ndarray) -> bool:
    largest = np.abs(matrices).max(initial=0.0)
    asymmetry = np.abs(matrices - matrices.swapaxes(-1, -2)).max(initial=0.0)
    return bool(asymmetry <= _ROUNDING * largest and np.linalg.eigvalsh(matrices).min() >= -_ROUNDING * largest)


def _identifiable(shares: np.ndarray) -> None:
    classes = shares.shape[1]
    _, values, right = np.linalg.svd(shares, full_matrices=len(shares) < classes)
    rank = int(np.count_nonzero(values > _DEPENDENT * values[0]))
    if rank == classes:
        return
    # A class is identified when no direction along which the proportions are blind involves it.
    blind = np.flatnonzero(np.abs(right[rank:]).max(axis=0) > np.sqrt(_DEPENDENT))
    distinct = len(np.unique(np.round(shares, 9), axis=0))
    raise InputError(
        f"proportions of {distinct} distinct bags have rank {rank}, but {classes} classes need rank {classes} "
        f"(assumption A0): classes {', '.join(map(str, blind))} cannot be told apart; add bags with other proportions, "
        "or merge those classes"
    )


def _covariance(noise: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    covariance = shaped(noise, "noise", (*shape, shape[1]), "one covariance matrix per bag")
    sums = np.abs(covariance.sum(axis=2)).max(initial=0.0)
    if sums > _ROUNDING * np.abs(covariance).max(initial=0.0) or not _semidefinite(covariance):
        raise InputError(
            "noise must hold covariance matrices of proportions that sum to 1: symmetric, positive semidefinite, with "
            "columns that sum to 0; divide the covariance of counts by the squared size of the bag"
        )
    return covariance


def shaped(values: npt.ArrayLike, what: str, shape: tuple[int, ...], meaning: str) -> NDArray[np.float64]:
    """The values as float64. Raises `InputError` unless `finite` takes them and they have that shape.

    Examples:
        >>> shaped([1.0, 2.0], "sums", (3,), "one number for each bag")
        Traceback (most recent call last):
        federation.contract.errors.InputError: sums must have shape (3,), one number for each bag; got (2,)
    """
    found = finite(values, what)
    if found.shape != shape:
        raise InputError(f"{what} must have shape {shape}, {meaning}; got {found.shape}")
    return found


def matrix(values: npt.ArrayLike, what: str) -> NDArray[np.float64]:
    """The values (n, d) as float64. Raises `InputError` unless `finite` takes them and no axis of two is empty.

    Examples:
        >>> matrix([[1, 2], [3, 4]], "a bag")
        array([[1., 2.],
               [3., 4.]])
    """
    rows = finite(values, what)
    if rows.ndim != 2:
        raise InputError(
            f"{what} must have two axes, rows and columns, got shape {rows.shape}; make a single column (n, 1)"
        )
    if 0 in rows.shape:
        raise InputError(f"{what} must have at least one row and one column, got shape {rows.shape}; leave it out")
    return rows


def doubles(values: npt.ArrayLike, what: str) -> NDArray[np.float64]:
    """The values as float64, finite or not. Raises `InputError` unless they are a dense array of real numbers.

    Examples:
        >>> doubles([[1, 2]], "a set")
        array([[1., 2.]])
    """
    if hasattr(values, "toarray"):
        raise InputError(f"{what} must be a dense array, got a sparse one; convert it by its toarray()")
    with refusing(f"{what} must be an array of numbers"):
        if np.iscomplexobj(values):
            raise InputError(f"{what} must be real numbers, got complex ones; leave out the imaginary parts")
        return np.asarray(values, dtype=np.float64)


def finite(values: npt.ArrayLike, what: str) -> NDArray[np.float64]:
    """The values as float64. Raises `InputError` unless they are a dense array of finite real numbers.

    Examples:
        >>> finite([1, 2], "sizes")
        array([1., 2.])
    """
    array = doubles(values, what)
    if not np.isfinite(array).all():
        raise InputError(f"{what} must be finite; remove or replace NaN and infinite values")
    return array


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
