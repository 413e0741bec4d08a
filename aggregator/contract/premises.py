"""Premises that every guarantee of a protocol rests on, beside those of its mechanism."""

from __future__ import annotations

import math
from dataclasses import replace

from aggregator.world.plan import WorldPlan
from federation.contract.guarantee import Assumption, Check, Guarantee, Keeper, NoGuarantee
from federation.contract.trust import colluders, honest
from federation.mechanisms.noise.additive import AdditiveMechanism
from federation.mechanisms.sums.shares import weakened
from federation.secure_aggregation.plan import SAID

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


def summed(plan: WorldPlan, whole: AdditiveMechanism) -> Assumption:
    """Who makes the noise, of which `whole` is all, where parties share one, and how many of them may collude."""
    quorum, most = math.ceil(plan.quorum * plan.parties), colluders(plan.parties, plan.colluding)
    counted = honest(plan.parties, plan.quorum, plan.colluding)
    simulated = ", which is simulated here," if plan.simulation else ""
    by = "" if plan.servers == "one" else f" by {SAID[plan.servers]}"
    text = (
        f"every party adds a share of the noise, and a secure summation{by}{simulated} shows the aggregator "
        f"nothing but the sum over all parties; at least {quorum} of {plan.parties} answer, and at most {most} of them "
        "collude with whoever sees the sum"
    )
    if most:
        text += f"; if {2 * most} did, {_weakened(plan, whole, max(0, counted - most) / counted)}"
    return Assumption(text, Check.DECLARED, Keeper.COORDINATOR)


def _weakened(plan: WorldPlan, whole: AdditiveMechanism, left: float) -> str:
    """What is promised where honest shares are this part of the whole noise."""
    epsilon = weakened(whole, left) if left else math.inf
    told = f"epsilon would be {epsilon:.3g}" if epsilon < math.inf else "no epsilon would be promised"
    if whole.name == "discrete_gaussian" or not left:
        return told
    at_delta = weakened(whole, left, plan.delta)
    if at_delta < epsilon:
        told += f" at delta 0, and {at_delta:.3g} at delta {plan.delta:g}"
    return told if at_delta == math.inf else f"{told}, by the continuous law of the noise"


def large_delta(plan: WorldPlan, noise: str) -> tuple[Assumption, ...]:
    """That a delta near 1/K is small enough for releases about whole parties, where their noise has one."""
    if noise != "gaussian" or plan.delta <= plan.parties**-_DELTA_EXPONENT:
        return ()
    text = f"delta is small enough for {plan.parties} parties, although it exceeds parties^-{_DELTA_EXPONENT}"
    return (Assumption(text, Check.DECLARED, Keeper.HOLDER),)


def plan_premises(plan: WorldPlan) -> tuple[Assumption, ...]:
    """What every guarantee of a world rests on: how classes are known, and how many draws are published.

    Where the protocol was chosen on private data, it says so, too.
    """
    known = [Assumption(plan.class_names, Check.DECLARED, Keeper.HOLDER)]
    if plan.draws > 1:
        text = f"one of the {plan.draws} draws is published; each further one spends epsilon and delta again"
        known.append(Assumption(text, Check.DECLARED, Keeper.COORDINATOR))
    if plan.chosen:
        known.append(Assumption(plan.chosen, Check.DECLARED, Keeper.COORDINATOR))
    return tuple(known)


def local_guarantee(
    plan: WorldPlan,
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
    choices = () if plan.chosen else (PUBLIC_CHOICES,)
    premises = (*further, whose_noise, COUNTED_ONCE, ATTENDANCE, *choices, *plan_premises(plan))
    return replace(guarantee, assumptions=(*guarantee.assumptions, *premises))
