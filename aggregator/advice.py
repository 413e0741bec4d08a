"""Ranking of all installed protocols for stated requirements: by expected loss, or refused with the reason.

`Wish` holds the requirements: public numbers, and the trust setting.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import Any, Literal, get_args

from aggregator.contract import registry
from aggregator.contract.expectations import Expected
from aggregator.contract.protocol import Place, Promise, Protocol, Refused, Sent, Trust
from aggregator.learners.inputs.validation import require_one_of
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee, NoGuarantee, Unit, require_delta, require_epsilon
from federation.contract.trust import TrustTerms
from federation.mechanisms.accounting.composition import group_delta

Options = Mapping[str, Any]

_ENOUGH = {  # trusts that ask for no more than this one; who may see answers may add up what nobody else sees
    Trust.AGGREGATOR: (Trust.AGGREGATOR, Trust.SECURE),
    Trust.SECURE: (Trust.SECURE, Trust.NONE),
    Trust.NONE: (Trust.NONE,),
}
_PEOPLE = {"party": "all that a party holds", "person": "all rows of a person", "row": "one row", "label": "one label"}
_OTHER: Mapping[Protect, tuple[Protect, ...]] = {  # what else could be hidden, the nearest first
    "party": ("row", "label"),
    "person": ("row", "label"),
    "row": ("label", "party"),
    "label": ("row", "party"),
}
_HIDES = {  # what a guarantee for a unit hides
    Unit.PARTY: "party",
    Unit.PARTY_AND_AUXILIARY_ROW: "party",
    Unit.PERSON: "person",
    Unit.ROW: "row",
    Unit.LABEL: "label",
}


@dataclass(frozen=True)
class Ranked:
    """A protocol with options that keeps the wish: what it promises, who makes the noise, and what to expect of it.

    `expected` is None where no formula is known: only a run can tell.
    """

    kind: str
    options: Options
    promise: Promise
    place: Place
    expected: Expected | None

    @property
    def entry(self) -> dict[str, Any]:
        """As under `protocols` of a scenario."""
        return {"kind": self.kind, **self.options}

    @property
    def guarantee(self) -> Guarantee:
        """What one release spends at most."""
        assert isinstance(self.promise.spends, Guarantee), "others are refused"
        return self.promise.spends


@dataclass(frozen=True)
class Refusal:
    """A protocol that cannot keep the wish, and the reason, in a sentence."""

    kind: str
    reason: str


@dataclass(frozen=True)
class Advice:
    """The protocols that keep a wish, the least expected error first, and all others with the reason."""

    ranked: tuple[Ranked, ...]
    refused: tuple[Refusal, ...]


class _CannotError(Exception):
    """Why options do not keep a wish; the later the step at which it is found, the nearer they come."""

    def __init__(self, step: int, reason: str) -> None:
        super().__init__(reason)
        self.step, self.reason = step, reason


def rank(wish: Wish) -> Advice:
    """All installed protocols, with all options that they suggest, under a wish.

    Those without a formula stand behind all others. A protocol is refused where none of its suggested options keeps the
    wish, by the reason of those that come nearest.

    Examples:
        >>> wish = Wish("binary", "label", Trust.NONE, rows=12_000, features=50, terms=TrustTerms(100), epsilon=1.0)
        >>> first = rank(wish).ranked[0]
        >>> first.kind, round(first.expected.noise, 3), first.expected.loss
        ('mean_operator', 0.018, 'little')
    """
    ranked: list[Ranked] = []
    refused: list[Refusal] = []
    for kind in registry.protocol_names():
        try:
            found = registry.protocol(kind)
        except InputError as error:
            refused.append(Refusal(kind, str(error)))
            continue
        if isinstance(found.suggested, Refused):
            why = _wrong_task(found, wish) or found.suggested.reason
            refused.append(Refusal(kind, why))
            continue
        kept, nearest = [], _CannotError(-1, "it suggests no options to compare")
        for options, trust in product(found.suggested, _ENOUGH[wish.trust]):
            try:
                kept.append(_judged(kind, found, options, wish, trust))
            except _CannotError as cannot:
                nearest = max(nearest, cannot, key=lambda one: one.step)
        ranked += _different(kept)
        if not kept:
            refused.append(Refusal(kind, nearest.reason))
    return Advice(tuple(sorted(ranked, key=_order)), tuple(refused))


def contenders(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Those that are worth a trial: of the same options under several trusts the one with the least expected error.

    The others send the same and get more noise, or it was measured to be so. Where no formula is known all stay.

    Examples:
        >>> known = {"rows": 3000, "features": 9, "terms": TrustTerms(100), "public_rows": 500}
        >>> wish = Wish("binary", "party", Trust.AGGREGATOR, **known)
        >>> [one.options for one in contenders(rank(wish).ranked) if one.kind == "soft_vote"]
        [{}, {'noise': 'gaussian'}]
    """
    found: dict[object, Ranked] = {}
    for place, one in enumerate(ranked):
        same = tuple(sorted((name, str(value)) for name, value in one.options.items() if name != "trust"))
        found.setdefault((one.kind, same, place if one.expected is None else None), one)
    return list(found.values())


def nearest(wish: Wish) -> list[tuple[Mapping[str, str], Ranked]]:
    """What else could be wished for, as flags of `federation advise` with their values, and what is then first.

    Of the wishes that can be kept those that differ from this one in the fewest things.
    """
    changes: list[tuple[dict[str, str], dict[str, Any]]] = [
        ({"protect": other}, {"protect": other}) for other in _OTHER[wish.protect] if other != "label"
    ]
    if "label" in _OTHER[wish.protect]:
        visible = {} if wish.public_features else {"features": "public"}
        changes.append(({"protect": "label", **visible}, {"protect": "label", "public_features": True}))
    trusts = list(Trust)
    changes += [({"trust": str(more)}, {"trust": more}) for more in reversed(trusts[: trusts.index(wish.trust)])]
    if wish.task == "multiclass":
        changes.append(({"positive": "CLASS"}, {"task": "binary", "classes": None}))
    if not wish.public_rows:
        changes.append(({"public-rows": "FILE"}, {"public_rows": wish.rows or 1000}))
    for together in range(1, len(changes) + 1):
        found: list[tuple[Mapping[str, str], Ranked]] = []
        for chosen in combinations(changes, together):
            if len({next(iter(flags)) for flags, _ in chosen}) == together:
                flags = {name: value for named, _ in chosen for name, value in named.items()}
                new = {name: value for _, change in chosen for name, value in change.items()}
                if ranked := rank(replace(wish, **new)).ranked:
                    found.append((flags, ranked[0]))
        if found:
            return found
    return []


def _order(one: Ranked) -> tuple[float, bool, str]:
    """By what is expected; where that is the same a summed release goes first, which was never measurably worse."""
    return (math.inf if one.expected is None else one.expected.error, one.place is not Place.SHARES, one.kind)


def _different(kept: list[Ranked]) -> list[Ranked]:
    """Without options of which the same is expected as of earlier ones, by the same noise: these chose them."""
    seen: set[tuple[float, float | None, Place, tuple[Sent, ...]]] = set()
    found = []
    for one in kept:
        known = None if one.expected is None else (one.expected.error, one.expected.noise, one.place, one.promise.sends)
        if known is None or known not in seen:
            found.append(one)
        if known is not None:
            seen.add(known)
    return found


def _wrong_task(found: type[Protocol], wish: Wish) -> str | None:
    if found.task == TASKS[wish.task]:
        return None
    return f"its task is {found.task.replace('_', ' ')}, and yours {TASKS[wish.task].replace('_', ' ')}"


def _judged(kind: str, found: type[Protocol], options: Options, wish: Wish, trust: Trust) -> Ranked:
    """The options under the wish, whose trust is enough for this one. Raises `_CannotError`."""
    if wrong := _wrong_task(found, wish):
        raise _CannotError(0, wrong)
    needs = found.requires
    if needs.two_classes and wish.classes != 2:
        many = f"and there are {wish.classes}" if wish.classes else "and you have more"
        raise _CannotError(1, f"it tells two classes apart, {many}; name those that count as one with --positive")
    if needs.bags and wish.bags is None:
        raise _CannotError(1, "it needs bags of rows: say how many each party has, with --bags")
    protocol = registry.configured(found, {**options, "trust": str(trust)})
    public = wish.numbers("constant" in needs.features)
    try:
        promise = protocol.promised(public, wish.epsilon)
    except InputError as error:
        raise _CannotError(4, str(error)) from error
    _require_hidden(promise, wish, single=needs.single_rows)
    place = protocol.place
    if isinstance(place, Refused):
        raise _CannotError(5, place.reason)
    if place is Place.NOWHERE:
        raise _CannotError(2, "it adds no noise, and so it has no guarantee")
    exact = [one.what for one in promise.sends if not one.private]
    if place is not Place.AGGREGATOR and not wish.public_features and exact:
        raise _CannotError(6, f"a party sends {' and '.join(exact)} as they are, and features are private here")
    if needs.public_rows and not wish.public_rows:
        raise _CannotError(7, "it learns from public rows without labels: give a file of them with --public-rows")
    try:
        expected = protocol.expected_error(public, wish.epsilon)
        # What each party hides by itself needs no trust, and no word on it.
        own = {} if place == protocol.noise_at(Trust.AGGREGATOR) else {"trust": str(trust)}
        return Ranked(kind, {**options, **own}, promise, place, expected)
    except InputError as error:
        raise _CannotError(8, str(error)) from error


def _require_hidden(promise: Promise, wish: Wish, single: bool) -> None:
    """Raise `_CannotError` unless a release hides what it has to, neither less nor more."""
    if isinstance(promise.spends, NoGuarantee):
        raise _CannotError(2, f"it promises nothing: {promise.spends.reason}")
    hidden = _HIDES[promise.spends.unit]
    accepted = {wish.needed}
    if wish.protect == "person":
        accepted = {"person", "party"} if wish.person_is_party else {"person"}
        if wish.rows_per_person == 1 and not wish.person_is_party:
            accepted |= {"row"} if not wish.public_features else {"row", "label"}
    if hidden in accepted:
        return
    if wish.protect == "person" and not wish.person_is_party and single and hidden in ("row", "label"):
        many, each = wish.rows_per_person, wish.epsilon / wish.rows_per_person
        enough = f"--protect {hidden} at epsilon {each:.3g} hides so many together"
        if promise.spends.delta:
            enough += f" at delta {group_delta(each, promise.spends.delta, many):.3g}"
        raise _CannotError(3, f"it hides {_PEOPLE[hidden]}, and a person has up to {many}; {enough}")
    text = f"it hides {_PEOPLE[hidden]}, and what has to be hidden is {_PEOPLE[wish.needed]}"
    if wish.needed != wish.protect:
        text += ", as features are private"
    raise _CannotError(3, text)


Task = Literal["binary", "multiclass", "regression", "ratio"]
Protect = Literal["party", "person", "row", "label"]

TASKS: Mapping[Task, str] = {  # as protocols name what they are for
    "binary": "classification",
    "multiclass": "classification",
    "regression": "regression",
    "ratio": "class_ratio",
}


@dataclass(frozen=True)
class Wish:
    """What is to be learned, what nobody may tell from it, who is trusted, and the public numbers of the data.

    task: two classes, several, real numbers in `label_range`, or the class ratios of unlabelled sets.
    protect: what a guarantee is to hide: all that a `party` holds, all rows of a `person`, one `row`, or one `label`.
    trust: the least trust that may be asked of parties.
    public_features: whether rows without their labels may be seen by everybody.
    rows: private rows of all parties together; None where nobody says.
    features: of a row, without a constant.
    public_rows: unlabelled rows that are public; 0 where there are none, None where that is not known.
    bags, bag_rows: of a party, for `ratio`.
    rows_per_person: the most that one person has; 1 makes a person a row.
    person_is_party: whether every person is a party, so that to hide a party is to hide a person.
    majority, attainable, residual, traces, spectrum: as of `PublicNumbers`.

    Raises `InputError` for numbers out of range and such as contradict each other.

    Examples:
        >>> Wish("binary", "label", Trust.NONE, rows=1000, features=8, terms=TrustTerms(10), epsilon=1.0).classes
        2
    """

    task: Task
    protect: Protect
    trust: Trust
    public_features: bool = True
    rows: int | None = None
    features: int | None = None
    terms: TrustTerms | None = None
    epsilon: float = 1.0
    delta: float = 1e-6
    classes: int | None = None
    label_range: tuple[float, float] | None = None
    public_rows: int | None = None
    bags: int | None = None
    bag_rows: int | None = None
    rows_per_person: int = 1
    person_is_party: bool = False
    majority: float | None = None
    attainable: float | None = None
    residual: float | None = None
    traces: Mapping[str, float] = field(default_factory=dict)
    spectrum: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        require_one_of("task", self.task, get_args(Task))
        require_one_of("protect", self.protect, get_args(Protect))
        require_epsilon(self.epsilon)
        require_delta(self.delta)
        for name in ("rows", "features", "parties", "bags", "bag_rows", "rows_per_person"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InputError(f"{name} must be a whole number from 1, got {value!r}")
        if self.rows is not None and self.parties is not None and self.parties > self.rows:
            raise InputError(
                f"parties must be at most rows, one row each, got {self.parties} parties and {self.rows} rows"
            )
        if self.task == "binary":
            if self.classes not in (None, 2):
                raise InputError(f"task binary has two classes, got {self.classes}; use multiclass")
            object.__setattr__(self, "classes", 2)
        if self.classes is not None and self.classes < 2:
            raise InputError(f"classes must be a whole number from 2, got {self.classes}")
        for name in ("majority", "attainable"):
            share = getattr(self, name)
            if share is not None and not 0 < share <= 1:
                raise InputError(f"{name} must be a share above 0 and at most 1, got {share}")
        if self.label_range is not None and not -math.inf < self.label_range[0] < self.label_range[1] < math.inf:
            raise InputError(f"label_range must be two numbers, the lower first, got {self.label_range}")
        if self.residual is not None and not 0 <= self.residual < math.inf:
            raise InputError(f"residual must be a variance of at least 0, got {self.residual}")

    @property
    def parties(self) -> int | None:
        """The number of enrolled parties, None where nobody knows it."""
        return None if self.terms is None else self.terms.parties

    @property
    def needed(self) -> Protect:
        """What a guarantee has to hide: with private features a label is protected by hiding its row."""
        return "row" if self.protect == "label" and not self.public_features else self.protect

    def numbers(self, constant: bool) -> PublicNumbers:
        """The public numbers for a protocol; `constant` says whether its feature map appends a constant."""
        rows_of_a_party = None if self.rows is None or self.parties is None else -(-self.rows // self.parties)
        return PublicNumbers(
            self.delta,
            terms=self.terms,
            classes=self.classes,
            features=None if self.features is None else self.features + constant,
            public_rows=self.public_rows,
            bags=self.bags,
            largest_bag=self.bag_rows or rows_of_a_party,
            common_bags=False,  # as nobody is asked about them
            rows_per_person=self.rows_per_person if self.protect == "person" and not self.person_is_party else 0,
            label_range=self.label_range,
            rows=self.rows,
            attainable=self.attainable,
            majority=self.majority,
            residual=self.residual,
            traces=self.traces,
            spectrum=self.spectrum,
        )
