"""The ledger of releases and their guarantees, and the budget check that refuses to spend more.

A sweep over variants, epsilons and noise draws is a set of counterfactual trials on the same parties. The `Ledger`
charges each release against the `Budget` on its own. The entry `published_together` of a ledger is the cost of
publishing one draw of each release.

`local_guarantee` is the guarantee of responses whose noise the parties make. `plan_premises` lists the assumptions that
every guarantee of a plan makes, besides the assumptions of its mechanism.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aggregator.trial.plan import TrialPlan
from federation.contract.errors import BudgetExceededError
from federation.contract.guarantee import Assumption, Check, Guarantee, Keeper, NoGuarantee, Unit, levels_apart
from federation.mechanisms.accounting.composition import compose
from federation.mechanisms.noise.additive import AdditiveMechanism
from federation.mechanisms.sums.shares import weakened
from federation.secure_aggregation.plan import SAID

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
    ) -> "Budget | None":
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


COUNTED_ONCE = Assumption(
    "every party counts once, and a node answers for its own parties only; that a node's parties are different "
    "people is for whoever enrols them",
    Check.DECLARED,
    Keeper.COORDINATOR,
)
ATTENDANCE = Assumption(
    "whether and when a party answers is not protected; below the quorum nothing is released",
    Check.DECLARED,
    Keeper.HOLDER,
)
LOCAL = Assumption("every party adds its noise itself and trusts nobody", Check.ENFORCED)
PUBLIC_CHOICES = Assumption(
    "the feature map and all options were chosen without private labels", Check.DECLARED, Keeper.COORDINATOR
)

_DELTA_EXPONENT = 1.1  # a delta of 1/K already allows one party to be exposed entirely


def summed(plan: TrialPlan, whole: AdditiveMechanism) -> Assumption:
    """Who makes the noise, of which `whole` is all, where parties share one, and how many of them may collude."""
    terms = plan.terms
    most, counted = terms.colluders, terms.honest
    simulated = ", which is simulated here," if plan.run.simulation else ""
    by = "" if terms.servers == "one" else f" by {SAID[terms.servers]}"
    text = (
        f"every party adds a share of the noise, and a secure summation{by}{simulated} shows the aggregator "
        f"nothing but the sum over all parties; at least {terms.least} of {terms.parties} answer, and at most {most} "
        "of them collude with whoever sees the sum"
    )
    if most:
        text += f"; if {2 * most} did, {_weakened(plan, whole, max(0, counted - most) / counted)}"
    return Assumption(text, Check.DECLARED, Keeper.COORDINATOR)


def _weakened(plan: TrialPlan, whole: AdditiveMechanism, left: float) -> str:
    """What is promised where honest shares are this part of the whole noise."""
    epsilon = weakened(whole, left) if left else math.inf
    told = f"epsilon would be {epsilon:.3g}" if epsilon < math.inf else "no epsilon would be promised"
    if whole.name == "discrete_gaussian" or not left:
        return told
    at_delta = weakened(whole, left, plan.public.delta)
    if at_delta < epsilon:
        told += f" at delta 0, and {at_delta:.3g} at delta {plan.public.delta:g}"
    return told if at_delta == math.inf else f"{told}, by the continuous law of the noise"


def large_delta(plan: TrialPlan, noise: str) -> tuple[Assumption, ...]:
    """That a delta near 1/K is small enough for releases about whole parties, where their noise has one."""
    if noise != "gaussian" or plan.public.delta <= plan.terms.parties**-_DELTA_EXPONENT:
        return ()
    text = f"delta is small enough for {plan.terms.parties} parties, although it exceeds parties^-{_DELTA_EXPONENT}"
    return (Assumption(text, Check.DECLARED, Keeper.HOLDER),)


def plan_premises(plan: TrialPlan) -> tuple[Assumption, ...]:
    """What every guarantee of a world rests on: how classes are known, and how many draws are published.

    Where the protocol was chosen on private data, it says so, too.
    """
    known = [Assumption(plan.task.class_names, Check.DECLARED, Keeper.HOLDER)]
    if plan.public.draws > 1:
        text = f"one of the {plan.public.draws} draws is published; each further one spends epsilon and delta again"
        known.append(Assumption(text, Check.DECLARED, Keeper.COORDINATOR))
    if plan.releases.chosen:
        known.append(Assumption(plan.releases.chosen, Check.DECLARED, Keeper.COORDINATOR))
    return tuple(known)


def local_guarantee(
    plan: TrialPlan,
    guarantee: Guarantee | NoGuarantee,
    whose_noise: Assumption = LOCAL,
    further: tuple[Assumption, ...] = (),
) -> Guarantee | NoGuarantee:
    """What parties promise of their answers with the premises of a world in which they make the noise themselves.

    `whose_noise` says who makes it, and `further` what else this release rests on. What promises nothing stays as it
    is.

    Examples:
        >>> from federation.contract.guarantee import NoGuarantee
        >>> local_guarantee(plan=None, guarantee=NoGuarantee("noise is off")).reason
        'noise is off'
    """
    if isinstance(guarantee, NoGuarantee):
        return guarantee
    choices = () if plan.releases.chosen else (PUBLIC_CHOICES,)
    premises = (*further, whose_noise, COUNTED_ONCE, ATTENDANCE, *choices, *plan_premises(plan))
    return replace(guarantee, assumptions=(*guarantee.assumptions, *premises))
