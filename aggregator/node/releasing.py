"""Calibrates, charges and draws the releases of one variant."""

from __future__ import annotations

from dataclasses import replace

from aggregator.contract.ledger import Ledger
from aggregator.contract.perturbable import Perturbable
from aggregator.contract.premises import ATTENDANCE, COUNTED_ONCE, LOCAL, PUBLIC_CHOICES
from aggregator.contract.release import Release
from aggregator.node.diagnostics import diagnose
from aggregator.world.plan import WorldPlan
from federation.contract.guarantee import SEEDED, Adjacency, Assumption, Check, Guarantee, NoGuarantee
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise.additive import Noise, calibrate

_DELTA_EXPONENT = 1.1  # a delta of 1/K already allows one party to be exposed entirely


def release(plan: WorldPlan, variant: str, epsilon: float, perturbable: Perturbable, ledger: Ledger) -> Release:
    """The release at one epsilon with `plan.draws` independent draws.

    The ledger is charged before the noise is drawn; it may raise `BudgetExceededError`.
    """
    noise = perturbable.noise
    mechanism = calibrate(
        noise,
        sensitivity=perturbable.sensitivity,
        dimension=len(perturbable.value),
        epsilon=epsilon,
        delta=plan.delta,
    )
    guarantee = mechanism.guarantee(perturbable.unit, Adjacency.REPLACE, _premises(plan, noise, perturbable))
    entropy = {"entropy": "system" if plan.noise_seed is None else "seed"}
    guarantee = replace(guarantee, parameters={**guarantee.parameters, **entropy})
    ledger.charge(variant, guarantee, perturbable.checks)
    bits = NoiseBits(plan.noise_seed, f"{plan.world}|{variant}|{epsilon!r}|{mechanism.delta!r}")
    noisy = mechanism.release(perturbable.value, bits, plan.draws)
    diagnostics = diagnose(perturbable, mechanism, noisy[0])
    return Release(variant, perturbable.decode(noisy, mechanism), guarantee, diagnostics)


def plan_premises(plan: WorldPlan) -> tuple[Assumption, ...]:
    """What every guarantee of a world rests on: how classes are known, and how many draws are published."""
    known = Assumption(plan.class_names, Check.DECLARED)
    if plan.draws == 1:
        return (known,)
    text = f"one of the {plan.draws} draws is published; each further one spends epsilon and delta again"
    return (known, Assumption(text, Check.DECLARED))


def local_guarantee(
    plan: WorldPlan, guarantee: Guarantee | NoGuarantee, whose_noise: Assumption = LOCAL
) -> Guarantee | NoGuarantee:
    """What parties promise of their answers with the premises of a world in which they make the noise themselves."""
    if isinstance(guarantee, NoGuarantee):
        return guarantee
    premises = (whose_noise, COUNTED_ONCE, ATTENDANCE, PUBLIC_CHOICES, *plan_premises(plan))
    return replace(guarantee, assumptions=(*guarantee.assumptions, *premises))


def _premises(plan: WorldPlan, noise: Noise, perturbable: Perturbable) -> tuple[Assumption, ...]:
    premises = [*perturbable.assumptions, *plan_premises(plan)]
    if plan.noise_seed is not None:
        premises.append(SEEDED)
    if noise == "gaussian" and plan.delta > plan.parties**-_DELTA_EXPONENT:
        text = f"delta is small enough for {plan.parties} parties, although it exceeds parties^-{_DELTA_EXPONENT}"
        premises.append(Assumption(text, Check.DECLARED))
    return tuple(premises)
