"""The steps of a release at the aggregator: noise, charge and guarantee of a variant, and the queries of a trial.

`CentralNoise` calibrates, charges and draws the noise of one variant. An `Inquiry` asks every distinct query of a trial
once, for all collectors of its responses.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from aggregator.contract.expectations import diagnose
from aggregator.contract.ledger import Ledger, large_delta, plan_premises
from aggregator.contract.session import Perturbable, RoundsOfNoise, RoundValue
from aggregator.trial.plan import TrialPlan
from federation.contract.errors import InputError, refusing
from federation.contract.files import write_lasting
from federation.contract.guarantee import SEEDED, Adjacency, Assumption, Check, Guarantee, NoGuarantee
from federation.contract.query import OFF, Collector, PrivateQuestion, Question, ReleaseId
from federation.contract.randomness import NoiseBits
from federation.contract.validation import apart
from federation.engines.codec import question_digest
from federation.queries.votes import Training


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


class CentralNoise:
    """The noise of the aggregator for all rounds of one release: held to its plan, and charged once.

    `key` is that of the `VariantPlan`. Raises `InputError` for a plan that no noise can be calibrated to.
    """

    def __init__(
        self, plan: TrialPlan, variant: str, epsilon: float, planned: RoundsOfNoise, draws: int, key: str = ""
    ) -> None:
        self._plan, self._variant, self._planned, self._draws = plan, variant, planned, draws
        self.mechanism = None if planned.noise == OFF else planned.mechanism(epsilon, plan.public.delta)
        delta = 0.0 if self.mechanism is None else self.mechanism.delta
        self._key = f"{plan.name}|{key or variant}|{epsilon!r}|{delta!r}"
        self._stored = Path(plan.run.directory) / f"{variant}.{epsilon!r}"
        self.made = 0

    @cached_property
    def guarantee(self) -> Guarantee | NoGuarantee:
        """Return what all rounds guarantee together."""
        if self.mechanism is None:
            return NoGuarantee("noise is off")
        plan, planned = self._plan, self._planned
        premises = [*planned.assumptions, *plan_premises(plan)]
        if planned.rounds > 1:
            premises.append(
                Assumption(
                    f"the aggregator releases {planned.rounds} noisy values at most, with noise of their own, and "
                    "refuses a further one; queries depend on earlier responses through them only",
                    Check.ENFORCED,
                )
            )
        if plan.run.noise_seed is not None:
            premises.append(SEEDED)
        premises += large_delta(plan, planned.noise)
        found = self.mechanism.guarantee(planned.unit, Adjacency.REPLACE, tuple(premises))
        entropy = {"entropy": "system" if plan.run.noise_seed is None else "seed"}
        return replace(found, parameters={**found.parameters, **entropy})

    def add(self, exact: RoundValue, ledger: Ledger, checks: tuple[str, ...]) -> np.ndarray:
        """Return the noisy value of the next round, (draws, D), with noise that no other round has.

        The ledger is charged before the first noise is drawn. An exchange with real sites that goes on after an
        interruption gets the noisy values that it had, as later queries have been made of them. Raises
        `BudgetExceededError`, and `InputError` for a round, a sensitivity or a dimension that was not planned.
        """
        self._require_planned(exact)
        if self.made == 0:
            ledger.charge(self._variant, self.guarantee, checks)
        number, self.made = self.made, self.made + 1
        if self.mechanism is None:
            return np.broadcast_to(exact.value, (self._draws, self._planned.dimension))
        several = self._planned.rounds > 1
        path = self._stored.with_name(f"{self._stored.name}.round-{number}.npy")
        if several and self._plan.run.in_letters and path.exists():
            return self._known(path)
        bits = NoiseBits(self._plan.run.noise_seed, f"{self._key}|round {number}" if several else self._key)
        noisy = self.mechanism.release(exact.value, bits, self._draws)
        if several and self._plan.run.in_letters:
            written = BytesIO()
            np.save(written, noisy)
            write_lasting(path, written.getvalue())
        return noisy

    def _require_planned(self, exact: RoundValue) -> None:
        planned, dimension = self._planned, exact.value.shape[-1]
        for what, given, most in (
            ("round", self.made + 1, planned.rounds),
            ("sensitivity", exact.sensitivity, planned.sensitivity),
        ):
            if not given <= most:  # NaN is refused as well
                found, allowed = apart(given, most)
                raise InputError(
                    f"the release '{self._variant}' was planned with {what} {allowed} at most, and its session comes "
                    f"with {what} {found}; its package must be repaired"
                )
        if exact.value.shape not in ((planned.dimension,), (self._draws, planned.dimension)):
            raise InputError(
                f"the release '{self._variant}' was planned with values of {planned.dimension} numbers, and its "
                f"session comes with {dimension}; its package must be repaired"
            )

    def _known(self, path: Path) -> np.ndarray:
        """Load a noisy value of an earlier run. Raises `InputError` for a file of anything else."""
        with refusing(f"{path} holds no noisy value of this release; begin a new exchange"):
            found: np.ndarray = np.lib.format.read_array(BytesIO(path.read_bytes()), allow_pickle=False)
            if found.shape != (self._draws, self._planned.dimension) or not np.isfinite(found).all():
                raise ValueError("another shape, or no finite numbers")
        return found


def release(
    plan: TrialPlan, variant: str, epsilon: float, perturbable: Perturbable, ledger: Ledger, key: str = ""
) -> Release:
    """The release at one epsilon with `plan.public.draws` independent draws; `key` is that of its `VariantPlan`.

    The ledger is charged before the noise is drawn; it may raise `BudgetExceededError`.
    """
    noise = CentralNoise(plan, variant, epsilon, perturbable.planned, plan.public.draws, key)
    assert noise.mechanism is not None, "what is perturbed gets noise"
    noisy = noise.add(perturbable, ledger, perturbable.checks)
    diagnostics = diagnose(perturbable, noise.mechanism, noisy[0])
    return Release(variant, perturbable.decode(noisy, noise.mechanism), noise.guarantee, diagnostics)


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
        # Equal noise would cancel between the answers to two different questions under one name.
        if isinstance(question, PrivateQuestion) and self._releases.setdefault(question.release, contents) != contents:
            raise InputError(
                f"two different questions '{question.kind}' share the release '{question.release.name}', and so their "
                "noise; the protocol must name all that it depends on"
            )
        _, collectors = self._asked.setdefault(name, (question, {}))
        kept: C = collectors.setdefault((type(collector), collector.recipe), collector)
        if kept is collector and name in self._closed:
            raise InputError(f"the question '{question.kind}' has been answered; collect its answers in one round")
        return kept

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
