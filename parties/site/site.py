"""A site: takes letters, gives letters, and keeps to its own rules whatever the letters say.

Each step is on the disk before the next. Rows are read before they are charged for, as to be read is not to leave:
where they are away nothing is paid. What is charged is charged before anything is computed from a row, and what is sent
is stored before it leaves, so that at most one answer to a question ever leaves, at one price, whatever fails.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from federation.contract.errors import InputError
from federation.contract.files import write_lasting
from federation.contract.guarantee import Guarantee
from federation.signed_messages.aggregation_messages import SUM
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.messages import Head, SealedAnswer, Status, kind_of, status_packet
from parties.holdings.cohort import Cohort
from parties.site.accounts import Accounts
from parties.site.belief import Belief
from parties.site.correspondent import Approval, Correspondent
from parties.site.journal import Journal
from parties.site.summing import Summing
from parties.site.worker import Cost, Means, Work, read

OPEN = ".open"  # of the file with an answer before it was sealed

# Events of its journal.
BEGUN, ANSWERED, SUMMED = "begun", "answered", "answered in a secure sum"


@dataclass
class Site(Correspondent):
    """One site and the agreement that it serves.

    `cohort` is this site alone, at its place in the agreement. A question that has been `denied` since it was approved
    is not gone on with. `belief` is what this site believes of those who add up secure sums.
    """

    name: str
    key: EllipticCurvePrivateKey
    agreement: Agreement
    cohort: Cohort
    accounts: Accounts
    journal: Journal
    answers: Path
    approved: Approval
    means: Means
    now: Callable[[], float] = time.time
    belief: Belief = field(default_factory=Belief)
    denied: Approval = lambda head: False
    _taken: dict[str, str] = field(init=False)
    _sums: Summing | None = field(init=False)

    def __post_init__(self) -> None:
        self._recall(ANSWERED, SUMMED)
        # Of each place in an exchange, and of each query of a release in it, the one question that was answered there.
        self._taken = {slot: line["key"] for line in self.journal.lines for slot in line.get("slots", ())}
        known = self.key, self.agreement, self.cohort, self.accounts, self.journal, self.answers.with_name("sums")
        self._sums = Summing(*known, self.means, self.belief) if self.agreement.secure else None

    @property
    def position(self) -> int:
        """Its number among the sites."""
        return self.cohort.first

    def _served(self, head: Head, question: bytes, key: str) -> SealedAnswer:
        if kind_of(question) == SUM and self._sums is not None:
            return self._summed(self._sums, head, question, key)
        with read(question, self.agreement, self.cohort, self.means) as work:
            cost, exchange = work.cost, head.exchange.hex()
            slots = [f"{exchange} {head.number}", f"{exchange} {cost.kind} {cost.release} {cost.query}"]
            if not self._may(head, cost, slots, key):
                return self._said(head, Status.BUSY, cost.length)
            price = self._price(head, cost)
            if price is not None:
                self.accounts.require(*price)  # for what cannot be paid nothing is read
            self._read(work)
            if price is not None:
                self.accounts.charge(*price, {"exchange": exchange})
            self._begin(key, slots)
            packet = work.answer()
        if packet is None:
            self.refuse(
                f"'{cost.kind}' is paid for and has no answer: to make one took more than {self.means.seconds} s or "
                f"{self.means.memory} bytes, or failed; raise the limits, or mend what the log tells of"
            )
            packet = status_packet(Status.REFUSED, cost.length)
        write_lasting(self.answers / f"{key}{OPEN}", packet)  # for people here, who could not open what is sealed
        return self._sent(head, packet, key, ANSWERED, kind=cost.kind)

    def _summed(self, sums: Summing, head: Head, packet: bytes, key: str) -> SealedAnswer:
        """The reply to a query of a secure sum."""

        def begin(work: Work, slots: list[str], known: Mapping[str, Any], new: bool) -> bool:
            if may := self._may(head, work.cost, slots, key):
                if new:
                    self._read(work)
                self._begin(key, slots, sum=known)
            return may

        reply = sums.answer(head, packet, begin, self.denied, self.now())
        if reply.packet is None:
            return self._said(head, Status.BUSY)
        if reply.why:
            self.refuse(reply.why)
        return self._sent(head, reply.packet, key, SUMMED, kind=reply.kind)

    def _may(self, head: Head, cost: Cost, slots: list[str], key: str) -> bool:
        """Whether a question may be answered. Raises `InputError` where another was answered in its place."""
        if any(self._taken.get(slot, key) != key for slot in slots):
            raise InputError("another question was answered in this place of the exchange")
        return self._permitted(head, cost.kind, cost.length)

    def _price(self, head: Head, cost: Cost) -> tuple[str, Guarantee, bool] | None:
        """What is charged for the release that an answer belongs to, unless it has been; None where that is nothing."""
        if not (cost.trusted or cost.guarantee):
            return None
        guarantee = cost.guarantee or self.agreement.promised(trusted=True)
        release = "trusted" if cost.trusted else f"{cost.kind} {cost.release}"
        of = f"{self.agreement.aggregator}\n{head.plan.hex()} {head.exchange.hex()} {release}"
        return hashlib.sha256(of.encode()).hexdigest(), guarantee, cost.trusted

    def _read(self, work: Work) -> None:
        """Have the rows read. Raises `Busy` where they are away."""
        self.touched = True
        work.rows()

    def _begin(self, key: str, slots: list[str], **known: Any) -> None:
        """Take the places of an answer in its exchange."""
        self.journal.add(BEGUN, key=key, slots=slots, **known)
        self._taken.update(dict.fromkeys(slots, key))
