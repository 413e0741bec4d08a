"""Bags of rows, their weights, and which labels get noise: drawn from random bits alone, never from labels.

Everything comes from a ChaCha20 stream (`federation.contract.randomness.NoiseBits`), so equal keys give equal bags on
every machine. The caller decides whether the key is public or secret. Bags and weights that are published with the
labels' sums have a public key. Gaussian weights that are themselves the protection have a secret key. Noise must have
another key than published weights. Bags, weights and noisy rows of one release take their bits one after another, or
from a key each.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.numerics.rows import Booleans, Floats, Integers

_BLOCK = 1 << 20  # words at a time


def disjoint_bags(rows: int, count: int, size: int, bits: NoiseBits) -> Integers:
    """Row numbers (m, k), int64, of m = `count` disjoint bags of k = `size` of n = `rows` rows, uniform among all such.

    The rows of a bag are in random order. Takes 8 n bytes besides the result. Raises `InputError` unless m, k >= 1 and
    m k <= n.

    Examples:
        >>> disjoint_bags(rows=10, count=2, size=3, bits=NoiseBits(0, "example"))
        array([[2, 4, 6],
               [3, 1, 0]])
    """
    _require_shape(count, size)
    if count * size > rows:
        raise InputError(
            f"{count} disjoint bags of {size} rows need {count * size} rows, got {rows}; use fewer or smaller bags"
        )
    return permutation(rows, bits)[: count * size].reshape(count, size).copy()


def gaussian_weights(count: int, size: int, bits: NoiseBits) -> Floats:
    """Independent N(0, 1) weights (m, k), by inversion (Brahmbhatt et al. 2023, Figures 1 and 2).

    Raises `InputError` unless m, k >= 1.

    Examples:
        >>> gaussian_weights(1, 3, NoiseBits(0, "example")).round(3)
        array([[-0.459, -0.679, -2.977]])
    """
    from scipy.special import ndtri

    _require_shape(count, size)
    weights = np.empty(count * size)
    for start in range(0, len(weights), _BLOCK):
        words = bits.words(min(_BLOCK, len(weights) - start))
        # Midpoints of the 2^52 equal cells of (0, 1), never 0 or 1.
        weights[start : start + len(words)] = ndtri(((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52)
    return weights.reshape(count, size)


def sign_weights(count: int, size: int, bits: NoiseBits) -> Floats:
    """Independent weights -1 or 1 with equal chances, (m, k) float64. Raises `InputError` unless m, k >= 1.

    They estimate a loss as Gaussian weights do, and let every noisy label of a bag protect the others to the same
    degree, so they lose nothing where weights are published.

    Examples:
        >>> sign_weights(2, 4, NoiseBits(0, "example"))
        array([[ 1., -1., -1., -1.],
               [-1.,  1.,  1.,  1.]])
    """
    _require_shape(count, size)
    words = bits.words(-(-count * size // 64))
    drawn = np.unpackbits(words.view(np.uint8))[: count * size]
    return np.asarray((2.0 * drawn - 1.0).reshape(count, size), dtype=np.float64)


def noisy_count(share: float, rows: int) -> int:
    """|N|: `share` times `rows`, rounded half to even, with the share taken as the decimal number that it prints as.

    0.1 of 30 rows are 3 and 0.145 of 100 rows are 14, whatever binary fractions make of them. Raises `InputError` for a
    share outside (0, 1], and when the result is 0, as no label would have noise.

    Examples:
        >>> noisy_count(0.1, 30), noisy_count(0.145, 100)
        (3, 14)
    """
    if not 0 < share <= 1:
        raise InputError(f"rho, the share of labels that get noise, must lie in (0, 1], got {share}")
    count = round(Fraction(repr(float(share))) * rows)
    if count == 0:
        raise InputError(f"rho {share} of {rows} rows is no row at all, so no label would be protected; raise rho")
    return count


def noisy_rows(rows: int, noisy: int, bits: NoiseBits) -> Booleans:
    """Which of n rows get noise on their labels, (n,) bool with |N| = `noisy` true, uniform among all such sets.

    `noisy_count` says how many. Raises `InputError` unless 1 <= |N| <= n.
    """
    if not 1 <= noisy <= rows:
        raise InputError(f"between 1 and all {rows} rows must get noise on their labels, got {noisy}")
    chosen = np.zeros(rows, dtype=bool)
    chosen[permutation(rows, bits)[:noisy]] = True
    return chosen


def stratified_noise(count: int, size: int, noisy: int) -> Booleans:
    """Which rows of each of m bags get noise on their labels: exactly q = `noisy` in every bag, (m, k) bool.

    They are the first q, a uniform choice because `disjoint_bags` puts the rows of a bag in random order. No bag is
    without noise, which would reveal a label. Raises `InputError` unless m, k >= 1 and 1 <= q <= k.

    Examples:
        >>> stratified_noise(count=2, size=3, noisy=1)
        array([[ True, False, False],
               [ True, False, False]])
    """
    _require_shape(count, size)
    if not 1 <= noisy <= size:
        raise InputError(f"between 1 and all {size} rows of a bag must get noise on their labels, got {noisy}")
    return np.tile(np.arange(size) < noisy, (count, 1))


def permutation(rows: int, bits: NoiseBits) -> Integers:
    """The numbers 0..n-1 in uniform random order, int64, in place but for a block: 8 n bytes.

    Sorts random words with a row number in their low bits; rows whose random bits coincide are put in order by fresh
    words. Raises `InputError` for n < 1.
    """
    if rows < 1:
        raise InputError(f"the number of rows must be at least 1, got {rows}")
    width = np.uint64((rows - 1).bit_length())
    low = (np.uint64(1) << width) - np.uint64(1)
    keys = np.empty(rows, dtype=np.uint64)
    for start in range(0, rows, _BLOCK):
        part = keys[start : start + _BLOCK]
        np.bitwise_and(bits.words(len(part)), ~low, out=part)
        part |= np.arange(start, start + len(part), dtype=np.uint64)
    keys.sort()
    for first, last in _ties(keys, low):
        fresh = bits.words(last - first)
        keys[first:last] = keys[first:last][np.argsort(fresh, kind="stable")]
    keys &= low
    return keys.view(np.int64)


def _ties(keys: NDArray[np.uint64], low: np.uint64) -> list[tuple[int, int]]:
    """Ranges of sorted keys that agree in all but their `low` bits."""
    tied = [np.empty(0, dtype=np.intp)]
    for start in range(0, len(keys) - 1, _BLOCK):
        part = keys[start : start + _BLOCK + 1]
        tied.append(start + np.flatnonzero((part[1:] ^ part[:-1]) <= low))
    places = np.concatenate(tied)
    if not len(places):
        return []
    runs = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
    return [(int(run[0]), int(run[-1]) + 2) for run in runs if len(run)]


def _require_shape(count: int, size: int) -> None:
    if count < 1 or size < 1:
        raise InputError(f"there must be at least one bag of at least one row, got {count} bags of {size} rows")
