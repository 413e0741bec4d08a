"""Takes letters of one agreement and gives letters: what every member of it does alike, whatever it answers.

What is sent is stored before it leaves, and sent again byte for byte; what is refused is written down.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from federation.contract.errors import FederationError, InputError
from federation.contract.files import write_lasting
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import fingerprint
from federation.signed_messages.messages import (
    SHORTEST_REPLY,
    Head,
    SealedAnswer,
    SignedQuestion,
    Status,
    status_packet,
)
from parties.site.journal import Journal
from parties.site.worker import Busy

Approval = Callable[[Head], bool]  # whether somebody here has agreed to answer

# Events of its journal.
REFUSED, AGAIN, WAITING = "refused", "answered again", "waits for approval"

_log = logging.getLogger(__name__)
_RESERVE = 2**26  # bytes of the disk that answers leave free
_LONGEST_REASON, _MOST_REASONS = 300, 1000  # letters of it, and different ones that are told apart


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
    now: Callable[[], float] = time.time
    touched: bool  # whether rows were read, or were to be, for the last reply
    _answered: set[str]
    _times: dict[tuple[str, str], int]

    def _recall(self, *answered: str) -> None:
        """What the journal knows of the past; `answered` are the events of an answer that left."""
        self._answered = {line["key"] for line in self.journal.lines if line["event"] in answered}
        self._times = {}
        self.touched = False

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
