"""The job of protocols whose noise the aggregator makes: what is asked of the parties, learned and perturbed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aggregator.central.releasing import release
from aggregator.released.models import ReleasedModels
from aggregator.world.job import World
from aggregator.world.plan import VariantPlan
from aggregator.world.views import View
from federation.grids.codec import bytes_per_party
from federation.ledger import Ledger
from federation.messages import Question


@dataclass(frozen=True)
class _Planned:
    """One release to come: the view it is learned behind, what was asked for it and where the answers are."""

    epsilon: float
    view: View
    question: Question
    collector: Any


class CentralJob:
    """One release per epsilon, a single one without noise; those behind one view share what is asked for them.

    `chosen` are the protocol's options, with the methods `question`, `collector` and `prepare`.
    """

    def __init__(self, world: World, variant: VariantPlan, chosen: Any) -> None:
        self._world, self._variant, self._chosen = world, variant, chosen
        self._planned: list[_Planned] = []
        plan = world.plan
        shared: dict[int, tuple[Question, Any]] = {}
        for epsilon in plan.epsilons if chosen.noise != "off" else (float("inf"),):
            view = world.views.at(chosen.noise, epsilon, minimiser=getattr(chosen, "perturb", None) == "output")
            if id(view) not in shared:
                question = chosen.question(view.public, view.training)
                collector = chosen.collector(view.public, question, plan.parties)
                shared[id(view)] = (question, world.inquiry.add(question, view.training, collector))
            self._planned.append(_Planned(epsilon, view, *shared[id(view)]))

    def costs(self) -> list[int]:
        """Bytes that one party sends for each release."""
        return [bytes_per_party(task.question.fields()) for task in self._planned]

    def finish(self, ledger: Ledger) -> list[dict[str, float]]:
        """Learn and release one variant, and write its models; returns the diagnostics of each release."""
        plan, name = self._world.plan, self._variant.name
        prepared: dict[int, Any] = {}
        releases = []
        for task in self._planned:
            if id(task.view) not in prepared:
                prepared[id(task.view)] = self._chosen.prepare(task.collector)
            perturbable = prepared[id(task.view)]
            releases.append(release(plan, name, self._chosen.noise, task.epsilon, perturbable, ledger))
        self._world.write(
            ReleasedModels,
            name,
            [task.epsilon for task in self._planned],
            [one.weights for one in releases],
            [task.view.public.feature_map for task in self._planned],
            [one.guarantee for one in releases],
        )
        return [dict(one.diagnostics) for one in releases]
