"""Released files of linear models, of fitted estimators, and of two-class networks (see `model_files`).

- `ReleasedModels`: a linear model has `weights_e` (draws, C, d) for each release e.
- `ReleasedEstimators`: an estimator has `array_n`, its fitted arrays. The description states, for each release and
  noise draw, the estimator's name, parameters and fitted values, and the number n of each fitted array.
- `ReleasedClassifiers`: a network for two classes, which also stores what earlier rounds had learned.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.special import expit

from aggregator.learners.linear_odd.losses import SymmetricProper, loss
from aggregator.releases.model_files import Arrays, ReleasedFile, kept_once
from federation.contract.errors import InputError
from federation.contract.npz_files import NpzFile
from federation.contract.randomness import digest
from federation.queries.marginals import Hypothesis

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


_LEARNER = "network"
_CLASSES = 2
_ASIDE = 0  # the number of a chosen hypothesis that no round has learned, such as a constant
Described = tuple[dict[str, Any], dict[str, np.ndarray]]


class ReleasedEstimators(ReleasedFile[tuple[Described, ...]]):
    """Estimators, each a JSON description and named arrays; the release of each epsilon is those of its draws."""

    kind: ClassVar[str]

    @classmethod
    def gathered(cls, models: Sequence[Any]) -> tuple[Described, ...]:
        """From the description and arrays of each draw."""
        return tuple(models)

    def _packed(self) -> tuple[Arrays, dict[str, Any]]:
        """Equal arrays are kept once."""
        arrays = [array for draws in self.releases for _, fitted in draws for array in fitted.values()]
        numbers, kept = kept_once([digest("", {"": array}) for array in arrays])
        remaining = iter(numbers)
        releases = [
            [{**known, "arrays": {name: next(remaining) for name in fitted}} for known, fitted in draws]
            for draws in self.releases
        ]
        return {f"array_{n}": arrays[first] for n, first in enumerate(kept)}, {"releases": releases}

    @classmethod
    def _unpacked(cls, description: dict[str, Any], stored: NpzFile) -> tuple[tuple[Described, ...], ...]:
        arrays = {name: stored[name] for name in stored if name.startswith("array_")}
        for name, array in arrays.items():
            if array.dtype.kind not in "biuf":
                raise ValueError(f"its array {name} must hold numbers, got {array.dtype}")

        def described(draw: dict[str, Any]) -> Described:
            known = {name: value for name, value in draw.items() if name != "arrays"}
            return known, {name: arrays[f"array_{number}"] for name, number in draw["arrays"].items()}

        return tuple(tuple(map(described, draws)) for draws in description["releases"])


class ReleasedClassifiers(ReleasedEstimators):
    """Hypotheses as `network` describes them; they take rows behind the release's feature map."""

    kind: ClassVar[str] = "classifier"
    what: ClassVar[str] = "a released classifier"
    predicts: ClassVar[Literal["classes", "numbers", "ratios"]] = "classes"

    @classmethod
    def load(cls, path: Path) -> Self:
        """Inverse of `save`. Raises `InputError` when the file is missing, not of this kind or not of two classes."""
        found = super().load(path)
        if len(found.classes) != _CLASSES:
            raise InputError(f"{path} is not {cls.what}: it has {len(found.classes)} classes, a hypothesis tells two")
        return found

    def rounds(self, release: int, draw: int) -> int:
        """Number of rounds that were planned."""
        return int(self._known(release, draw)[0]["rounds"])

    def hypotheses(self, release: int, draw: int) -> tuple[Hypothesis, ...]:
        """What each round has learned, at most `rounds` of them. Raises `InputError` where the file is damaged."""
        arrays = self._known(release, draw)[1]
        numbers = range(1, self.rounds(release, draw) + 1)
        return tuple(_hypothesis(arrays, number) for number in numbers if f"sizes_{number}" in arrays)

    def chosen(self, release: int, draw: int) -> Hypothesis:
        """The released classifier: that of a round, or another one. Raises `InputError` where the file is damaged."""
        description, arrays = self._known(release, draw)
        return _hypothesis(arrays, description["chosen"])

    def predict(self, release: int, draw: int, features: np.ndarray) -> np.ndarray:
        """Class codes (n,) by the chosen hypothesis for features (n, d). Raises `InputError`."""
        return self.chosen(release, draw).predict(features)

    def predicted(self, release: int, draw: int, rows: np.ndarray) -> np.ndarray:
        """Class codes (n,) of raw rows by the chosen hypothesis. Raises `InputError`."""
        return self.predict(release, draw, self.feature_maps[release].transform(rows))

    def decided(self, release: int, draw: int, rows: np.ndarray) -> np.ndarray:
        """The output (n,) of the chosen hypothesis, which says the second class where it is 0 or more."""
        return self.chosen(release, draw).scores(self.feature_maps[release].transform(rows))

    def probabilities(self, release: int, draw: int, rows: np.ndarray) -> np.ndarray | None:
        """The logistic function of the output, (n, 2); None for a constant, which knows nothing of rows.

        Hypotheses are trained by cross-entropy on shares of the second class, so that this is the share that they see
        in a row. It is as far off as the noise and the rounding of labels make it.
        """
        chosen = self.chosen(release, draw)
        if not chosen.parameters[:-1].any():
            return None
        second = expit(chosen.scores(self.feature_maps[release].transform(rows)))
        return np.column_stack([1 - second, second])

    def _known(self, release: int, draw: int) -> Described:
        description, arrays = self.releases[release][draw]
        if description.get("learner") != _LEARNER:
            raise InputError(
                f"the learner '{description.get('learner')}' of a released classifier is not known; update"
            )
        return description, arrays


def network(hypotheses: Sequence[Hypothesis], chosen: Hypothesis, rounds: int) -> Described:
    """What up to `rounds` rounds have learned, in their order, and the hypothesis that is to be used.

    Raises `InputError` for more hypotheses than rounds.

    Examples:
        >>> learned = Hypothesis.constant(2, 1)
        >>> description, arrays = network([learned], learned, rounds=3)
        >>> description, sorted(arrays)
        ({'learner': 'network', 'rounds': 3, 'chosen': 1}, ['parameters_1', 'sizes_1'])
    """
    if len(hypotheses) > rounds:
        raise InputError(f"{rounds} rounds cannot have learned {len(hypotheses)} hypotheses")
    numbered = dict(enumerate(hypotheses, 1))
    number = next((t for t, learned in reversed(numbered.items()) if learned is chosen), _ASIDE)
    if number == _ASIDE:
        numbered[_ASIDE] = chosen
    arrays = {}
    for t, learned in sorted(numbered.items()):
        arrays[f"sizes_{t}"], arrays[f"parameters_{t}"] = learned.sizes, learned.parameters
    return {"learner": _LEARNER, "rounds": rounds, "chosen": number}, arrays


def _hypothesis(arrays: dict[str, np.ndarray], number: int) -> Hypothesis:
    try:
        return Hypothesis(arrays[f"sizes_{number}"], arrays[f"parameters_{number}"])
    except KeyError as error:
        raise InputError(f"a released classifier lacks the array {error} of its hypothesis {number}") from error
