"""Collectors of responses: `Kept` keeps each, `Summed` keeps their total, `Secure` adds them by secure aggregation.

Every collector knows which of the declared parties have responded, and counts each once. It refuses responses that do
not have the declared form, and responses that no honest party can send.

`ExactTotal` and `GridTotal` add up numbers exactly. A `Summation` carries out a secure aggregation in a simulation.
"""

import hashlib
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np

from aggregator.collectors.robust_sums import BOUNDED, Changes, GatedSum, Robustness
from aggregator.contract.ledger import LOCAL, local_guarantee, summed
from aggregator.contract.session import Asked
from aggregator.trial.plan import TrialPlan
from federation.contract.errors import FederationError, InputError
from federation.contract.guarantee import Assumption, Guarantee, NoGuarantee
from federation.contract.honest import Arrays, PartySize
from federation.contract.plugins import Reference
from federation.contract.query import PrivateQuestion, Question, Submission, check_submission
from federation.numerics.rows import Booleans, Floats, Integers
from federation.queries.votes import Training
from federation.secure_aggregation.masks import MOST_STEPS, require_room
from federation.secure_aggregation.plan import SAID

_BITS = 24  # of a place: 2^(53 - 24) arrays can be added before a place would round
_TOGETHER = 1 << 16  # numbers that are taken apart at once: they stay in cache
_LOWEST = -40  # the last place; what lies below 2^-960 is left out


class ExactTotal:
    """The sum of arrays of one shape, held in a few arrays of whole numbers, whatever the number of arrays.

    Every number is taken apart at fixed places, multiples of 2^24b for whole b, so its parts do not depend on the
    others; whole numbers below 2^53 add without rounding (the bins of Demmel and Nguyen 2013, fixed beforehand). For
    numbers below 2^990 and at most 2^29 arrays.

    Examples:
        >>> total = ExactTotal((2,))
        >>> total.add(np.array([[1e20, 0.5], [1.0, 0.25]]))
        >>> total.add(np.array([[-1e20, 0.125]]))
        >>> total.value
        array([1.   , 0.875])
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._places: dict[int, Floats] = {}

    def add(self, arrays: Floats) -> None:
        """Add arrays (P, *shape), finite."""
        step = max(1, _TOGETHER // max(1, math.prod(self._shape)))
        for start in range(0, len(arrays), step):
            self._add(np.array(arrays[start : start + step], dtype=np.float64))

    def _add(self, rest: Floats) -> None:
        while (place := _place(float(np.abs(rest).max(initial=0.0)))) >= _LOWEST:
            unit = 2.0 ** (_BITS * place)
            whole = np.trunc(rest / unit)
            held = self._places.setdefault(place, np.zeros(self._shape))
            held += whole.sum(axis=0)
            whole *= unit
            rest -= whole

    @property
    def value(self) -> Floats:
        """The sum, rounded where the places are added, the smallest first."""
        found = np.zeros(self._shape)
        for place in sorted(self._places):
            found += self._places[place] * 2.0 ** (_BITS * place)
        return found


def _place(size: float) -> int:
    """The place of the leading bit of a number above 0, one below the last for 0."""
    return int(np.frexp(size)[1] - 1) // _BITS if size else _LOWEST - 1


class GridTotal:
    """The sum of arrays of one shape whose entries are multiples of one step, a power of two; hence exact."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.value = np.zeros(shape)

    def add(self, arrays: Floats) -> None:
        """Add arrays (P, *shape)."""
        self.value += arrays.sum(axis=0)


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


class CheckedAnswers(Answers):
    """Answers of K parties to one question; `promise` is the guarantee that each must carry, None for those without.

    What honest parties can send, given the `public` numbers of every party, is for the question to say. An answer that
    is longer than an honest one is by its noise is scaled to what that reaches, unless `robustness` says otherwise.
    """

    def __init__(
        self,
        question: Question,
        parties: int,
        promise: Guarantee | None,
        robustness: Robustness = BOUNDED,
        public: PartySize | None = None,
    ) -> None:
        super().__init__(question, parties)
        self.recipe = (robustness, public)
        self._promise, self._fields = promise, question.fields()
        self._honest = question.honest(public or PartySize())
        self._checked = self._fields  # by their ranges
        self._counted: Counter[str] = Counter()
        self._widths = self._honest.widths if robustness.bounded else {}  # of what is scaled
        self._scaled = 0

    @property
    def told(self) -> tuple[str, ...]:
        """That answers were checked, and how many were scaled and clipped, in public words."""
        return (CHECKED, *Changes.of([self.changes]))

    @property
    def changes(self) -> Changes | None:
        """How many answers were scaled and clipped; None where they are taken as they come."""
        return Changes(self.answered, self._scaled, self._clipped) if self._widths else None

    @property
    def _clipped(self) -> int:
        """Of how many parties something was clipped."""
        return 0

    def _bounded(self, arrays: Arrays) -> dict[str, Floats]:
        """The parts of answers that are no longer than honest ones."""
        parts, scaled = self._honest.bounded(arrays)
        self._scaled += int(np.count_nonzero(scaled))
        return parts

    def counted(self, name: str) -> float:
        """A public number of the answers, summed over the parties that answered."""
        return self._counted[name]

    def _faults(self, submission: Submission) -> dict[str, np.ndarray]:
        unpromised = self._promise is not None and not _same(submission.guarantee, self._promise)
        return {_UNPROMISED: np.full(len(submission.parties), unpromised), _REFUSED: self._impossible(submission)}

    def _impossible(self, submission: Submission) -> np.ndarray:
        """Which parties' answers are out of range, or cannot be those of honest parties, (P,)."""
        fine = np.ones(len(submission.parties), dtype=bool)
        for name, declared in self._checked.items():
            fine &= ~declared.invalid(submission.arrays[name])
        if self._checked:
            fine[fine] = self._honest.plausible({name: submission.arrays[name][fine] for name in self._checked})
        return ~fine


class Kept(CheckedAnswers):
    """Keeps every answer by itself."""

    @cached_property
    def _arrays(self) -> dict[str, np.ndarray]:
        shapes = {name: (self.parties, *field.shape) for name, field in self._fields.items()}
        return {name: np.zeros(shape, self._fields[name].dtype) for name, shape in shapes.items()}

    def array(self, name: str) -> np.ndarray:
        """One field with the party axis (K, ...); zeros where a party has not answered."""
        return self._arrays[name]

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        if self._widths:
            arrays = {**arrays, **self._honest.joined(self._bounded(arrays))}
        for name, array in self._arrays.items():
            array[parties] = arrays[name]


class Summed(CheckedAnswers):
    """Keeps the sum of all answers only, however many parties there are; it is exact, and the same in any order.

    Entries are whole multiples of a step that is a power of two, or added at fixed places (`ExactTotal`). Where answers
    are few enough to be kept, those with noise are clipped along directions in which they spread more than noise;
    `robustness` may say otherwise, and answers without noise are summed as they come.
    """

    _found: tuple[Mapping[str, np.ndarray], int] | None = None

    @cached_property
    def _totals(self) -> dict[str, GridTotal | ExactTotal]:
        total = GridTotal if self._honest.on_grid else ExactTotal
        return {name: total(field.shape) for name, field in self._fields.items()}

    @cached_property
    def _gates(self) -> dict[str, GatedSum]:
        draws = self.question.draws if isinstance(self.question, PrivateQuestion) else 1
        return {part: GatedSum(self.parties, draws, width) for part, width in self._widths.items()}

    def total(self, name: str) -> np.ndarray:
        """One field, summed over the parties that answered, or what is left of their answers."""
        moved, clipped = self._correction
        whole = self._totals[name].value
        return whole + moved[name].reshape(whole.shape) if clipped and name in moved else whole

    @property
    def variance(self) -> float:
        """Of the noise on each entry of a sum: of all parties' own noise."""
        return self.counted("noises") * self._honest.variance

    @property
    def _clipped(self) -> int:
        return self._correction[1]

    @property
    def _correction(self) -> tuple[Mapping[str, np.ndarray], int]:
        """What clipping adds to the totals, and of how many parties something was clipped."""
        if self._found is None:
            robustness, _ = self.recipe
            honest, moved, clipped = self._honest, {}, np.zeros(0, dtype=np.int64)
            for part, gate in self._gates.items():
                moved[part], ids = gate.correction(honest.variance, honest.longest, alike=robustness.alike)
                clipped = np.union1d(clipped, ids)
            self._found = honest.joined(moved) if moved else {}, len(clipped)
        return self._found

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        if self._widths:
            parts = self._bounded(arrays)
            for part, gate in self._gates.items():
                spread = self._honest.spread(part, parts[part], arrays)
                gate.keep(parties[spread.chosen], spread.values, spread.weights)
            arrays, self._found = {**arrays, **self._honest.joined(parts)}, None
        self._counted.update(self._honest.counted(arrays))
        arrays = dict(self._honest.added(arrays))
        for name, total in self._totals.items():
            total.add(arrays[name])


# As a ledger puts it.
UNSEEN = "nobody saw a party's answer, so that none was checked: one that breaks its bounds may move the sum at will"
MASKED = (
    "shares were added by a masked sum with {by}, in letters between real parties; "
    "parts are hidden as long as X25519, HKDF, ChaCha20, AES-GCM and Ed25519 are what they are taken for, the parties' "
    "keys are theirs, and none puts back an older copy of what it knows of the sum"
)


class Secure(CheckedAnswers):
    """The sum over parties of the `steps` fields of a question, and of its other fields, which are public.

    A simulation hands in every answer (`add`), and adds them as the plan's `summation` does, which for few parties is a
    masked sum. Otherwise the total comes from a masked sum between real parties (`take_total`). Only public fields
    are checked: whoever adds up sees no part, and a hostile party may send any integers modulo 2^64. A total that
    honest parties cannot have is refused. Raises `InputError`, before anybody is asked, where no masked sum of the
    plan's parties can be, or honest numbers might wrap around modulo 2^64.
    """

    question: PrivateQuestion

    def __init__(self, question: PrivateQuestion, plan: TrialPlan) -> None:
        super().__init__(question, plan.terms.parties, None, Robustness(False), party_size(plan))
        self._steps = dict(question.steps)
        self._open = self._checked = question.open_fields
        self._totals = {name: np.zeros(field.shape) for name, field in self._open.items()}
        self.numbers = question.hidden_numbers
        self._whole = np.zeros(self.numbers, dtype=np.int64)
        self._taken, self._by = False, SAID[plan.terms.servers]
        self._summation: Summation | None = summation_of(plan, question, self.numbers)
        if self._honest.most is not None:
            noise = question.mechanism()
            largest = self._honest.most / min(self._steps.values())
            require_room(largest, noise.additive, noise.contributors, plan.terms.parties, self.numbers)
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

    @property
    def variance(self) -> float:
        """Of the noise on each entry of a hidden sum: of all shares, of which more come than are needed, as a rule."""
        return self.wholes * self._honest.variance

    def total(self, name: str) -> np.ndarray:
        """One field, summed over the parties that answered.

        Raises `QuorumError` where too few did for a masked sum, and `FederationError` for a total that no honest
        parties have: all that can be looked at is the total, which is private already.
        """
        if name in self._open:
            return self._totals[name]
        if self._summation is not None:
            self._summation.require(self._answered)
            if self._parts is not None:
                self._whole, self._parts = self._summation.total(self._parts, self._answered), None
        found = self._split()[name]
        reachable = self._honest.reachable(name, self._totals, self.answered, self.wholes)
        if reachable is not None and not bool(((found >= reachable[0]) & (found <= reachable[1])).all()):
            raise FederationError(
                f"the sum over {self.answered} parties is beyond what honest ones can have: some sent something else, "
                "or a second server told false masks, and who did cannot be seen; nothing is learned from it"
            )
        return found

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
        bad = super()._impossible(submission)
        for name in self._steps:  # what is no number cannot be masked
            bad |= ~np.isfinite(submission.arrays[name]).all(axis=tuple(range(1, submission.arrays[name].ndim)))
        return bad

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        self._counted.update(self._honest.counted(arrays))
        for name, total in self._totals.items():
            total += arrays[name].sum(axis=0)
        widths = {name: self._fields[name].numbers for name in self._steps}
        # Whole numbers of steps as a masked sum takes them; a hostile party's as large as they may be.
        whole = {
            name: np.clip(np.rint(arrays[name] / step), -MOST_STEPS, MOST_STEPS) for name, step in self._steps.items()
        }
        parts = np.hstack([found.astype(np.int64).reshape(-1, widths[name]) for name, found in whole.items()])
        self._whole = self._whole + parts.sum(axis=0)
        if self._parts is not None:
            self._parts[parties] = parts


def party_size(plan: TrialPlan) -> PartySize:
    """The public numbers of every party of a plan."""
    return PartySize(plan.public.bags, plan.public.largest_bag)


def asked_privately(
    question: PrivateQuestion, training: Training, plan: TrialPlan, *further: Assumption
) -> tuple[Asked, Guarantee | NoGuarantee]:
    """The question with its collector, and what answers promise: by themselves or, of shares, their sum.

    `further` are assumptions of this release beside those of a plan. Raises `InputError` for numbers that no noise
    works with, and where no masked sum of the parties can be.
    """
    whose = summed(plan, question.mechanism().additive) if question.shared else LOCAL
    promised = local_guarantee(plan, question.promise(), whose, further)
    return Asked(question, training, collector_of(question, plan, promised)), promised


def asked_openly(question: Question, training: Training, plan: TrialPlan) -> Asked:
    """A question whose answers need no noise, with the collector that keeps each."""
    return Asked(question, training, Kept(question, plan.terms.parties, None, public=party_size(plan)))


def collector_of(
    question: PrivateQuestion, plan: TrialPlan, promised: Guarantee | NoGuarantee
) -> Kept | Summed | Secure:
    """The collector of answers which promise that, or whose sum does where they share a noise."""
    if question.shared:
        return Secure(question, plan)
    promise = promised if isinstance(promised, Guarantee) else None
    kind = Kept if question.kept else Summed
    return kind(question, plan.terms.parties, promise, Robustness(plan.task.robust, plan.task.alike), party_size(plan))


class Summation(Protocol):
    """One secure aggregation of simulated parties: it adds up their shares of one noise.

    The plan names the class that does this. The simulation uses a masked sum, or adds in clear where a masked sum takes
    too long.
    """

    @property
    def masked(self) -> bool:
        """Whether it takes all parts and adds them through a masked sum."""

    def require(self, answered: Booleans) -> None:
        """Raises `QuorumError` where a masked sum of those who have answered would end without a total."""

    def total(self, parts: Integers, answered: Booleans) -> Integers:
        """The sum (d,) of the parts (K, d), whole numbers of grid steps, of those who have `answered`, (K,).

        Raises `QuorumError` where too few have for a masked sum.
        """

    def told(self, answered: Booleans) -> str:
        """How the sum was made and what it would cost, in public words, for the ledger."""


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


CHECKED = "answers were checked on arrival; those out of form were left out"  # as a ledger puts it
_REFUSED = "answer refused: values outside the declared range"
_UNPROMISED = "answer refused: it lacks the guarantee asked for"
_PROMISED = ("epsilon", "delta", "unit", "adjacency", "mechanism")


def _same(guarantee: Guarantee | None, promise: Guarantee) -> bool:
    return guarantee is not None and all(getattr(guarantee, name) == getattr(promise, name) for name in _PROMISED)
