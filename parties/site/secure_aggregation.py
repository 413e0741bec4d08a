"""A site in secure sums: computes its part in a process of its own, pays before it leaves, and answers query by query.

The site knows from the plan that it has approved what a sum is over, and with which members. It believes only one thing
that its coordinator says of a sum: a fresh nonce. A sum that is a day old is over, and its secrets are destroyed.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from federation.contract.errors import InputError
from federation.contract.files import write_lasting
from federation.contract.guarantee import Guarantee
from federation.numerics.rows import Integers
from federation.secure_aggregation.messages import AGREE, KEYS, MASKED, SHARES, UNMASK, keys_width, upload_width
from federation.secure_aggregation.plan import SumPlan
from federation.signed_messages.aggregation_messages import LEAVE, SumAnswer, SumQuery, read_part, require_planned
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import sums_key
from federation.signed_messages.messages import Head, Status, status_packet
from parties.party_data.cohort import Cohort
from parties.secure_aggregation.party import FolderMemory, MaskedParty, UploadingParty
from parties.site.accounts import Accounts, Journal
from parties.site.settings import Belief
from parties.site.worker import Means, Work, read

SUM = "sum"  # of a line of the journal that begins one: what is known of it

_DAY = 86_400.0  # seconds
# What the answers to the queries are, for people.
_CALLED = {KEYS: "keys", SHARES: "shares", MASKED: "masked part", AGREE: "agreement on who is in", UNMASK: "unmasking"}


@dataclass(frozen=True)
class Reply:
    """What was asked, in words, and the reply: None while somebody has yet to decide; `why` there is no answer."""

    kind: str
    packet: bytes | None
    why: str = ""


Begin = Callable[[Work, list[str], Mapping[str, Any], bool], bool]


@dataclass
class Summing:
    """One site in all secure sums of an agreement, with a folder in which it keeps what it must not forget of them.

    `belief` is what it believes of those who add up. Raises `InputError` for an agreement that lacks keys of sites.
    """

    key: EllipticCurvePrivateKey
    agreement: Agreement
    cohort: Cohort
    accounts: Accounts
    journal: Journal
    folder: Path
    means: Means
    belief: Belief
    _known: dict[str, Mapping[str, Any]] = field(init=False)
    _made: Integers | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._terms, self._memory = self.belief.terms(self.agreement), FolderMemory(self.folder)
        known = self.cohort.first, sums_key(self.key), self._terms, self._memory, lambda plan: self._part(), self._pay
        self._party, self._uploading = MaskedParty(*known), UploadingParty(*known)
        lines = [line for line in self.journal.lines if SUM in line]
        self._known = {line[SUM]["digest"]: line[SUM] for line in lines}
        self._begun = {line[SUM]["digest"]: line["time"] for line in lines}

    def answer(self, head: Head, packet: bytes, begin: Begin, denied: Callable[[Head], bool], now: float) -> Reply:
        """What a query is answered with.

        Where somebody here has `denied` it in the meantime, this site leaves the sum before its part does. `begin`
        takes the question in its process, the places in an exchange that a part is for, what the journal is to know of
        the sum, and whether a part is yet to be made: whether it may begin. Raises `FederationError` for what is
        refused.
        """
        self._forget(now)
        query = SumQuery.read(packet)
        if query.query == KEYS:
            return self._first(head, query, begin, now)
        digest = query.digest.hex()
        if digest not in self._known or self._known[digest]["exchange"] != head.exchange.hex():
            raise InputError("this site knows nothing of this secure sum, and so stays away from it")
        kind = self._known[digest]["kind"]
        if query.query == LEAVE:
            self._party.leave(query.digest)
            return Reply(f"{kind}, end of a secure sum", SumAnswer(b"").packet())
        if query.query <= MASKED and denied(head):
            self._party.leave(query.digest)
            raise InputError(
                "somebody here has denied it: this site leaves the secure sum, and nothing of it can be read"
            )
        answer = self._party.answer(query.digest, query.query, query.body)
        return Reply(f"{kind}, {_CALLED[query.query]} of a secure sum", SumAnswer(answer).packet())

    def _first(self, head: Head, query: SumQuery, begin: Begin, now: float) -> Reply:
        self.belief.require(self.agreement)
        plan = SumPlan.read(query.body)
        if plan.packed() != query.body or plan.digest != query.digest:
            raise InputError("the plan of a secure sum has another digest than it comes with")
        masked = replace(self.cohort, masked=True)
        with read(query.question, self.agreement, masked, self.means) as work:
            cost = work.cost
            require_planned(plan, self.agreement, self._terms.roster, query.question, cost.numbers)
            self._terms.require(plan)
            exchange, digest = head.exchange.hex(), plan.digest.hex()
            if self._known.get(digest, {"exchange": exchange})["exchange"] != exchange:
                raise InputError("this secure sum is one of another exchange; every exchange has its own")
            release = f"{self.agreement.aggregator}\n{head.plan.hex()} {exchange} {cost.kind} {cost.release}"
            known: dict[str, Any] = {"digest": digest, "exchange": exchange, "kind": cost.kind}
            known |= {"paid": hashlib.sha256(release.encode()).hexdigest()}
            if cost.guarantee is None:
                raise InputError("this site answers under a guarantee only")
            known |= {"guarantee": cost.guarantee.to_dict()}
            self.accounts.require(known["paid"], cost.guarantee, trusted=False)
            slots = [f"{exchange} secure sum {digest}", f"{exchange} {cost.kind} {cost.release} {cost.query}"]
            kind = f"{cost.kind}, {'part' if plan.second else _CALLED[KEYS]} of a secure sum"
            new = self._memory.load(plan.digest) is None
            if not begin(work, slots, known, new):
                return Reply(kind, None)
            self._known[digest] = known
            self._begun.setdefault(digest, now)
            if new:
                if (part := work.answer()) is None:
                    why = (
                        f"'{cost.kind}' has no part in a secure sum: to make one took more than {self.means.seconds} s "
                        f"or {self.means.memory} bytes, or failed; raise the limits, or mend what the log tells of"
                    )
                    width = upload_width(plan) if plan.second else keys_width(plan)
                    length = len(SumAnswer(bytes(width), bytes(cost.length)).packet())
                    return Reply(kind, status_packet(Status.REFUSED, length), why)
                opened, self._made = read_part(part, cost.numbers)
                write_lasting(self._opened(digest), opened)
        if plan.second:  # which takes one query: it is paid for before it leaves
            answer = self._uploading.answer(query.body)
        else:
            answer = self._party.answer(plan.digest, KEYS, query.body)
        return Reply(kind, SumAnswer(answer, self._opened(digest).read_bytes()).packet())

    def _part(self) -> Integers:
        """What has just been computed; a sum has it once."""
        made, self._made = self._made, None
        if made is None:
            raise InputError("no part has been computed for this secure sum")
        return made

    def _pay(self, plan: SumPlan) -> None:
        """Before what is masked leaves: from then on the server may have the sum."""
        known = self._known[plan.digest.hex()]
        told = {"exchange": known["exchange"], SUM + " of": plan.parties}
        self.accounts.charge(known["paid"], Guarantee.from_dict(known["guarantee"]), False, told)

    def _opened(self, digest: str) -> Path:
        """What this site says openly in a sum, on the disk before anything leaves."""
        return self.folder / f"{digest}.open"

    def _forget(self, now: float) -> None:
        for digest in [digest for digest, begun in self._begun.items() if begun < now - _DAY]:
            self._party.leave(bytes.fromhex(digest))
            del self._begun[digest]
