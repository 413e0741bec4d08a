"""The worst pair of neighbours of protocols that the aggregator makes the noise for: one party changes all it holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from aggregator.contract.worst_case import Rows, TrustedWorstCase
from federation.contract.question import Question
from federation.mechanisms.accounting.sensitivity import radius

PARTIES = 5  # odd, so that one party can tip a majority

_WORLD: Mapping[str, Any] = {
    "parties": PARTIES,
    "parties_per_node": PARTIES,
    "classes": ("0", "1"),
    "features": ("unit_norm",),
    "classifier": {"name": "logistic", "parameters": {"regularisation": 1e-4}},  # noise scales with what follows
}
_DESCRIBED = f"{PARTIES} parties and 2 classes, one party changes all it sends"
_ONE_ROW: np.ndarray = np.ones((1, 1))
_NINE_ROWS: np.ndarray = np.ones((9, 1))
_TWO_ROWS: np.ndarray = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)  # span the constant, reach 1/sqrt(2)
_FARTHEST_SCORE = 1.2784645427610738  # 1 + W0(1/e), where z sigma(-z) is largest: see `radius`


@dataclass(frozen=True, eq=False)
class WorstVotes(TrustedWorstCase):
    """Parties that hold one row each, of one class, for which they vote everywhere; the classes are split evenly.

    There the first `moved` parties of class 0 are of class 1, so that their votes decide every majority.
    """

    moved: int = 1

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """One row of each party."""
        row = np.eye(1, self.public.shape[1])
        return tuple(Rows(row, np.array([label])) for label in self.labels(there))

    def labels(self, there: bool) -> np.ndarray:
        """The class of each party; all of the second where an auxiliary row changes in place of a party."""
        labels = np.ones(PARTIES, dtype=np.int64) if self.public_there is not None else np.arange(PARTIES) % 2
        if there:
            labels[2 * np.arange(self.moved)] = 1
        return labels


class WorstParameters(WorstVotes):
    """Parties that send parameters of the greatest norm that counts, whatever rows would lead to."""

    def sent(self, there: bool, question: Question) -> dict[str, np.ndarray]:
        """Along the first feature, the way of their class."""
        ((name, declared),) = question.fields().items()
        vectors = np.outer(2 * self.labels(there) - 1, np.eye(1, declared.numbers)) * declared.maximum
        return {name: vectors.reshape(PARTIES, *declared.shape)}


def of_parameters(units: int, runs: int) -> WorstParameters:
    """Of parties that send the parameters of linear classifiers."""
    return WorstParameters(_DESCRIBED, np.eye(2), runs, world=_WORLD, moved=units)


def of_votes(
    units: int,
    runs: int,
    *,
    perturb: str,
    sensitivity: str,
    protect: str,
    majority: float | None = None,
) -> WorstVotes:
    """Of parties that vote; `majority` is the regularisation of a risk of majority labels, None for soft ones.

    With `protect` "party_and_auxiliary_row" the only auxiliary row turns round instead, and all votes on it stay.
    """
    if protect == "party_and_auxiliary_row":
        described = f"{PARTIES} parties and 2 classes, the only auxiliary row turns round"
        return WorstVotes(described, _ONE_ROW, runs, -_ONE_ROW, world=_WORLD, moved=0)
    rows = _auxiliary(perturb, sensitivity, majority)
    return WorstVotes(_DESCRIBED, rows, runs, world=_WORLD, moved=units)


def _auxiliary(perturb: str, sensitivity: str, majority: float | None) -> np.ndarray:
    """The auxiliary rows on which changed votes move what is released furthest."""
    if perturb == "votes":
        return _NINE_ROWS  # one label says little, and the count of a few equal ones much
    if majority is not None and _diameter_is_smaller(majority, sensitivity):
        # Minimisers of the greatest norm, which changed labels turn round.
        cosine = min(1.0, _FARTHEST_SCORE / radius(majority, 2))
        sine = math.sqrt(1 - cosine**2)
        return np.array([[cosine, sine], [cosine, -sine]])
    if perturb == "statistic" or sensitivity == "public_features":
        return _TWO_ROWS  # moved by the whole bound
    return _ONE_ROW


def _diameter_is_smaller(regularisation: float, sensitivity: str) -> bool:
    """Whether the claim rests on the ball that holds all minimisers, and not on a party's reach."""
    reach = {"diameter": 1.0, "public_features": math.sqrt(0.5)}.get(sensitivity, 0.0)
    return 2 * radius(regularisation, 2) * regularisation < reach
