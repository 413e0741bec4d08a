"""Collects what parties add to a sum of which nobody sees a part: shares of one noise, on whole grid steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aggregator.answers.local_answers import CheckedAnswers
from aggregator.sums.summation import Summation, summation_of
from aggregator.world.plan import WorldPlan
from federation.contract.errors import FederationError, InputError
from federation.contract.query import PrivateQuestion, Submission, check_submission
from federation.numerics.rows import Integers
from federation.secure_aggregation.masks import MOST_STEPS
from federation.secure_aggregation.plan import SAID

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

    def __init__(self, question: PrivateQuestion, plan: WorldPlan) -> None:
        super().__init__(question, plan.parties, None)
        self._steps = dict(question.steps)
        self._open = question.open_fields
        self._totals = {name: np.zeros(field.shape) for name, field in self._open.items()}
        self.numbers = question.hidden_numbers
        self._whole = np.zeros(self.numbers, dtype=np.int64)
        self._taken, self._by = False, SAID[plan.servers]
        self._summation: Summation | None = summation_of(plan, question, self.numbers)
        masked = self._summation is not None and self._summation.masked
        self._parts = np.zeros((plan.parties, self.numbers), dtype=np.int64) if masked else None

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
