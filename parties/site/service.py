"""The service of a site: fetches letters, has them answered, and sends what may leave when it may leave.

One question is served at a time, and where rows were read for it the reply leaves at a fixed time after it came: when
that is tells nothing of how long it took, and neither does anything that leaves after it.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from federation.contract.query import Declared
from federation.contract.trust import honest as counted_on
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import load_key
from federation.signed_messages.messages import Head
from parties.guard.registry import answerer
from parties.holdings.cohort import Cohort, Elsewhere, Holdings
from parties.site import worker
from parties.site.accounts import Accounts
from parties.site.approvals import DENIED
from parties.site.identity import Contents, Identity, contents
from parties.site.mailbox import Letter, Mailbox
from parties.site.policy import objections
from parties.site.serving import Serving
from parties.site.settings import MARGIN, Settings
from parties.site.site import BEGUN, Site
from parties.site.state import State
from parties.site.worker import Means

_DAY = 86_400.0  # seconds
_SHARE_FOR_ROWS = 0.5  # of a question's time, at most, that it may take to read the rows
_NEVER_READ = object()  # the version of no table
_LOOKS, _LONGEST_LOOK = 3, 60  # at the table, one of which must be quick enough, and seconds that each may take
_log = logging.getLogger(__name__)


class NotYet(InputError):
    """The table takes too long to read, or is away, now at least."""


class Table(Protocol):
    """A site's rows, wherever they are: `reference` is that of a provider of them, for a process of its own."""

    @property
    def reference(self) -> str:
        """Of a provider of this site's rows."""
        ...

    def version(self) -> object:
        """What is another where the rows may be others."""
        ...

    def read(self) -> tuple[Holdings | None, list[str]]:
        """The rows, None where they cannot be used; and all that is to be said of them."""
        ...


@dataclass
class Service(Serving):
    """One site at work: its configuration, the plan, the table, and the state that this process owns."""

    settings: Settings
    agreement: Agreement
    table: Table
    state: State
    key: EllipticCurvePrivateKey
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
        self.site = Site(
            self.settings.name,
            self.key,
            self.agreement,
            cohort(self.settings, self.agreement, self.table.reference),
            accounts(self.settings, self.identity),
            self.journal,
            self.state.answers,
            self._approved,
            self.settings.means,
            belief=self.settings.policy.belief,
            denied=lambda head: self._stand(head.plan, head.exchange).state == DENIED,
        )

    @property
    def correspondent(self) -> Site:
        """Who answers letters here."""
        return self.site

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
    """Those of the table of this site, under all of its names."""
    table = settings.data.table
    return Accounts(table, settings.allowances, identity.journal, identity.names(table))


def cohort(settings: Settings, agreement: Agreement, reference: str) -> Cohort:
    """This site as a node of its own, with all that the agreement says of its table."""
    bags = agreement.bags.most if agreement.bags else 1
    try:
        honest = counted_on(len(agreement.sites), agreement.quorum, agreement.colluding)
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
        service = Service(settings, agreement, table, state, key)
        try:
            service.look()
        except NotYet as error:
            _log.error("not ready yet: %s", error)
        state_now = "ready" if service.ready else "NOT ready"
        service.run(f"site '{settings.name}' of the plan '{agreement.name}': {state_now}", table=settings.data.table)
