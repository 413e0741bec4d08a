"""How shares of one noise are added in a simulation: through a masked sum, or in clear where that would take long."""

from __future__ import annotations

import hashlib
from typing import Protocol, cast

from aggregator.world.plan import WorldPlan
from federation.contract.plugins import Reference
from federation.contract.query import PrivateQuestion
from federation.numerics.rows import Booleans, Integers


class Summation(Protocol):
    """Carries out one sum of simulated parties; whoever simulates them names it in the plan."""

    @property
    def masked(self) -> bool:
        """Whether it takes all parts and adds them through a masked sum."""
        ...

    def require(self, answered: Booleans) -> None:
        """Raises `QuorumError` where a masked sum of those who have answered would end without a total."""
        ...

    def total(self, parts: Integers, answered: Booleans) -> Integers:
        """The sum (d,) of the parts (K, d), whole numbers of grid steps, of those who have `answered`, (K,).

        Raises `QuorumError` where too few have for a masked sum.
        """
        ...

    def told(self, answered: Booleans) -> str:
        """How the sum was made and what it would cost, in public words, for the ledger."""
        ...


def summation_of(plan: WorldPlan, question: PrivateQuestion, numbers: int) -> Summation | None:
    """What carries out the sum of so many numbers of each party; None where the plan names nothing.

    Raises `InputError` where no masked sum of the plan's parties can be.
    """
    if not plan.summation:
        return None
    arguments = {
        "question": hashlib.sha256(repr(question.release).encode()).hexdigest(),
        "parties": plan.parties,
        "numbers": numbers,
        "quorum": plan.quorum,
        "colluding": plan.colluding,
        "servers": plan.servers,
    }
    return cast(Summation, Reference(plan.summation, arguments).call())
