"""The noisy sum X'y of public rows times private labels, with noise in the shape that costs least squares least.

One replaced label of a range of width Delta moves X'y by up to Delta x_i. Noise of covariance proportional to C hides
that move when x_i' C^{-1} x_i <= 1 for all rows. It costs tr (X'X)^{-1} C of excess risk, which is the trace of C in
whitened coordinates z = (X'X)^{-1/2} x.

`shape="optimal"` takes the C of least trace (`smallest_trace`), "whitened" the ball in whitened coordinates, and
"isotropic" the ball in the coordinates of the rows. Rows are public, so shapes are too.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Check
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels.mechanism import PUBLIC_ROWS, LabelRange
from federation.mechanisms.noise.additive import AdditiveMechanism, Noise, OnAdditive, summation_error
from federation.mechanisms.noise.additive import calibrate as calibrate_additive
from federation.mechanisms.noise.mechanism import Parameters, require_whole
from federation.numerics.rows import Floats, whitening

Rows = NDArray[np.floating[Any]]  # of any precision, in memory or mapped from a file
ShapeKind = Literal["optimal", "whitened", "isotropic"]

_TOLERANCE = 1e-2  # relative distance of the optimal shape's trace to the least one
_REGULAR = 1e-3  # of the mean square of the rows' coordinates, for directions that these rows lack
_MOST_STEPS = 2.0**52  # of the noise's grid, in a sum
_LONGER = 1e-9  # by so much may a row's norm exceed 1 after the transform; charged


@dataclass(frozen=True, eq=False)
class Shape:
    """Public rows x (d,) become u = x transform (r,) of norm 1 at most; X'y = back U'y.

    `trace` is that of the unit noise in whitened coordinates: independent noise of variance v on each coordinate of U'y
    costs v trace / n of excess risk. None of this kind has less than `lower_bound`. Both arrays are (d, r).
    """

    transform: Floats
    back: Floats
    trace: float
    lower_bound: float


def fit_shape(rows: Rows, shape: ShapeKind = "optimal", *, moments: Floats | None = None) -> Shape:
    """The shape of noise that hides any row's label; of rank r, with constant or doubled columns left out.

    `rows` (n, d), public and finite, in memory or mapped from a file: they are read block by block. `moments` (d, d) is
    the sum of x x' that a regression will use where that has more rows than these; a party with rows of its own may
    shape its noise by them. The trace of "optimal" is within 1 % of the least one. Raises `InputError` for rows of
    another shape, NaN or infinities (in their squares, too), an unknown shape, or rows that are all zero.

    Examples:
        >>> rows = np.random.default_rng(1).normal(size=(200, 4)) * [1, 1, 1, 30]
        >>> [round(fit_shape(rows, shape).trace, 1) for shape in ("optimal", "whitened", "isotropic")]
        [0.3, 0.4, 114.9]
    """
    if shape not in get_args(ShapeKind):
        raise InputError(f"shape must be one of {', '.join(get_args(ShapeKind))}, got {shape!r}")
    rows = np.asanyarray(rows)
    if rows.ndim != 2 or 0 in rows.shape:
        raise InputError(f"rows must have shape (n, d), n and d >= 1, got {rows.shape}")
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        own = sum((block.T @ block for block in _blocks(rows)()), np.zeros((rows.shape[1],) * 2))
    moments = own if moments is None else np.asarray(moments, dtype=np.float64)
    if not np.all(np.isfinite(own)):
        raise InputError(
            "rows must be finite, and so must the sum of their squares, got NaN or infinity; fill in or leave out what "
            "is missing, and rescale what is huge"
        )
    if not own.any():
        raise InputError("rows must not all be zero: there is nothing to learn from them")
    whiten, unwhiten = whitening(moments)
    if shape == "optimal":
        inner = whiten.T @ own @ whiten
        regular = inner + _REGULAR * np.trace(inner) / len(inner) * np.eye(len(inner))
        found = smallest_trace(_blocks(rows, whiten), regular, _TOLERANCE)
        scaled = np.linalg.pinv(found.factor).T
        transform, back, bound = whiten @ scaled, unwhiten @ found.factor, found.lower_bound
    else:
        basis = np.linalg.qr(unwhiten)[0] if shape == "isotropic" else None
        transform, back = (whiten, unwhiten) if basis is None else (basis, basis)
        bound = 0.0
    longest = max(float(np.square(u).sum(axis=1).max()) for u in _blocks(rows, transform)()) ** 0.5
    transform, back = transform / longest, back * longest
    trace = float(np.square(whiten.T @ back).sum())
    return Shape(transform, back, trace, bound or trace)


@dataclass(frozen=True, eq=False)
class LabelSums(OnAdditive):
    """X'y of n public rows, (epsilon, delta)-private for one label; delta is 0 for pure noise (L2-Gamma).

    The noise is added to U'(y - middle) on a public grid; the rest is public arithmetic.
    """

    shape: Shape
    labels: LabelRange
    rows: int
    additive: AdditiveMechanism

    @property
    def name(self) -> str:
        """The mechanism's name in its guarantee."""
        return f"label_sums_{self.additive.name}"

    @property
    def parameters(self) -> dict[str, float | int | str]:
        """Public numbers of the mechanism, as its guarantee lists them."""
        own: Parameters = {"low": self.labels.low, "high": self.labels.high, "rows": self.rows}
        return {**self.additive.parameters, **own, "trace": self.shape.trace}

    def release(self, rows: Rows, labels: Floats, bits: NoiseBits, draws: int = 1) -> Floats:
        """`draws` noisy X'y, shape (draws, d) float64.

        Raises `InputError` unless there are `self.rows` rows of the width of the shape, none of them outside it, and
        as many labels; and as `LabelRange.checked`.
        """
        rows = np.asanyarray(rows)
        if rows.shape != (self.rows, len(self.shape.transform)) or len(labels) != self.rows:
            raise InputError(
                f"rows must have shape ({self.rows}, {len(self.shape.transform)}) and labels as many entries, "
                f"got {rows.shape} and {len(labels)}"
            )
        centred = self.labels.checked(labels) - self.labels.middle
        total = np.zeros(self.shape.transform.shape[1])
        whole, start = np.zeros_like(total), 0
        for block in _blocks(rows, self.shape.transform)():
            if not np.square(block).sum(axis=1).max() <= (1 + _LONGER) ** 2:
                raise InputError("rows must be those that the noise was shaped for, and some lie outside; fit it again")
            total += centred[start : start + len(block)] @ block
            whole += block.sum(axis=0)
            start += len(block)
        noisy = self.additive.release(total, bits, draws)
        return (noisy + self.labels.middle * whole) @ self.shape.back.T

    def variance(self) -> float:
        """Of the noise in each of the r coordinates of U'y (of the continuous law for Gaussian noise)."""
        return self.additive.variance()

    def covariance(self) -> Floats:
        """Of the noise in X'y, (d, d)."""
        return self.variance() * self.shape.back @ self.shape.back.T

    def excess(self, rows: int | None = None) -> float:
        """Expected excess risk by the noise: squared error per row of a least squares fit on `rows`, by default n."""
        return self.variance() * self.shape.trace / (self.rows if rows is None else rows)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the guarantee rests on, and how each premise is kept."""
        shaped = Assumption("no public row is longer than 1 in the coordinates that get the noise", Check.CHECKED)
        return PUBLIC_ROWS, self.labels.assumption, shaped, *self.additive.assumptions


def calibrate(
    shape: Shape, noise: Noise, *, rows: int, epsilon: float, delta: float = 0.0, labels: LabelRange
) -> LabelSums:
    """The least noise of a shape that makes the sum over `rows` public rows (epsilon, delta)-private for one label.

    `noise`: "gaussian", or "pure" at delta 0. Charged beyond the range's width: rows that rounding makes longer than 1,
    and summation in double precision, whose error for each neighbour is below (n + 2) 2^-53 sum_i |u_i| Delta/2 <=
    (n + 2) n 2^-54 Delta (Higham 2002, Section 3.1). Raises `InputError` as
    `federation.mechanisms.noise.additive.calibrate`.

    Examples:
        >>> rows = np.random.default_rng(1).normal(size=(200, 4))
        >>> labels = LabelRange(-1.0, 1.0)
        >>> noise = calibrate(fit_shape(rows), "gaussian", rows=200, epsilon=1.0, delta=1e-5, labels=labels)
        >>> noise.release(rows, np.sign(rows[:, 0]), NoiseBits(1, "example")).shape
        (1, 4)
        >>> noise.excess()
        0.07756
    """
    require_whole("rows", rows, 1)
    sensitivity = labels.width * (1 + _LONGER + summation_error(rows))
    dimension = shape.transform.shape[1]
    additive = calibrate_additive(noise, sensitivity=sensitivity, dimension=dimension, epsilon=epsilon, delta=delta)
    # Refused here, by public numbers: a release that fails because of its value would tell of labels.
    if rows * sensitivity > additive.step * _MOST_STEPS:
        raise InputError(
            f"a sum over {rows} rows does not fit the grid of noise as little as epsilon={epsilon:g} needs; lower "
            "epsilon or use fewer rows"
        )
    return LabelSums(shape, labels, rows, additive)


def _blocks(rows: Rows, transform: Floats | None = None) -> Callable[[], Iterator[Floats]]:
    """Iterates over blocks of rows in double precision, transformed."""

    def blocks() -> Iterator[Floats]:
        for start in range(0, len(rows), BLOCK):
            block = np.asarray(rows[start : start + BLOCK], dtype=np.float64)
            yield block if transform is None else block @ transform

    return blocks


BLOCK = 2**15  # rows at a time: a copy of so many is all that is ever made
_ALL = 4096  # rows that are kept in memory and weighted directly; of more, only those that matter
_STEPS = 400  # multiplicative steps between two passes over all rows
_PASSES = 40
_SPREAD = 0.25  # part of the tolerance that goes into a little weight for every row, which keeps M regular

RowBatches = Callable[[], Iterator[Floats]]  # the same blocks of rows, each (b, r), whenever it is called


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """C = factor factor', (r, r); no feasible one has a trace below `lower_bound` = trace / (1 + gap)."""

    factor: Floats
    trace: float
    lower_bound: float


def smallest_trace(rows: RowBatches, moments: Floats, tolerance: float) -> Ellipsoid:
    """C with z' C^{-1} z <= 1 (up to rounding) for all rows and a trace within `tolerance` of the least one, relative.

    C is the ellipsoid of least trace around the rows: the shape of the cheapest noise that hides any one of them.

        minimise tr C  subject to  z' C^{-1} z <= 1 for every row z.

    The Lagrange dual is (max over weights p on the simplex of tr M(p)^{1/2})², M(p) = sum_i p_i z_i z_i'. Any p gives
    the feasible C = g M^{1/2}, g = max_i z_i' M^{-1/2} z_i. So g / tr M^{1/2} >= 1 certifies how far C is from the
    optimum. The problem is that of the optimal factorisation of Edmonds, Nikolov, Ullman 2020, for one query a row. The
    weights are an optimal design in the sense of Kiefer 1974 for the criterion tr M^{1/2}.

    `rows()` iterates over blocks (b, r), n >= 1 rows in all. `moments` (r, r) is their sum of z z', or near it: it must
    be positive definite, and a small multiple of it keeps C so. With many rows the weights live on a few of them: each
    pass over all adds those that stick out farthest. Where passes run out first, the bounds say what was reached.

    Examples:
        >>> rows = np.array([[3.0, 0.0], [0.0, 1.0]])
        >>> found = smallest_trace(lambda: iter([rows]), rows.T @ rows, tolerance=1e-2)
        >>> (found.factor @ found.factor.T).round(2)  # 9 in the first direction only
        array([[9.  , 0.  ],
               [0.  , 1.01]])
        >>> round(found.lower_bound, 2), round(found.trace, 2)
        (10.0, 10.01)
    """
    r = len(moments)
    chosen, count = _first(rows, 4 * r)
    weights = np.square(chosen).sum(axis=1)
    weights /= weights.sum()
    even = moments / count
    for _ in range(_PASSES):
        weights = _weigh(chosen, weights, even, tolerance)
        values, vectors = _spectrum(chosen, weights, even, tolerance)
        whiten = vectors * values**-0.25
        trace = np.sqrt(values).sum()
        largest, outside = _farthest(rows, whiten, (1 + tolerance / 2) * trace, 4 * r)
        if largest <= (1 + tolerance) * trace:
            break
        kept = weights > 1e-9 * weights.max()
        share = 0.1 / (len(outside) + 1)
        chosen = np.concatenate([chosen[kept], outside])
        weights = np.concatenate([weights[kept] * (1 - share * len(outside)), np.full(len(outside), share)])
    factor = vectors * (values**0.25 * np.sqrt(largest))
    alone = np.linalg.eigvalsh((chosen.T * weights) @ chosen)  # a bound from weights on rows and nothing else
    return Ellipsoid(factor, float(largest * trace), float(np.sqrt(np.maximum(alone, 0.0)).sum() ** 2))


def _weigh(chosen: Floats, weights: Floats, even: Floats, tolerance: float) -> Floats:
    """Weights on the chosen rows that nearly maximise tr M^{1/2}.

    p_i becomes proportional to p_i (z_i' M^{-1/2} z_i)^2: for orthogonal rows one step is the solution. Where it should
    overshoot, the exponent 1, which never lowers the maximum (Yu 2010), takes its place.
    """
    power, best, last = 2.0, weights, -np.inf
    for _ in range(_STEPS):
        values, vectors = _spectrum(chosen, weights, even, tolerance)
        reached = np.sqrt(values).sum()
        if reached < last:
            power, weights = 1.0, best
            values, vectors = _spectrum(chosen, weights, even, tolerance)
            reached = np.sqrt(values).sum()
        best, last = weights, reached
        distance = np.square(chosen @ (vectors * values**-0.25)).sum(axis=1)
        if distance.max() <= (1 + tolerance / 2) * reached:
            break
        weights = weights * (distance / reached) ** power
        weights /= weights.sum()
    return best


def _spectrum(chosen: Floats, weights: Floats, even: Floats, tolerance: float) -> tuple[Floats, Floats]:
    """Eigenvalues and eigenvectors of M, to which all rows together contribute a small fixed share."""
    spread = _SPREAD * tolerance
    values, vectors = np.linalg.eigh((1 - spread) * (chosen.T * weights) @ chosen + spread * even)
    return np.maximum(values, np.finfo(float).tiny), vectors


def _first(rows: RowBatches, wanted: int) -> tuple[Floats, int]:
    """All rows where they are few, else the longest and some at regular distances; and how many there are."""
    count = sum(len(block) for block in rows())
    if count <= _ALL:
        return np.concatenate(list(rows())), count
    every = max(1, count // wanted)
    regular, start = [], 0
    for block in rows():
        regular.append(block[-start % every :: every])
        start += len(block)
    identity = np.eye(regular[0].shape[1])
    longest = _farthest(rows, identity, 0.0, wanted)[1]
    return np.concatenate([*regular, longest]), count


def _farthest(rows: RowBatches, whiten: Floats, least: float, most: int) -> tuple[float, Floats]:
    """The largest |whiten' z|² of all rows, and the rows, `most` at most, where it is largest and above `least`."""
    largest, kept, lengths = 0.0, np.empty((0, len(whiten))), np.empty(0)
    for block in rows():
        length = np.square(block @ whiten).sum(axis=1)
        largest = max(largest, float(length.max(initial=0.0)))
        above = np.flatnonzero(length > least)
        kept = np.concatenate([kept, block[above]])
        lengths = np.concatenate([lengths, length[above]])
        if len(lengths) > most:
            top = np.argpartition(lengths, -most)[-most:]
            kept, lengths = kept[top], lengths[top]
    return largest, kept
