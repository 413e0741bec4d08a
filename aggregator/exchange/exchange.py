"""The state of an exchange with real sites on disk: keys, queries and replies, and the spending of all exchanges.

An interrupted `Exchange` continues from its folder. It writes a query to disk before it sends it, and sends the query
again byte for byte. A newly computed query might differ by a bit, and a site that has answered the first would refuse
the second.

`Spent` adds up the releases of all exchanges of an agreement, over all runs, in one file. It holds them against one
budget.
"""

import hashlib
import json
import secrets
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from aggregator.contract.ledger import Budget, Ledger, require_together
from federation import __version__
from federation.contract.errors import BudgetExceededError, InputError, refusing
from federation.contract.files import read_object, write_lasting
from federation.contract.guarantee import Guarantee
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import fingerprint, load_key, raw_public, save_key
from federation.signed_messages.messages import JOURNAL, NOTHING_KNOWN, Head, SealedAnswer, SignedQuestion, kind_of

QUESTION, REPLY, LEFT_OUT = ".question", ".reply", ".left"  # files of an exchange, after the numbers that they are for
RECORD = "exchange.json"  # of an exchange: its identifier, and what it was begun with
JOURNALS = "journals"  # folder beside those of all exchanges: how far each site's journal was, by its name


@dataclass(frozen=True)
class Exchange:
    """One exchange of an agreement, in a folder that nobody else may read. Sites are numbered from 0, and a
    second server after them.

    `journals` is where the last known hashes of the sites' journals are, over all exchanges.
    """

    folder: Path
    agreement: Agreement
    signing: Ed25519PrivateKey
    reply_to: X25519PrivateKey
    identifier: bytes
    journals: Path

    @classmethod
    def opened(cls, folder: Path, agreement: Agreement, signing: Ed25519PrivateKey) -> "Exchange":
        """The exchange that was begun in a folder, or a new one.

        Raises `InputError` for one of another agreement or version of this program, or a key that others may read.
        """
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        record, key = folder / RECORD, folder / "reply_to.key"
        if not key.exists():
            save_key(key, X25519PrivateKey.generate())
        if not record.exists():
            known = {"exchange": secrets.token_hex(16), "plan": agreement.digest.hex(), "version": __version__}
            write_lasting(record, json.dumps(known).encode())
        found = read_object(record, "begin a new exchange in another folder")
        if found.get("plan") != agreement.digest.hex():
            raise InputError(f"{record} is of another plan; begin a new exchange in another folder")
        if found.get("version") != __version__:
            raise InputError(
                f"{record} was begun by version {found.get('version')} of this program, and this is {__version__}; go "
                "on with that version"
            )
        reply_to = load_key(key, X25519PrivateKey)  # type: ignore[type-abstract, unused-ignore]
        identifier, journals = bytes.fromhex(found["exchange"]), folder.parent / JOURNALS
        return cls(folder, agreement, signing, reply_to, identifier, journals)

    def question(self, number: int, packet: bytes) -> bytes:
        """The question at a place: the one that was asked there before, if one was, else this, which is written down.

        Raises `InputError` where one of another kind was asked.
        """
        return first_asked(
            self.folder / f"{number:05d}{QUESTION}", packet, f"question {number} of this exchange was one for"
        )

    def letter(self, number: int, packet: bytes, site: int) -> SignedQuestion:
        """A question as one site gets it: the same whenever it is asked for, but for what is known of its journal."""
        known = self._journal(site)
        told = bytes.fromhex(known.read_text()) if known.exists() else NOTHING_KNOWN
        return SignedQuestion.signed(self.head(number, packet, site), packet, self.signing, told)

    def head(self, number: int, packet: bytes, site: int) -> Head:
        """What is signed."""
        return Head(
            self.agreement.digest,
            self.identifier,
            number,
            hashlib.sha256(packet).digest(),
            self.agreement.members[site].name,
            site,
            bytes.fromhex(fingerprint(self._keys[site])),
            self.agreement.closing,
            raw_public(self.reply_to),
        )

    def reply(self, number: int, packet: bytes, site: int) -> bytes | None:
        """What a site has answered to a question; None where it has not."""
        path = self._reply_path(number, site)
        return (
            self.opened_reply(SealedAnswer.decoded(path.read_bytes()), number, packet, site) if path.exists() else None
        )

    def opened_reply(self, answer: SealedAnswer, number: int, packet: bytes, site: int) -> bytes:
        """The reply in a letter. Raises `InputError` for a letter that this site has not sent to this question."""
        return answer.opened(self.head(number, packet, site), self._keys[site], self.reply_to)

    def mark_left_out(self, number: int, site: int) -> None:
        """Write down that this run waits for a site no longer, for whoever looks how far the exchange is."""
        self._reply_path(number, site).with_suffix(LEFT_OUT).touch(mode=0o600)

    def keep(self, answer: SealedAnswer, number: int, packet: bytes, site: int) -> None:
        """Write down an answer as it came, and how far it says that the site's journal is."""
        opened = self.opened_reply(answer, number, packet, site)
        write_lasting(self._reply_path(number, site), answer.encoded())
        self.journals.mkdir(mode=0o700, exist_ok=True)
        write_lasting(self._journal(site), opened[-JOURNAL:].hex().encode())

    def _journal(self, site: int) -> Path:
        """Where the last known hash of a site's journal is, over all exchanges."""
        return self.journals / self.agreement.members[site].name

    @cached_property
    def _keys(self):  # type: ignore[no-untyped-def]
        return self.agreement.keys

    def _reply_path(self, number: int, site: int) -> Path:
        return self.folder / f"{number:05d}-{site:05d}{REPLY}"


def first_asked(path: Path, packet: bytes, was: str) -> bytes:
    """The question in a file, or this one, which is written down there: made anew it might differ by a bit.

    `was` says what the file holds, as a sentence begins. Raises `InputError` where it is one of another kind.
    """
    if not path.exists():
        write_lasting(path, packet)
        return packet
    asked = path.read_bytes()
    if kind_of(asked) != kind_of(packet):
        raise InputError(f"{was} {kind_of(asked)}, and is now one for {kind_of(packet)}; begin a new exchange")
    return asked


_REMEDY = "restore it from a copy: without it nobody knows what has been spent"


@dataclass
class Spent:
    """The guarantees that exchanges have been charged with, by the exchange's identifier in hexadecimal digits.

    An exchange is charged once at a time: what it turns out to have spent takes the place of what was set aside for it.
    """

    path: Path
    charged: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> "Spent":
        """From its file; nothing is spent where there is none. Raises `InputError` for a file that cannot be read."""
        if not path.exists():
            return cls(path)
        found = read_object(path, _REMEDY)
        try:
            with refusing("it holds something else"):
                spent = cls(path, {str(name): list(guarantees) for name, guarantees in found["charged"].items()})
                spent.guarantees()
        except InputError as error:
            raise InputError(f"{path} is damaged: {error}; {_REMEDY}") from error
        return spent

    def guarantees(self, beside: str = "") -> list[Guarantee]:
        """What has been spent, but for that of one exchange."""
        held = [one for exchange, many in self.charged.items() if exchange != beside for one in many]
        return [Guarantee.from_dict(record) for record in held]

    def charge(self, exchange: str, guarantees: Sequence[Guarantee], budget: Budget | None) -> None:
        """Write down what an exchange spends, before it does.

        Raises `BudgetExceededError`, and writes nothing, where all exchanges together would spend more than the
        `budget`, and `OSError` of a disk.
        """
        if not guarantees:
            raise InputError(f"exchange {exchange} releases nothing that a ledger could hold")
        if budget is not None:
            try:
                require_together(budget, [*self.guarantees(beside=exchange), *guarantees])
            except BudgetExceededError as error:
                raise BudgetExceededError(f"{error} of a new deployment: this one is agreed on as it is") from error
        self.charged[exchange] = [one.to_dict() for one in guarantees]
        self._write()

    def _write(self) -> None:
        write_lasting(self.path, json.dumps({"charged": self.charged}, indent=1).encode())

    def free(self, exchange: str) -> None:
        """What was set aside for an exchange of which nothing has left any site is not spent."""
        if self.charged.pop(exchange, None) is not None:
            self._write()

    def totals(self, delta: float, exchange: str | None = None) -> list[dict[str, Any]]:
        """Composed epsilon and delta for each unit and adjacency, of one exchange or of all."""
        ledger = Ledger()
        for number, guarantee in enumerate(
            self.guarantees() if exchange is None else map(Guarantee.from_dict, self.charged.get(exchange, ()))
        ):
            ledger.charge(f"release {number}", guarantee)
        return ledger.totals(delta)


def affordable(guarantees: Sequence[Guarantee], budget: Budget, most: int) -> int:
    """How many exchanges with these promises a budget allows together, `most` at most.

    It may allow more of them, as what was spent in the end takes the place of what was promised.

    Examples:
        >>> from federation.contract.guarantee import Adjacency, Unit
        >>> affordable([Guarantee(1.0, 1e-6, Unit.ROW, Adjacency.REPLACE, "gaussian")], Budget(4.0, 3e-6), 9)
        3
    """

    def beyond(count: int) -> bool:
        try:
            require_together(budget, [*guarantees] * count)
        except BudgetExceededError:
            return True
        return False

    return bisect_left(range(1, most + 1), True, key=beyond)
