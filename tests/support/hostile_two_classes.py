"""Parties with rows of two classes of which some send what no honest party would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from support.two_class_parties import Parties

from federation.contract.query import Question, Submission
from parties.party_data.cohort import DroppedOut, Holdings

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


class Hostile(Parties):
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
