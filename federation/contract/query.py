"""Queries, responses and limits: what an aggregator can ask of a party, and what the party sends back.

A query is private, trusted or public (`PrivateQuestion`, `TrustedQuestion`, `PublicQuestion`). The party bounds the
size of a query before it makes any payment.

A query is a frozen dataclass of plain values, arrays, feature maps and further such dataclasses. It therefore crosses
any transport (`federation.engines.codec`), and the receiver checks its type hints.

`Limits` holds the largest sizes that a query may have. Limits come from the code and from a site's own configuration,
never from the aggregator. Products of sizes are bounded in exact integers before anything of that size is allocated.

`Declared` holds the public numbers that one side declares about its data and its participants. A query must agree with
them.

`Submission` holds the responses of many parties as arrays with a leading party axis, so that a million parties are not
a million objects.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import eq, ge, le
from typing import Any, ClassVar, Protocol

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import SEEDED, Guarantee, NoGuarantee, require_delta, require_epsilon
from federation.contract.honest import Arrays, Honest, PartySize
from federation.contract.validation import apart

OFF = "off"  # the kind of noise that is none
_LONGEST_NAME = 1000

Curve = Callable[[float], float]  # the delta that is claimed at an epsilon >= 0


@dataclass(frozen=True)
class Field:
    """One declared array of an answer: its shape behind the party axis, and the values allowed in it.

    `levels` (integers 0..levels-1) marks a categorical field, which travels bit-packed; otherwise values are
    float64 in [minimum, maximum]. Raises `InputError` for axes that are no whole numbers from 0.

    Examples:
        >>> Field((3,), levels=4).invalid(np.array([[0, 3, 1], [0, 4, 1]], dtype=np.uint8))
        array([False,  True])
        >>> Field((2**40, 2**40)).numbers == 2**80  # nothing of this size is made
        True
    """

    shape: tuple[int, ...]
    levels: int | None = None
    minimum: float = -np.inf
    maximum: float = np.inf

    def __post_init__(self) -> None:
        for size in self.shape:
            whole("an axis of an answer", size, 0)

    @property
    def numbers(self) -> int:
        """Entries of one party's array; exact, however many there would be."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Storage type: the smallest unsigned integer for categories, float64 otherwise."""
        return np.dtype(np.float64) if self.levels is None else np.min_scalar_type(self.levels - 1)

    def invalid(self, values: np.ndarray) -> np.ndarray:
        """Boolean (P,): which parties' entries break the declared range."""
        flat = values.reshape(len(values), self.numbers)
        if self.levels is not None:
            return np.asarray(flat.max(axis=1, initial=0) >= self.levels)
        inside = (flat >= self.minimum) & (flat <= self.maximum)  # NaN compares false
        return np.asarray(~inside.all(axis=1))


def within(largest: float, *shape: int) -> Field:
    """The field of numbers from -largest to largest.

    Examples:
        >>> within(1.0, 2, 3)
        Field(shape=(2, 3), levels=None, minimum=-1.0, maximum=1.0)
    """
    return Field(shape, minimum=-largest, maximum=largest)


@dataclass(frozen=True)
class Question(ABC):
    """Base of all questions. What an answer is for is said by deriving from one of the three classes below."""

    kind: ClassVar[str]
    varies: ClassVar[tuple[str, ...]] = ()  # dotted names of what follows from earlier answers

    @abstractmethod
    def fields(self) -> dict[str, Field]:
        """The arrays that an answer carries."""

    def work(self) -> int:
        """Numbers that a party holds at a time while it answers, beside its rows and its answer; a bound."""
        return 0

    def assumes(self) -> "Declared":
        """What the question takes for granted of a party; nothing unless it says so."""
        return NOTHING

    def honest(self, public: PartySize) -> Honest:
        """Return what honest parties can send, from the query and these public numbers."""
        return Honest()

    @property
    def times(self) -> int:
        """How many queries of its kind one exchange has at most."""
        return 1

    @property
    def turn(self) -> int:
        """Its number among them, from 0. A party responds to each once."""
        return 0

    @property
    def takes_features_as_public(self) -> bool:
        """Whether labels alone are protected: for parties whose own configuration says that features are public."""
        return False

    @property
    def shared(self) -> bool:
        """Whether an answer has a share of a noise only, so that it hides nothing by itself but in a sum."""
        return False

    def require_bounded(self, limits: "Limits") -> None:
        """Refuse a question whose answer, or the work for it, is beyond what the code or this site allows.

        Nothing is allocated for it. Raises `InputError`.
        """
        numbers = sum(field.numbers for field in self.fields().values())
        for what, count in (("its answer has", numbers), ("to answer it takes", self.work())):
            if count > limits.numbers:
                asked, allowed = apart(count, limits.numbers)
                raise InputError(
                    f"the question '{self.kind}' is too large: {what} {asked} numbers, and this node allows "
                    f"{allowed}; ask for less at a time, or raise its limits"
                )


class PublicQuestion(Question):
    """Answers carry features as they are, of parties whose own configuration says that these are public."""

    takes_features_as_public = True


class TrustedQuestion(Question):
    """Answers have no protection of their own: they are for the eyes of a trusted aggregator only."""


@dataclass(frozen=True, kw_only=True)
class RoundQuestion(TrustedQuestion):
    """Base of trusted queries that are sent in every round: this is the query of round `round` of 0..`rounds`-1.

    The aggregator adds noise in every round under one guarantee, so the number of rounds is agreed on beforehand.
    `varies` of a subclass names `round` and the fields that follow from earlier rounds. Raises `InputError` for
    anything but 1 to 10,000 rounds, and for a round beyond the last.

    Examples:
        >>> class Means(RoundQuestion):
        ...     kind = "means"
        ...     def fields(self):
        ...         return {"mean": within(1.0, 3)}
        >>> Means(rounds=3, round=3)
        Traceback (most recent call last):
        federation.contract.errors.InputError: round must be a whole number from 0 to 2, got 3
    """

    varies: ClassVar[tuple[str, ...]] = ("round",)

    rounds: int
    round: int = 0

    def __post_init__(self) -> None:
        whole("rounds", self.rounds, 1, MOST_ROUNDS)
        whole("round", self.round, 0, self.rounds - 1)

    @property
    def times(self) -> int:
        """One query in each round."""
        return self.rounds

    @property
    def turn(self) -> int:
        """Its round."""
        return self.round


@dataclass(frozen=True)
class ReleaseId:
    """Names what is released under one guarantee: the key of its noise, of its payment and of its place in a ledger.

    A release is one answer, or `queries` of them that are agreed on beforehand and paid for together; this is the one
    numbered `query` of 0..`queries`-1. A party answers each once. Raises `InputError` for a name that is empty or
    longer than 1000 letters, and for a query beyond the last: noise is for so many, and no further one is answered.

    Examples:
        >>> ReleaseId("an exchange", queries=3, query=1).key
        'an exchange|query 1'
        >>> ReleaseId("an exchange", queries=3, query=3)
        Traceback (most recent call last):
        federation.contract.errors.InputError: query 4 is refused: 3 were agreed on for this release; begin a new one,
        whose noise is paid for again
    """

    name: str
    queries: int = 1
    query: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not 0 < len(self.name) <= _LONGEST_NAME:
            raise InputError(f"a release needs a name of 1 to {_LONGEST_NAME} characters; give it one")
        whole("queries of a release", self.queries, 1)
        whole("query of a release", self.query, 0)
        if self.query >= self.queries:
            raise InputError(
                f"query {self.query + 1} is refused: {self.queries} were agreed on for this release; begin a new one, "
                "whose noise is paid for again"
            )

    @property
    def key(self) -> str:
        """The purpose of the random numbers of this query's noise."""
        return self.name if self.queries == 1 else f"{self.name}|query {self.query}"


@dataclass(frozen=True)
class Noise:
    """What noise is asked for: its kind, and the (epsilon, delta) that it is calibrated to; all public numbers.

    A question has one such class of its own, whose `kind` names the choices. With the kind "off" there is none, and the
    numbers are 0. Raises `InputError` for an epsilon that is not positive, or a delta outside [0, 1).

    Examples:
        >>> Noise("gaussian", 1.0, 1e-6).target
        {'epsilon': 1.0, 'delta': 1e-06}
        >>> Noise(OFF, 1.0, 1e-6).target
        {'epsilon': 0.0, 'delta': 0.0}
    """

    kind: str
    epsilon: float = 0.0
    delta: float = 0.0

    def __post_init__(self) -> None:
        if self.aims:
            require_epsilon(self.epsilon)
            if self.epsilon > MOST_EPSILON:
                most, given = apart(MOST_EPSILON, self.epsilon)
                raise InputError(f"epsilon of a question must be at most {most}, got {given}")
            require_delta(self.delta)
        else:  # equal questions are one, whatever was aimed at in vain
            object.__setattr__(self, "epsilon", 0.0)
            object.__setattr__(self, "delta", 0.0)

    @property
    def aims(self) -> bool:
        """Whether there is noise that is calibrated to something."""
        return self.kind != OFF

    @property
    def target(self) -> dict[str, float]:
        """Its epsilon and delta, as calibrations take them."""
        return {"epsilon": self.epsilon, "delta": self.delta}

    @property
    def named(self) -> tuple[str | float, ...]:
        """What it adds to the name of a release."""
        return (self.kind, self.epsilon, self.delta) if self.aims else (self.kind,)


@dataclass(frozen=True)
class Declared:
    """Public facts; None where nothing is said.

    most_rows: rows of a party at most. A question about at most fewer is refused where the party may hold more.
    label_range: [lo, hi] of real labels.
    classes, bags, rows_per_person: as in `federation.queries.bags.Bags`; a question may count on more bags.
    honest: so many parties add their shares of a noise that none hides by itself, colluders not counted; a question
        whose shares are sized for more of them would leave too little noise.

    Examples:
        >>> site = Declared(label_range=(0.0, 5.0), most_rows=40)
        >>> site.require(Declared(most_rows=100))
        >>> site.require(Declared(label_range=(0.0, 1.0)))
        Traceback (most recent call last):
        federation.contract.errors.InputError: the question takes label_range to be (0.0, 1.0), this side declares
        (0.0, 5.0); whoever asks and this site must agree on it before anything is paid
    """

    most_rows: int | None = None
    label_range: tuple[float, float] | None = None
    classes: int | None = None
    bags: int | None = None
    rows_per_person: int | None = None
    honest: int | None = None

    def require(self, assumed: "Declared") -> None:
        """Refuse what contradicts this. Raises `InputError` that names both sides' numbers."""
        for declared in fields(self):
            own, theirs = getattr(self, declared.name), getattr(assumed, declared.name)
            if own is not None and theirs is not None and not _AGREES.get(declared.name, eq)(theirs, own):
                raise InputError(
                    f"the question takes {declared.name} to be {theirs}, this side declares {own}; whoever asks and "
                    "this site must agree on it before anything is paid"
                )


# How what a question assumes must stand to what a side declares; where nothing is said, it must be equal.
_AGREES = {"most_rows": ge, "bags": ge, "honest": le}

NOTHING = Declared()


@dataclass(frozen=True, kw_only=True)
class PrivateQuestion(Question):
    """Answers get noise at the party, which pays for them before it computes anything from a row.

    `noise` is of a class of its own in each question. `release` names what the answer is part of; with the party's
    number it keys the noise of a simulation. `draws` independent answers are asked for, more than one in a simulation
    only. `seeded` asks for noise that follows the seed; else it comes from the operating system. Raises `InputError`
    for anything but 1 to 1,000,000 draws, and for a release of several queries unless the question is made for them:
    the noise of one answer must not be paid for once and asked for often.
    """

    kept: ClassVar[bool] = False  # whether each response is of use by itself, and not only their sum
    mechanism: ClassVar[Callable[..., Any]]  # that of its noise; a method
    in_rounds: ClassVar[bool] = False  # whether its noise is for all queries of its release together

    noise: Noise
    release: ReleaseId
    draws: int = 1
    seeded: bool = False

    def __post_init__(self) -> None:
        whole("draws", self.draws, 1, MOST_DRAWS)
        if self.release.queries != 1 and not self.in_rounds:
            raise InputError(
                f"the question '{self.kind}' is a release by itself, got one of {self.release.queries} queries; name a "
                "release for each"
            )

    @property
    def times(self) -> int:
        """The queries of its release."""
        return self.release.queries

    @property
    def turn(self) -> int:
        """The number of its query."""
        return self.release.query

    @abstractmethod
    def _promised(self) -> Guarantee | NoGuarantee:
        """What one answer with noise promises, whoever gives it.

        Raises `InputError` for numbers that no mechanism works with.
        """

    def _paid(self) -> Guarantee | NoGuarantee:
        """What all queries of the release promise together; the answer's own promise where there is one query."""
        return self._promised()

    def curve(self) -> Curve | None:
        """The delta of the whole release at every epsilon, where more is known than its guarantee says; audits test it.

        A guarantee says one point of it, and with a `gaussian_mu` a bound on all. None where no more is known.
        """
        return None

    @property
    def noisy(self) -> tuple[str, ...]:
        """Names of the fields that carry noise."""
        return tuple(self.fields())

    def noised(self, arrays: Arrays) -> np.ndarray:
        """Return the numbers that `mechanism` adds noise to, (n, k): by default all `noisy` fields side by side."""
        return np.concatenate([arrays[name].reshape(len(arrays[name]), -1) for name in self.noisy], axis=1)

    def log_ratio(self, seen: Arrays, here: Arrays, there: Arrays) -> np.ndarray:
        """Return how much likelier each run that is `seen` is from the exact responses `there` than from `here`, (n,).

        A logarithm, up to a positive factor: audits tell two neighbours apart by it. Arrays are by field, those that
        are seen with the runs on their first axis, and exact ones with one run. By default the law of the noise of
        `mechanism` decides, on what is `noised`.
        """
        noise = self.mechanism()
        law = getattr(noise, "additive", noise)  # shares add up to the whole noise
        return np.asarray(law.log_ratio(*(self.noised(side) for side in (seen, here, there))))

    @property
    def steps(self) -> Mapping[str, float]:
        """Of the fields with a share of a noise only, which hide nothing but in a sum over parties, the grid's step.

        Empty where every answer hides itself. What is sent is whole multiples of the step; the other fields are public.
        """
        return {}

    @property
    def shared(self) -> bool:
        """Where a field is summed unseen."""
        return bool(self.steps)

    @property
    def open_fields(self) -> dict[str, Field]:
        """Of an answer the fields that are public, all of them where every answer hides itself."""
        steps = self.steps
        return {name: field for name, field in self.fields().items() if name not in steps}

    @property
    def hidden_numbers(self) -> int:
        """How many numbers of an answer are added up unseen."""
        fields = self.fields()
        return sum(fields[name].numbers for name in self.steps)

    def simulated_only(self) -> str | None:
        """Why a deployed party must refuse, in a sentence; None where it need not."""
        if not self.shared:
            return None
        return "this node has no secure summation, and a share of the noise hides nothing by itself"

    def promise(self, declared: Declared = NOTHING) -> Guarantee | NoGuarantee:
        """What one answer promises, by public numbers only: the same on both sides.

        `declared` is what the own configuration of whoever computes it says. Raises `InputError` where the question
        contradicts that, and for numbers that no mechanism can work with.
        """
        return self._guaranteed(declared, self._promised)

    def payment(self, declared: Declared = NOTHING) -> Guarantee | NoGuarantee:
        """What all queries of the release promise together, and what is paid for once. Raises as `promise`."""
        return self._guaranteed(declared, self._paid)

    def _guaranteed(
        self, declared: Declared, calibrated: Callable[[], Guarantee | NoGuarantee]
    ) -> Guarantee | NoGuarantee:
        """With where the bits of the noise come from; nothing where there is no noise."""
        declared.require(self.assumes())
        if self.noise.kind == OFF:
            return NoGuarantee("noise is off")
        try:
            promised = calibrated()
        except ArithmeticError as error:
            raise InputError(
                f"no mechanism works with the numbers of the question '{self.kind}' ({error}); ask for noise between "
                "the extremes"
            ) from error
        if isinstance(promised, NoGuarantee):
            return promised
        parameters = {**promised.parameters, "entropy": "seed" if self.seeded else "system"}
        assumptions = (*promised.assumptions, SEEDED) if self.seeded else promised.assumptions
        return replace(promised, parameters=parameters, assumptions=assumptions)


MOST_BINS = 10_000  # of one feature
MOST_WIDTH = 2**12  # of a hidden layer, as of a hypothesis (`federation.queries.marginals`)
MOST_EPOCHS = 100_000
MOST_ROUNDS = 10_000
MOST_TRIALS = 100_000  # splits, or noise draws of a release


def require_waves(dimensions: int) -> None:
    """Raises `InputError` unless `dimensions` is an even number of random features: a cosine and a sine each."""
    if not 2 <= dimensions <= MOST_FEATURES or dimensions % 2:
        raise InputError(f"dimensions must be an even number from 2 to {MOST_FEATURES}, got {dimensions}")


class Collector(Protocol):
    """Takes answers in as they arrive, whoever answers first.

    Collectors of one type that have equal `recipe`s make the same of the same answers; an aggregator keeps one of them.
    """

    @property
    def recipe(self) -> tuple[Any, ...]:
        """What it does with answers, beside its type and its question; mostly nothing."""

    @property
    def answered(self) -> int:
        """Number of parties whose answer was accepted."""

    def add(self, submission: "Submission") -> dict[int, str]:
        """Take a submission in; returns the refused parties and why."""


@dataclass(frozen=True)
class Submission:
    """The answers of some parties to one question.

    `parties` (P,) are the ids that answered, `arrays` the declared fields with a leading axis of length P, and
    `failures` names the parties that could not answer and why. `guarantee` is None for a trusted-only submission:
    it may be used by the trusted aggregator and written nowhere.
    """

    kind: str
    parties: np.ndarray
    arrays: Mapping[str, np.ndarray]
    guarantee: Guarantee | None = None
    failures: Mapping[int, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        shapes = {name: array.shape for name, array in self.arrays.items()}
        return f"Submission({self.kind}, {len(self.parties)} parties, {shapes}, {len(self.failures)} failures)"


def check_submission(question: Question, submission: Submission) -> None:
    """Refuse a submission whose form is not the declared one; values are checked per party by `Field.invalid`.

    Raises `InputError` when the kind differs, a field is missing or undeclared, a type or shape differs, an id is
    negative or occurs twice.
    """
    fields = question.fields()
    if submission.kind != question.kind:
        raise InputError(f"expected an answer to '{question.kind}', got one to '{submission.kind}'")
    if set(submission.arrays) != set(fields):
        raise InputError(f"an answer to '{question.kind}' carries {sorted(fields)}, got {sorted(submission.arrays)}")
    parties = submission.parties
    if parties.ndim != 1 or parties.dtype.kind not in "iu" or (parties < 0).any():
        raise InputError(f"party ids must be a list of integers >= 0, got {parties.dtype} of shape {parties.shape}")
    if len(np.unique(parties)) != len(parties):
        raise InputError("a submission names a party twice")
    for name, declared in fields.items():
        array, shape = submission.arrays[name], (len(parties), *declared.shape)
        if array.dtype != declared.dtype or array.shape != shape:
            raise InputError(
                f"field '{name}' must be {declared.dtype} of shape {shape}, got {array.dtype} of shape {array.shape}"
            )


MOST_CONFIGURED = 2**31  # numbers that a site may allow
MOST_FEATURES = 100_000  # that a map makes of a row, and between its steps
MOST_COLUMNS = 2**24  # of raw rows
MOST_CLASSES = 2**16
MOST_BAGS = 2**20  # of a party, and cells of classes in its bags
MOST_STEPS = 64  # of a feature map
MOST_EPSILON = 1e100  # beyond it double precision overflows in the accountants
MOST_ROWS = 10**9  # of parties, and parties; a public guess of them, too
MOST_DRAWS = 10**6


@dataclass(frozen=True)
class Limits:
    """How many `numbers` a party may answer with, or hold at a time for an answer; a number has 8 bytes.

    Raises `InputError` for anything but 1 to 2^31 of them.

    Examples:
        >>> Limits().numbers
        33554432
    """

    numbers: int = 2**25

    def __post_init__(self) -> None:
        whole("numbers of a node's limits", self.numbers, 1, MOST_CONFIGURED)


def whole(name: str, value: Any, least: int, most: int | None = None) -> None:
    """Raises `InputError` unless `value` is a whole number (no boolean) from `least` to `most`.

    Examples:
        >>> whole("rows", 10, 1, 10)
        >>> whole("rows", True, 1, 10)
        Traceback (most recent call last):
        federation.contract.errors.InputError: rows must be a whole number from 1 to 10, got True
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        upto = "" if most is None else f" to {most}"
        shown = f"{value!r:.40}" if not isinstance(value, int) or abs(value) < 10**18 else "one of more than 18 digits"
        raise InputError(f"{name} must be a whole number from {least}{upto}, got {shown}")


CODE = Limits()  # what holds where a site says nothing
SIMULATED = Limits(2**28)  # in a simulation, whose user pays for its memory
