"""Parties of which some send what no honest party would: extreme, opposite and malformed answers."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from support import bagged, linear_labels, two_class_parties

from federation.contract.query import Question, Submission
from federation.queries.marginals import MarginalsQuestion
from federation.queries.row_sums import MomentQuestion
from parties.party_data.cohort import DroppedOut, Holdings


def _alternating(array: np.ndarray) -> np.ndarray:
    """Signs along the last axis."""
    return np.where(np.arange(array.shape[-1]) % 2, -1.0, 1.0)


class ExtremeBags(bagged.Parties):
    """Of the parties `hostile` the answers' field `name` is `largest` with alternating signs, and all else honest.

    Counts still sum to their bag's size, which may be `largest` itself.
    """

    def __init__(self, hostile: list[int], name: str, largest: float) -> None:
        super().__init__()
        self._hostile, self._name, self._largest = hostile, name, largest

    def sent(self, question: Question, submission: Submission) -> Submission:
        """The answers with those of the hostile parties replaced."""
        hostile = np.isin(submission.parties, self._hostile)
        arrays = {name: array.copy() for name, array in submission.arrays.items()}
        sizes = arrays["sizes"][hostile]
        if self._name == "sizes":
            arrays["sizes"][hostile] = self._largest
            if "counts" in arrays:
                arrays["counts"][hostile] *= (self._largest / sizes)[:, None, :, None]
        elif self._name in arrays:
            array = arrays[self._name]
            array[hostile] = self._largest * _alternating(array)
            if self._name == "counts":
                array[hostile, ..., -1] = 0
                array[hostile, ..., -1] = sizes[:, None] - array[hostile].sum(axis=-1)
        return replace(submission, arrays=arrays)


class ExtremeLabels(linear_labels.Parties):
    """Of the parties `hostile` every entry of the answers' field `name` is `factor` times the honest one, plus `more`.

    Where `signed`, signs alternate along the last axis.
    """

    def __init__(self, hostile: list[int], name: str, factor: float, more: float, signed: bool = False) -> None:
        super().__init__()
        self._hostile, self._name, self._factor, self._more, self._signed = hostile, name, factor, more, signed

    def sent(self, question: Question, submission: Submission) -> Submission:
        """The answers with those of the hostile parties replaced."""
        if self._name not in submission.arrays:
            return submission
        hostile = np.isin(submission.parties, self._hostile)
        array = submission.arrays[self._name].copy()
        signs = _alternating(array) if self._signed and array.ndim > 1 else 1.0
        array[hostile] = (self._factor * array + self._more * signs)[hostile]
        return replace(submission, arrays={**submission.arrays, self._name: array})


HONEST = 3  # parties, the first ones


def _each(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Submission], Submission]:
    """What changes every array of an answer."""
    return lambda sent: replace(sent, arrays={name: change(array) for name, array in sent.arrays.items()})


def _from(ids: Callable[[int], list[float]]) -> Callable[[Submission], Submission]:
    """The same answer of the parties of these ids, in place of one's own."""

    def repeated(sent: Submission) -> Submission:
        parties = np.array(ids(int(sent.parties[0])))
        return replace(_each(lambda array: np.repeat(array, len(parties), axis=0))(sent), parties=parties)

    return repeated


KINDS: dict[str, Callable[[Submission], Submission]] = {
    "nan": _each(lambda array: array * np.nan),
    "infinite": _each(lambda array: array + np.inf),
    "huge": _each(lambda array: array + 1e308),
    "negative": _each(lambda array: -1e9 - np.abs(array)),
    "fractional": _each(lambda array: array + 0.5),
    "one axis more": _each(lambda array: array[..., None]),
    "draws in one": _each(lambda array: array.reshape(len(array), 1, -1) if array.ndim > 1 else array),
    "one number less": _each(lambda array: array[..., :-1]),
    "complex": _each(lambda array: array.astype(np.complex128)),
    "integers": _each(lambda array: array.astype(np.int64)),
    "texts": _each(lambda array: array.astype(str)),
    "twice": _from(lambda own: [own, own]),
    "another's": _from(lambda own: [0]),
    "one's own and another's": _from(lambda own: [own, 0]),
    "unknown": _from(lambda own: [1000]),
    "below zero": _from(lambda own: [-1]),
    "broken": _from(lambda own: [own + 0.5]),
    "no guarantee": lambda sent: replace(sent, guarantee=None),
    "another guarantee": lambda sent: replace(sent, guarantee=replace(sent.guarantee, epsilon=1e-3)),
}


class Malformed(two_class_parties.Parties):
    """Three honest parties, and one for each kind of malformed answer; or in its place one that drops out."""

    def __init__(self, dropped: bool = False) -> None:
        super().__init__()
        self._dropped = dropped

    def holdings(self, party: int) -> Holdings:
        """The rows of one party."""
        if self._dropped and party >= HONEST:
            raise DroppedOut
        return super().holdings(party)

    def sent(self, question: Question, submission: Submission) -> Submission:
        """The answer of one party, malformed unless it is honest."""
        if self._dropped or submission.parties[0] < HONEST:
            return submission
        return list(KINDS.values())[submission.parties[0] - HONEST](submission)


_DEVIATIONS = 39.0


class Opposed(two_class_parties.Parties):
    """The parties `hostile` send the negative of their own answer, stretched to 39 deviations of noise in an entry."""

    def __init__(self, hostile: list[int]) -> None:
        super().__init__()
        self._hostile = hostile

    def sent(self, question: Question, submission: Submission) -> Submission:
        """The answers with those of the hostile parties replaced."""
        hostile = np.isin(submission.parties, self._hostile)
        arrays = {name: array.copy() for name, array in submission.arrays.items()}
        if isinstance(question, MomentQuestion):
            reach = _DEVIATIONS * question.mechanism().variance() ** 0.5
            if question.label_noise() is not None:
                reach = min(reach, arrays["size"].min() * question.response().reach)
            arrays["sums"][hostile] = _stretched(arrays["sums"][hostile], reach)
        elif isinstance(question, MarginalsQuestion) and "errors" in arrays:
            surplus = _stretched(2 * arrays["errors"] - arrays["rows"], _DEVIATIONS * question.mechanism().deviation)
            arrays["errors"][hostile] = np.rint((arrays["rows"] + surplus) / 2)[hostile]
        return replace(submission, arrays=arrays)


def _stretched(answers: np.ndarray, reach: float) -> np.ndarray:
    """Of the opposite sign, with the largest entry of each this far."""
    return -answers * (reach / np.abs(answers).max(axis=-1, keepdims=True))
