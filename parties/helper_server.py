"""The helper server of a secure aggregation between real sites, and its service.

For each sum of its agreement the helper server reveals the sum of one list of masks, once. It accepts only a fresh
number and the query that the sum is over. Everything else about a sum follows from the agreement, and the sites'
signatures prove that they take part. Before a reply leaves, the list that it answers for is in the journal and in a
file.

The service of a helper server is a site's service without a table. Its replies leave at once, as they contain no row.
"""

import hashlib
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from federation.contract.errors import InputError
from federation.contract.trust import COLLUDING
from federation.secure_aggregation.messages import unpacked_bits
from federation.secure_aggregation.plan import SumPlan, SumTerms
from federation.signed_messages.aggregation_messages import MASKS, SUM, SumAnswer, SumQuery, require_followed
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import load_key, masks_key
from federation.signed_messages.messages import Head, SealedAnswer, Status, kind_of
from parties.secure_aggregation.party import FolderMemory, UnmaskingServer
from parties.site.messages import Correspondent
from parties.site.policy import objections_of_second
from parties.site.service import Serving
from parties.site.settings import Belief, SecondSettings
from parties.site.state import State

UNMASKED = "told the sum of masks"  # of a line of the journal: the digest of the sum, and of the list of its sites
_KIND = "masks of a secure sum"


@dataclass
class SecondServer(Correspondent):
    """The second server of an agreement; it takes a share `colluding` of the sites to collude with the first at most.

    Raises `InputError` for an agreement that lacks keys of sites.
    """

    colluding: float = COLLUDING
    _terms: SumTerms = field(init=False)
    _lists: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self._recall(UNMASKED)
        self._terms = Belief(self.colluding).terms(self.agreement)
        self._lists = {one["sum"]: one["sites"] for one in self.journal.lines if one["event"] == UNMASKED}

    @property
    def position(self) -> int:
        """Its number, after those of the sites."""
        return len(self.agreement.sites)

    def _served(self, head: Head, question: bytes, key: str) -> SealedAnswer:
        if kind_of(question) != SUM or (query := SumQuery.read(question)).query != MASKS:
            raise InputError("a second server tells sums of masks, and answers nothing else")
        plan = SumPlan.read(query.question)
        if plan.packed() != query.question or plan.digest != query.digest:
            raise InputError("the plan of a secure sum has another digest than it comes with")
        require_followed(plan, self.agreement, self._terms.roster)
        if not self._permitted(head, _KIND, 8 * plan.numbers):
            return self._said(head, Status.BUSY)
        size = -(-plan.parties // 8)
        counted, receipts = query.body[:size], query.body[size:]
        sites = hashlib.sha256(counted).hexdigest()
        if self._lists.get(plan.digest.hex(), sites) != sites:
            raise InputError("this server has told the masks of another list of sites of this sum, and tells no more")
        memory = FolderMemory(self.answers.with_name("sums"))
        server = UnmaskingServer(masks_key(self.key), self._terms, memory)
        if memory.load(plan.digest) is None:
            server.take(plan, receipts)
        packet = SumAnswer(server.masks(plan, counted).tobytes()).packet()
        known = {"sum": plan.digest.hex(), "sites": sites, "exchange": head.exchange.hex(), "of": plan.parties}
        self._lists[plan.digest.hex()] = sites
        many = int(unpacked_bits(counted, plan.parties).sum())
        return self._sent(head, packet, key, UNMASKED, **known, counted=many)


@dataclass
class SecondService(Serving):
    """One second server at work."""

    settings: SecondSettings

    def __post_init__(self) -> None:
        if wrong := [*objections_of_second(self.settings, self.agreement, self.key)]:
            raise InputError("\n".join(wrong))
        self._recall()
        self.correspondent = SecondServer(
            self.settings.name,
            self.key,
            self.agreement,
            self.journal,
            self.state.answers,
            self._agreed,
            self.settings.policy.colluding,
        )


def run(settings: SecondSettings, agreement: Agreement) -> None:
    """Serve until a signal says to stop. Raises `InputError` where the configuration or the plan forbid it."""
    state = State.found(settings.state)
    with state.owned():
        key = load_key(settings.connection.key, EllipticCurvePrivateKey)  # type: ignore[type-abstract]
        service = SecondService(settings, agreement, state, key)
        service.run(f"second server '{settings.name}' of the plan '{agreement.name}': ready")
