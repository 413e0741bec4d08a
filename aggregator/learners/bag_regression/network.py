"""A neural regression learned from weighted sums of the labels of bags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from aggregator.learners.bag_regression.perceptron import Perceptron
from aggregator.learners.bag_regression.training import ReleasedBags, train
from aggregator.learners.bag_regression.validation import checked_bags, checked_range, checked_rows, column_scaling
from aggregator.learners.inputs.feature_names import remember_names, require_same_names
from aggregator.learners.inputs.validation import require_integer, require_number, shaped
from federation.contract.errors import FederationError, InputError
from federation.contract.randomness import generator
from federation.numerics.rows import keep_freed_memory

_TILE = 8192  # rows scaled or predicted at a time
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
        parameters_: (P,) float32, see `aggregator.learners.bag_regression.perceptron`.
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

    def _network(self) -> Perceptron:
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
