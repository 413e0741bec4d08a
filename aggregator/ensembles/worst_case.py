"""Worst pairs of neighbours for audits of the protocols of votes and parameters: one party changes all its data.

- `WorstVotes` and `WorstParameters` are for noise that the aggregator adds.
- `WorstVectors` is for vectors that parties add up by secure aggregation: one party turns its own vector round.
- `FlatVotes` are votes on which a weakly regularised risk is flat, so one party in many moves its minimiser far.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from aggregator.collectors.vectors import parameter_average
from aggregator.contract.worst_case import TWO_CLASSES, Rows, SummedWorstCase, TrustedWorstCase, in_one_sum
from aggregator.ensembles.output import Labels
from federation.contract.query import Question
from federation.mechanisms.accounting.sensitivity import majority_vote, radius, soft_vote
from federation.queries.votes import VectorSumQuestion

PARTIES = 5  # odd, so that one party can tip a majority

REGULARISATION = 1e-4  # of parties' classifiers, with which their noise scales

FEW_CLASSES: Mapping[str, Any] = {
    "parties": PARTIES,
    "parties_per_node": PARTIES,
    "classes": ("0", "1"),
    "stages": ("unit_norm",),
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
    guarded = protect == "party_and_auxiliary_row"
    # The claim rests on the ball that holds all minimisers where a party's reach is larger.
    reach = {"diameter": 1.0, "public_features": math.sqrt(0.5)}.get(sensitivity, 0.0)
    turned = 2 * radius(regularisation, 2) * regularisation < reach
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


RUNS = 200_000


@dataclass(frozen=True, eq=False)
class WorstVectors(SummedWorstCase[VectorSumQuestion]):
    """Parties that hold the same `rows`, each of one class alone, so that their vectors are opposite ends of the ball.

    The first is of class 0 here and of class 1 there. Colluders, who tell what they sent, are not among those who are
    summed: whoever sees the sum of all takes it off.
    """

    asks, about = VectorSumQuestion, "vectors is for sums of them"

    rows: np.ndarray = field(kw_only=True)

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """All parties that are summed."""
        classes = np.arange(self.added(question)) % 2
        classes[0] = int(there)
        return tuple(Rows(self.rows, np.full(len(self.rows), label)) for label in classes)


def worst_shares(units: int) -> WorstVectors:
    """Of shares of the statistic of votes; for two units half of the shares of noise are missing."""
    return _worst(units, np.eye(1, 2))


def worst_parameters(units: int, *, clip: float | None) -> WorstVectors:
    """Of parameters of linear classifiers, which may be shortened to `clip`."""
    why = "" if clip is None else why_loose(clip, radius(REGULARISATION, 2))
    return _worst(units, farthest_rows(REGULARISATION), why)


def _worst(units: int, rows: np.ndarray, why: str = "") -> WorstVectors:
    return WorstVectors(
        in_one_sum("one party changes all it holds"),
        TWO_ROWS,
        RUNS,
        world={**FEW_CLASSES, **TWO_CLASSES},
        loose=why,
        units=units,
        shared=True,
        rows=rows,
    )


_MOST = 10**6  # parties; with 1/lam of them one moves the scores by less than 1
_KINDS = 6  # copies of a kind of rows, at most
_PEAK = 0.2784645427610738  # W0(1/e): the largest z sigma(-z), at z = 1 + W0(1/e)
_SCORES = np.linspace(2.0, 40.0, 381)


class FlatRisk(NamedTuple):
    """Parties M, copies k of either kind of rows, and where these lie; `attained` is the part of 1/(M lam).

    One party in M moves the gradient by at most 1/M. It moves the minimiser by at most that over the curvature, which
    is lam at least. On one row alone the logistic loss has the curvature 1/4, so next to nothing of the bound is
    attained.

    Here rows are of two kinds, (c, s) of one class and (c, -s) of the other. Their scores have a magnitude z so large
    that the loss is flat there: sigma(z) sigma(-z) is below lam. The row (0, r), one in 2 k + 1, makes the scores so
    large. Alone it would have a minimiser of the greatest norm (`sensitivity.radius`). A party that votes otherwise on
    all other rows moves the minimiser along the first axis, where little but lam holds it.
    """

    attained: float
    parties: int
    copies: int
    score: float
    norm: float

    @property
    def rows(self) -> np.ndarray:
        """(2 k + 1, 2), all of norm 1 but the last, which is shorter."""
        sine = self.score / self.norm
        cosine = math.sqrt(1 - sine**2)
        kinds = np.repeat([[cosine, sine], [cosine, -sine]], self.copies, axis=0)
        return np.vstack([kinds, [[0.0, (1 + _PEAK) / self.norm]]])


def flat_risk(regularisation: float) -> FlatRisk | None:
    """The rows that attain most; None where a single row attains more, as it does from lam 0.02 or so on.

    Examples:
        >>> found = flat_risk(1e-4)
        >>> found.attained, found.parties, found.copies
        (0.6652, 10000, 2)
        >>> flat_risk(1.0) is None
        True
    """
    found = [_placed(regularisation, copies) for copies in range(1, _KINDS + 1)]
    best = max(found, key=lambda one: one.attained)
    return best if best.attained > regularisation / (regularisation + 0.25) else None


def _placed(regularisation: float, copies: int) -> FlatRisk:
    others = 2 * copies / (2 * copies + 1)
    norm = math.sqrt(_PEAK * (1 - others) / regularisation)
    parties = min(math.ceil(1 / regularisation), _MOST)
    if norm < 1 + _PEAK:  # the last row would have to be longer than 1
        return FlatRisk(0.0, parties, copies, 0.0, norm)
    squares = np.maximum(1 - (_SCORES / norm) ** 2, 0.0)  # of the cosine
    curvature = others * squares * np.exp(-_SCORES) / (1 + np.exp(-_SCORES)) ** 2
    attained = others * np.sqrt(squares) * regularisation / (regularisation + curvature)
    best = int(np.argmax(attained))
    return FlatRisk(float(attained[best]), parties, copies, float(_SCORES[best]), norm)


@dataclass(frozen=True, eq=False)
class FlatVotes(TrustedWorstCase):
    """Parties that vote for the second class on the first kind of rows and the last, for the first class elsewhere.

    The first party votes for the second class everywhere here, and there for the first but on the last row.
    """

    parties: int = 1

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """Nobody holds rows: what is sent is said."""
        return ()

    def sent(self, there: bool, question: Question) -> Mapping[str, np.ndarray]:
        """The votes (M, N) on the rows that are asked about: equal ones once, or all of them."""
        rows = question.fields()["votes"].numbers
        votes = np.zeros((self.parties, rows), dtype=np.uint8)
        votes[:, : rows // 2] = votes[:, -1] = 1
        votes[0, :-1] = not there
        return {"votes": votes}


def flat_votes(flat: FlatRisk, runs: int) -> FlatVotes:
    """The pair on these rows."""
    parties = flat.parties
    described = f"{parties:,} parties and 2 classes, one party changes all it sends"
    world: dict[str, Any] = {"parties": parties, "parties_per_node": parties, "classes": ("0", "1"), "stages": ()}
    return FlatVotes(described, flat.rows, runs, world=world, parties=parties)
