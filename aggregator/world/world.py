"""One world as the sessions of its variants see it: its plan, its public rows, and what they share."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from aggregator.world.plan import VariantPlan, WorldPlan
from aggregator.world.public_numbers import PublicNumbers
from aggregator.world.views import Views
from federation.contract.errors import InputError
from federation.contract.query import Noise, ReleaseId

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class World:
    """What all sessions of a world share: its plan, the views of the public rows, and work that is done once."""

    plan: WorldPlan
    views: Views
    variant: VariantPlan | None = None  # whose sessions see it
    _known: dict[Hashable, Any] = field(default_factory=dict)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` returns, computed for the first of equal keys and kept for the others.

        A key that has the `id` of an object must be used while somebody holds that object.
        """
        if key not in self._known:
            self._known[key] = make()
        found: T = self._known[key]
        return found

    def of(self, variant: VariantPlan) -> World:
        """The same for the sessions of one variant."""
        return replace(self, variant=variant)

    @property
    def own(self) -> VariantPlan:
        """The variant whose sessions see it. Raises `InputError` in a world that is nobody's."""
        if self.variant is None:
            raise InputError("this world is no variant's; begin sessions in World.of(variant)")
        return self.variant

    def require_two_classes(self) -> None:
        """Refuse a world with another number of classes. Raises `InputError`."""
        kind = self.own.kind
        if len(self.plan.classes) != 2:
            raise InputError(
                f"{kind} is for two classes, and there are {len(self.plan.classes)}; name those that count as the "
                "positive one in data.positive"
            )

    def require_label_range(self) -> tuple[float, float]:
        """The range of real labels. Raises `InputError` in a world of classes."""
        if self.plan.label_range is None:
            raise InputError(f"'{self.own.name}' needs real labels with a declared range, and the plan has classes")
        return self.plan.label_range

    def release(self, noise: Noise, parts: Iterable[Any]) -> ReleaseId:
        """The release of one answer by every party, with this noise.

        `parts` are all other public numbers and options that decide about the question: other bags or features are
        another release, from which equal noise would cancel. Variants of a kind that ask the same share one.
        """
        return ReleaseId(self.named(self.own.kind, *noise.named, *parts))

    def named(self, *parts: Any) -> str:
        """The name of a release of this world; a new one in every run without a seed and without letters.

        Letters say of which exchange they are, and sites have agreed to the names.
        """
        told_apart = self.plan.noise_seed is not None or self.plan.in_letters
        fresh = [] if told_apart else [self.once("token", lambda: secrets.token_hex(16))]
        return "|".join(map(str, [self.plan.world, *parts, *fresh]))

    def numbers(self, features: int | None = None) -> PublicNumbers:
        """The public numbers of this world, for a release behind so many features."""
        plan = self.plan
        return PublicNumbers(
            delta=plan.delta,
            draws=plan.draws,
            parties=plan.parties,
            classes=len(plan.classes),
            features=features,
            public_rows=len(self.views.table.rows),
            bags=plan.bags,
            smallest_bag=plan.smallest_bag,
            largest_bag=plan.largest_bag,
            rows_per_person=plan.rows_per_person,
            common_bags=plan.common_bags,
            label_range=plan.label_range,
        )
