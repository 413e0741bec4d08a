"""Simulated parties of which some know everything, and answer against all others within what is accepted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from aggregator.collectors.collectors import Answers, Kept, Summed
from aggregator.collectors.robust_sums import Robustness
from federation.contract.guarantee import Guarantee, Unit
from federation.contract.honest import PartySize
from federation.contract.query import PrivateQuestion, Question, Submission
from federation.engines.codec import question_digest
from federation.numerics.rows import within_norm
from federation.queries.bags import CountsQuestion
from federation.queries.labels import LabelSumsQuestion
from federation.queries.marginals import MarginalsQuestion
from federation.queries.row_sums import MomentQuestion
from parties.responses.marginals import counts as in_bins
from scenarios.simulated.simulation import SimulatedParties

_HALVINGS = 25
_AS_THEY_COME = Robustness(bounded=False)  # which changes nothing about what is accepted
_REACH = 40.0  # deviations of counts that are accepted

Arrays = Mapping[str, np.ndarray]


class Target(ABC):
    """One private question as an attacker sees it: an answer is one that tells nothing, and a vector added to it."""

    deviation: float  # of honest noise in a direction of such vectors

    @abstractmethod
    def total(self, rows: np.ndarray, labels: np.ndarray, bags: np.ndarray) -> np.ndarray:
        """The vector that honest parties tell together, without noise, of raw rows, labels and numbers of bags."""

    @abstractmethod
    def seen(self, sent: Arrays) -> np.ndarray:
        """The same with noise: of the first draw of what honest parties sent."""

    @abstractmethod
    def collector(self) -> Answers:
        """One that says what is accepted."""

    @abstractmethod
    def nothing(self, own: Arrays) -> dict[str, np.ndarray]:
        """The answer (of P parties) to which the longest vector may be added, given the honest one."""

    @abstractmethod
    def moved(self, answer: Arrays, by: np.ndarray) -> dict[str, np.ndarray]:
        """An answer with a vector added in all draws."""


class _Sums(Target):
    def __init__(self, question: MomentQuestion, largest: int) -> None:
        self._question, self._most = question, np.array([float(question.most)])
        self._responds = question.responding(self._most)
        variance = (
            question.most * question.response().label_variance if self._responds else question.mechanism().variance()
        )
        self.deviation = float(np.sqrt(variance))

    def total(self, rows: np.ndarray, labels: np.ndarray, bags: np.ndarray) -> np.ndarray:
        return np.asarray(
            (2.0 * labels - 1) @ within_norm(self._question.feature_map.transform(rows), self._question.noise.l1_bound)
        )

    def seen(self, sent: Arrays) -> np.ndarray:
        return np.asarray(sent["sums"][:, 0].sum(axis=0))

    def collector(self) -> Answers:
        return Summed(self._question, 1, promise_of(self._question), _AS_THEY_COME)

    def nothing(self, own: Arrays) -> dict[str, np.ndarray]:
        found = {"size": np.full_like(own["size"], self._most[0]), "sums": np.zeros_like(own["sums"])}
        return (
            {**found, "response": np.full_like(own["size"], float(self._responds[0]))}
            if self._question.by_size
            else found
        )

    def moved(self, answer: Arrays, by: np.ndarray) -> dict[str, np.ndarray]:
        return {**answer, "sums": answer["sums"] + by}


class _Marginals(Target):
    """Vectors are numbers of errors less those of correct rows."""

    def __init__(self, question: MarginalsQuestion, largest: int) -> None:
        self._question, self._largest = question, largest
        self._exact = question.protect == Unit.LABEL.value
        self.deviation = question.mechanism().deviation * (2.0 if self._exact else 2.0**0.5)

    def total(self, rows: np.ndarray, labels: np.ndarray, bags: np.ndarray) -> np.ndarray:
        question = self._question
        features = question.feature_map.transform(rows)
        wrong = question.hypothesis.predict(features) != labels
        return np.asarray(1.0 * in_bins(question.bins, features[wrong]) - in_bins(question.bins, features[~wrong]))

    def seen(self, sent: Arrays) -> np.ndarray:
        return np.asarray((2 * sent["errors"] - sent["rows"]).sum(axis=0))

    def collector(self) -> Answers:
        return Summed(self._question, 1, promise_of(self._question), _AS_THEY_COME, PartySize(1, self._largest))

    def nothing(self, own: Arrays) -> dict[str, np.ndarray]:
        rows = own["rows"] if self._exact else np.full_like(own["rows"], float(self._largest))
        return {"rows": rows, "errors": np.floor(rows / 2)}

    def moved(self, answer: Arrays, by: np.ndarray) -> dict[str, np.ndarray]:
        return {**answer, "errors": answer["errors"] + np.rint(by / 2)} if "errors" in answer else dict(answer)


class _LabelSums(Target):
    def __init__(self, question: LabelSumsQuestion, largest: int) -> None:
        self._question = question
        low, high = question.rows.label_range
        self._middle = low / 2 + high / 2
        self.deviation = 0.0

    def total(self, rows: np.ndarray, labels: np.ndarray, bags: np.ndarray) -> np.ndarray:
        return np.asarray((labels - self._middle) @ self._question.rows.feature_map.transform(rows))

    def seen(self, sent: Arrays) -> np.ndarray:
        return np.asarray((sent["moment"][:, 0] - self._middle * sent["row_sum"]).sum(axis=0))

    def collector(self) -> Answers:
        return Summed(self._question, 1, promise_of(self._question), _AS_THEY_COME)

    def nothing(self, own: Arrays) -> dict[str, np.ndarray]:
        self.deviation = float(np.sqrt(np.trace(own["covariance"][0]) / own["covariance"].shape[1]))
        moment = np.repeat(self._middle * own["row_sum"][:, None], own["moment"].shape[1], axis=1)
        return {**own, "moment": moment}

    def moved(self, answer: Arrays, by: np.ndarray) -> dict[str, np.ndarray]:
        return {**answer, "moment": answer["moment"] + by}


class _Counts(Target):
    """Vectors are counts (B, C) beyond equal ones, of sum zero in each bag."""

    def __init__(self, question: CountsQuestion, largest: int) -> None:
        self._question, self._largest = question, largest
        self.deviation = max(1.0, float(question.mechanism().covariance(largest)[0, 0]) ** 0.5)

    def total(self, rows: np.ndarray, labels: np.ndarray, bags: np.ndarray) -> np.ndarray:
        cells = self._question.bags
        counts = np.zeros((cells.count, cells.classes))
        np.add.at(counts, (bags, labels), 1.0)
        return np.asarray(counts - counts.mean(axis=1, keepdims=True))

    def seen(self, sent: Arrays) -> np.ndarray:
        counts = sent["counts"][:, 0].sum(axis=0)
        return np.asarray(counts - counts.mean(axis=1, keepdims=True))

    def collector(self) -> Answers:
        return Kept(self._question, 1, promise_of(self._question), _AS_THEY_COME, PartySize(1, self._largest))

    def nothing(self, own: Arrays) -> dict[str, np.ndarray]:
        counts = np.broadcast_to(own["sizes"][:, None, :, None] / self._question.bags.classes, own["counts"].shape)
        return {"sizes": own["sizes"], "counts": counts}

    def moved(self, answer: Arrays, by: np.ndarray) -> dict[str, np.ndarray]:
        by = np.where(answer["sizes"][:, None, :, None] > 0, by - by.mean(axis=-1, keepdims=True), 0.0)
        return {**answer, "counts": answer["counts"] + by}


TARGETS: dict[type[Question], Any] = {
    MomentQuestion: _Sums,
    MarginalsQuestion: _Marginals,
    LabelSumsQuestion: _LabelSums,
    CountsQuestion: _Counts,
}


def promise_of(question: PrivateQuestion) -> Guarantee | None:
    """What an answer must carry."""
    promised = question.promise()
    return promised if isinstance(promised, Guarantee) else None


class HostileParties(SimulatedParties):
    """The parties of a split, of whom the first `hostile` know all that is private, and answer as `attack` says.

    "sign" is the largest accepted in every entry, with the opposite sign of what honest parties tell together;
    "against" is the longest accepted in the opposite direction of that; a number k is an honest answer moved by k
    deviations of its noise there, which hides in it. What honest parties tell is the sum without noise, which only
    somebody knows who knows all their rows, or, "seen", the sum of what they sent.
    """

    def __init__(self, spec: dict[str, Any], hostile: int, attack: str) -> None:
        super().__init__(spec)
        self._hostile, self._attack = hostile, attack
        self._known: dict[str, np.ndarray] = {}

    def sent(self, question: Question, submission: Submission) -> Submission:
        """The answers with those of hostile parties replaced."""
        hostile = submission.parties < self._hostile
        if type(question) not in TARGETS or not hostile.any():
            return submission
        target = TARGETS[type(question)](question, self._cut.largest_bag)
        arrays = {name: array.copy() for name, array in submission.arrays.items()}
        for position in np.flatnonzero(hostile):
            own = {name: array[position : position + 1] for name, array in submission.arrays.items()}
            told = self._honest(question, target)
            if self._attack.endswith("seen"):
                told = target.seen({name: array[~hostile] for name, array in submission.arrays.items()})
            for name, array in self._answer(question, target, own, told).items():
                arrays[name][position] = array[0]
        return replace(submission, arrays=arrays)

    def _answer(self, question: Question, target: Target, own: Arrays, told: np.ndarray) -> dict[str, np.ndarray]:
        attack, _, _ = self._attack.partition(" ")
        length, nothing = float(np.linalg.norm(told)) or 1.0, target.nothing(own)
        if attack not in ("sign", "against"):
            return target.moved(own, -told / length * float(attack) * target.deviation)
        direction = -np.sign(told) if attack == "sign" else -told / length
        high = 1.0
        while self._accepted(question, target, target.moved(nothing, high * direction)):
            high *= 2
        low = 0.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            fits = self._accepted(question, target, target.moved(nothing, middle * direction))
            low, high = (middle, high) if fits else (low, middle)
        return target.moved(nothing, low * direction)

    def _accepted(self, question: Question, target: Target, arrays: Arrays) -> bool:
        sent = {name: np.asarray(array, question.fields()[name].dtype) for name, array in arrays.items()}
        promise = promise_of(question) if isinstance(question, PrivateQuestion) else None
        return not target.collector().add(Submission(question.kind, np.zeros(1, np.int64), sent, promise))

    def _honest(self, question: Question, target: Target) -> np.ndarray:
        name = question_digest(question)
        if name not in self._known:
            self._known[name] = target.total(*self._everything)
        return self._known[name]

    @cached_property
    def _everything(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, labels and numbers of bags of all parties but the hostile ones."""
        honest = range(self._hostile, self._cut.parties)
        positions = np.concatenate([self._cut.party(party) for party in honest])
        bags = np.concatenate([self._cut.bags(party) for party in honest])
        return self._table.rows(positions), self._table.labels[positions], bags
