"""What the releases of a site have cost, unit by unit, and what it may still spend.

A site's journal has one line for each charge. An account adds up what all of them are worth for its unit, whoever asked
and under whatever number: what is counted is what happened to a table.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from federation.contract.errors import BudgetExceededError, InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit, levels_apart
from federation.mechanisms.accounting.composition import compose, converted
from parties.site.journal import Journal

CHARGED = "charged"  # the event of a journal's line that is one

_OF_LABELS = (Unit.LABEL, Unit.PERSON)  # what they protect of a row is its label
_ROUNDING = 1e-9  # relative slack for allowances written with few digits


@dataclass(frozen=True)
class Account:
    """What releases may cost one unit in all."""

    unit: Unit
    adjacency: Adjacency
    epsilon: float
    delta: float

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.unit}/{self.adjacency}"


@dataclass(frozen=True)
class Allowances:
    """What a site lets its table spend.

    `proved` are accounts of releases that this site protects by its own noise, `trusted` one of those that an
    aggregator protects, if it is honest, and `trusted_answers` how many answers without noise may leave in all.
    `rows_per_person` bounds how many rows of the table are one person's, 0 without a bound. `features_are_public` says
    that rows have nothing to hide but their labels, so that what protects these costs no account of rows or parties.
    """

    proved: tuple[Account, ...]
    trusted: Account | None = None
    trusted_answers: int = 0
    rows_per_person: int = 0
    features_are_public: bool = False


@dataclass
class Accounts:
    """The accounts of a table, with their charges in a journal; `others` are names of the same table."""

    table: str
    allowances: Allowances
    journal: Journal
    others: Collection[str] = ()
    _known: dict[str, dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        self._known = {line["key"]: line for line in self.journal.lines if line["event"] == CHARGED}

    @property
    def _names(self) -> tuple[str, ...]:
        return (self.table, *self.others)

    def charge(self, key: str, guarantee: Guarantee, trusted: bool, told: Mapping[str, Any]) -> None:
        """Write down what an answer costs before it is given, however it ends; once for each key.

        `trusted` says that the guarantee holds only if the aggregator adds its noise; `told` is what else the line
        says. Raises as `require`, and writes nothing then.
        """
        if not self.require(key, guarantee, trusted):
            cost = {"trusted": trusted, "guarantee": guarantee.to_dict()}
            self._known[key] = self.journal.add(CHARGED, key=key, table=self.table, **cost, **told)

    def require(self, key: str, guarantee: Guarantee, trusted: bool) -> bool:
        """Whether this has been charged; if not, it may be.

        Raises `BudgetExceededError` where an account would be overdrawn, and `InputError` where nothing is proved for
        one of them, or there is none, and for a key charged with another.
        """
        cost = {"trusted": trusted, "guarantee": guarantee.to_dict()}
        if (begun := self._known.get(key)) is not None:
            same = json.dumps(cost) == json.dumps({name: begun[name] for name in cost})
            if not (same and begun["table"] in self._names):
                raise InputError("this release began with another guarantee or table; begin a new one, to be charged")
            return True
        charges = [*self._charges(trusted), guarantee]
        accounts = ([self.allowances.trusted] if self.allowances.trusted else []) if trusted else self.allowances.proved
        if not accounts:
            kind = "trusted" if trusted else str(guarantee.unit)
            raise InputError(f"this site has no allowance for such releases; write [allowance.{kind}] if it should")
        for account in accounts:
            _require_enough(account, self._total(account, charges), len(charges) - 1)
        given = self.answers_given
        if trusted and given >= self.allowances.trusted_answers:
            raise BudgetExceededError(
                f"the table '{self.table}' has given {given} of {self.allowances.trusted_answers} answers without "
                "noise; more than one allow to tell what has changed between them"
            )
        return False

    @property
    def answers_given(self) -> int:
        """How many answers without noise have left, or may have."""
        return len(self._charges(trusted=True))

    def spent(self) -> dict[str, tuple[float, float]]:
        """What each account has spent, as (epsilon, delta)."""
        proved = {one.name: self._total(one, self._charges(trusted=False)) for one in self.allowances.proved}
        if self.allowances.trusted is None:
            return proved
        return {**proved, "trusted": self._total(self.allowances.trusted, self._charges(trusted=True))}

    def _charges(self, trusted: bool) -> list[Guarantee]:
        return [
            Guarantee.from_dict(line["guarantee"])
            for line in self._known.values()
            if line["table"] in self._names and line["trusted"] is trusted
        ]

    def _total(self, account: Account, charges: list[Guarantee]) -> tuple[float, float]:
        free = _OF_LABELS if self.allowances.features_are_public and account.unit not in _OF_LABELS else ()
        worth = [
            converted(one, account.unit, account.adjacency, self.allowances.rows_per_person)
            for one in charges
            if one.unit not in free
        ]
        return compose(worth, account.delta)


def _require_enough(account: Account, spent: tuple[float, float], before: int) -> None:
    most = 1 + _ROUNDING
    # Asked in this way, an allowance that is no number allows nothing.
    if not (spent[0] <= account.epsilon * most and spent[1] <= account.delta * most):
        would, allowed = levels_apart(spent, (account.epsilon, account.delta))
        raise BudgetExceededError(
            f"releases of this table would spend {would} for {account.name} in all, its allowance is {allowed} "
            f"({before} releases are in the journal)"
        )
