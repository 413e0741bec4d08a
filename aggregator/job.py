"""One variant of a world between the asking and the release: what a protocol hands to the aggregator's app."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from aggregator.inquiry import Inquiry
from aggregator.plan import WorldPlan
from aggregator.views import Views
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
