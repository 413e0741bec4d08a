"""Released classifiers of two classes that are networks, with what the rounds before had learned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
from scipy.special import expit

from aggregator.releases.released_estimators import Described, ReleasedEstimators
from federation.contract.errors import InputError
from federation.queries.marginals import Hypothesis

_LEARNER = "network"
_CLASSES = 2
_ASIDE = 0  # the number of a chosen hypothesis that no round has learned, such as a constant


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
