"""Every installed protocol under a wish: ranked by what it may be expected to miss, or refused with the reason."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

from aggregator.advice.wish import TASKS, Protect, Wish
from aggregator.contract import registry
from aggregator.contract.expected import Expected
from aggregator.contract.promise import Promise, Sent
from aggregator.contract.protocol import Place, Protocol, Refused, Trust
from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee, NoGuarantee, Unit
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
        >>> wish = Wish("binary", "label", Trust.NONE, rows=12_000, features=50, parties=100, epsilon=1.0)
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
        >>> wish = Wish("binary", "party", Trust.AGGREGATOR, rows=3000, features=9, parties=100, public_rows=500)
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
