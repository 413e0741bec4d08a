"""What adds shares in a simulation of `summation: secure`: a real masked sum for few parties, an exact one for many.

Both give the same total, as masks cancel. What a masked sum of many would cost is said in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from aggregator.sums.unmasking import UnmaskingServer
from federation.contract.errors import InputError
from federation.numerics.arrays import Booleans, Integers
from federation.sums.keys import public
from federation.sums.memory import ProcessMemory
from federation.sums.plan import KEY, Roster, SumPlan, Terms, planned
from scenarios.simulated.masked_sums import (
    enrolled,
    masked_parties,
    masked_total,
    uploaded_total,
    uploading_parties,
)
from scenarios.simulated.sum_costs import sum_costs

NAME = "scenarios.simulated.secure_summation:SimulatedSummation"  # for a plan
MOST_MASKED = 25  # parties, whose 600 pairs take a third of a second


@dataclass(frozen=True)
class SimulatedSummation:
    """One sum over `parties`, each with so many `numbers`; `question`: a digest of what is summed.

    Raises `InputError` where no masked sum of so few parties can be, or too little of the noise is theirs.
    """

    question: str
    parties: int
    numbers: int
    quorum: float
    colluding: float

    def __post_init__(self) -> None:
        """A party's terms are looked at before anybody is asked."""
        second = b"" if self.masked else bytes(KEY)
        terms = Terms(self._anybody, self.colluding, second=second)
        terms.require(self._planned(terms))

    @property
    def masked(self) -> bool:
        """Whether the sum is really masked."""
        return self.parties <= MOST_MASKED

    def total(self, parts: Integers, answered: Booleans) -> Integers:
        """The sum (d,) of the parts (K, d) of those who have answered. Raises `QuorumError` where they are too few."""
        (held, roster), silent = enrolled(self.parties), np.flatnonzero(~answered).tolist()

        def part(number: int, plan: SumPlan) -> Integers:
            found: Integers = parts[number]
            return found

        if self._one_server(answered):
            terms = Terms(roster, self.colluding)
            return masked_total(self._planned(terms), terms, masked_parties(held, terms, part), {0: silent}).values
        second = X25519PrivateKey.generate()
        terms = Terms(roster, self.colluding, second=public(second))
        server = UnmaskingServer(second, terms, ProcessMemory())
        return uploaded_total(self._planned(terms), terms, uploading_parties(held, terms, part), server, silent).values

    def _one_server(self, answered: Booleans) -> bool:
        """Whether so few are missing that one server can unmask the others, who are all neighbours of each other."""
        return bool(answered.sum() > self._planned(Terms(self._anybody, self.colluding)).threshold)

    def told(self, answered: Booleans) -> str:
        """How the sum was made, and what it costs."""
        if self.masked and not self._one_server(answered):
            return (
                "shares were added by a masked sum with two servers that do not collude, all messages real, as one "
                "server could not do it with so many absent; all of it ran in one process, which hides nothing from "
                "whoever simulates"
            )
        if self.masked:
            plan = self._planned(Terms(self._anybody, self.colluding))
            return (
                f"shares were added by a masked sum with one server that may do what it likes, all messages real: each "
                f"party had {plan.neighbours} neighbours, {plan.threshold} of whom unmask it, and sent "
                f"{_bytes(plan, answered)}; all of it ran in one process, which hides nothing from whoever simulates"
            )
        return (
            "shares were added in clear, which gives the total of a masked sum, as masks cancel; in a masked sum each "
            f"party would send {self._many(answered)}"
        )

    @cached_property
    def _anybody(self) -> Roster:
        return Roster((bytes(KEY),) * self.parties)

    def _many(self, answered: Booleans) -> str:
        """Bytes with each kind of server."""
        two = self._planned(Terms(self._anybody, self.colluding, second=bytes(KEY)))
        sent = f"{_bytes(two, answered)} with two servers that do not collude"
        try:
            one = self._planned(Terms(self._anybody, self.colluding), absent=float((~answered).mean()))
        except InputError:
            return f"{sent}; no single server could do it with so many absent or corrupt"
        return f"{_bytes(one, answered)} with one server that may do what it likes, {sent}"

    def _planned(self, terms: Terms, absent: float = 0.0) -> SumPlan:
        known = (self.question, terms.roster, self.numbers, self.quorum, absent, self.colluding)
        return planned(*known, terms.adversary, terms.second)


def _bytes(plan: SumPlan, answered: Booleans) -> str:
    return f"{sum_costs(plan, float((~answered).mean())).up:,.0f} bytes"
