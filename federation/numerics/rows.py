"""Array types and checks, and operations on rows: norms, equal rows, contrasts of classes, whitening.

- `numbers` and `require_finite` check arrays from outside.
- `equal_rows` finds rows that occur several times, so that what depends on a row alone is computed once.
- `contrasts` is a public orthonormal basis of class contrasts.
- `whitening` gives coordinates in which a second moment is the identity, on the span of its rows.
- `keep_freed_memory` keeps the memory of large arrays for the next one.
"""

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

_SHIFT, _SPREAD = np.uint64(33), np.uint64(0xFF51AFD7ED558CCD)  # of the last step of MurmurHash3
_BLOCK_BYTES = 1 << 18  # of rows that are looked at together, so that they stay in cache


def equal_rows(rows: NDArray[Any]) -> tuple[Integers, Integers]:
    """Where each of the different rows of an array (n, d) stands first (k,), and which of these each row equals (n,).

    So `rows[first][twins]` is `rows`. Places ascend. Rows are equal when all their bits are: 0.0 and -0.0 differ.

    Examples:
        >>> first, twins = equal_rows(np.array([[3.0, 4.0], [1.0, 2.0], [3.0, 4.0]]))
        >>> first.tolist(), twins.tolist()
        ([0, 1], [0, 1, 0])
    """
    words = _words(rows)
    step = max(1, _BLOCK_BYTES // words[:1].nbytes) if words.size else 1
    blocks = [slice(start, start + step) for start in range(0, len(words), step)]
    keys = np.concatenate([np.empty(0, np.uint64), *(_keys(words[some]) for some in blocks)])
    _, first, twins = np.unique(keys, return_index=True, return_inverse=True)
    if any((words[some] != words[first[twins[some]]]).any() for some in blocks):
        return np.arange(len(words)), np.arange(len(words))  # two of them share a key: none is said to equal another
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[twins]


def _words(rows: NDArray[Any]) -> NDArray[np.uint64]:
    """The bytes of rows (n, d), filled up with zeros, as (n, w)."""
    stored = np.ascontiguousarray(rows).view(np.uint8)
    padding = -stored.shape[1] % 8
    return (np.pad(stored, ((0, 0), (0, padding))) if padding else stored).view(np.uint64)


def _keys(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A number for each row of words (n, w), the same for equal rows and hardly ever for others."""
    factors = np.random.default_rng(0).integers(0, 1 << 64, words.shape[1], dtype=np.uint64) | np.uint64(1)
    # A product forgets what highest bits said, and those are all that small whole numbers have in each half of a word.
    mixed = words ^ words >> _SHIFT
    mixed *= _SPREAD
    mixed ^= mixed >> _SHIFT
    return np.asarray(mixed @ factors)


_RANK_CUT = 1e-12  # of the largest eigenvalue of X'X with columns of norm 1: the rest is rounding


def whitening(moments: Floats) -> tuple[Floats, Floats]:
    """W and V, (d, r), with W' moments W = 1 and V W' = 1 on the span of the rows; `moments` (d, d) has rank r.

    Columns are scaled to norm 1 first, so that units do not decide which directions are rounding errors. W W' is the
    pseudo-inverse of least norm in units of each column's.

    Examples:
        >>> rows = np.random.default_rng(0).normal(size=(9, 2)) @ [[1.0, 0.0, 2.0], [0.0, 30.0, 0.0]]  # of rank 2
        >>> whiten, unwhiten = whitening(rows.T @ rows)
        >>> whiten.shape, np.allclose(rows @ whiten @ unwhiten.T, rows)
        ((3, 2), True)
    """
    norms = np.sqrt(np.maximum(np.diag(moments), 0.0))
    scale = np.where(norms > 0, norms, 1.0)
    values, vectors = np.linalg.eigh(moments / np.outer(scale, scale))
    kept = values > _RANK_CUT * values[-1]
    root = np.sqrt(values[kept])
    return vectors[:, kept] / root / scale[:, None], vectors[:, kept] * root * scale[:, None]


def contrasts(classes: int) -> Floats:
    """Basis B, shape (C, C-1), of the vectors that sum to zero: B'B = I, B'1 = 0, B B' = I - 11'/C.

    Column j compares class j+1 with the mean of the classes before it (Helmert contrasts). Differences of
    vote shares and softmax minimisers lie in this space, so noise needs only C-1 coordinates per feature.
    Raises `InputError` for fewer than 2 classes.

    Examples:
        >>> contrasts(3).round(4)
        array([[-0.7071, -0.4082],
               [ 0.7071, -0.4082],
               [ 0.    ,  0.8165]])
    """
    if classes < 2:
        raise InputError(f"classes must be at least 2, got {classes}")
    j = np.arange(1, classes)
    basis = np.where(np.arange(classes)[:, None] < j, -1.0, 0.0)
    basis[j, j - 1] = j
    return basis / np.sqrt(j * (j + 1.0))


def contrast_rounding(classes: int) -> float:
    """Relative error of B'v in double precision, v in R^C: |fl(B'v) - B'v| <= `contrast_rounding` |v|.

    Entries of B err by at most 4 u and sums of C products by (C + 2) u, u = 2^-53, in each of C-1 coordinates.
    """
    return (classes + 8) * math.sqrt(classes) * 2.0**-53


_LARGEST = (32 << 20) - (64 << 10)  # just below what glibc takes into account


@cache
def keep_freed_memory() -> None:
    """Let this process reuse the memory of arrays up to 32 MiB that it has freed, up to twice as much at a time.

    By default glibc returns large freed blocks to the system at once, and fetching their pages again can cost several
    times what is done with the votes in them. It raises its thresholds to the largest block that it has seen freed
    (mallopt(3), "dynamic mmap threshold"): this frees one that was never touched. Elsewhere it does nothing.
    """
    np.empty(_LARGEST, dtype=np.uint8)


def within_norm(rows: Floats, l1_bound: float | None = None) -> Floats:
    """Rows (n, d) with those longer than 1 cut to norm 1, and where there is a bound to that L1 norm as well.

    Examples:
        >>> within_norm(np.array([[3.0, 4.0], [0.3, 0.4]]))
        array([[0.6, 0.8],
               [0.3, 0.4]])
    """
    with np.errstate(over="ignore"):  # a row of infinite norm becomes zeros
        longer = np.maximum(np.sqrt(np.einsum("nd,nd->n", rows, rows)), 1.0)
        if l1_bound is not None:
            longer = np.maximum(longer, np.abs(rows).sum(axis=1) / l1_bound)
    shortened: Floats = rows / longer[:, None]
    return shortened


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
