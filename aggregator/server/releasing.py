"""Calibrates, charges and draws the releases of one variant.

What one world asks its parties: every distinct question once, for all the collectors that its answers go to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from aggregator.contract.expectations import diagnose
from aggregator.contract.ledger import Ledger, large_delta, plan_premises
from aggregator.contract.session import Perturbable
from aggregator.trial.plan import WorldPlan
from federation.contract.errors import InputError
from federation.contract.guarantee import SEEDED, Adjacency, Assumption, Guarantee, NoGuarantee
from federation.contract.query import Collector, PrivateQuestion, Question, ReleaseId
from federation.contract.randomness import NoiseBits
from federation.engines.codec import question_digest
from federation.mechanisms.noise.additive import Noise, calibrate
from federation.queries.votes import Training

C = TypeVar("C", bound=Collector)


class Inquiry:
    """Questions, those with equal training next to each other, so that parties need to train once for all of them.

    They are asked in rounds: `close` ends one, and what is added afterwards is asked in the next.
    """

    def __init__(self) -> None:
        self._asked: dict[str, tuple[Question, dict[tuple[type, tuple[Any, ...]], Any]]] = {}
        self._closed: set[str] = set()
        self._trainings: dict[int, int] = {}
        self._releases: dict[ReleaseId, str] = {}

    def add(self, question: Question, training: Training, collector: C) -> C:
        """The collector that takes the answers: `collector`, or an equal one of the same question.

        A question of an earlier round is not asked again: raises `InputError` for a new collector of its answers.
        """
        self._trainings.setdefault(id(training), len(self._trainings))
        contents = question_digest(question)
        name = f"{self._trainings[id(training)]:06d}|{contents}"
        if isinstance(question, PrivateQuestion):
            self._require_own_name(question, contents)
        _, collectors = self._asked.setdefault(name, (question, {}))
        kept: C = collectors.setdefault((type(collector), collector.recipe), collector)
        if kept is collector and name in self._closed:
            raise InputError(f"the question '{question.kind}' has been answered; collect its answers in one round")
        return kept

    def _require_own_name(self, question: PrivateQuestion, contents: str) -> None:
        """Refuse two different questions under one name: equal noise would cancel between their answers."""
        if self._releases.setdefault(question.release, contents) != contents:
            raise InputError(
                f"two different questions '{question.kind}' share the release '{question.release.name}', and so their "
                "noise; the protocol must name all that it depends on"
            )

    def questions(self) -> list[tuple[Question, list[Collector]]]:
        """What to ask in this round, in an order that does not depend on who asked first within one training."""
        due = ((name, asked) for name, asked in sorted(self._asked.items()) if name not in self._closed)
        return [(question, list(collectors.values())) for _, (question, collectors) in due]

    def close(self) -> None:
        """The questions of this round are answered."""
        self._closed.update(self._asked)

    def collectors(self) -> Iterator[Collector]:
        """The collectors of all rounds."""
        for _, collectors in self._asked.values():
            yield from collectors.values()


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
