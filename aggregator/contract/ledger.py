"""What was released under which guarantee, what it adds up to, and the gate that refuses to spend more.

A sweep over variants, epsilons and draws is many counterfactual worlds on the same parties: each release is charged
against the budget on its own, and `published_together` says what one draw of each would cost if all were published.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from federation.contract.errors import BudgetExceededError
from federation.contract.guarantee import Guarantee, NoGuarantee, Unit, levels_apart
from federation.mechanisms.accounting.composition import compose

_ROUNDING = 1e-9  # relative slack for budgets written with few digits


@dataclass(frozen=True)
class Budget:
    """The most that any one release may spend; of releases over periods, all that are about one unit together.

    `periods` says for each unit how many releases like one there will be at most that are about the same one of these
    units; those it does not name, one. `choice` is what was spent on choosing the protocol, and counts beside every
    release.
    """

    epsilon: float
    delta: float
    periods: Mapping[str, int] = field(default_factory=dict)
    choice: Guarantee | None = None

    @classmethod
    def of(
        cls,
        levels: Mapping[str, float] | None,
        periods: Mapping[str, int] | None = None,
        choice: Mapping[str, Any] | None = None,
    ) -> Budget | None:
        """That of a plan, which has an epsilon and a delta, and its choice as a plain dict; None where it has none."""
        return None if levels is None else cls(levels["epsilon"], levels["delta"], periods or {}, charged(choice))

    def gate_promise(self, promised: Guarantee, what: str) -> None:
        """As `gate` for what is promised: where that has a delta, periods add up only once it is known how exactly."""
        (self if promised.delta == 0 else replace(self, periods={})).gate(promised, what)

    def gate(self, guarantee: Guarantee, what: str) -> None:
        """Raises `BudgetExceededError` when a release, made in all of its periods, is over budget.

        Examples:
            >>> from federation.contract.guarantee import Adjacency, Unit
            >>> weekly = Guarantee(0.5, 0.0, Unit.PARTY, Adjacency.REPLACE, "laplace")
            >>> Budget(3.5, 0.0, {"party": 7}).gate(weekly, "release 'soft_vote'")
            >>> Budget(3.0, 0.0, {"party": 7}).gate(weekly, "it")
            Traceback (most recent call last):
            federation.contract.errors.BudgetExceededError: it in 7 periods, about the same party, would spend
            epsilon=3.5, delta=0, the budget is epsilon=3, delta=0; lower privacy.epsilon or raise privacy.budget
        """
        number = self.periods.get(guarantee.unit, 1)
        when = f" in {number} periods, about the same {guarantee.unit}," if number > 1 else ""
        if self.choice is None:
            self.require(*compose([guarantee] * number, self.delta), what + when)
            return
        if guarantee.adjacency is not self.choice.adjacency:
            raise BudgetExceededError(
                f"{what} is for a unit under {guarantee.adjacency}, and the choice of the protocol for one under "
                f"{self.choice.adjacency}, which have no total to hold against the budget; remove the budget"
            )
        both = [replace(one, unit=Unit.LABEL) for one in (self.choice, *[guarantee] * number)]  # as all cover a label
        self.require(*compose(both, self.delta), f"{what}{when} together with the choice of the protocol")

    def require(self, epsilon: float, delta: float, what: str) -> None:
        """Raises `BudgetExceededError` when `what` spends more than the budget."""
        if epsilon > self.epsilon * (1 + _ROUNDING) or delta > self.delta * (1 + _ROUNDING):
            spent, allowed = levels_apart((epsilon, delta), (self.epsilon, self.delta))
            raise BudgetExceededError(
                f"{what} would spend {spent}, the budget is {allowed}; lower privacy.epsilon or raise privacy.budget"
            )


def require_together(budget: Budget, spent: Iterable[Guarantee | NoGuarantee]) -> None:
    """Refuse releases that are all published, and together spend more than the budget.

    Each unit that some release protects is held against it by itself, with all releases that protect it as a part of
    theirs. Raises `BudgetExceededError`, also where releases under two adjacencies have no total.
    """
    ledger = Ledger(choice=budget.choice)
    for number, guarantee in enumerate(spent):
        ledger.charge(f"release {number}", guarantee)
    for total in ledger.totals(budget.delta):
        if total["others"] and len({one["adjacency"] for one in ledger.totals(budget.delta)}) > 1:
            raise BudgetExceededError(
                "the releases of the plan are for rows that are replaced and for rows that are added or removed, and "
                "have no total to hold against the budget; leave some of them out"
            )
        budget.require(total["epsilon"], total["delta"], f"all releases of the plan together, for one {total['unit']},")


def charged(choice: Mapping[str, Any] | None) -> Guarantee | None:
    """What was spent on choosing the protocol, from a plan's plain dict; None where nothing was."""
    return None if choice is None else Guarantee.from_dict(dict(choice))


@dataclass
class Ledger:
    """The releases of one world in order, one entry for all draws at one epsilon, and the budget that each must fit.

    `choice` is what was spent on choosing the protocol, which all totals count.
    """

    budget: Budget | None = None
    choice: Guarantee | None = None
    entries: list[dict[str, Any]] = field(default_factory=list)
    _charged: list[tuple[str, Guarantee]] = field(default_factory=list)

    def charge(
        self, variant: str, guarantee: Guarantee | NoGuarantee, checks: Sequence[str] = (), source: str | None = None
    ) -> None:
        """Record a release before it is made. `checks` says what was verified at run time, in public words.

        Releases with the same `source` are made of the same noisy answers, which are paid for once. Raises
        `BudgetExceededError` and records nothing when the release does not fit the budget.
        """
        if isinstance(guarantee, Guarantee):
            if self.budget is not None:
                self.budget.gate(guarantee, f"release '{variant}'")
            self._charged.append((source or f"release {len(self.entries)}", guarantee))
        self.entries.append({"variant": variant, "guarantee": guarantee.to_dict(), "checks": list(checks)})

    def totals(self, delta: float) -> list[dict[str, Any]]:
        """Composed (epsilon, delta) per unit and adjacency if one draw of every recorded release were published.

        `releases` counts those that protect the unit under the adjacency, by itself or as a part of theirs, `others`
        all else; the choice of the protocol counts in epsilon and delta only. Where there are others, no total is
        claimed for the publication of all: guarantees under other adjacencies are not converted, though a replaced row
        is one that is removed and one that is added.
        """
        totals = []
        chosen = [] if self.choice is None else [self.choice]
        known = [*chosen, *(guarantee for _, guarantee in self._charged)]
        for unit, adjacency in sorted({(guarantee.unit, guarantee.adjacency) for guarantee in known}):
            members = [
                (source, replace(guarantee, unit=unit))
                for source, guarantee in self._charged
                if guarantee.adjacency is adjacency and guarantee.unit.covers(unit)
            ]
            beside = [replace(one, unit=unit) for one in chosen if one.adjacency is adjacency and one.unit.covers(unit)]
            epsilon, spent = compose([*beside, *dict(members).values()], delta)
            totals.append(
                {
                    "unit": str(unit),
                    "adjacency": str(adjacency),
                    "releases": len(members),
                    "others": len(self.entries) - len(members),
                    "epsilon": epsilon,
                    "delta": spent,
                }
            )
        return totals

    def to_dict(self, delta: float) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            **({} if self.choice is None else {"choice": self.choice.to_dict()}),
            "budget": None if self.budget is None else {"epsilon": self.budget.epsilon, "delta": self.budget.delta},
            "releases": self.entries,
            "non_private": any(entry["guarantee"].get("non_private") for entry in self.entries),
            "published_together": self.totals(delta),
        }
