"""Signed messages at a site: every message is checked, and every step is on disk before the next.

`Correspondent` handles messages of one agreement for every member: a site or a helper server. It stores a reply before
the reply leaves, and sends a stored reply again byte for byte. It records each refusal.

`Site` answers queries and keeps to its own rules, whatever the messages say:

1. The site reads the rows before it charges for them, since reading is not releasing. If the rows are away, nothing is
   paid.
2. The charge comes before any computation on a row.
3. The reply is stored before it leaves.

At most one reply to a query therefore ever leaves, at one price, whatever fails.
"""

import hashlib
import logging
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from federation.contract.errors import FederationError, InputError
from federation.contract.files import write_lasting
from federation.contract.guarantee import Guarantee
from federation.signed_messages.aggregation_messages import SUM
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import fingerprint
from federation.signed_messages.messages import (
    SHORTEST_REPLY,
    Head,
    SealedAnswer,
    SignedQuestion,
    Status,
    kind_of,
    status_packet,
)
from parties.party_data.cohort import Cohort
from parties.site.accounts import Accounts, Journal
from parties.site.secure_aggregation import Summing
from parties.site.settings import Belief
from parties.site.worker import Busy, Cost, Means, Work, read

Approval = Callable[[Head], bool]  # whether somebody here has agreed to answer

# Events of its journal.
REFUSED, AGAIN, WAITING = "refused", "answered again", "waits for approval"

_log = logging.getLogger(__name__)
_RESERVE = 2**26  # bytes of the disk that answers leave free
_LONGEST_REASON, _MOST_REASONS = 300, 1000  # letters of it, and different ones that are told apart


@dataclass
class Correspondent(ABC):
    """One member of an agreement, which it serves by its `name` and `key`; `answers` is a folder for what was answered.

    A reply to a question that nobody here has `approved` yet is that the member is busy.
    """

    name: str
    key: EllipticCurvePrivateKey
    agreement: Agreement
    journal: Journal
    answers: Path
    approved: Approval
    now: Callable[[], float] = field(default=time.time, kw_only=True)
    touched: bool = field(default=False, init=False)  # whether rows were read, or were to be, for the last reply
    _answered: set[str] = field(init=False)
    _times: dict[tuple[str, str], int] = field(default_factory=dict, init=False)

    def _recall(self, *answered: str) -> None:
        """What the journal knows of the past; `answered` are the events of an answer that left."""
        self._answered = {line["key"] for line in self.journal.lines if line["event"] in answered}

    @property
    @abstractmethod
    def position(self) -> int:
        """Its number among the members of the agreement."""

    @abstractmethod
    def _served(self, head: Head, question: bytes, key: str) -> SealedAnswer:
        """The reply to a question of this agreement. Raises `FederationError`s where there is none."""

    def reply(self, letter: Mapping[str, bytes]) -> dict[str, bytes] | None:
        """What is sent back; None to what is no question of this agreement to this member.

        Where rows were `touched` for it, it is to leave at a fixed time. What cannot be written down is not sent: where
        the disk is full, the reply is busy. Raises `OSError` where nothing can be said.
        """
        self.touched = False
        try:
            signed = SignedQuestion(*(letter[name] for name in ("head", "signature", "question", "known")))
            head = signed.opened(self.agreement.aggregator_key)
            self._require_addressed(head)
        except KeyError as error:
            self.refuse(f"a letter without {error}")
            return None
        except InputError as error:
            self.refuse(str(error))
            return None
        # What was answered is sent again, byte for byte, by the head of the question: its place, plan and text.
        key = hashlib.sha256(self.agreement.aggregator.encode() + b"\n" + head.encoded()).hexdigest()
        stored = self.answers / key
        try:
            if stored.exists():
                self._note(AGAIN, key, key=key)
                return asdict(SealedAnswer.decoded(stored.read_bytes()))
            self._require_not_put_back(signed.known.hex())
            return asdict(self._replied(head, signed.question, key))
        except Busy as error:
            _log.warning("%s", error)
            return asdict(self._said(head, Status.BUSY))
        except FederationError as error:
            self.refuse(str(error))
            return asdict(self._said(head, Status.REFUSED))
        except OSError as error:
            _log.error("%s: nothing is answered until it can be written (%s)", self.answers.parent, error.strerror)
            return asdict(self._said(head, Status.BUSY))

    def refuse(self, why: str) -> None:
        """Write down that something was refused."""
        known = why[:_LONGEST_REASON]
        if (REFUSED, known) not in self._times and len(self._times) >= _MOST_REASONS:
            known = "for other reasons"
        self._note(REFUSED, known, why=known)

    def _note(self, event: str, what: str, **told: str) -> None:
        """Write down what may happen any number of times: the 1st, 2nd, 4th, 8th time and so on.

        Else whoever may send letters, or send one again, could fill the disk.
        """
        times = self._times[event, what] = self._times.get((event, what), 0) + 1
        if times & (times - 1) == 0:
            self.journal.add(event, **told, times=times)

    def _require_addressed(self, head: Head) -> None:
        """Refuse what is for another member, plan or day. Raises `InputError`."""
        own = bytes.fromhex(fingerprint(self.key.public_key()))
        if (head.site, head.position, head.key) != (self.name, self.position, own):
            raise InputError("the question is for another site")
        if head.plan != self.agreement.digest or head.closing != self.agreement.closing:
            raise InputError("the question is of a plan that this site does not serve")

    def _require_not_put_back(self, known: str) -> None:
        """Refuse to go on with a state that has forgotten what the aggregator was told. Raises `InputError`."""
        if not self.journal.holds(known):
            raise InputError(
                f"the aggregator was told of a line of this journal, {known}, that is not in it: an older copy of the "
                "state was put back, or lines were taken off its end, and nobody knows what was spent since; put back "
                "the newest copy"
            )

    def _replied(self, head: Head, question: bytes, key: str) -> SealedAnswer:
        """The reply to a question that was not answered before. Raises `FederationError`s where there is none."""
        if key in self._answered:
            raise InputError(
                f"this question was answered, and {self.answers} lacks the answer; a second one, with other noise, "
                "would tell more than was paid for; restore the folder"
            )
        if self.now() > head.closing:
            return self._said(head, Status.EXPIRED)
        if len(question) > self.agreement.longest_question:
            raise InputError(
                f"the question has {len(question)} bytes, and the longest of the plan {self.agreement.longest_question}"
            )
        return self._served(head, question, key)

    def _permitted(self, head: Head, kind: str, length: int) -> bool:
        """Whether somebody here has agreed to a question, and there is room for an answer of this length."""
        if may := self.approved(head) and self._has_room(length):
            return may
        self._note(WAITING, kind, kind=kind)
        return False

    def _has_room(self, length: int) -> bool:
        """Whether an answer leaves room on the disk for what must be written down of later ones."""
        free = shutil.disk_usage(self.answers).free
        if free < length + _RESERVE:
            _log.error("%s: the disk has %d bytes left, too few to answer; free some", self.answers.parent, free)
        return free >= length + _RESERVE

    def _sent(self, head: Head, packet: bytes, key: str, event: str, **told: Any) -> SealedAnswer:
        """A reply, stored before it leaves."""
        sealed = self._sealed(head, packet)
        write_lasting(self.answers / key, sealed.encoded())
        self.journal.add(event, key=key, **told, bytes=len(sealed.sealed))
        self._answered.add(key)
        return sealed

    def _said(self, head: Head, status: Status, length: int = SHORTEST_REPLY) -> SealedAnswer:
        return self._sealed(head, status_packet(status, length))

    def _sealed(self, head: Head, packet: bytes) -> SealedAnswer:
        """A reply that tells, to the aggregator alone, how far the journal has come."""
        return SealedAnswer.sealed_for(head, packet + bytes.fromhex(self.journal.head), self.key)


OPEN = ".open"  # of the file with an answer before it was sealed

# Events of its journal.
BEGUN, ANSWERED, SUMMED = "begun", "answered", "answered in a secure sum"


@dataclass
class Site(Correspondent):
    """One site and the agreement that it serves.

    `cohort` is this site alone, at its place in the agreement. A question that has been `denied` since it was approved
    is not gone on with. `belief` is what this site believes of those who add up secure sums.
    """

    cohort: Cohort
    accounts: Accounts
    means: Means
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
