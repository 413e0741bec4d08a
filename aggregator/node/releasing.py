"""Calibrates, charges and draws the releases of one variant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from aggregator.contract.diagnostics import diagnose
from aggregator.contract.ledger import Ledger
from aggregator.contract.perturbable import Perturbable
from aggregator.contract.premises import large_delta, plan_premises
from aggregator.world.plan import WorldPlan
from federation.contract.errors import InputError
from federation.contract.guarantee import SEEDED, Adjacency, Assumption, Guarantee, NoGuarantee
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise.additive import Noise, calibrate


@dataclass(frozen=True)
class Release:
    """Models that leave the aggregator, one per noise draw, all under one guarantee.

    `weights` (draws, C, d): a row x behind the feature map belongs to class argmax_c <weights[c], x>. `diagnostics`
    say how much of them is signal, from public numbers and from the first draw. Cannot be built without saying what
    it guarantees.
    """

    variant: str
    weights: np.ndarray
    guarantee: Guarantee | NoGuarantee
    diagnostics: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.guarantee, Guarantee | NoGuarantee):
            raise InputError(f"release of '{self.variant}' needs a guarantee, got {self.guarantee!r}")


def release(
    plan: WorldPlan, variant: str, epsilon: float, perturbable: Perturbable, ledger: Ledger, key: str = ""
) -> Release:
    """The release at one epsilon with `plan.draws` independent draws; `key` is that of its `VariantPlan`.

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
    bits = NoiseBits(plan.noise_seed, f"{plan.world}|{key or variant}|{epsilon!r}|{mechanism.delta!r}")
    noisy = mechanism.release(perturbable.value, bits, plan.draws)
    diagnostics = diagnose(perturbable, mechanism, noisy[0])
    return Release(variant, perturbable.decode(noisy, mechanism), guarantee, diagnostics)


def _premises(plan: WorldPlan, noise: Noise, perturbable: Perturbable) -> tuple[Assumption, ...]:
    premises = [*perturbable.assumptions, *plan_premises(plan)]
    if plan.noise_seed is not None:
        premises.append(SEEDED)
    return (*premises, *large_delta(plan, noise))
