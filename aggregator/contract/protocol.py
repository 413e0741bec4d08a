"""The base class of protocols and its declarations: task, needs, trust settings, planned guarantee and option rules.

The framework asks nothing else of a `Protocol`. A broken option rule gives an error that names the clashing options.

A `Task` names the purpose of a release and the measure that compares releases. A `Promise` is the planned guarantee,
and `Sent` describes the messages of a party for it. Both are known before any query is sent.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from aggregator.contract.expectations import Expected
from aggregator.contract.session import Session
from aggregator.contract.worst_case import WorstCase
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from federation.contract.query import OFF

if TYPE_CHECKING:
    from aggregator.trial.trial import World


class Trust(StrEnum):
    """Whom parties trust, the most first; the values of the option `trust` that every protocol has."""

    AGGREGATOR = "aggregator"  # to see their answers and to add the noise
    SECURE = "secure"  # a summation that shows nothing but sums
    NONE = "none"  # nobody: every answer is private by itself


class Place(StrEnum):
    """Where the noise of a release is made."""

    AGGREGATOR = "aggregator"  # who sees exact answers
    PARTY = "party"  # each party hides its own answer
    SHARES = "shares"  # parties add shares of one noise, and only sums are seen
    NOWHERE = "nowhere"  # there is none


@dataclass(frozen=True)
class Refused:
    """Why a protocol cannot work under a trust, in a sentence."""

    reason: str


@dataclass(frozen=True)
class Requires:
    """What a protocol needs of the data and the parties.

    labels: class names, or real numbers with a declared range.
    two_classes: there are two classes.
    bags: parties hold bags of rows, whose label counts are asked for.
    single_rows: what is protected is one row or label, so that persons with several rows are refused.
    classifier: every party trains the scenario's classifier on its own rows.
    features: the feature map that it takes where a scenario names none; empty for the scenario's own default.
    public_rows: what is released is learned from public rows without labels, so that there must be some.
    """

    labels: Literal["classes", "real"] = "classes"
    two_classes: bool = False
    bags: bool = False
    single_rows: bool = False
    classifier: bool = False
    features: tuple[str | Mapping[str, Any], ...] = ()
    public_rows: bool = False


@dataclass(frozen=True)
class Rule:
    """How a default was chosen, in three sentences that users read: each on one line, without a full stop.

    default: what is chosen, with the names of the options.
    rule: by which public numbers, or by what argument.
    validated: on which data sets, with which figures, and where it is not the best.

    Raises `InputError` for a sentence that is empty or has several lines.

    Examples:
        >>> Rule("noise: pure", "it needs no delta", "digits, 200 parties, epsilon 1: .29").default
        'noise: pure'
    """

    default: str
    rule: str
    validated: str

    def __post_init__(self) -> None:
        for name, text in vars(self).items():
            if not isinstance(text, str) or not text.strip() or len(text.splitlines()) > 1:
                raise InputError(f"{name} of a Rule must be a sentence on one line, got {text!r:.80}")


@dataclass(frozen=True)
class Protocol(ABC):
    """A protocol's options are the fields of a frozen dataclass that derives from this class.

    trust: whom parties trust: the `aggregator`, to see their answers, a `secure` summation, which shows it nothing but
        the sum of answers that share one noise, or `none`, where every answer is private by itself. Where a protocol
        has each party hide its own answer whatever it trusts, the first makes no difference to the last.

    Of literals, numbers, booleans, texts and tuples of them, with defaults; options that clash are refused by
    `__post_init__` with an `InputError`. Installed under its name by an entry point `federation.protocols`, it is
    checked when it is loaded (`aggregator.contract.registry`). The first line of its docstring is what `federation
    list` says.
    """

    requires: ClassVar[Requires]
    task: ClassVar[str]  # entry point `federation.tasks`: what its releases are scored by
    model: ClassVar[str]  # entry point `federation.models`: the kind of model that it releases
    why_default: ClassVar[tuple[Rule, ...]] = ()  # how its defaults were chosen
    suggested: ClassVar[tuple[Mapping[str, Any], ...] | Refused] = ({},)  # options worth comparing, or why none are

    trust: Literal["aggregator", "secure", "none"] = field(default="aggregator", kw_only=True)

    @property
    def place(self) -> Place | Refused:
        """Where its noise is made under the trust that it is given, or why it cannot work under it."""
        return self.noise_at(Trust(self.trust))

    def promised(self, public: PublicNumbers, epsilon: float) -> Promise:
        """What one release promises under the trust that it is given. Raises `InputError` as `promise`."""
        return self.promise(public, epsilon, Trust(self.trust))

    @property
    def proper_loss(self) -> str | None:
        """The loss that its models of two classes minimise, if scores of that stand for probabilities; else None.

        A name of `aggregator.learners.linear_odd.losses`. Linear models of such a loss tell probabilities.
        """
        return None

    @abstractmethod
    def noise_at(self, trust: Trust) -> Place | Refused:
        """Where the noise is made under a trust, or why it cannot work under it."""

    @abstractmethod
    def promise(self, public: PublicNumbers, epsilon: float, trust: Trust) -> Promise:
        """An upper bound of what one release spends that aims at `epsilon`, and what leaves a party.

        What is really charged may be less, never more. Without any aim at an epsilon it returns a `NoGuarantee` that
        claims nothing, and there is one release whatever epsilons are asked for. Raises `InputError` for numbers that
        it cannot work with.
        """

    @abstractmethod
    def begin(self, world: World, epsilon: float, draws: int) -> Session:
        """A session for one release with so many noise draws; nobody has been asked. Raises `InputError`s."""

    @abstractmethod
    def worst_case(self, units: int, public: PublicNumbers) -> WorstCase:
        """A small world and two neighbouring inputs on which the noise must do most, for audits.

        They differ in `units` of what is protected: in one, which a guarantee covers, or in two, which it does not, so
        that an audit which cannot see the difference has no power. Of `public` only the classes, the range of labels
        and the persons' rows are kept; the sizes are the worst case's own.
        """

    def expected_error(self, public: PublicNumbers, epsilon: float) -> Expected | None:
        """What a release may be expected to miss by public numbers; None where no formula is known, or a number is not.

        Raises `InputError` for numbers that it cannot work with.
        """
        return None

    def check_setting(  # noqa: B027 - most protocols work with all of them
        self, features: Sequence[str | Mapping[str, Any]], classifier: Mapping[str, Any]
    ) -> None:
        """Refuse a feature map or a classifier that these options cannot work with. Raises `InputError`."""

    def idle(self) -> dict[str, str]:
        """Options that make no difference whatever their values, and beside which others."""
        return {}

    @classmethod
    def why_refused(cls, option: str, value: str) -> str | None:
        """Why a word is not among those that an option allows, where there is more to say; None elsewhere."""
        return None


def require_positive(name: str, value: float) -> None:
    """Raises `InputError` unless `value` is positive and finite.

    Examples:
        >>> require_positive("ridge", -1.0)
        Traceback (most recent call last):
        federation.contract.errors.InputError: ridge must be a positive number, got -1.0
    """
    if not 0 < value < math.inf:
        raise InputError(f"{name} must be a positive number, got {value}")


def refuse_misplaced(options: Any, names: tuple[str, ...], home: str, at_home: bool) -> None:
    """Refuse options that differ from their defaults where they mean nothing.

    `options` is a dataclass of options, `names` some of its fields, `home` the option under which they count, in
    words, and `at_home` whether that is chosen. Raises `InputError`.

    Examples:
        >>> from aggregator.protocols.parameter_average import ParameterAverage
        >>> ParameterAverage(average="unit", clip=0.5)
        Traceback (most recent call last):
        federation.contract.errors.InputError: clip belongs to average: clipped; remove it or choose that
    """
    defaults = {field.name: field.default for field in dataclasses.fields(options)}
    strays = [name for name in names if _plain(getattr(options, name)) != _plain(defaults[name])]
    if strays and not at_home:
        verb, them = ("belongs", "it") if len(strays) == 1 else ("belong", "them")
        raise InputError(f"{' and '.join(strays)} {verb} to {home}; remove {them} or choose that")


def _plain(value: Any) -> Any:
    """A list for a tuple, as JSON has it: scenarios and plans give options so."""
    return list(value) if isinstance(value, tuple) else value


def refuse_public_reach(sensitivity: str, protect: str) -> None:
    """Refuse a sensitivity that is a function of rows which are to be protected. Raises `InputError`."""
    if sensitivity == "public_features" and protect != "party":
        raise InputError(
            "sensitivity: public_features is a function of the auxiliary rows, one of which protect: "
            f"{protect} covers; use tight or diameter, or protect: party"
        )


@dataclass(frozen=True)
class Sent:
    """One thing that leaves a party, in words: how many numbers it is, None where that is not known yet.

    `private` says that it carries noise of its own; else whoever gets it sees it as it is.
    """

    what: str
    numbers: int | None
    private: bool


@dataclass(frozen=True)
class Promise:
    """What a release will spend at most, before anything is asked, and what leaves a party for it.

    `spends` has the unit, the adjacency and upper bounds of epsilon and delta, or says why nothing is promised. Where
    public numbers on which it depends are not known it is the least that it can be.
    """

    spends: Guarantee | NoGuarantee
    sends: tuple[Sent, ...]

    @classmethod
    def of(
        cls,
        protocol: Any,
        epsilon: float,
        delta: float,
        unit: Unit,
        *sends: Sent,
        adjacency: Adjacency = Adjacency.REPLACE,
    ) -> Promise:
        """The promise of a protocol with an option `noise`: these numbers for one unit, and nothing without noise."""
        if protocol.noise == OFF:
            return cls(NoGuarantee("noise is off"), sends)
        return cls(Guarantee(epsilon, delta, unit, adjacency, type(protocol).__name__), sends)


@dataclass(frozen=True)
class Metric:
    """A metric by which variants are compared: `name` in results.csv, `several` of them in a sentence.

    `label` is its name in words, as on the axis of a figure; `bounds` the least and the largest value it can have.
    """

    name: str
    several: str
    higher_is_better: bool
    label: str
    bounds: tuple[float, float] = (-math.inf, math.inf)

    @property
    def mean(self) -> str:
        """The mean over releases, in a sentence."""
        return f"mean {self.label.removeprefix('mean ')}"

    def better(self, value: float, other: float) -> bool:
        """Whether a value is better than another."""
        return value > other if self.higher_is_better else value < other


@dataclass(frozen=True)
class Task:
    """A task of protocols, installed under its name by an entry point `federation.tasks`.

    labels: class names, or real numbers with a declared range.
    metric: by which variants are compared.
    scoring: `module:attribute` of what scores releases on rows that neither app sees (`scenarios.scores.scoring`).
    baselines: the NON-PRIVATE references that have a meaning for it.
    targets: its releases are scored on sets of unlabelled rows.
    """

    name: str
    labels: Literal["classes", "real"]
    metric: Metric
    scoring: str
    baselines: frozenset[str] = field(default_factory=lambda: frozenset({"pooled"}))
    targets: bool = False
