"""What adds shares in a simulation of `trust: secure`: a real masked sum for few parties, an exact one for many.

Both give the same total, as masks cancel, or none: where a masked sum of many would end without one, this one does.
What it would cost is said in its place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from federation.contract.errors import InputError, QuorumError
from federation.numerics.rows import Booleans, Integers
from federation.secure_aggregation.masks import public
from federation.secure_aggregation.plan import ADVERSARY, KEY, SAID, Roster, Servers, SumPlan, Terms, planned
from parties.secure_aggregation.party import ProcessMemory, UnmaskingServer
from scenarios.simulated.masked_sums import enrolled, masked_parties, masked_total, uploaded_total, uploading_parties
from scenarios.simulated.sum_costs import sum_costs

NAME = "scenarios.simulated.secure_summation:SimulatedSummation"  # for a plan
# Parties whose masked sum takes a third of a second at most: pairs of neighbours, or messages to two servers.
MOST_MASKED: dict[Servers, int] = {"one": 25, "one_semi_honest": 50, "two": 200}
_SLACK = 1e-9  # of a share of the parties, whose number is then rounded up


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
    servers: Servers

    def __post_init__(self) -> None:
        """A party's terms are looked at before anybody is asked."""
        self._terms.require(self._planned(self._terms))

    @property
    def masked(self) -> bool:
        """Whether the sum is really masked."""
        return self.parties <= MOST_MASKED[self.servers]

    def require(self, answered: Booleans) -> None:
        """Raises `QuorumError` where a masked sum of those who have answered would end without a total."""
        try:
            self._planned(self._terms, answered)
        except InputError as error:
            raise QuorumError(f"{error}; nothing is released") from error

    def total(self, parts: Integers, answered: Booleans) -> Integers:
        """The sum (d,) of the parts (K, d) of those who have answered. Raises `QuorumError` where they are too few."""
        (held, roster), silent = enrolled(self.parties), np.flatnonzero(~answered).tolist()

        def part(number: int, plan: SumPlan) -> Integers:
            found: Integers = parts[number]
            return found

        if self.servers != "two":
            terms = replace(self._terms, roster=roster)
            return masked_total(self._planned(terms), terms, masked_parties(held, terms, part), {0: silent}).values
        second = X25519PrivateKey.generate()
        terms = replace(self._terms, roster=roster, second=public(second))
        server = UnmaskingServer(second, terms, ProcessMemory())
        return uploaded_total(self._planned(terms), terms, uploading_parties(held, terms, part), server, silent).values

    def told(self, answered: Booleans) -> str:
        """How the sum was made, and what it costs."""
        plan, who = self._planned(self._terms, answered), SAID[self.servers]
        if not self.masked:
            sent = f"{_bytes(plan, answered)} with {who}"
            if self.servers == "one":
                two = replace(plan, neighbours=0, threshold=0, second="00" * KEY)
                sent += f", {_bytes(two, answered)} with {SAID['two']}"
            return (
                "shares were added in clear, which gives the total of a masked sum, as masks cancel; in a masked sum "
                f"each party would send {sent}"
            )
        near = f"had {plan.neighbours} neighbours, {plan.threshold} of whom unmask it, and " if plan.neighbours else ""
        return (
            f"shares were added by a masked sum with {who}, all messages real: each party {near}sent "
            f"{_bytes(plan, answered)}; all of it ran in one process, which hides nothing from whoever simulates"
        )

    @cached_property
    def _terms(self) -> Terms:
        """Of parties whose keys do not matter."""
        second = bytes(KEY) if self.servers == "two" else b""
        return Terms(Roster((bytes(KEY),) * self.parties), self.colluding, ADVERSARY[self.servers], second)

    def _planned(self, terms: Terms, answered: Booleans | None = None) -> SumPlan:
        """For as many absences as there are; before anybody is asked, for none."""
        absent = 0.0 if answered is None else max(0.0, float((~answered).mean()) - _SLACK)
        known = (self.question, terms.roster, self.numbers, self.quorum, absent, self.colluding)
        return planned(*known, terms.adversary, terms.second)


def _bytes(plan: SumPlan, answered: Booleans) -> str:
    return f"{sum_costs(plan, float((~answered).mean())).up:,.0f} bytes"
