"""A member of an agreement at work: fetches letters, has them answered, asks people, and stops at a signal."""

from __future__ import annotations

import logging
import signal
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from federation.contract.errors import InputError
from federation.contract.files import read_text
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.messages import Head
from parties.site.approvals import APPROVED, DENIED, PENDING, Approvals, Decision
from parties.site.correspondent import Correspondent
from parties.site.journal import Journal
from parties.site.mailbox import Closed, Letter, Mailbox
from parties.site.policy import longest_letter
from parties.site.settings import SecondSettings, Settings
from parties.site.state import State
from parties.site.words import said

_PAUSE = 0.5  # seconds between looks into an empty mail box
_log = logging.getLogger(__name__)


class Serving(ABC):
    """What the services of all members have: a configuration, the plan, and the state that this process owns."""

    settings: Settings | SecondSettings
    agreement: Agreement
    state: State
    key: EllipticCurvePrivateKey
    journal: Journal
    approvals: Approvals
    _followed: int  # lines of the journal that the log has told
    _stands: dict[str, str]  # of decisions, by id

    def _recall(self) -> None:
        """What the state knows."""
        self.journal = self.state.journal()
        self.state.require_in_place(self.journal)
        self._followed, self._stands = len(self.journal.lines), {}
        self.approvals = Approvals(self.state.folder / "approvals", self.settings.policy.approve)

    @property
    @abstractmethod
    def correspondent(self) -> Correspondent:
        """Who answers letters here."""

    def run(self, began: str, **told: str) -> None:
        """Serve until a signal says to stop; `began` is what the log says first, `told` what the journal does."""
        root = self.settings.connection.root
        mailbox = Mailbox(
            self.settings.connection.superlink or self.agreement.superlink,
            (read_text(root, "correct connection.root") if root else self.agreement.root).encode(),
            self.key,
            longest_letter(self.agreement),
            self._refuse,
        )
        self.journal.add("start", plan=self.agreement.digest.hex(), **self.state.place, **told)
        _log.info("%s", began)
        with _stopping(mailbox), suppress(Closed):
            self.serve(mailbox)
        self.journal.add("stop")
        _log.info("stopped; the head of the journal is %s", self.journal.head)

    def serve(self, mailbox: Mailbox) -> None:
        """Answer letters until the mail box is closed."""
        if self.settings.policy.approve == "plan":
            self._stand(self.agreement.digest, None)
        self._follow()
        with mailbox.opened():
            _log.info("connected; waiting for questions")
            while not mailbox.closing.is_set():
                letter = mailbox.fetch()
                if letter is None:
                    mailbox.closing.wait(_PAUSE)
                else:
                    self._answer(mailbox, letter)

    def _answer(self, mailbox: Mailbox, letter: Letter) -> None:
        """Serve one letter."""
        if (reply := self._reply(letter)) is not None:
            mailbox.reply(letter, reply)

    def _reply(self, letter: Letter) -> Mapping[str, bytes] | None:
        """What is sent back; None where that is nothing."""
        try:
            return self.correspondent.reply(letter.parts)
        except OSError as error:
            self._tell_unwritten(error)
            return None
        finally:
            self._follow()

    def _refuse(self, why: str) -> None:
        """Write down that what came was no letter, if that can be: whoever sends it ends no site whose disk is full."""
        try:
            self.correspondent.refuse(why)
        except OSError as error:
            self._tell_unwritten(error)

    def _tell_unwritten(self, error: OSError) -> None:
        _log.error("%s: nothing is answered until it can be written (%s)", self.state.folder, error.strerror)

    def _follow(self) -> None:
        """Tell in the log what is new in the journal."""
        for line in self.journal.lines[self._followed :]:
            _log.info("%s", said(line))
        self._followed = len(self.journal.lines)

    def _agreed(self, head: Head) -> bool:
        """Whether somebody here has agreed to a question. Raises `InputError` where somebody has denied it."""
        decision = self._stand(head.plan, head.exchange)
        if decision.state == DENIED:
            raise InputError(f"{decision.by} has denied {decision.id}")
        return decision.state == APPROVED

    def _stand(self, plan: bytes, exchange: bytes | None) -> Decision:
        """What has been decided; written down in the journal once it is known."""
        decision = self.approvals.asked(plan, exchange)
        if self._stands.get(decision.id) != decision.state:
            self._stands[decision.id] = decision.state
            if decision.state == PENDING:
                _log.info(
                    "%s waits for approval; type: federation party approve SITE.toml %s", decision.id, decision.id
                )
            else:
                self.journal.add(decision.state, id=decision.id, by=decision.by, at=decision.time)
        return decision


@contextmanager
def _stopping(mailbox: Mailbox) -> Iterator[None]:
    """Signals that close the mail box, whatever a process was started by; the second ends it as it ends any process.

    Who waits for a SuperLink that answers a byte at a time may do so for ever, and to be killed costs a site nothing.
    """

    def close(*_: object) -> None:
        _log.info("stopping; a second signal ends it at once")
        mailbox.closing.set()
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    for number in before:
        signal.signal(number, close)
    try:
        yield
    finally:
        restore()
