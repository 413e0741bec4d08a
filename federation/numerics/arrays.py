"""Short names for the types of arrays, and what arrays from outside must be: numbers, and finite ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


def numbers(values: Any, what: str) -> Floats:
    """`values` as float64, of whatever shape. Raises `InputError` (naming them as `what`) unless they are numbers.

    Examples:
        >>> numbers([1, 2], "rows")
        array([1., 2.])
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{what} must be numbers: {error}") from error


def all_finite(values: Floats) -> bool:
    """Whether all of `values` are finite, in one pass over them; False, too, where their squares overflow.

    Examples:
        >>> all_finite(np.array([1.0, 2.0])), all_finite(np.array([1.0, np.nan])), all_finite(np.array([1e200]))
        (True, False, False)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.vdot(values, values)))


def require_finite(rows: Floats, what: str, first: int = 0, *, missing: bool = False) -> None:
    """Raises `InputError` unless all of `rows` (n, d) is finite, or NaN if cells may be `missing`.

    The message counts rows from `first`.
    """
    if all_finite(rows):
        return
    allowed = ~np.isinf(rows) if missing else np.isfinite(rows)
    if not allowed.all():
        row, column = np.argwhere(~allowed)[0]
        wanted = "finite, or missing" if missing else "finite"
        raise InputError(
            f"{what} must be {wanted}: row {first + row}, column {column} (counted from 0) is {rows[row, column]}; "
            "remove or replace such values"
        )
