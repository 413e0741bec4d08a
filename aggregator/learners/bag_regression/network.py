"""A neural regression learned from weighted sums of the labels of bags.

The network has fully connected ReLU layers and one linear output, with its gradient on plain arrays. Training minimises
the squared bag loss by Adam and stops early on released bags. The checks of rows, bags and sums, and the scaling of
rows, are here as well.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from aggregator.learners.inputs.validation import (
    finite,
    remember_names,
    require_integer,
    require_number,
    require_same_names,
    shaped,
)
from federation.contract.errors import FederationError, InputError
from federation.contract.randomness import generator
from federation.numerics.rows import keep_freed_memory

_TILE = 8192  # rows looked at together
# rows scaled or predicted at a time
_ROWS_PER_STEP, _BAGS_PER_STEP = 1024, 16


@dataclass(eq=False, repr=False)
class BagNetwork(RegressorMixin, BaseEstimator):  # type: ignore[misc, unused-ignore]
    """A ReLU network f that minimises (1/(mk)) sum_j (sum_i w_i f(x_i) - s_j)^2 (Brahmbhatt et al. 2023, Appendix K).

    Knows only what was released: rows with public features, their bags and weights, and the (noisy) weighted label
    sums s_j; so do its scaling of the rows and its choice of when to stop. Labels are scaled from the declared range,
    onto which predictions are projected. Trained in single precision by Adam; equal data, seed, machine and number of
    threads give equal bits.

    Parameters:
        label_range: lowest and highest label, declared publicly and never taken from the labels.
        hidden: widths of the hidden layers.
        epochs: largest number of passes over the bags; learning rates decay as a cosine over so many, from
            `learning_rate` to `alpha` times it.
        batch_size: of one step, counted in bags; with `batch_unit` "rows" as the paper counts, in rows, rounded down to
            whole bags but at least one (8,192 for the census, 1,024 for Criteo). A batch of so many rows holds the
            fewer bags the larger they are, so that large bags get more steps. None means 16 bags or those of 1,024
            rows, whichever are more.
        validation: share of the bags that are held out, at random, to decide when to stop; 0 for none.
        patience: stop after so many epochs in a row without a smaller loss of the held out bags; None never.
        restore_best: keep the parameters of the smallest such loss; the paper does not say that it did.
        average: average the parameters over the last steps, which helps where sums are few; the paper does not.
        seed: of the initial parameters, the held out bags and the order of the bags. It may be public.

    Attributes:
        parameters_: (P,) float32, see `aggregator.learners.bag_regression.network`.
        centre_, scale_: of the rows (d,).
        losses_: the bag losses of training and held out bags (epochs, 2), in squared units of the label.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> rows = rng.normal(size=(4000, 2))
        >>> bags, signs = rng.permutation(4000).reshape(1000, 4), rng.choice([-1.0, 1.0], size=(1000, 4))
        >>> labels = np.abs(rows[:, 0])
        >>> sums = (signs * labels[bags]).sum(axis=1)
        >>> network = BagNetwork((0, 4), hidden=(16,), epochs=30, learning_rate=0.01).fit(rows, bags, signs, sums)
        >>> round(network.score(rows, labels), 1)
        1.0
    """

    name: ClassVar[str] = "network"
    fitted: ClassVar[tuple[str, ...]] = ("parameters_", "centre_", "scale_", "losses_")

    label_range: Sequence[float]
    hidden: Sequence[int] = (128, 64)
    epochs: int = 200
    batch_size: int | None = None
    batch_unit: Literal["bags", "rows"] = "bags"
    learning_rate: float = 1e-3
    alpha: float = 1e-3
    validation: float = 0.1
    patience: int | None = 3
    restore_best: bool = True
    average: bool = True
    seed: int = 0

    def fit(self, rows: np.ndarray, bags: np.ndarray, weights: np.ndarray, sums: np.ndarray) -> Self:
        """Learn from m released bags of k rows each.

        Args:
            rows: public rows (n, d), perhaps mapped from a file; those in bags are copied in single precision.
            bags: row numbers (m, k). The bags of several releases may share rows.
            weights: weights (m, k) of the rows, those that the sums were made with.
            sums: released sums of weighted labels (m,).

        Raises `InputError` for arrays or parameters that cannot be used, and `FederationError` when training diverges.
        """
        remember_names(self, [rows])
        rows, (bags, weights, sums) = checked_rows(rows), checked_bags(bags, weights, sums, len(rows))
        lowest, highest = checked_range(self.label_range)
        count, size = bags.shape
        batch, held_out = self._batch(size), self._held_out(count)
        keep_freed_memory()
        self.centre_, self.scale_ = column_scaling(rows)
        inputs = np.empty((bags.size, rows.shape[1]), dtype=np.float32)
        for start in range(0, bags.size, _TILE):
            inputs[start : start + _TILE] = self._scaled(rows[bags.ravel()[start : start + _TILE]])
        middle, half = (lowest + highest) / 2, (highest - lowest) / 2
        targets = (sums - middle * weights.sum(axis=1)) / half
        released = ReleasedBags(inputs.reshape(count, size, -1), weights.astype(np.float32), targets.astype(np.float32))
        with np.errstate(over="ignore", invalid="ignore"):  # what diverges is refused below
            trained = train(self._network(), released, held_out, batch, self, generator(self.seed, "network on bags"))
        if not np.isfinite(trained.parameters).all():
            raise FederationError(f"training diverged at learning_rate {self.learning_rate}; lower it")
        self.parameters_, self.losses_ = trained.parameters, trained.losses * half**2
        self.n_features_in_ = rows.shape[1]
        return self

    def fit_labels(self, rows: np.ndarray, labels: np.ndarray) -> Self:
        """Learn from one label (n,) per row (n, d): bags of one row with weight 1. Raises as `fit`."""
        labels = shaped(labels, "labels", (len(rows),), "one number for each row")
        return self.fit(rows, np.arange(len(rows))[:, None], np.ones((len(rows), 1)), labels)

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """Labels (n,) within the declared range, float64, of rows (n, d). Raises `InputError` for rows out of form."""
        check_is_fitted(self, "parameters_")
        require_same_names(self, rows)
        rows = checked_rows(rows, len(self.centre_))
        lowest, highest = checked_range(self.label_range)
        network, found = self._network(), np.empty(len(rows))
        for start in range(0, len(rows), _TILE):
            part = slice(start, start + _TILE)
            found[part] = network.outputs(self.parameters_, self._scaled(rows[part]))
        return np.clip((lowest + highest) / 2 + (highest - lowest) / 2 * found, lowest, highest)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Name and parameters as JSON values, and the fitted arrays; `from_arrays` is the inverse."""
        check_is_fitted(self, "parameters_")
        parameters = {**self.get_params(), "hidden": list(self.hidden), "label_range": list(self.label_range)}
        return {"estimator": self.name, "parameters": parameters}, {name: getattr(self, name) for name in self.fitted}

    @classmethod
    def from_arrays(cls, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """The network that `to_arrays` described. Raises `InputError` for arrays that do not fit it."""
        network = cls(**description["parameters"])
        for name in cls.fitted:
            setattr(network, name, np.asarray(arrays[name]))
        network.n_features_in_ = len(network.centre_)
        if network.parameters_.shape != (network._network().size,):
            raise InputError(
                f"a network of hidden layers {list(network.hidden)} on {network.n_features_in_} columns has "
                f"{network._network().size} parameters, got shape {network.parameters_.shape}"
            )
        return network

    def _network(self) -> "Perceptron":
        return Perceptron((len(self.centre_), *self.hidden, 1))

    def _scaled(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray((rows - self.centre_) / self.scale_, dtype=np.float32)

    def _held_out(self, bags: int) -> int:
        if not 0 <= self.validation < 1:
            raise InputError(f"validation, the share of bags held out, must lie in [0, 1), got {self.validation}")
        held_out = max(1, round(self.validation * bags)) if self.validation else 0
        if held_out >= bags:
            raise InputError(f"holding out {held_out} of {bags} bags leaves none to learn from; set validation to 0")
        return held_out

    def _batch(self, size: int) -> int:
        """Bags of `size` rows that make a step; refuses parameters that cannot be used."""
        require_integer("epochs", self.epochs, 1, 200)
        require_number("learning_rate", self.learning_rate, 1e-3)
        require_number("alpha", self.alpha, 1e-3)
        for width in self.hidden:
            require_integer("hidden, the width of a layer,", width, 1, 64)
        if self.patience is not None:
            require_integer("patience", self.patience, 1, 3)
        if self.batch_unit not in ("bags", "rows"):
            raise InputError(f"batch_unit must be 'bags' or 'rows', got {self.batch_unit!r}")
        batch = max(_BAGS_PER_STEP, _ROWS_PER_STEP // size)
        if self.batch_size is not None:
            require_integer("batch_size", self.batch_size, 1, _BAGS_PER_STEP)
            batch = self.batch_size if self.batch_unit == "bags" else max(1, self.batch_size // size)
        return batch


_FIRST, _SECOND, _LEAST = 0.9, 0.999, 1e-7  # decay of both moments, and what keeps their ratio finite
_DECAY = 8  # eta
_TRAINING_TILE = 1024  # rows whose activations stay in a core's own cache


def cosine_decay(step: int, steps: int, initial: float, alpha: float) -> float:
    """The learning rate of `step` 0..steps: from `initial` to alpha times it (Loshchilov and Hutter 2017, Eq. 5).

    Examples:
        >>> [round(cosine_decay(step, 4, initial=1.0, alpha=0.1), 3) for step in range(5)]
        [1.0, 0.868, 0.55, 0.232, 0.1]
    """
    return initial * (alpha + (1 - alpha) * 0.5 * (1 + math.cos(math.pi * min(step / steps, 1.0))))


class Adam:
    """Steps of Adam (Kingma and Ba 2015, Algorithm 1) on parameters (P,), which are changed in place.

    Examples:
        >>> parameters = np.array([1.0, -1.0])
        >>> Adam(parameters).step(np.array([10.0, -0.1]), rate=0.1)
        >>> parameters.round(3)  # both move by the rate
        array([ 0.9, -0.9])
    """

    def __init__(self, parameters: np.ndarray) -> None:
        self._parameters = parameters
        self._mean, self._square = np.zeros_like(parameters), np.zeros_like(parameters)
        self._steps = 0

    def step(self, gradient: np.ndarray, rate: float) -> None:
        """Moves the parameters by at most about `rate` each, against the `gradient` (P,)."""
        self._steps += 1
        self._mean += (1 - _FIRST) * (gradient - self._mean)
        self._square += (1 - _SECOND) * (gradient * gradient - self._square)
        size = rate / (1 - _FIRST**self._steps)
        spread = np.sqrt(self._square / (1 - _SECOND**self._steps))
        spread += _LEAST
        self._parameters -= size * self._mean / spread


@dataclass(frozen=True, eq=False)
class ReleasedBags:
    """What was released of m bags of k rows: `rows` (m, k, d), `weights` (m, k), and weighted label sums (m,)."""

    rows: np.ndarray
    weights: np.ndarray
    sums: np.ndarray


def bag_loss(
    network: "Perceptron",
    parameters: np.ndarray,
    bags: ReleasedBags,
    chosen: np.ndarray,
    gradient: np.ndarray | None = None,
) -> float:
    """(1/(Bk)) sum_j (sum_i w_i f(x_i) - s_j)^2 over the B `chosen` bags; its gradient (P,) is put into `gradient`.

    With independent weights of mean 0 and variance 1 its expectation is the mean over rows of (f(x) - y)^2, plus what
    the noise of the sums adds: with E w_i w_l = 0 the cross terms vanish (Brahmbhatt et al. 2023, Section 3.2).

    Examples:
        >>> released = ReleasedBags(np.array([[[1.0], [2.0]]]), np.array([[1.0, -1.0]]), np.array([3.0]))
        >>> bag_loss(Perceptron((1, 1)), np.array([2.0, 0.0]), released, np.array([0]))  # (2 - 4 - 3)^2 / 2
        12.5
    """
    size = bags.weights.shape[1]
    step = max(1, _TRAINING_TILE // size)
    if gradient is not None:
        gradient[:] = 0
    total = 0.0
    for start in range(0, len(chosen), step):
        part = chosen[start : start + step]
        weights = bags.weights[part]
        activations = network.activations(parameters, bags.rows[part].reshape(len(part) * size, -1))
        misses = np.einsum("jk,jk->j", weights, activations[-1].reshape(len(part), size)) - bags.sums[part]
        total += float(np.dot(misses, misses))
        if gradient is not None:
            slopes = weights * (misses * (2 / (size * len(chosen))))[:, None]
            network.add_gradient(gradient, parameters, activations, slopes.ravel())
    return total / float(size * len(chosen))


class Trained(NamedTuple):
    """Parameters (P,), and the mean bag losses of every epoch (epochs, 2): training, and validation (NaN without)."""

    parameters: np.ndarray
    losses: np.ndarray


def train(
    network: "Perceptron",
    bags: ReleasedBags,
    held_out: int,
    batch: int,
    options: BagNetwork,
    random: np.random.Generator,
) -> Trained:
    """Adam on the bag loss of all bags but `held_out` of them, chosen at random, with `batch` bags a step.

    How long, at which rates, and which parameters are kept say the `options` of `BagNetwork`; averages over the steps
    (see `averaged`) stand for the parameters in validation too. Training losses are those of the steps, before each.
    Equal arguments and generators give equal bits on one machine and number of threads.
    """
    parameters = network.initial(random)
    order = random.permutation(len(bags.sums))
    out, used = order[:held_out], order[held_out:]
    steps = -(-len(used) // batch) * options.epochs
    adam, gradient = Adam(parameters), np.empty_like(parameters)
    kept = parameters.copy() if options.average else parameters
    best, least, waited, step = kept.copy(), np.inf, 0, 0
    losses: list[tuple[float, float]] = []
    for _ in range(options.epochs):
        random.shuffle(used)
        total = 0.0
        for start in range(0, len(used), batch):
            chosen = used[start : start + batch]
            total += len(chosen) * bag_loss(network, parameters, bags, chosen, gradient)
            adam.step(gradient, cosine_decay(step, steps, options.learning_rate, options.alpha))
            step += 1
            if options.average:
                averaged(kept, parameters, step)
        held = bag_loss(network, kept, bags, out) if held_out else np.nan
        losses.append((total / len(used), held))
        if not held_out:
            continue
        waited += 1
        if held < least:
            best, least, waited = kept.copy(), held, 0
        if options.patience is not None and waited >= options.patience:
            break
    return Trained(best if held_out and options.restore_best else kept, np.array(losses))


def averaged(average: np.ndarray, parameters: np.ndarray, step: int) -> None:
    """Moves the average (P,) to include the parameters after `step` 1, 2, ...; the last ones count most.

    Polynomial decay averaging (Shamir and Zhang 2013, Section 4): step s of t has a weight proportional to
    s (s + 1) ... (s + eta - 1), so that about the last t / eta steps count.

    Examples:
        >>> average = np.zeros(1)
        >>> for step, value in enumerate([1.0, 2.0, 3.0], 1):
        ...     averaged(average, np.array([value]), step)
        >>> average.round(2)
        array([2.8])
    """
    average += (_DECAY + 1) / (step + _DECAY) * (parameters - average)


@dataclass(frozen=True)
class Perceptron:
    """f(x) = A_L relu(... relu(A_1 x + b_1) ...) + b_L, a number; `widths` are d, those of the hidden layers, and 1.

    Its parameters are one vector (P,), float32 or float64, in which everything is then computed.

    Examples:
        >>> network = Perceptron((2, 3, 1))
        >>> network.size
        13
        >>> network.outputs(network.initial(np.random.default_rng(0)), np.ones((1, 2), dtype=np.float32)).round(2)
        array([0.1], dtype=float32)
    """

    widths: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        """P, the number of parameters: all weights and biases."""
        return sum((inputs + 1) * outputs for inputs, outputs in zip(self.widths, self.widths[1:], strict=False))

    def layers(self, parameters: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Views of matrices (inputs, outputs) and biases (outputs,), first layer first."""
        found, start = [], 0
        for inputs, outputs in zip(self.widths, self.widths[1:], strict=False):
            middle, end = start + inputs * outputs, start + (inputs + 1) * outputs
            found.append((parameters[start:middle].reshape(inputs, outputs), parameters[middle:end]))
            start = end
        return found

    def initial(self, random: np.random.Generator) -> np.ndarray:
        """Random parameters (P,), float32: zero biases, matrices uniform in +-sqrt(6 / (inputs + outputs)).

        Glorot and Bengio 2010, Eq. 16.
        """
        parameters = np.zeros(self.size, dtype=np.float32)
        for matrix, _ in self.layers(parameters):
            matrix[:] = random.uniform(-1, 1, matrix.shape) * np.sqrt(6 / sum(matrix.shape))
        return parameters

    def activations(self, parameters: np.ndarray, rows: np.ndarray) -> list[np.ndarray]:
        """The rows (n, d), what every hidden layer makes of them (n, width), and the outputs (n, 1)."""
        found = [rows]
        layers = self.layers(parameters)
        for number, (matrix, bias) in enumerate(layers, start=1):
            values = found[-1] @ matrix
            values += bias
            if number < len(layers):
                np.maximum(values, 0, out=values)
            found.append(values)
        return found

    def outputs(self, parameters: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """f(x) of rows (n, d), shape (n,)."""
        return self.activations(parameters, rows)[-1][:, 0]

    def add_gradient(
        self, gradient: np.ndarray, parameters: np.ndarray, activations: list[np.ndarray], slopes: np.ndarray
    ) -> None:
        """Adds sum_i slopes_i grad f(x_i) to `gradient` (P,), given `activations` of n rows and `slopes` (n,)."""
        back = slopes[:, None]
        pairs = list(zip(self.layers(parameters), self.layers(gradient), strict=True))
        for number in reversed(range(len(pairs))):
            (matrix, _), (matrix_gradient, bias_gradient) = pairs[number]
            inputs = activations[number]
            matrix_gradient += inputs.T @ back
            bias_gradient += back.sum(axis=0)
            if number:
                back = back @ matrix.T
                back *= inputs > 0


_SAMPLE = 1 << 14  # rows that a scale is taken from


def checked_rows(rows: np.ndarray, columns: int | None = None) -> np.ndarray:
    """The rows (n, d) as they came, perhaps mapped from a file.

    Raises `InputError` unless they are finite numbers on two axes, none of them empty, with so many `columns` if given.

    Examples:
        >>> checked_rows([[1, 2], [3, 4]], columns=2).shape
        (2, 2)
    """
    rows = rows if isinstance(rows, np.ndarray) else np.asarray(rows)
    if rows.ndim != 2 or 0 in rows.shape or rows.dtype.kind not in "fiub":
        raise InputError(f"rows must be numbers of shape (rows, columns), got shape {rows.shape} of {rows.dtype}")
    if columns is not None and rows.shape[1] != columns:
        raise InputError(f"rows must have {columns} columns, as those of the bags had; got {rows.shape[1]}")
    for start in range(0, len(rows), _TILE):
        finite = np.isfinite(rows[start : start + _TILE]).all(axis=1)
        if not finite.all():
            row = start + int(np.argmin(finite))
            raise InputError(f"rows must be finite, row {row} (counted from 0) is not; remove or replace such values")
    return rows


def checked_bags(
    bags: np.ndarray, weights: np.ndarray, sums: np.ndarray, rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row numbers (m, k), weights (m, k) and sums (m,), the last two as float64.

    Raises `InputError` unless shapes agree, m, k >= 1, row numbers lie in 0..rows-1, and all are finite.
    """
    bags = np.asarray(bags)
    if bags.ndim != 2 or 0 in bags.shape or bags.dtype.kind not in "iu":
        raise InputError(f"bags must be row numbers of shape (bags, rows), got shape {bags.shape} of {bags.dtype}")
    if bags.min() < 0 or bags.max() >= rows:
        raise InputError(f"bags must hold row numbers from 0 to {rows - 1}, got {bags.min()} to {bags.max()}")
    weights = shaped(weights, "weights", bags.shape, "one number for each row of a bag")
    return bags, weights, shaped(sums, "sums", (len(bags),), "one number for each bag")


def checked_range(label_range: Sequence[float]) -> tuple[float, float]:
    """Lowest and highest label. Raises `InputError` unless they are finite and in that order.

    Examples:
        >>> checked_range([0, 10])
        (0.0, 10.0)
    """
    found = finite(label_range, "label_range")
    if found.shape != (2,) or not found[0] < found[1]:
        raise InputError(f"label_range must be the lowest and the highest label, as declared; got {label_range!r}")
    return float(found[0]), float(found[1])


def column_scaling(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centre (d,) and scale (d,) > 0 of rows (n, d): the median, and the root mean square of what differs from it.

    An indicator of 0 and 1 so keeps its values, up to a sign, however rare it is: dividing it by its standard deviation
    would make the rarest column the largest. Other columns are standardised, about the median. Of many rows at most
    16,384 are looked at, evenly spaced. A column that does not vary there has scale 1.

    Examples:
        >>> centre, scale = column_scaling(np.array([[0.0, 5.0], [0.0, 7.0], [0.0, 9.0], [1.0, 11.0]]))
        >>> centre.tolist(), scale.round(2).tolist()  # an indicator keeps its values
        ([0.0, 7.0], [1.0, 2.83])
    """
    sample = np.asarray(rows[:: -(-len(rows) // _SAMPLE)], dtype=np.float64)
    # The lower median is a value of the column, which that of two halves is not.
    centre = np.partition(sample, (len(sample) - 1) // 2, axis=0)[(len(sample) - 1) // 2]
    apart = sample - centre
    largest = np.abs(apart).max(axis=0)  # keeps squares within range
    apart /= np.where(largest > 0, largest, 1.0)
    count = np.count_nonzero(apart, axis=0)
    scale = largest * np.sqrt(np.square(apart).sum(axis=0) / np.maximum(count, 1))
    return centre, np.where(scale > 0, scale, 1.0)
