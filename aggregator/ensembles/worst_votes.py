"""The worst pair of neighbours of protocols that the aggregator makes the noise for: one party changes all it holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aggregator.answers.average_sensitivity import parameter_average
from aggregator.contract.worst_case import Rows, TrustedWorstCase
from aggregator.ensembles.ensemble import Labels
from aggregator.ensembles.flat_risks import flat_risk, flat_votes
from federation.contract.query import Question
from federation.mechanisms.accounting.sensitivity import majority_vote, radius, soft_vote

PARTIES = 5  # odd, so that one party can tip a majority

REGULARISATION = 1e-4  # of parties' classifiers, with which their noise scales

FEW_CLASSES: Mapping[str, Any] = {
    "parties": PARTIES,
    "parties_per_node": PARTIES,
    "classes": ("0", "1"),
    "features": ("unit_norm",),
    "classifier": {"name": "logistic", "parameters": {"regularisation": REGULARISATION}},
}
_ONE_ROW: np.ndarray = np.ones((1, 1))
_NINE_ROWS: np.ndarray = np.ones((9, 1))
TWO_ROWS: np.ndarray = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)  # span the constant, reach 1/sqrt(2)
_FARTHEST_SCORE = 1.2784645427610738  # 1 + W0(1/e), where z sigma(-z) is largest: see `radius`


@dataclass(frozen=True, eq=False)
class WorstVotes(TrustedWorstCase):
    """Parties that hold one row each, of one class, for which they vote everywhere; the classes are split evenly.

    There the first `moved` parties of class 0 are of class 1, so that their votes decide every majority.
    """

    moved: int = 1
    parties: int = PARTIES

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """One row of each party."""
        row = np.eye(1, self.public.shape[1])
        return tuple(Rows(row, np.array([label])) for label in self.labels(there))

    def labels(self, there: bool) -> np.ndarray:
        """The class of each party; all of the second where an auxiliary row changes in place of a party."""
        labels = np.arange(self.parties) % 2 if self.public_there is None else np.ones(self.parties, dtype=np.int64)
        if there:
            labels[: 2 * self.moved : 2] = 1
        return labels


class WorstParameters(WorstVotes):
    """Parties that send parameters of the greatest norm that counts, whatever rows would lead to."""

    def sent(self, there: bool, question: Question) -> dict[str, np.ndarray]:
        """Along the first feature, the way of their class."""
        ((name, declared),) = question.fields().items()
        vectors = np.outer(2 * self.labels(there) - 1, np.eye(1, declared.numbers)) * declared.maximum
        return {name: vectors.reshape(self.parties, *declared.shape)}


def of_parameters(units: int, runs: int, *, sensitivity: str | None) -> WorstParameters:
    """Of parties that send the parameters of linear classifiers; `sensitivity` is that of `average: plain`."""
    loose = ""
    if sensitivity is not None:
        known: dict[str, Any] = {"regularisation": REGULARISATION, "parties": PARTIES, "classes": 2}
        loose = why_loose(*(parameter_average(form, **known) for form in (sensitivity, "diameter")))
    return WorstParameters(_described(PARTIES), np.eye(2), runs, world=FEW_CLASSES, moved=units, loose=loose)


def of_votes(units: int, runs: int, *, perturb: str) -> WorstVotes:
    """Of parties whose opinions of public rows get the noise: all votes, or the `statistic` of them."""
    rows = _NINE_ROWS if perturb == "votes" else TWO_ROWS
    return WorstVotes(_described(PARTIES), rows, runs, world=FEW_CLASSES, moved=units)


def of_minimisers(
    units: int, runs: int, *, labels: Labels, regularisation: float, sensitivity: str, protect: str
) -> TrustedWorstCase:
    """Of parties that vote, where the noise is on the minimiser of a risk of soft or majority labels.

    Where the claim rests on the ball that holds all minimisers, changed labels turn round one of the greatest norm.
    Else, with `protect` "party_and_auxiliary_row", the only auxiliary row turns round, and all votes on it stay.
    """
    worst = _turning(units, runs, labels, regularisation, sensitivity, protect)
    if sensitivity == "public_features":  # which is exact on the rows of these worlds
        return worst
    known: dict[str, Any] = {"regularisation": regularisation, "parties": worst.world["parties"], "classes": 2}
    if protect == "party_and_auxiliary_row":
        known["auxiliary_rows"] = len(worst.public)
    bound = soft_vote if labels == "soft" else majority_vote
    return replace(worst, loose=why_loose(*(bound(form, **known) for form in (sensitivity, "diameter"))))


def _turning(
    units: int, runs: int, labels: Labels, regularisation: float, sensitivity: str, protect: str
) -> TrustedWorstCase:
    guarded, turned = protect == "party_and_auxiliary_row", _diameter_is_smaller(regularisation, sensitivity)
    if turned and (guarded or labels == "majority"):
        parties = 1 if labels == "soft" else PARTIES  # one whose votes are all there is
        world, rows = {**FEW_CLASSES, "parties": parties}, farthest_rows(regularisation)
        return WorstVotes(_described(parties), rows, runs, world=world, moved=units, parties=parties)
    if guarded:
        described = f"{PARTIES} parties and 2 classes, the only auxiliary row turns round"
        return WorstVotes(described, _ONE_ROW, runs, -_ONE_ROW, world=FEW_CLASSES, moved=0)
    if labels == "soft" and (flat := flat_risk(regularisation)) is not None:
        return flat_votes(flat, runs)
    rows = TWO_ROWS if sensitivity == "public_features" else _ONE_ROW  # moved by the whole bound
    return WorstVotes(_described(PARTIES), rows, runs, world=FEW_CLASSES, moved=units)


def _described(parties: int) -> str:
    return f"{'one party' if parties == 1 else f'{parties} parties'} and 2 classes, one party changes all it sends"


def why_loose(charged: float, most: float) -> str:
    """Why half of the noise would do, where `most`, which no data exceed, is at most half of what is charged; or ''."""
    if charged < 2 * most:
        return ""
    return (
        f"with two classes no data move what gets noise by more than {most:.4g}, and {charged:.4g} is charged, so that "
        "half of the noise would keep the claim, too"
    )


def farthest_rows(regularisation: float) -> np.ndarray:
    """Rows of norm 1 whose minimiser has the greatest norm."""
    cosine = min(1.0, _FARTHEST_SCORE / radius(regularisation, 2))
    sine = math.sqrt(1 - cosine**2)
    return np.array([[cosine, sine], [cosine, -sine]])


def _diameter_is_smaller(regularisation: float, sensitivity: str) -> bool:
    """Whether the claim rests on the ball that holds all minimisers, and not on a party's reach."""
    reach = {"diameter": 1.0, "public_features": math.sqrt(0.5)}.get(sensitivity, 0.0)
    return 2 * radius(regularisation, 2) * regularisation < reach
