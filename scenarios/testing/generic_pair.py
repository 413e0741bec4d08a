"""A pair of neighbours that an auditor makes by itself, which finds out protocols whose own pair is harmless."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aggregator.contract.worst_case import PrivateWorstCase, Rows, Seen, Statistic
from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.query import PrivateQuestion, Question, Submission
from scenarios.audits.auditor import Sampler, sampler


@dataclass(frozen=True, eq=False)
class GenericPair(PrivateWorstCase):
    """The first party of a protocol's worst case, and the same with its first row changed in one unit.

    A label becomes the other end of the labels that occur; where rows are protected, the row becomes the opposite of
    itself, or that of the unit vector where it is zero. Every run is a party of its own, whose whole answer is seen.
    `statistic` projects on the difference of means over variances of `training` answers of either side.
    """

    own: PrivateWorstCase | None = None
    unit: Unit = Unit.LABEL
    direction: np.ndarray | None = None

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """What all parties hold."""
        assert self.own is not None
        held = self.own.side(False, question, 1)[0]
        if not there:
            return (held,)
        if not len(held.labels):
            raise InputError("the worst case's first party holds no row that could change")
        labels, rows = np.array(held.labels), np.array(held.rows)
        labels[0] = other_label(labels, self.own.side(True, question, 1)[0].labels)
        if self.unit not in (Unit.LABEL, Unit.PERSON):
            rows[0] = -rows[0] if rows[0].any() else np.eye(1, rows.shape[1])[0]
        return (replace(held, rows=rows, labels=labels),)

    def parties(self, question: PrivateQuestion, runs: int) -> int:
        """One for each run."""
        return runs

    def asked(self, question: PrivateQuestion, runs: int) -> Sequence[PrivateQuestion]:
        """What the protocol asks, once."""
        return [replace(question, draws=1)]

    def seen(self, submissions: Sequence[Submission]) -> Seen:
        """All numbers of every answer, (runs, numbers)."""
        [sent] = submissions
        flat = [array.reshape(len(sent.parties), -1).astype(np.float64) for array in sent.arrays.values()]
        return {"numbers": np.concatenate(flat, axis=1)}

    def statistic(self, question: PrivateQuestion) -> Statistic:
        """The projection; of training answers, all that is seen."""
        if self.direction is None:
            return lambda seen: seen["numbers"]
        return lambda seen: np.asarray(seen["numbers"] @ self.direction)


def generic_sampler(own: PrivateWorstCase, unit: Unit, question: PrivateQuestion, training: int) -> Sampler:
    """Samples of the pair, by a projection that is learned from so many other runs of either side."""
    fields: dict[str, Any] = {"described": "a generic pair", "public": own.public, "runs": own.runs, "unit": unit}
    pair = GenericPair(**fields, own=own)
    learned = sampler(pair, question, "audit|training")
    here, there = learned(False, training), learned(True, training)
    spread = here.var(axis=0) + there.var(axis=0)
    moved = there.mean(axis=0) - here.mean(axis=0)
    # What never varies and yet differs gives the sides away for certain: a large weight says so.
    direction = np.where(spread > 0, moved / np.where(spread > 0, spread, 1.0), 1e12 * np.sign(moved))
    return sampler(replace(pair, direction=direction), question, "audit|generic")


def other_label(labels: np.ndarray, further: np.ndarray) -> float:
    """Of the labels that occur on either side the one that is furthest from the first."""
    known = np.concatenate([labels, further])
    found: float = known[np.argmax(np.abs(known - labels[0]))]
    return found
