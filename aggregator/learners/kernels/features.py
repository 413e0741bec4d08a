"""Kernels that are inner products of explicit features: means of features stand for sets of any size.

`kernel` and `from_arrays` build kernels by name, and kernels and supports from the arrays in which they are stored.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, reduce
from typing import Any, ClassVar, NamedTuple

import numpy as np

from aggregator.learners.kernels.exact import (
    EnergyKernel,
    ExactSupport,
    GaussianKernel,
    Kernel,
    NegativeSquares,
    Support,
    some_rows,
    tiles,
)
from federation.contract.errors import InputError, nearest_name
from federation.features.steps import Fourier, waves
from federation.numerics.rows import Floats, Integers

_NEGLIGIBLE = 1e-10  # share of the largest eigenvalue below which a direction holds rounding errors only


class Moments(NamedTuple):
    """Of the features of one set of rows."""

    mean: Floats  # (D,)
    square: float  # mean |phi(x)|^2
    scatter: Floats | None  # sum (phi - mean)(phi - mean)' (D, D), where it was asked for


class FeatureKernel(Kernel):
    """k(x, y) = phi(x)'phi(y), phi(x) in R^D."""

    @abstractmethod
    def _tile_features(self, tile: Floats) -> Floats:
        """Features (t, D) of one tile (t, d)."""

    def _tile_sums(self, tile: Floats) -> tuple[Floats, float]:
        """Sum of the features (D,) of one tile (t, d), and of their squared norms."""
        return _sums(self._tile_features(tile))

    def features(self, rows: Floats) -> Floats:
        """Features (n, D) of rows (n, d), all in memory; the same bits as those that `mean` adds up."""
        return np.concatenate([self._tile_features(tile) for tile in tiles(rows, "rows", self._columns())])

    def mean(self, rows: Floats) -> Floats:
        """Mean features (D,) of rows (n, d), in O(D) memory."""
        return self.moments(rows).mean

    def moments(self, rows: Floats, scatter: bool = False, what: str = "rows") -> Moments:
        """Mean, mean square and, if asked for, the scatter of the features of rows (n, d), in one pass.

        O(D) memory beyond the rows, O(D^2) with the scatter. The sums run over tiles of 256 rows in order.
        """
        total, outer = np.zeros(1), np.zeros((1, 1))
        square, centre, count = 0.0, None, 0
        with np.errstate(over="ignore", invalid="ignore"):
            for tile in tiles(rows, what, self._columns()):
                count += len(tile)
                if not scatter:
                    sums = self._tile_sums(tile)
                else:  # about the mean of the first tile: squares about zero would cancel for rows far from it
                    features = self._tile_features(tile)
                    sums = _sums(features)
                    centre = sums[0] / count if centre is None else centre
                    features = features - centre
                    outer = outer + features.T @ features
                total, square = total + sums[0], square + sums[1]
        mean = np.asarray(total / count)
        if not np.isfinite(mean).all() or not np.isfinite(square):
            raise InputError(f"{what} must be small enough for finite features; rescale them")
        if centre is None:
            return Moments(mean, square / count, None)
        off = mean - centre
        return Moments(mean, square / count, outer - count * np.outer(off, off))

    def support(self, bags: Sequence[Floats], covariance: bool = False) -> "FeatureSupport":
        """Means of M bags, and their pooled covariance if asked for; the rows are not kept."""
        found: list[Moments] = []
        for i, bag in enumerate(bags):
            found.append(self.moments(bag, covariance, f"bag {i}"))
            if len(found[i].mean) != len(found[0].mean):
                raise InputError(f"bags must have equal numbers of columns; bag {i} has others than bag 0")
        if not found:
            raise InputError("bags must not be empty: at least one bag of rows is needed")
        means, squares, scatters = zip(*found, strict=True)
        scatter = reduce(np.add, scatters) if covariance else None
        return FeatureSupport(self, np.array([len(bag) for bag in bags]), np.stack(means), np.array(squares), scatter)

    def _columns(self) -> int | None:
        """Columns of the rows that the kernel is for; None for any."""
        return None


def _sums(features: Floats) -> tuple[Floats, float]:
    return np.ones(len(features)) @ features, float(np.einsum("nd,nd->", features, features))


@dataclass(frozen=True, eq=False)
class FeatureSupport(Support):
    """Sizes (M,), mean features (M, D), mean squares (M,), and the scatter within bags (D, D) if asked for."""

    kind: ClassVar[str] = "features"
    kernel: FeatureKernel
    sizes: Integers
    means: Floats
    squares: Floats
    scatter: Floats | None = None

    def gram(self) -> Floats:
        """Products of the means."""
        return self.means @ self.means.T

    def self_terms(self) -> Floats:
        """Mean squared norms of the features: 1 for normalised ones."""
        return self.squares

    def covariance(self) -> Floats:
        """Pooled covariance of the features within bags (D, D): the scatter over N - M, for N rows in M bags.

        Raises `InputError` where no bag has two rows, or the support was built without it.
        """
        freedom = int(self.sizes.sum()) - len(self.sizes)
        if self.scatter is None or freedom < 1:
            raise InputError(
                "a covariance within bags needs a support built with covariance=True and a bag of at least two rows, "
                f"got {int(self.sizes.sum())} rows in {len(self.sizes)} bags"
            )
        return self.scatter / freedom


@dataclass(frozen=True, eq=False)
class LinearKernel(FeatureKernel):
    """k(x, y) = x'y, for rows behind a feature map that ends in features of a kernel.

    Examples:
        >>> bags = [np.array([[1.0, 0.0], [3.0, 0.0]]), np.array([[0.0, 1.0]])]
        >>> support = LinearKernel().support(bags, covariance=True)
        >>> support.means
        array([[2., 0.],
               [0., 1.]])
        >>> support.gram()
        array([[4., 0.],
               [0., 1.]])
        >>> support.covariance()
        array([[2., 0.],
               [0., 0.]])
    """

    kind: ClassVar[str] = "linear"

    def _tile_features(self, tile: Floats) -> Floats:
        return tile


@dataclass(frozen=True, eq=False)
class FourierKernel(FeatureKernel):
    """phi(x) = [cos(x'F), sin(x'F)] / sqrt(D/2) with frequencies F (d, D/2); |phi(x)| = 1.

    With columns of F drawn from N(0, 2 gamma I), E phi(x)'phi(y) = exp(-gamma |x - y|^2), with a standard error of at
    most 1/sqrt(D) (Rahimi and Recht 2007; Sutherland and Schneider 2015 for pairs). The features of a row are those of
    the step `federation.features.steps.Fourier`, up to rounding: tiles of rows share one matrix product here.

    Examples:
        >>> drawn = FourierKernel.draw(columns=2, gamma=0.5, features=10_000, seed=0)
        >>> phi = drawn.features(np.array([[0.0, 0.0], [1.0, 1.0]]))
        >>> (phi @ phi.T).round(2)  # off the diagonal about exp(-1) = 0.37
        array([[1.  , 0.37],
               [0.37, 1.  ]])
    """

    kind: ClassVar[str] = "fourier"
    frequencies: Floats

    @classmethod
    def draw(cls, columns: int, gamma: float, features: int, seed: int) -> "FourierKernel":
        """D = `features` random features for rows with so many columns; refuses what `Fourier.draw` refuses."""
        return cls(Fourier.draw(columns, gamma, features, seed).frequencies)

    def _tile_features(self, tile: Floats) -> Floats:
        return np.hstack(waves(tile @ self.frequencies))

    def _tile_sums(self, tile: Floats) -> tuple[Floats, float]:
        """Without the features side by side, and with norms of 1: half the time."""
        ones = np.ones(len(tile))
        return np.concatenate([ones @ each for each in waves(tile @ self.frequencies)]), float(len(tile))

    def _columns(self) -> int:
        return len(self.frequencies)


@dataclass(frozen=True, eq=False)
class NystromKernel(FeatureKernel):
    """The Gaussian kernel, exact on the span of its landmarks (Williams and Seeger 2001). Built by `fit`.

    phi(x) = k(x, L) factor for landmarks L (l, d) and factor (l, D), factor factor' = K(L, L)^+; |phi(x)| <= 1. So
    phi(x)'phi(y) = k(x, L) K(L, L)^+ k(L, y), which is exp(-gamma |x - y|^2) where x or y is a landmark.

    Examples:
        >>> landmarks = np.array([[0.0], [1.0], [2.0]])
        >>> phi = NystromKernel.fit(landmarks, gamma=1.0, features=3, seed=0).features(np.array([[0.0], [2.0], [0.5]]))
        >>> (phi @ phi.T)[0].round(4)  # exp(-4) = 0.0183, exp(-1/4) = 0.7788
        array([1.    , 0.0183, 0.7788])
    """

    kind: ClassVar[str] = "nystrom"
    landmarks: Floats
    factor: Floats
    gamma: float

    @classmethod
    def fit(cls, rows: Floats, gamma: float, features: int, seed: int) -> "NystromKernel":
        """Landmarks drawn with a public seed among public rows (N, d): `features` of them, or all if there are fewer.

        D is the numerical rank of their kernel matrix, at most their number. Raises `InputError` unless gamma is
        positive and finite, `features` at least 1, the seed given, and the rows are finite numbers.
        """
        if not 0 < gamma < np.inf or features < 1 or seed is None:
            raise InputError(
                f"landmarks need gamma positive and finite, features from 1 and a public seed, got gamma {gamma}, "
                f"features {features}, seed {seed}"
            )
        landmarks = some_rows(rows, features, seed, "landmarks")
        squares = NegativeSquares(landmarks, gamma)
        kernel = squares.between(squares.left(landmarks))
        np.fill_diagonal(kernel, 0.0)
        values, vectors = np.linalg.eigh(np.exp((kernel + kernel.T) / 2))
        kept = values > _NEGLIGIBLE * values[-1]
        return cls(landmarks, vectors[:, kept] / np.sqrt(values[kept]), float(gamma))

    def _tile_features(self, tile: Floats) -> Floats:
        squares = self._squares.between(self._squares.left(tile))
        return np.exp(squares, out=squares) @ self.factor

    def _columns(self) -> int:
        return int(self.landmarks.shape[1])

    @cached_property
    def _squares(self) -> NegativeSquares:
        return NegativeSquares(self.landmarks, self.gamma)


KINDS = ("exact", "fourier", "nystrom", "energy", "linear")
WITH_BANDWIDTH = ("exact", "fourier", "nystrom")
_KERNELS = (GaussianKernel, EnergyKernel, FourierKernel, NystromKernel, LinearKernel)
_STORED: dict[str, type[Any]] = {kind.kind: kind for kind in (*_KERNELS, FeatureSupport, ExactSupport)}


def kernel(kind: str, rows: Floats, gamma: float = 1.0, features: int = 512, seed: int = 0) -> Kernel:
    """The kernel of that name for rows like the public `rows` (N, d).

    - "exact": exp(-gamma |x - y|^2). "energy": -|x - y|, exact too. "linear": x'y.
    - "fourier": `features` random features of the first, from the public seed.
    - "nystrom": approximation of the first by `features` landmarks drawn among `rows` with the public seed.

    Raises `InputError` for another name, and for gamma, features and rows as the kernels say.

    Examples:
        >>> import numpy as np
        >>> rows = np.random.default_rng(0).normal(size=(300, 2))
        >>> for kind in KINDS:
        ...     support = kernel(kind, rows, gamma=0.5, features=128).support([rows[:100], rows[100:]])
        ...     print(f"{kind:8}", support.gram()[0].round(3))
        exact    [0.347 0.339]
        fourier  [0.342 0.333]
        nystrom  [0.347 0.339]
        energy   [-1.703 -1.749]
        linear   [0.015 0.007]
    """
    if kind == "exact":
        return GaussianKernel(float(gamma))
    if kind == "fourier":
        return FourierKernel.draw(rows.shape[1], gamma, features, seed)
    if kind == "nystrom":
        return NystromKernel.fit(rows, gamma, features, seed)
    if kind not in KINDS:
        raise InputError(f"kernel '{kind}' is not known; allowed: {', '.join(KINDS)}" + nearest_name(kind, KINDS))
    return EnergyKernel() if kind == "energy" else LinearKernel()


def from_arrays(description: Mapping[str, Any], arrays: Mapping[str, Floats]) -> Any:
    """The kernel or support that `to_arrays` described; other arrays may be present. `InputError` for anything else.

    Examples:
        >>> import numpy as np
        >>> stored = GaussianKernel(0.5).support([np.ones((3, 2))]).to_arrays()
        >>> from_arrays(*stored).kernel
        GaussianKernel(gamma=0.5)
    """
    try:
        kind = _STORED[description["kind"]]
        return kind(**{field.name: _value(field.name, description, arrays) for field in fields(kind)})
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the description of a kernel cannot be read: {error!r}") from error


def _value(name: str, description: Mapping[str, Any], arrays: Mapping[str, Floats]) -> Any:
    """A field: an array, the object that a nested description stands for, or the described value itself."""
    if name not in description:
        return arrays[name]
    value = description[name]
    if not isinstance(value, Mapping):
        return value
    prefix = f"{name}_"
    return from_arrays(value, {key[len(prefix) :]: array for key, array in arrays.items() if key.startswith(prefix)})
