"""Collects what parties add to a sum of which nobody sees a part: shares of one noise, on whole grid steps.

What every collector of answers is: it knows which of the declared parties have answered, and counts each once.

Collects answers that parties made private themselves, where all that a party says is of the declared form.

How shares of one noise are added in a simulation: through a masked sum, or in clear where that would take long.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol, cast

import numpy as np

from aggregator.trial.plan import TrialPlan
from federation.contract.errors import FederationError, InputError
from federation.contract.guarantee import Guarantee
from federation.contract.plugins import Reference
from federation.contract.query import PrivateQuestion, Question, Submission, check_submission
from federation.numerics.rows import Booleans, Integers
from federation.secure_aggregation.masks import MOST_STEPS
from federation.secure_aggregation.plan import SAID


class Answers(ABC):
    """Answers of the declared parties 0..K-1 to one question, K = `parties`; one byte for each party.

    Parties that did not answer well count as missing; a refused one may still answer well. A subclass says which
    answers are malformed and what it keeps of the others.
    """

    recipe: tuple[Any, ...] = ()

    def __init__(self, question: Question, parties: int) -> None:
        self.question, self.parties = question, parties
        self._answered = np.zeros(parties, dtype=bool)

    @property
    def answered(self) -> int:
        """Number of parties whose answer was accepted so far."""
        return int(self._answered.sum())

    @property
    def present(self) -> np.ndarray:
        """Ids of the parties whose answer was accepted so far, ascending."""
        return np.flatnonzero(self._answered)

    def add(self, submission: Submission) -> dict[int, str]:
        """Take a submission in; returns the first cause of each refusal by party.

        Raises `InputError`, and takes nothing in, when the submission as a whole is malformed.
        """
        check_submission(self.question, submission)
        parties = submission.parties
        unknown = parties >= self.parties
        known = np.where(unknown, 0, parties)
        refused = {
            f"not one of the {self.parties} declared parties": unknown,
            "answered twice; only its first answer counts": ~unknown & self._answered[known],
            **self._faults(submission),
        }
        counted = ~np.logical_or.reduce(list(refused.values()))
        chosen = slice(None) if counted.all() else counted  # a slice copies nothing
        self._keep(parties[chosen], {name: array[chosen] for name, array in submission.arrays.items()})
        self._answered[parties[counted]] = True  # once they are kept: what cannot be kept must not make a quorum
        return {int(p): cause for cause, bad in reversed(refused.items()) for p in parties[bad]}

    @abstractmethod
    def _faults(self, submission: Submission) -> Mapping[str, np.ndarray]:
        """Which answers are malformed, boolean (P,), by cause in words."""

    @abstractmethod
    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        """Take in the accepted answers of parties (P,)."""


CHECKED = "answers were checked on arrival; those out of form were left out"  # as a ledger puts it
_REFUSED = "answer refused: values outside the declared range"
_UNPROMISED = "answer refused: it lacks the guarantee asked for"
_PROMISED = ("epsilon", "delta", "unit", "adjacency", "mechanism")


class CheckedAnswers(Answers):
    """Answers of K parties to one question; `promise` is the guarantee that each must carry, None for those without."""

    def __init__(self, question: Question, parties: int, promise: Guarantee | None) -> None:
        super().__init__(question, parties)
        self._promise, self._fields = promise, question.fields()

    def _faults(self, submission: Submission) -> dict[str, np.ndarray]:
        unpromised = self._promise is not None and not _same(submission.guarantee, self._promise)
        return {_UNPROMISED: np.full(len(submission.parties), unpromised), _REFUSED: self._impossible(submission)}

    def _impossible(self, submission: Submission) -> np.ndarray:
        """Which parties' answers are out of range, or cannot be those of honest parties, (P,)."""
        fine = np.ones(len(submission.parties), dtype=bool)
        for name, declared in self._fields.items():
            fine &= ~declared.invalid(submission.arrays[name])
        fine[fine] = self._well_formed({name: array[fine] for name, array in submission.arrays.items()})
        return ~fine

    def _well_formed(self, arrays: dict[str, np.ndarray]) -> np.ndarray:
        """Which parties' answers, in range as they are, can be those of honest parties."""
        return np.ones(len(next(iter(arrays.values()))), dtype=bool)


class LocalAnswers(CheckedAnswers):
    """Keeps every answer by itself."""

    def __init__(self, question: Question, parties: int, promise: Guarantee | None) -> None:
        super().__init__(question, parties, promise)
        self._arrays = {name: np.zeros((parties, *field.shape), field.dtype) for name, field in self._fields.items()}

    def array(self, name: str) -> np.ndarray:
        """One field with the party axis (K, ...); zeros where a party has not answered."""
        return self._arrays[name]

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        for name, array in self._arrays.items():
            array[parties] = arrays[name]


class SummedAnswers(CheckedAnswers):
    """Keeps the sum of all answers only, however many parties there are.

    Entries are whole multiples of a step that is a power of two: their sum is exact, and the same in any order.
    """

    def __init__(self, question: Question, parties: int, promise: Guarantee | None) -> None:
        super().__init__(question, parties, promise)
        self._totals = {name: np.zeros(field.shape) for name, field in self._fields.items()}

    def total(self, name: str) -> np.ndarray:
        """One field, summed over the parties that answered."""
        return self._totals[name]

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        for name, total in self._totals.items():
            total += arrays[name].sum(axis=0)


def _same(guarantee: Guarantee | None, promise: Guarantee) -> bool:
    return guarantee is not None and all(getattr(guarantee, name) == getattr(promise, name) for name in _PROMISED)


class Summation(Protocol):
    """Carries out one sum of simulated parties; whoever simulates them names it in the plan."""

    @property
    def masked(self) -> bool:
        """Whether it takes all parts and adds them through a masked sum."""
        ...

    def require(self, answered: Booleans) -> None:
        """Raises `QuorumError` where a masked sum of those who have answered would end without a total."""
        ...

    def total(self, parts: Integers, answered: Booleans) -> Integers:
        """The sum (d,) of the parts (K, d), whole numbers of grid steps, of those who have `answered`, (K,).

        Raises `QuorumError` where too few have for a masked sum.
        """
        ...

    def told(self, answered: Booleans) -> str:
        """How the sum was made and what it would cost, in public words, for the ledger."""
        ...


def summation_of(plan: TrialPlan, question: PrivateQuestion, numbers: int) -> Summation | None:
    """What carries out the sum of so many numbers of each party; None where the plan names nothing.

    Raises `InputError` where no masked sum of the plan's parties can be.
    """
    if not plan.run.summation:
        return None
    arguments = {
        "question": hashlib.sha256(repr(question.release).encode()).hexdigest(),
        "terms": plan.terms,
        "numbers": numbers,
    }
    return cast(Summation, Reference(plan.run.summation, arguments).call())


# As a ledger puts it.
UNSEEN = "nobody saw a party's answer, so that none was checked: one that breaks its bounds may move the sum at will"
MASKED = (
    "shares were added by a masked sum with {by}, in letters between real parties; "
    "parts are hidden as long as X25519, HKDF, ChaCha20, AES-GCM and Ed25519 are what they are taken for, the parties' "
    "keys are theirs, and none puts back an older copy of what it knows of the sum"
)


class SharedAnswers(CheckedAnswers):
    """The sum over parties of the `steps` fields of a question, and of its other fields, which are public.

    A simulation hands in every answer (`add`), and adds them as the plan's `summation` does, which for few parties is a
    masked sum. Otherwise the total comes from a masked sum between real parties (`take_total`). Only public fields
    are checked: whoever adds up sees no part, and a hostile party may send any integers modulo 2^64.
    """

    question: PrivateQuestion

    def __init__(self, question: PrivateQuestion, plan: TrialPlan) -> None:
        super().__init__(question, plan.terms.parties, None)
        self._steps = dict(question.steps)
        self._open = question.open_fields
        self._totals = {name: np.zeros(field.shape) for name, field in self._open.items()}
        self.numbers = question.hidden_numbers
        self._whole = np.zeros(self.numbers, dtype=np.int64)
        self._taken, self._by = False, SAID[plan.terms.servers]
        self._summation: Summation | None = summation_of(plan, question, self.numbers)
        masked = self._summation is not None and self._summation.masked
        self._parts = np.zeros((plan.terms.parties, self.numbers), dtype=np.int64) if masked else None

    @property
    def told(self) -> tuple[str, ...]:
        """How the sum was made, in public words."""
        if self._summation is not None:
            return UNSEEN, self._summation.told(self._answered)
        return (UNSEEN, MASKED.format(by=self._by)) if self._taken else (UNSEEN,)

    @property
    def wholes(self) -> float:
        """How many times the whole noise is in the sum: more shares come than are needed, as a rule."""
        return self.answered / (self.question.assumes().honest or 1)

    def total(self, name: str) -> np.ndarray:
        """One field, summed over the parties that answered. Raises `QuorumError` where too few did for a masked sum."""
        if name in self._open:
            return self._totals[name]
        if self._summation is not None:
            self._summation.require(self._answered)
            if self._parts is not None:
                self._whole, self._parts = self._summation.total(self._parts, self._answered), None
        return self._split()[name]

    def take_total(self, opened: Submission, whole: Integers) -> None:
        """The total `whole` (D,) of a masked sum, in steps, and what the parties in it say openly.

        Raises `InputError` as `add`, and where the open answer of a party in the sum is refused.
        """
        if self.add(self._completed(opened)):
            raise InputError("parties are in the masked sum whose open answers are refused; ask again without them")
        self._whole, self._taken = whole, True

    def refused(self, opened: Submission) -> dict[int, str]:
        """Whose open answers `take_total` would refuse, and why: they are left out before they are in a sum.

        Raises `InputError` as `add`.
        """
        whole = self._completed(opened)
        check_submission(self.question, whole)
        return {int(party): why for why, bad in self._faults(whole).items() for party in whole.parties[bad]}

    def _completed(self, opened: Submission) -> Submission:
        hidden = {name: np.zeros((len(opened.parties), *self._fields[name].shape)) for name in self._steps}
        return replace(opened, arrays={**opened.arrays, **hidden})

    def _split(self) -> dict[str, np.ndarray]:
        found, start = {}, 0
        for name, step in self._steps.items():
            field = self._fields[name]
            found[name] = (self._whole[start : start + field.numbers] * step).reshape(field.shape)
            start += field.numbers
        return found

    def _impossible(self, submission: Submission) -> np.ndarray:
        bad = np.zeros(len(submission.parties), dtype=bool)
        for name in self._steps:  # what is no number cannot be masked
            bad |= ~np.isfinite(submission.arrays[name]).all(axis=tuple(range(1, submission.arrays[name].ndim)))
        for name, declared in self._open.items():
            bad |= declared.invalid(submission.arrays[name])
        return bad

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        for name, total in self._totals.items():
            total += arrays[name].sum(axis=0)
        widths = {name: self._fields[name].numbers for name in self._steps}
        words = [_words(arrays[name] / step).reshape(-1, widths[name]) for name, step in self._steps.items()]
        parts = np.hstack(words)
        self._whole = self._whole + parts.sum(axis=0)
        if self._parts is not None:
            self._parts[parties] = parts


def require_reachable(total: np.ndarray, least: float, largest: float, parties: int) -> None:
    """Raises `FederationError` for a total over so many parties with an entry that is not from `least` to `largest`.

    All that can be looked at is the total, which is private already.
    """
    if not bool(((total >= least) & (total <= largest)).all()):
        raise FederationError(
            f"the sum over {parties} parties is beyond what honest ones can have: some sent something else, or a "
            "second server told false masks, and who did cannot be seen; nothing is learned from it"
        )


def _words(steps: np.ndarray) -> Integers:
    """Whole numbers of steps as a masked sum takes them; a hostile party's as large as they may be."""
    words: Integers = np.clip(np.rint(steps), -MOST_STEPS, MOST_STEPS).astype(np.int64)
    return words
