"""The service of a site: it fetches messages, answers them, and sends each reply when it may leave.

`Serving` runs any member of an agreement: it fetches messages, has them answered, waits for approvals, and stops at a
signal. `Service` is the service of a site.

The service of a site handles one query at a time. If it read rows for a query, the reply leaves at a fixed time after
the query came. The sending time therefore reveals nothing about the duration, and neither does anything that leaves
later.
"""

import logging
import math
import signal
import time
from abc import ABC
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from federation.contract.errors import InputError
from federation.contract.files import read_text
from federation.contract.plugins import Reference
from federation.contract.query import Declared
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import load_key
from federation.signed_messages.messages import Head
from parties.guard.answering import answerer
from parties.party_data.cohort import Cohort, Elsewhere, Holdings
from parties.site import worker
from parties.site.accounts import Accounts, Journal, said
from parties.site.message_queue import Closed, Letter, Mailbox
from parties.site.messages import BEGUN, Correspondent, Site
from parties.site.policy import APPROVED, DENIED, PENDING, Approvals, Decision, longest_letter, objections
from parties.site.settings import MARGIN, SecondSettings, Settings
from parties.site.state import Contents, Identity, State, contents
from parties.site.worker import Means

_log = logging.getLogger(__name__)
_DAY = 86_400.0  # seconds
_SHARE_FOR_ROWS = 0.5  # of a question's time, at most, that it may take to read the rows
_NEVER_READ = object()  # the version of no table
_LOOKS, _LONGEST_LOOK = 3, 60  # at the table, one of which must be quick enough, and seconds that each may take


class NotYet(InputError):
    """The table takes too long to read, or is away, now at least."""


class Table(Protocol):
    """A site's rows, wherever they are: `reference` is that of a provider of them, for a process of its own."""

    @property
    def reference(self) -> str:
        """The reference of a provider of this site's rows."""

    def version(self) -> object:
        """What is another where the rows may be others."""

    def read(self) -> tuple[Holdings | None, list[str]]:
        """The rows, None where they cannot be used; and all that is to be said of them."""


@dataclass
class Serving(ABC):
    """What the services of all members have: a configuration, the plan, and the state that this process owns."""

    settings: Settings | SecondSettings
    agreement: Agreement
    state: State
    key: EllipticCurvePrivateKey
    journal: Journal = field(init=False)
    approvals: Approvals = field(init=False)
    correspondent: Correspondent = field(init=False)  # who answers letters here
    _followed: int = field(init=False)  # lines of the journal that the log has told
    _stands: dict[str, str] = field(init=False)  # of decisions, by id

    def _recall(self) -> None:
        """What the state knows."""
        self.journal = self.state.journal()
        self.state.require_in_place(self.journal)
        self._followed, self._stands = len(self.journal.lines), {}
        self.approvals = Approvals(self.state.folder / "approvals", self.settings.policy.approve)

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


@dataclass
class Service(Serving):
    """One site at work: its configuration, the plan, the table, and the state that this process owns."""

    settings: Settings
    table: Table
    identity: Identity = field(init=False)
    site: Site = field(init=False)
    ready: bool = field(default=False, init=False)
    _version: object = field(default=_NEVER_READ, init=False)  # of the table that was looked at

    def __post_init__(self) -> None:
        wrong = [*objections(self.settings, self.agreement, self.key)]
        if wrong:
            raise InputError("\n".join(wrong))
        self._recall()
        self.identity = Identity(self.state.folder / "tables", self.journal)
        self.site = self.correspondent = Site(
            self.settings.name,
            self.key,
            self.agreement,
            self.journal,
            self.state.answers,
            self._approved,
            cohort(self.settings, self.agreement, self.table.reference),
            accounts(self.settings, self.identity),
            self.settings.means,
            belief=self.settings.policy.belief,
            denied=lambda head: self._stand(head.plan, head.exchange).state == DENIED,
        )

    def look(self) -> None:
        """Have the table read, and be ready if it is as the plan says. Raises `InputError` that says all that is wrong.

        A process of its own reads it, with the means of one that answers a question, and tells no row of it.
        """
        self.ready, self._version = False, self.table.version()
        means = self.settings.means
        for _ in range(_LOOKS):  # the machine may be busy with something else
            (away, told, found), seconds = worker.apart(to_look(means), partial(_known, self.table, self.identity.key))
            if seconds <= _SHARE_FOR_ROWS * means.seconds:
                break
        if away:
            self._version = _NEVER_READ  # it is looked for again with the next question
            raise NotYet(away)
        if found is None:
            raise InputError("\n".join(told))
        for sentence in told:
            _log.info("table '%s': %s", self.settings.data.table, sentence)
        require_enough(found, self.settings)
        self.identity.require_settled(self.settings.data.table, found)
        self.identity.remember(self.settings.data.table, found)
        try:
            require_quick(seconds, means)
        except NotYet:
            self._version = _NEVER_READ  # with the next question it is looked at again: a busy machine may be idle then
            raise
        self.ready = True

    def _answer(self, mailbox: Mailbox, letter: Letter) -> None:
        """Serve one letter; what was computed for it leaves when its time is over, whatever happened."""
        began, seconds = time.monotonic(), self.settings.limits.seconds
        changed = self.table.version() != self._version
        if changed:
            try:
                self.look()
            except (InputError, OSError) as error:
                _log.error("not ready: %s", error)
        looked = math.ceil((time.monotonic() - began) / seconds) if changed else 0
        due = began + (1 + looked) * seconds  # to read the table takes its time, which tells of it no more than so
        reply = self._reply(letter)
        if changed or self.site.touched:
            time.sleep(max(0.0, due - time.monotonic()))  # also while the service is being stopped
        if reply is not None:
            mailbox.reply(letter, reply)

    def _approved(self, head: Head) -> bool:
        """Whether a question may be answered now. Raises `InputError` for one too many, and where it was denied."""
        most, exchange = self.settings.policy.most_questions, head.exchange.hex()
        begun = [line for line in self.journal.lines if line["event"] == BEGUN]
        asked = sum(line["slots"][0].startswith(f"{exchange} ") for line in begun)
        today = sum(line["time"] > time.time() - _DAY for line in begun)
        if max(asked, today) >= most:
            raise InputError(f"{most} questions were answered in this exchange or a day, the most that policy allows")
        return self._agreed(head) and self.ready


def _known(table: Table, key: bytes) -> tuple[str, list[str], Contents | None]:
    """Why a table is away, if it is; else what is to be said of it, and digests of its rows where these can be used."""
    try:
        provider = Reference.from_json(table.reference).call()
        there = provider.require_there if isinstance(provider, Elsewhere) else lambda: None
        there()
        holdings, told = table.read()
        if holdings is None:
            there()  # it may have gone meanwhile
    except InputError as error:
        return str(error), [], None
    return "", told, None if holdings is None else contents(holdings, key)


def to_look(means: Means) -> Means:
    """What a look at the table may use, where a question may use `means`."""
    return replace(means, seconds=max(means.seconds, _LONGEST_LOOK))


def require_quick(seconds: float, means: Means) -> None:
    """Raises `NotYet` where reading the table took too much of a question's time: what is paid for has an answer."""
    if _SHARE_FOR_ROWS * means.seconds < seconds:
        raise NotYet(
            f"to read the table takes {seconds:.0f} s, too much of the {means.seconds} s that a question has; "
            f"raise limits.seconds to {math.ceil(2 * seconds / _SHARE_FOR_ROWS) + MARGIN + 1}"
        )


def require_enough(found: Contents, settings: Settings) -> None:
    """Raises `InputError` for a table with fewer rows than this site answers about, whatever a plan says."""
    rows, least = len(found.rows), settings.policy.least_rows
    if rows < least:
        raise InputError(
            f"the table has {rows} rows, and policy.least-rows = {least} allows no answer about fewer; lower it, or "
            "wait for more rows"
        )


def accounts(settings: Settings, identity: Identity) -> Accounts:
    """Return the accounts of the table of this site, under all of its names."""
    table = settings.data.table
    return Accounts(table, settings.allowances, identity.journal, identity.names(table))


def cohort(settings: Settings, agreement: Agreement, reference: str) -> Cohort:
    """This site as a node of its own, with all that the agreement says of its table."""
    bags = agreement.bags.most if agreement.bags else 1
    try:
        honest = agreement.terms.honest
    except InputError:
        honest = 0  # nobody's shares of a noise may be counted on
    declared = Declared(
        most_rows=agreement.rows[1] * bags,
        label_range=agreement.label.range,
        classes=len(agreement.label.classes) or None,
        bags=bags,
        rows_per_person=agreement.rows_per_person,
        honest=honest,
    )
    return Cohort(
        reference,
        agreement.position(settings.name),
        1,
        None,
        public_features=settings.policy.public_features,
        declared=declared,
    )


def run(settings: Settings, agreement: Agreement, table: Table) -> None:
    """Serve until a signal says to stop. Raises `InputError` where the configuration, plan or table forbid it."""
    state = State.found(settings.state)
    with state.owned():
        provider, _, _ = Reference.from_json(table.reference).target.partition(":")
        answerers = [answerer(asked.kind).__module__ for asked in agreement.asked]
        worker.prepare(__name__, provider, *answerers)  # before there is any thread, or a key in memory
        key = load_key(settings.connection.key, EllipticCurvePrivateKey)  # type: ignore[type-abstract]
        service = Service(settings, agreement, state, key, table)
        try:
            service.look()
        except NotYet as error:
            _log.error("not ready yet: %s", error)
        state_now = "ready" if service.ready else "NOT ready"
        service.run(f"site '{settings.name}' of the plan '{agreement.name}': {state_now}", table=settings.data.table)


_PAUSE = 0.5  # seconds between looks into an empty mail box


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
