"""The inputs on which a protocol's noise must do most, as plain arrays: what audits and checks run it on."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np

from federation.contract.errors import InputError
from federation.contract.query import PrivateQuestion, Question, Submission
from federation.contract.trust import TrustTerms

Seen = Mapping[str, np.ndarray]  # what somebody sees of many runs, by name, with the runs on the first axis
Statistic = Callable[[Seen], np.ndarray]  # one number for each run
Exact = Callable[[bool], Seen]  # what would be seen of one side in one run if nobody made noise
Q = TypeVar("Q", bound=PrivateQuestion)

PARTIES, ROWS = 6, 4  # of a small world, and of each party in it
QUORUM = 2 / 3  # less those that may collude, so many are enough, and the sum of theirs is the least that is ever seen
TWO_CLASSES: Mapping[str, Any] = {
    "classes": ("0", "1"),
    "parties": PARTIES,
    "quorum": QUORUM,
    "largest_bag": ROWS,
    "rows": PARTIES * ROWS,
}


@dataclass(frozen=True, eq=False)
class Rows:
    """What one party holds: raw rows (n, columns), labels (n,), and the bag and the person of each row if there are."""

    rows: np.ndarray
    labels: np.ndarray
    bags: np.ndarray | None = None
    persons: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class WorstCase(ABC):
    """A small public world, and two neighbouring inputs: what its parties hold on either side.

    `described` says in words who they are and what changes. `public` are the auxiliary rows (N, columns), and
    `public_there` those of the other side where one of them is protected. `world` are fields of
    `aggregator.trial.plan.TrialPlan` that differ from those of a world with one party and no features, `options` those
    of the protocol that only make the world larger. `runs` on each side are enough to see half of the noise missing,
    unless `loose` says why no pair shows that: the claim allows for more than any neighbours are known to do.
    """

    described: str
    public: np.ndarray
    runs: int
    public_there: np.ndarray | None = None
    world: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    loose: str = ""

    @abstractmethod
    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """What the parties of one side hold, the first of them first.

        `question` is what the protocol asks in this world, as rows that are far apart behind one feature map are near
        behind another; `runs` are wanted, for worlds in which one party stands for many.
        """


class PrivateWorstCase(WorstCase):
    """Where parties make the noise: what is seen of their answers, and by what the sides are told apart."""

    def parties(self, question: PrivateQuestion, runs: int) -> int:
        """How many parties answer; those beyond the ones of a side hold what these do, from the first on."""
        return 1

    def asked(self, question: PrivateQuestion, runs: int) -> Sequence[PrivateQuestion]:
        """What they answer for so many independent runs, in place of the question that the protocol asks first."""
        return [replace(question, draws=runs)]

    def seen(self, submissions: Sequence[Submission]) -> Seen:
        """What is seen of the answers to these questions, by default those of the first party, draw by draw."""
        return {name: array[0] for name, array in submissions[0].arrays.items()}

    def statistic(self, question: PrivateQuestion, exact: Exact) -> Statistic:
        """By which the sides are told apart: by default the log likelihood ratio, up to scale.

        `exact` is what would be seen of either side without noise: responses of the parties' own code, who may compute
        otherwise than they should, which an audit is to find out.
        """
        here, there = exact(False), exact(True)
        return lambda seen: question.log_ratio(seen, here, there)


@dataclass(frozen=True, eq=False)
class SummedWorstCase(PrivateWorstCase, Generic[Q]):
    """Of sums: those of the first party alone, with its whole noise, or of all that share a noise.

    It is for questions of the kind that it `asks`; `about` says in words what it is of, and for what. So many `units`
    of the first party change. Where noise is `shared` one does, and in place of a second one half of those who share
    the noise are left out.
    """

    asks: ClassVar[type[PrivateQuestion]]
    about: ClassVar[str]

    units: int = 1
    shared: bool = False

    @property
    def changed(self) -> int:
        """The number of units that change at the first party."""
        return 1 if self.shared else self.units

    def own(self, question: Question) -> Q:
        """The question, as it is. Raises `InputError` for one of another kind."""
        if not isinstance(question, self.asks):
            raise InputError(f"the worst case of {self.about}, got '{question.kind}'")
        return cast(Q, question)

    def added(self, question: Question) -> int:
        """How many parties are added up."""
        whole = self.own(question).assumes().honest or 1
        return whole // 2 if self.shared and self.units > 1 else whole

    def parties(self, question: PrivateQuestion, runs: int) -> int:
        """All that are summed."""
        return self.added(question)

    def seen(self, submissions: Sequence[Submission]) -> Seen:
        """The sums over all of them."""
        return {name: array.sum(axis=0) for name, array in submissions[0].arrays.items()}


def in_one_sum(change: str, shared: bool = True) -> str:
    """The parties that share a noise in such a small world, or one alone, and what changes at one of them, in words."""
    if not shared:
        return f"one party, {change}"
    summed = TrustTerms(PARTIES, QUORUM).honest
    return f"{summed} of {PARTIES} parties, whose answers are seen in one sum only, {change}"


class TrustedWorstCase(WorstCase):
    """Where the aggregator makes the noise, which is additive: an auditor knows by what to tell the sides apart."""

    def sent(self, there: bool, question: Question) -> Mapping[str, np.ndarray] | None:
        """The fields that all parties send, with their axis, where no rows lead to the worst; None to let them answer.

        A party that is not honest may send anything, and the guarantee covers that.
        """
        return None
