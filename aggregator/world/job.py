"""One variant of a world between the asking and the release: what a protocol hands to the aggregator's app."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from aggregator.released.models import ReleasedModels
from aggregator.released.released_estimators import ReleasedEstimators
from aggregator.world.inquiry import Inquiry
from aggregator.world.plan import WorldPlan
from aggregator.world.views import Views
from federation.errors import InputError
from federation.features import FeatureMap
from federation.guarantee import Guarantee, NoGuarantee
from federation.ledger import Budget, Ledger


@dataclass(frozen=True, eq=False)
class World:
    """What all variants of a world share: its plan, the public rows, and what is asked of the parties."""

    plan: WorldPlan
    views: Views
    inquiry: Inquiry

    def gate(self, variant: str, guarantee: Guarantee | NoGuarantee) -> None:
        """Refuse, before anybody is asked, a release beyond the budget. Raises `BudgetExceededError`."""
        if self.plan.budget is not None and isinstance(guarantee, Guarantee):
            Budget(**self.plan.budget).gate([guarantee], f"release '{variant}'")

    def require_two_classes(self, kind: str) -> None:
        """Refuse a world with another number of classes to a protocol of that kind. Raises `InputError`."""
        if len(self.plan.classes) != 2:
            raise InputError(
                f"{kind} is for two classes, and there are {len(self.plan.classes)}; name those that count as the "
                "positive one in data.positive"
            )

    def release_name(self, kind: str, parts: Iterable[Any]) -> str:
        """The name that keys the noise of what a protocol of this kind asks for.

        `parts` are all its public numbers and options that decide about the question: other bags or features are
        another release, from which equal noise would cancel. Variants that ask the same share one release.
        """
        return "|".join([self.plan.world, kind, *map(str, parts)])

    def write(
        self,
        kind: type[ReleasedModels] | type[ReleasedEstimators],
        variant: str,
        epsilons: Sequence[float],
        contents: Sequence[Any],
        feature_maps: Sequence[FeatureMap],
        guarantees: Sequence[Guarantee | NoGuarantee],
    ) -> None:
        """Write the releases of a variant, one of each of the sequences for each, to the plan's directory.

        `contents` are weights (draws, C, d), or a description of the estimator of every draw.
        """
        kind(
            variant,
            self.plan.classes,
            tuple(self.views.table.columns),
            tuple(self.views.table.text_columns),
            np.array(epsilons, dtype=np.float64),
            tuple(contents),
            tuple(feature_maps),
            tuple(guarantee.to_dict() for guarantee in guarantees),
        ).save(Path(self.plan.directory) / f"{variant}.npz")


class Job(Protocol):
    """Has put its questions to the inquiry; is finished when they are answered."""

    def costs(self) -> list[int]:
        """Bytes that one party sends for each release."""
        ...

    def finish(self, ledger: Ledger) -> list[dict[str, float]]:
        """Charge, release and write every release; their diagnostics. Raises `FederationError`s."""
        ...


@runtime_checkable
class AdaptiveJob(Job, Protocol):
    """Asks in rounds: what it asks next depends on the answers so far."""

    def proceed(self) -> None:
        """Take in the answers of a round and put the questions of the next to the inquiry, if there is one.

        Raises `FederationError`s.
        """
        ...
