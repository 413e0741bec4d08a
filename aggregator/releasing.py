"""Calibrates, charges and draws the releases of one variant."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from aggregator.perturbation import Perturbable
from aggregator.plan import WorldPlan
from federation.guarantee import Adjacency, Assumption, Check, NoGuarantee, Unit
from federation.ledger import Ledger
from federation.messages import Release
from federation.privacy.additive import Noise, calibrate
from federation.randomness import NoiseBits

_DELTA_EXPONENT = 1.1  # a delta of 1/K already allows one party to be exposed entirely

SEEDED = Assumption(
    "the noise is keyed by a seed, which whoever reads the scenario knows: a simulation, not to be published",
    Check.DECLARED,
)


def release(
    plan: WorldPlan, variant: str, noise: Noise | Literal["off"], perturbable: Perturbable, ledger: Ledger
) -> list[Release]:
    """One release per epsilon, each with `plan.draws` independent draws; `noise: off` gives a single one.

    The ledger is charged before the noise is drawn; it may raise `BudgetExceededError`.
    """
    if noise == "off":
        nothing = NoGuarantee("noise is off")
        ledger.charge(variant, nothing, perturbable.checks)
        return [Release(variant, perturbable.decode(perturbable.value[None, :], None), nothing)]
    releases = []
    premises = [*perturbable.assumptions, Assumption(plan.class_names, Check.DECLARED)]
    if plan.noise_seed is not None:
        premises.append(SEEDED)
    if noise == "gaussian" and plan.delta > plan.parties**-_DELTA_EXPONENT:
        text = f"delta is small enough for {plan.parties} parties, although it exceeds parties^-{_DELTA_EXPONENT}"
        premises.append(Assumption(text, Check.DECLARED))
    for epsilon in plan.epsilons:
        mechanism = calibrate(
            noise,
            sensitivity=perturbable.sensitivity,
            dimension=len(perturbable.value),
            epsilon=epsilon,
            delta=plan.delta,
        )
        guarantee = mechanism.guarantee(Unit.PARTY, Adjacency.REPLACE, tuple(premises))
        entropy = {"entropy": "system" if plan.noise_seed is None else "seed"}
        guarantee = replace(guarantee, parameters={**guarantee.parameters, **entropy})
        ledger.charge(variant, guarantee, perturbable.checks)
        bits = NoiseBits(plan.noise_seed, f"{plan.world}|{variant}|{epsilon!r}|{mechanism.delta!r}")
        noisy = mechanism.release(perturbable.value, bits, plan.draws)
        releases.append(Release(variant, perturbable.decode(noisy, mechanism), guarantee))
    return releases


def stacked(releases: list[Release]) -> tuple[np.ndarray, np.ndarray]:
    """Epsilons (E,) (infinite without a guarantee) and weights (E, draws, C, d) of one variant's releases."""
    epsilons = [getattr(release.guarantee, "epsilon", np.inf) for release in releases]
    return np.array(epsilons, dtype=float), np.stack([release.weights for release in releases])
