"""The jobs of all variants of a world."""

from __future__ import annotations

from typing import Any

from aggregator.central.central_job import CentralJob
from aggregator.failed_variants import FailedVariants, blaming
from aggregator.world.job import AdaptiveJob, Job, World
from aggregator.world.plan import VariantPlan
from federation.ledger import Ledger
from federation.registry import protocol


class Jobs:
    """Begins the jobs of a plan's variants, whose questions are then in the world's inquiry.

    A variant that cannot begin is raised, with its name, as nobody has been asked yet, unless the plan is `sparing`.
    The others go on without those that fail (`aggregator.failed_variants.FailedVariants`). Raises `FederationError`s.
    """

    def __init__(self, world: World) -> None:
        self._jobs: dict[str, Job] = {}
        self._failed = FailedVariants(variant.name for variant in world.plan.variants)
        guarded = self._failed.sparing_others if world.plan.sparing else blaming
        for variant in world.plan.variants:
            with guarded(variant.name):
                self._jobs[variant.name] = _job(world, variant)

    @property
    def failed(self) -> dict[str, str]:
        """Why variants failed, by name."""
        return self._failed.causes

    def proceed(self) -> None:
        """Let the variants that ask in rounds take in the answers of one and ask the next."""
        for name, job in self._going().items():
            if isinstance(job, AdaptiveJob):
                with self._failed.sparing_others(name):
                    job.proceed()

    def finish(self, ledger: Ledger) -> dict[str, list[dict[str, float]]]:
        """Charge and release all variants; the diagnostics of those that were released."""
        diagnostics: dict[str, list[dict[str, float]]] = {}
        for name, job in self._going().items():
            with self._failed.sparing_others(name):
                diagnostics[name] = job.finish(ledger)
        return diagnostics

    def costs(self) -> dict[str, list[int]]:
        """Bytes that one party sends for each release of the variants that have not failed."""
        return {name: job.costs() for name, job in self._going().items()}

    def _going(self) -> dict[str, Job]:
        return {name: job for name, job in self._jobs.items() if name not in self.failed}


def _job(world: World, variant: VariantPlan) -> Job:
    """The job of a variant: its protocol's own where it has a method `job`, else that of central noise."""
    chosen = protocol(variant.kind)(**variant.options)
    own: Any = getattr(chosen, "job", None)
    found: Job = CentralJob(world, variant, chosen) if own is None else own(world, variant)
    return found
