"""Rows that stand several times in an array: what depends on a row alone need be computed once for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from federation.numerics.arrays import Integers

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
