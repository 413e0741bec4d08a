"""Released linear models: a file (`model_files`) with `weights_e` (draws, C, d) for each release e."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from aggregator.learners.linear_odd.catalogue import loss
from aggregator.learners.linear_odd.losses import SymmetricProper
from aggregator.releases.model_files import Arrays, ReleasedFile
from federation.contract.errors import InputError
from federation.contract.npz_files import NpzFile

_TWO = 2  # classes


class ReleasedModels(ReleasedFile[np.ndarray]):
    """Linear models of classes; the release of each epsilon is the weights (draws, C, d) of its draws."""

    kind: ClassVar[str | None] = None
    what: ClassVar[str] = "a released linear model"
    predicts: ClassVar[Literal["classes", "numbers", "ratios"]] = "classes"

    @property
    def weights(self) -> tuple[np.ndarray, ...]:
        """The weights (draws, C, d) of each release."""
        return self.releases

    def scores(self, rows: np.ndarray, epsilon_index: int, draw: int) -> np.ndarray:
        """Class scores (n, C) of raw rows (n, columns) by one release."""
        return np.asarray(self.feature_maps[epsilon_index].transform(rows) @ self.weights[epsilon_index][draw].T)

    def predicted(self, release: int, draw: int, rows: np.ndarray) -> np.ndarray:
        """Class codes (n,), ties going to the first."""
        return np.asarray(self.scores(rows, release, draw).argmax(axis=1))

    def probabilities(self, release: int, draw: int, rows: np.ndarray) -> np.ndarray | None:
        """Probabilities (n, 2) that the scores stand for, of two classes by a proper loss; None elsewhere."""
        if self.proper_loss is None:
            return None
        second = _proper(self.proper_loss).probability(self.decided(release, draw, rows))
        return np.column_stack([1 - second, second])

    def _require_whole(self) -> None:
        super()._require_whole()
        if self.proper_loss is not None:
            if len(self.classes) != _TWO:
                raise InputError(f"a proper loss is for two classes, and it has {len(self.classes)}")
            _proper(self.proper_loss)

    def decided(self, release: int, draw: int, rows: np.ndarray) -> np.ndarray:
        """Class scores (n, C); of two classes how far the second is ahead (n,)."""
        scores = self.scores(rows, release, draw)
        return np.asarray(scores[:, 1] - scores[:, 0]) if scores.shape[1] == _TWO else scores

    @classmethod
    def gathered(cls, models: Sequence[Any]) -> np.ndarray:
        """From the weights (C, d) of each draw."""
        return np.stack(models)

    def _packed(self) -> tuple[Arrays, dict[str, Any]]:
        return {f"weights_{number}": weights for number, weights in enumerate(self.weights)}, {}

    @classmethod
    def _unpacked(cls, description: dict[str, Any], stored: NpzFile) -> tuple[np.ndarray, ...]:
        found = tuple(stored[f"weights_{number}"] for number in range(len(stored["epsilon"])))
        classes = len(description["classes"])
        for weights in found:
            if weights.dtype.kind != "f" or weights.shape[1:-1] != (classes,) or not np.isfinite(weights).all():
                raise ValueError(f"it must have finite weights (draws, {classes}, features)")
        return found


def _proper(name: str) -> SymmetricProper:
    """The loss of that name. Raises `InputError` unless its scores stand for probabilities."""
    found = loss(name)
    if not isinstance(found, SymmetricProper):
        raise InputError(f"scores of the loss '{name}' stand for no probabilities")
    return found
