"""A party's side of a secure aggregation: which messages it answers, how often, and what it has paid before.

- `MaskedParty` takes part in a sum with one server.
- `UploadingParty` takes part in a sum with two servers that do not collude: it sends one message and may leave.
- `UnmaskingServer` is the helper server, run by another organisation: it reveals the sum of the masks of one list of
  parties, once.
- `Memory` stores what a party or a helper server must remember, so that it never answers one message in two ways.
"""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from federation.contract.errors import InputError, QuorumError
from federation.contract.files import write_lasting
from federation.numerics.rows import Booleans, Floats, Integers
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation.masks import Words, encoded
from federation.secure_aggregation.messages import (
    KEYS,
    MASKED,
    MOST_RECEIPTS,
    RECEIPT,
    SAYS,
    Table,
    Uploaded,
    mask_key,
    queries,
    unpacked_bits,
    vouched,
)
from federation.secure_aggregation.plan import KEY, SumPlan, SumTerms
from parties.secure_aggregation.masking import MaskedAnswers, Own

Contribute = Callable[[SumPlan], Floats | Integers]


class _SummedParty:
    """One party, in as many sums as it is asked for.

    `contribute` makes its part of a sum that its terms allow, whole numbers of grid steps (d,) with a share of fresh
    noise, one of `plan.contributors` that are the whole; it is called once for a sum. `pay` is called before the masked
    part leaves, and raises what refuses it.
    """

    def __init__(
        self,
        number: int,
        key: Ed25519PrivateKey,
        terms: SumTerms,
        memory: "Memory",
        contribute: Contribute,
        pay: Callable[[SumPlan], None] = lambda plan: None,
    ) -> None:
        self._own, self._terms, self._memory = Own(number, key, terms.roster), terms, memory
        self._contribute, self._pay = contribute, pay
        self._running: dict[bytes, tuple[int, MaskedAnswers]] = {}  # sums of several queries


class MaskedParty(_SummedParty):
    """One party, in as many sums with one server as it is asked for.

    To a question that it has answered it gives the same answer. One that comes out of order, or another in place of
    one that it has answered, ends the sum for it; so does everything that a rule of `MaskedAnswers` refuses.
    """

    def answer(self, digest: bytes, query: int, question: bytes) -> bytes:
        """To one query of the sum whose plan has this digest. Raises `InputError` for what it refuses."""
        record = self._memory.load(digest)
        if record is None:
            return self._begun(digest, query, question)
        if record.ended:
            if record.asked and record.asked[0] == _asked(query, question):
                return record.vector
            raise InputError("this sum is over for this party, which has destroyed its secrets; plan another")
        try:
            return self._answered(digest, record, query, question)
        except Exception:
            self._end(digest)
            raise

    def leave(self, digest: bytes) -> None:
        """End a sum that is not over, as after a failure elsewhere: its secrets are destroyed."""
        record = self._memory.load(digest)
        if record is not None and not record.ended:
            self._end(digest)

    def _begun(self, digest: bytes, query: int, question: bytes) -> bytes:
        if query != KEYS:
            raise InputError("this party knows nothing of this sum, and so stays away from it; plan another")
        plan = SumPlan.read(question)
        if plan.digest != digest or plan.packed() != question:
            raise InputError("the plan of this sum has another digest than it comes with; send it as it was packed")
        if plan.second:
            raise InputError("the plan of this sum has a second server, and takes one query only")
        self._terms.require(plan)
        vector = part_of(plan, self._contribute)
        root = secrets.token_bytes(32)
        self._memory.save(digest, Record(root, vector.astype("<u8").tobytes(), (question,)))
        answers = MaskedAnswers(plan, self._own, root, vector)
        self._running[digest] = 1, answers
        return answers.answer(question)

    def _answered(self, digest: bytes, record: "Record", query: int, question: bytes) -> bytes:
        plan = SumPlan.read(record.asked[0])
        order = queries(plan)
        step = order.index(query) if query in order else len(order)
        if step > len(record.asked) or (step < len(record.asked) and record.asked[step] != question):
            raise InputError("a masked sum answers each query once and in order; this party leaves the sum")
        asked = record.asked if step < len(record.asked) else (*record.asked, question)
        reply = self._replayed(digest, plan, record, asked[: step + 1])
        if step == len(record.asked):
            if query == MASKED:
                self._pay(plan)
            if step == len(order) - 1:
                self._end(digest, _asked(query, question), reply)
            else:
                self._memory.save(digest, Record(record.root, record.vector, asked))
        return reply

    def _replayed(self, digest: bytes, plan: SumPlan, record: "Record", asked: tuple[bytes, ...]) -> bytes:
        """The answer to the last of these questions; a new process gives all of them first."""
        done, answers = self._running.pop(digest, (0, None))
        if answers is None or done != len(asked) - 1:
            done, answers = 0, MaskedAnswers(plan, self._own, record.root, np.frombuffer(record.vector, dtype="<u8"))
        for question in asked[done:]:
            reply = answers.answer(question)
        self._running[digest] = len(asked), answers
        return reply

    def _end(self, digest: bytes, asked: bytes = b"", reply: bytes = b"") -> None:
        self._running.pop(digest, None)
        self._memory.save(digest, Record(b"", reply, (asked,) if asked else (), ended=True))


def part_of(plan: SumPlan, contribute: Contribute) -> Words:
    """A party's part modulo 2^64. Raises `InputError` for another number of numbers, and for what is not whole."""
    part = contribute(plan)
    if part.shape != (plan.numbers,):
        raise InputError(f"a part of this sum must be {plan.numbers} whole numbers, got an array of shape {part.shape}")
    return encoded(part)


def _asked(query: int, question: bytes) -> bytes:
    return bytes([query]) + hashlib.sha256(question).digest()


class UnmaskingServer:
    """Takes receipts of parties, sum by sum, and answers for a quorum of them; for another list of the same sum never.

    `terms`: its own roster, and what it insists on as a party does. `memory` keeps what it has answered.
    """

    def __init__(self, key: X25519PrivateKey, terms: SumTerms, memory: "Memory") -> None:
        self._key, self._terms, self._memory = key, terms, memory
        self._sums: dict[bytes, tuple[Words, Booleans]] = {}

    def take(self, plan: SumPlan, receipts: bytes) -> None:
        """Receipts that the first server has of a sum. Raises `InputError` where one is false or comes twice."""
        total, seen = self._of(plan)
        table = Table.read(receipts, RECEIPT, plan, most=MOST_RECEIPTS)
        if seen[table.numbers].any():
            raise InputError("the first server shows a party's receipt twice; this server leaves the sum")
        for number, receipt in table.items():
            if not vouched(receipt, number, self._terms.roster.keys[number], plan):
                raise InputError("a receipt is not signed by the party's key on the roster; this server leaves the sum")
            theirs = receipt[:KEY]
            # A key that gives nothing secret is no honest party's: its part is in clear, and it may be.
            common = keys.shared(self._key, theirs) or bytes(KEY)
            total += keys.stream(mask_key(common, plan, number, theirs), plan.numbers)
            seen[number] = True

    def masks(self, plan: SumPlan, counted: bytes) -> Words:
        """The sum of the masks of those who are counted (bits), all of whom have shown receipts.

        Raises `QuorumError` for fewer than the plan's quorum and `InputError` for another list than was answered for.
        """
        record = self._memory.load(plan.digest)
        if record is None:
            total, seen = self._of(plan)
            asked = unpacked_bits(counted, plan.parties)
            if asked.sum() < plan.least:
                raise QuorumError(f"{asked.sum()} parties are in the sum, and {plan.least} must be; no mask is told")
            if (asked != seen).any():
                raise InputError("the parties that are counted are not those whose receipts came; send all and no more")
            record = Record(b"", total.astype("<u8").tobytes(), (counted,), ended=True)
            self._memory.save(plan.digest, record)
            del self._sums[plan.digest]
        if record.asked != (counted,):
            raise InputError("this server has told the masks of another list of parties of this sum, and tells no more")
        return np.frombuffer(record.vector, dtype="<u8")

    def _of(self, plan: SumPlan) -> tuple[Words, Booleans]:
        """What has come of a sum that its terms allow."""
        if plan.digest not in self._sums:
            if plan.second != keys.public(self._key).hex():
                raise InputError("the plan of this sum names another second server; send it there")
            if self._memory.load(plan.digest) is not None:
                raise InputError("this server has told the masks of this sum, and takes no more receipts of it")
            self._terms.require(plan)
            self._sums[plan.digest] = np.zeros(plan.numbers, dtype=np.uint64), np.zeros(plan.parties, dtype=bool)
        return self._sums[plan.digest]


class UploadingParty(_SummedParty):
    """One party, in as many sums with two servers as it is asked for.

    Its part leaves it once: asked again it sends the same bytes, and has kept no secret.
    """

    def answer(self, question: bytes) -> bytes:
        """To a packed plan. Raises `InputError` for one that its terms do not allow."""
        plan = SumPlan.read(question)
        if plan.packed() != question:
            raise InputError("the plan of this sum is not as it was packed; send it so")
        if not plan.second:  # before the memory, in which other sums keep what they have not sent
            raise InputError("the plan of this sum has no second server, and takes more than one query")
        record = self._memory.load(plan.digest)
        if record is None:
            record = Record(b"", self._uploaded(plan).packed(), (), ended=True)
            self._memory.save(plan.digest, record)
        return record.vector

    def _uploaded(self, plan: SumPlan) -> Uploaded:
        self._terms.require(plan)
        vector = part_of(plan, self._contribute)
        fresh = X25519PrivateKey.generate()
        told, common = keys.public(fresh), keys.shared(fresh, self._terms.second)
        if common is None:
            raise InputError("the second server's key gives nothing secret; put its true key into the configuration")
        masked = vector + keys.stream(mask_key(common, plan, self._own.number, told), plan.numbers)
        signature = keys.signature(self._own.key, plan.digest, SAYS, self._own.number, told)
        self._pay(plan)
        return Uploaded(told, masked, signature)


_LENGTH, _DIGEST = 8, 32  # bytes of a length and of a digest in a file


@dataclass(frozen=True)
class Record:
    """One sum at one party: 32 secret bytes, its own noisy integers, and all questions that it has answered, in order.

    All that the party sends follows from these. Where the sum is over for it (`ended`) the secrets are gone: there is
    only the last question and the answer to it, if there was one.
    """

    root: bytes
    vector: bytes
    asked: tuple[bytes, ...]
    ended: bool = False

    def packed(self) -> bytes:
        """As a file holds it, with its digest: with one other bit a sum would silently be another."""
        parts = (b"1" if self.ended else b"0", self.root, self.vector, *self.asked)
        packed = b"".join(len(part).to_bytes(_LENGTH, "little") + part for part in parts)
        return packed + hashlib.sha256(packed).digest()

    @classmethod
    def read(cls, data: bytes) -> "Record":
        """From `packed`. Raises `InputError` for anything else."""
        parts, at, digest = [], 0, data[-_DIGEST:]
        data = data[:-_DIGEST]
        while at < len(data):
            length = int.from_bytes(data[at : at + _LENGTH], "little")
            parts.append(data[at + _LENGTH : at + _LENGTH + length])
            at += _LENGTH + length
        if hashlib.sha256(data).digest() != digest or len(parts) < 3 or parts[0] not in (b"0", b"1"):
            raise InputError("the record of a masked sum is damaged; this party stays away from the sum")
        return cls(parts[1], parts[2], tuple(parts[3:]), parts[0] == b"1")


class Memory(Protocol):
    """Keeps a record for each sum, by the digest of its plan."""

    def load(self, digest: bytes) -> Record | None:
        """What was saved last; None where the sum is unknown."""

    def save(self, digest: bytes, record: Record) -> None:
        """Returns once it is kept."""


class ProcessMemory:
    """Forgets when its process ends: for simulations only.

    Examples:
        >>> memory = ProcessMemory()
        >>> memory.save(b"a sum", Record(b"root", b"", ()))
        >>> memory.load(b"a sum").root
        b'root'
    """

    def __init__(self) -> None:
        self._records: dict[bytes, Record] = {}

    def load(self, digest: bytes) -> Record | None:
        """As `Memory`."""
        return self._records.get(digest)

    def save(self, digest: bytes, record: Record) -> None:
        """As `Memory`."""
        self._records[digest] = record


class FolderMemory:
    """A file for each sum, which only its owner may read, on the disk before what it tells of leaves the party."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def load(self, digest: bytes) -> Record | None:
        """As `Memory`. Raises `InputError` for a damaged file."""
        path = self._path(digest)
        return Record.read(path.read_bytes()) if path.exists() else None

    def save(self, digest: bytes, record: Record) -> None:
        """As `Memory`."""
        write_lasting(self._path(digest), record.packed())

    def _path(self, digest: bytes) -> Path:
        return self._folder / f"{digest.hex()}.sum"
