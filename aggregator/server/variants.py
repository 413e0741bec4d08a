"""The one way from a plan to released models, for every protocol: gate, ask, collect, charge, noise, learn, write.

A variant that fails costs its own releases only (`FailedVariants`).
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from aggregator.contract.ledger import Budget, Ledger, require_together
from aggregator.contract.protocol import Place, Promise, Protocol, Refused
from aggregator.contract.registry import configured, model, protocol
from aggregator.contract.session import Asked, Outlook, Session
from aggregator.server.releasing import CentralNoise, Inquiry, release
from aggregator.trial.plan import VariantPlan
from aggregator.trial.trial import World
from federation.contract.errors import (
    DEBUG,
    BudgetExceededError,
    FederationError,
    InputError,
    QuorumError,
    of_disk,
    told,
)
from federation.contract.guarantee import Guarantee, NoGuarantee, levels_apart
from federation.contract.query import OFF, Question
from federation.engines.codec import bytes_per_party

_ROUNDING = 1e-9  # relative slack between what is promised and what is charged


@dataclass(eq=False)
class _Release:
    """One release to come: what it may spend, its session, all that it asked, and what it waits for.

    `noise` is that of a session which releases in every round.
    """

    epsilon: float
    promise: Promise
    session: Session
    noise: CentralNoise | None = None
    asked: list[Asked] = field(default_factory=list)
    pending: list[Asked] = field(default_factory=list)

    @property
    def charged(self) -> Guarantee | NoGuarantee:
        """Return the guarantee that is charged, of a session whose noise is planned or the parties'."""
        return self.session.guarantee if self.noise is None else self.noise.guarantee

    def cost(self) -> int:
        """Bytes that one party sends for it, for questions of one draw only where every draw asks anew."""
        once = {id(one.collector): one.question for one in self.asked if one.draw == 0}
        return sum(bytes_per_party(question.fields()) for question in once.values())


class VariantRun:
    """One variant on its way: one release per epsilon, a single one where there is no aim at any.

    Raises `InputError`s for options or a world that the protocol cannot work with, and `BudgetExceededError` for a
    promise beyond the budget; nobody has been asked.
    """

    def __init__(self, world: World, variant: VariantPlan, inquiry: Inquiry) -> None:
        world = world.of(variant)
        self._world, self._variant, self._inquiry = world, variant, inquiry
        self._chosen: Protocol = configured(protocol(variant.kind), variant.options)
        found = self._chosen.place
        if isinstance(found, Refused):
            raise InputError(found.reason)
        self.place: Place = found
        plan = world.plan
        self.draws = 1 if found is Place.NOWHERE else plan.public.draws
        promises = {epsilon: self._promise(epsilon) for epsilon in plan.releases.epsilons}
        first = promises[plan.releases.epsilons[0]]
        if isinstance(first.spends, NoGuarantee) and first.spends.claimed is None:
            promises = {math.inf: first}
        for promise in promises.values():
            self._gate(promise.spends, Budget.gate_promise)
        self.releases = [
            _Release(epsilon, promise, self._chosen.begin(world, epsilon, self.draws))
            for epsilon, promise in promises.items()
        ]
        for one in self.releases:
            one.noise = self._planned(one)
        self.ask()
        for one in self.releases:
            if one.noise is not None or not self._central:
                self._gate(one.charged, Budget.gate)
                self._require_within(one, one.charged)

    @property
    def spends(self) -> Iterator[tuple[str, Guarantee | NoGuarantee]]:
        """What each release will be charged at most, by the name of the noisy answers that it is made of."""
        for number, one in enumerate(self.releases):
            spent = one.promise.spends if self._central and one.noise is None else one.charged
            yield one.session.source or f"{self._variant.name} {number}", spent

    def ask(self) -> None:
        """Put the questions of a round to the inquiry, with collectors that equal sessions share."""
        for one in self.releases:
            one.pending = [
                replace(asked, collector=self._inquiry.add(asked.question, asked.training, asked.collector))
                for asked in one.session.questions()
            ]
            one.asked += one.pending

    def proceed(self, ledger: Ledger) -> None:
        """Let the sessions that wait for answers take them, and ask the questions of the next round.

        What a session releases in this round gets its noise in between, and is charged before the first noise.
        """
        for one in self.releases:
            if one.pending:
                one.session.take([asked.collector for asked in one.pending])
                if one.noise is not None and (exact := one.session.value()) is not None:
                    one.session.release(one.noise.add(exact, ledger, one.session.checks))
        self.ask()

    def longest(self) -> Iterator[Question]:
        """The longest questions that may be asked, where answers decide."""
        for one in self.releases:
            yield from (one.session.longest(asked.question) for asked in one.pending)

    def outlooks(self) -> dict[float, Outlook]:
        """How loud the noise of its releases will be, by epsilon, where a rule is known."""
        found = {one.epsilon: one.session.outlook() for one in self.releases}
        return {epsilon: outlook for epsilon, outlook in found.items() if outlook is not None}

    def costs(self) -> list[int]:
        """Bytes that one party sends for each release."""
        return [one.cost() for one in self.releases]

    def disclosed(self) -> dict[str, Any]:
        """What leaves a party for any of its releases, and where the noise of each is made, as plain JSON values."""
        return {
            "protocol": self._variant.kind,
            "noise_at": [str(self._noise_at(one)) for one in self.releases],
            "sends": [asdict(one) for one in self.releases[0].promise.sends],
        }

    def finish(self, ledger: Ledger) -> list[dict[str, float]]:
        """Charge the releases, make the noise that is the aggregator's, learn and write; their diagnostics.

        What was released in rounds has its noise, and was charged.
        """
        contents: list[Any] = []
        guarantees: list[Guarantee | NoGuarantee] = []
        diagnostics: list[dict[str, float]] = []
        kind = model(self._chosen.model)
        for one in self.releases:
            perturbed = self._central and one.noise is None
            content, guarantee, found = self._perturbed(one, ledger) if perturbed else self._learned(one, ledger)
            contents.append(content if perturbed else kind.gathered(content))
            guarantees.append(guarantee)
            diagnostics.append(found)
        plan, table = self._world.plan, self._world.views.table
        kind(
            self._variant.name,
            plan.task.classes,
            tuple(table.columns),
            tuple(table.text_columns),
            np.array([one.epsilon for one in self.releases], dtype=np.float64),
            tuple(contents),
            tuple(one.session.feature_map for one in self.releases),
            tuple(guarantee.to_dict() for guarantee in guarantees),
            self._chosen.proper_loss,
        ).save(Path(plan.run.directory) / f"{self._variant.name}.npz")
        return diagnostics

    @property
    def _central(self) -> bool:
        return self.place is Place.AGGREGATOR

    def _noise_at(self, one: _Release) -> Place:
        """Where parties were to share a noise, the numbers of a world may have each of them make a whole one."""
        shared = any(each.question.shared for each in one.asked)
        return Place.PARTY if self.place is Place.SHARES and not shared else self.place

    def _perturbed(self, one: _Release, ledger: Ledger) -> tuple[Any, Guarantee | NoGuarantee, dict[str, float]]:
        perturbable = one.session.perturbable()
        made = release(self._world.plan, self._variant.name, one.epsilon, perturbable, ledger, self._variant.key)
        self._require_within(one, made.guarantee)
        return made.weights, made.guarantee, dict(made.diagnostics)

    def _learned(self, one: _Release, ledger: Ledger) -> tuple[list[Any], Guarantee | NoGuarantee, dict[str, float]]:
        session = one.session
        if one.noise is None:
            ledger.charge(self._variant.name, session.guarantee, session.checks, session.source)
        elif not one.noise.made:
            raise InputError(
                f"{type(session).__name__} planned rounds and released nothing; its package must be repaired"
            )
        learned = [session.learn(draw) for draw in range(self.draws)]
        return learned, one.charged, session.diagnostics()

    def _planned(self, one: _Release) -> CentralNoise | None:
        """Calibrate the noise of a session that releases in every round; None for any other session.

        Raises `InputError` where its plan and the protocol differ in whether the aggregator makes noise.
        """
        planned = one.session.rounds_of_noise()
        if planned is None:
            return None
        if self.place is not (Place.NOWHERE if planned.noise == OFF else Place.AGGREGATOR):
            raise InputError(
                f"the protocol '{self._variant.kind}' has its noise at '{self.place}', and its session plans rounds "
                f"with noise '{planned.noise}' at the aggregator; its package must be repaired"
            )
        known = (self._variant.name, one.epsilon, planned, self.draws, self._variant.key)
        return CentralNoise(self._world.plan, *known)

    def _promise(self, epsilon: float) -> Promise:
        features = None
        if self.place is not Place.AGGREGATOR:  # whose features depend on the noise; all others have these
            features = self._world.views.at(OFF, math.inf).public.feature_map.dimension
        return self._chosen.promised(self._world.numbers(features), epsilon)

    def _gate(self, spends: Guarantee | NoGuarantee, gate: Callable[[Budget, Guarantee, str], object]) -> None:
        """Refuse, before anybody is asked, a release beyond the budget, or in a deployment one that promises nothing.

        In a simulation only what claims a guarantee without keeping it is refused beside those: a reference without
        noise spends nothing of anybody's. Raises `BudgetExceededError`.
        """
        plan = self._world.plan
        limit = Budget.of(plan.releases.budget, plan.releases.periods, plan.releases.choice)
        if limit is None:
            return
        what = f"release '{self._variant.name}'"
        if isinstance(spends, Guarantee):
            gate(limit, spends, what)
        elif spends.claimed is not None or not plan.run.simulation:
            raise BudgetExceededError(
                f"{what} has no guarantee, and there is a budget: {spends.reason}; choose noise with a guarantee "
                "(leave a given sigma to be calibrated), or remove the budget"
            )

    def _require_within(self, one: _Release, charged: Guarantee | NoGuarantee) -> None:
        """Refuse a protocol whose release spends more than it promised. Raises `InputError`."""
        promised = one.promise.spends
        if isinstance(charged, NoGuarantee) or isinstance(promised, NoGuarantee):
            missed = isinstance(charged, NoGuarantee) and charged.claimed is not None  # which is said, and gated
            kept = missed or type(promised) is type(charged)
        else:
            kept = (
                charged.epsilon <= promised.epsilon * (1 + _ROUNDING)
                and charged.delta <= promised.delta * (1 + _ROUNDING)
                and charged.unit.covers(promised.unit)
                and charged.adjacency is promised.adjacency
            )
        if not kept:
            said, found = _told(promised, charged)
            raise InputError(
                f"the protocol '{self._variant.kind}' promised {said} at most and would be charged {found}; its "
                "package must be repaired"
            )


class Variants:
    """Begins all variants of a plan, whose first questions are then in the inquiry; nobody has been asked.

    A variant that cannot begin is raised, with its name, unless the plan is `sparing`. The others go on without those
    that fail later (`aggregator.server.variants.FailedVariants`). References are begun by `begin_references`.
    Outside a simulation all releases of the plan must fit the budget together. Raises `FederationError`s.
    """

    def __init__(self, world: World, inquiry: Inquiry) -> None:
        plan = world.plan
        self._world, self._inquiry = world, inquiry
        self._runs: dict[str, VariantRun] = {}
        released = [variant for variant in plan.variants if not variant.reference]
        self._references = [variant for variant in plan.variants if variant.reference]
        self._failed, self._beside = (FailedVariants(variant.name for variant in released) for _ in range(2))
        # Why variants failed, and why references could not be made: the run is none the worse for these.
        self.failed, self.missing = self._failed.causes, self._beside.causes
        guarded = self._failed.sparing_others if plan.run.sparing else blaming
        for variant in released:
            with guarded(variant.name):
                self._runs[variant.name] = VariantRun(world, variant, inquiry)
        limit = Budget.of(plan.releases.budget, choice=plan.releases.choice)
        if limit is not None and not plan.run.simulation:
            spent = {name: spends for run in self._runs.values() for name, spends in run.spends}
            require_together(limit, spent.values())

    def spends(self) -> list[tuple[Place, Guarantee | NoGuarantee]]:
        """What each release will be charged at most, and where its noise is made."""
        return [(run.place, spends) for run in self._runs.values() for _, spends in run.spends]

    def longest(self) -> list[Question]:
        """The longest questions that may be asked in any round, one for each of the first."""
        return [question for run in self._runs.values() for question in run.longest()]

    def begin_references(self) -> None:
        """Begin what stands beside the releases; one that cannot begin fails alone, as nobody asked for it."""
        for variant in self._references:
            with self._guarded(variant.name):
                self._runs[variant.name] = VariantRun(self._world, variant, self._inquiry)

    def outlooks(self) -> dict[str, dict[float, Outlook]]:
        """What public numbers say against expecting much of the variants, by name and epsilon."""
        return {name: run.outlooks() for name, run in self._going().items()}

    def proceed(self, ledger: Ledger) -> None:
        """Let the variants take in the answers of a round and ask the questions of the next.

        Variants that release noisy values in every round are charged.
        """
        for name, run in self._going().items():
            with self._guarded(name):
                run.proceed(self._ledger_of(name, ledger))

    def finish(self, ledger: Ledger) -> dict[str, list[dict[str, float]]]:
        """Charge and release all variants; the diagnostics of those that were released.

        References are written, and stand in no ledger.
        """
        diagnostics: dict[str, list[dict[str, float]]] = {}
        for name, run in self._going().items():
            with self._guarded(name):
                diagnostics[name] = run.finish(self._ledger_of(name, ledger))
        return diagnostics

    def disclosed(self) -> dict[str, dict[str, Any]]:
        """What leaves a party, and who makes the noise, for each variant that has not failed."""
        return {name: run.disclosed() for name, run in self._going().items()}

    def costs(self) -> dict[str, list[int]]:
        """Bytes that one party sends for each release of the variants that have not failed."""
        return {name: run.costs() for name, run in self._going().items()}

    def _going(self) -> dict[str, VariantRun]:
        lost = self.failed.keys() | self.missing.keys()
        return {name: run for name, run in self._runs.items() if name not in lost}

    def _ledger_of(self, name: str, ledger: Ledger) -> Ledger:
        return Ledger() if self._is_reference(name) else ledger

    def _is_reference(self, name: str) -> bool:
        return any(variant.name == name for variant in self._references)

    def _guarded(self, name: str) -> AbstractContextManager[None]:
        return (self._beside if self._is_reference(name) else self._failed).sparing_others(name)


def _told(*spends: Guarantee | NoGuarantee) -> list[str]:
    levels = iter(levels_apart(*((one.epsilon, one.delta) for one in spends if isinstance(one, Guarantee))))
    return [
        f"{next(levels)} for one {one.unit} ({one.adjacency})" if isinstance(one, Guarantee) else "no guarantee"
        for one in spends
    ]


class FailedVariants:
    """Why variants failed, by name: `causes`. The others are those of `names`."""

    def __init__(self, names: Iterable[str]) -> None:
        self.causes: dict[str, str] = {}
        self._left = set(names)

    @contextmanager
    def sparing_others(self, name: str) -> Iterator[None]:
        """Work on one variant; an error of it is noted, and the others go on.

        Raised, as by `blaming`, are budgets and quorums, which are for the whole world, a full disk, and the failure of
        the last variant that is left; with FEDERATION_DEBUG set every error.
        """
        with blaming(name):
            try:
                yield
            except Exception as error:
                if of_disk(error):
                    raise
                self._left.discard(name)
                if isinstance(error, BudgetExceededError | QuorumError) or not self._left or os.environ.get(DEBUG):
                    raise
                self.causes[name] = told(error)


@contextmanager
def blaming(variant: str) -> Iterator[None]:
    """Raises errors as `FederationError`s of the same kind that name the variant.

    As they are raised those of the disk, which are no variant's, and with FEDERATION_DEBUG all.
    """
    try:
        yield
    except Exception as error:
        if os.environ.get(DEBUG) or of_disk(error):
            raise
        kind = type(error) if isinstance(error, FederationError) else FederationError
        raise kind(f"variant '{variant}': {told(error)}") from error
