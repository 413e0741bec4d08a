"""Messages of a secure aggregation between sites: the queries and responses that signed messages carry.

Their contents are those of `federation.secure_aggregation.messages`. The first query brings the query (`question`) that
the sum is over, and its response brings what a site says openly to it. The digest of the sum's plan identifies the
others. Sites and aggregator make the plan alike from what they have agreed on.
"""

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from cryptography.hazmat.primitives import serialization
from flwr.app import ConfigRecord, RecordDict

from federation.contract.errors import InputError, refusing
from federation.contract.query import PrivateQuestion, Submission
from federation.engines.codec import bytes_per_party, decode_submission, encode_submission
from federation.numerics.rows import Integers
from federation.secure_aggregation.messages import KEYS, UNMASK
from federation.secure_aggregation.plan import COMPLETE, KEY, Roster, SumPlan, planned
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import ed25519_key_from_text
from federation.signed_messages.messages import (
    SHORTEST_REPLY,
    Status,
    packet_of,
    padded_answer,
    read_records,
    read_reply,
    records_packet,
)

SUM = "secure_sum"  # the kind of a query
LEAVE = UNMASK + 1  # says that the sum is over: whoever hears it destroys its secrets
MASKS = LEAVE + 1  # asks the second of two servers for the sum of all masks

_WORD = 8  # bytes of an integer
_SLACK = 1e-9  # of a share of the sites, whose number is then rounded up


@dataclass(frozen=True)
class SumQuery:
    """A query of the sum whose plan has this `digest`. `body` is what `federation.secure_aggregation` says.

    `question` is the packet of the question that the sum is over, in the first query. To a second server it is the
    plan, and `body` has a bit for each site, whether it is counted, and the receipts of those that are.
    """

    query: int
    digest: bytes
    body: bytes
    question: bytes = b""

    def records(self) -> RecordDict:
        """As a message."""
        return RecordDict({SUM: ConfigRecord(dict(vars(self)))})

    def packet(self) -> bytes:
        """As a letter has it."""
        return packet_of(SUM, self.records())

    @classmethod
    def read(cls, packet: bytes) -> "SumQuery":
        """Inverse of `packet`. Raises `InputError`."""
        with refusing("a query of a secure sum cannot be read"):
            known = dict(read_records(packet)[SUM].items())
            found = cls(**known)
            if [type(value) for value in vars(found).values()] != [int, bytes, bytes, bytes]:
                raise ValueError("parts of other types")
            if len(found.digest) != KEY or not KEYS <= found.query <= MASKS:
                raise ValueError("no such query")
        return found


@dataclass(frozen=True)
class SumAnswer:
    """What a site answers to a query; `opened` is what it says openly, in its first answer."""

    body: bytes
    opened: bytes = b""

    def records(self) -> RecordDict:
        """As a message."""
        return RecordDict({SUM: ConfigRecord(dict(vars(self)))})

    def packet(self) -> bytes:
        """As a reply."""
        return padded_answer(records_packet(self.records()), 0)

    @classmethod
    def read(cls, records: RecordDict) -> "SumAnswer":
        """From the records of a reply. Raises `InputError`."""
        with refusing("an answer of a secure sum cannot be read"):
            found = cls(**dict(records[SUM].items()))
            if not all(isinstance(value, bytes) for value in vars(found).values()):
                raise ValueError("parts of other types")
        return found


def open_length(question: PrivateQuestion) -> int:
    """Bytes of what a site says openly."""
    return SHORTEST_REPLY + bytes_per_party(question.open_fields)


def part_length(question: PrivateQuestion) -> int:
    """Bytes of an answer of one site to a secure sum, in both of its parts."""
    return open_length(question) + _WORD * question.hidden_numbers


def part_packet(question: PrivateQuestion, submission: Submission) -> bytes:
    """An answer of one site in two parts: what it says openly, and after that its integers."""
    fields = question.open_fields
    said = replace(submission, arrays={name: submission.arrays[name] for name in fields})
    steps = [np.rint(submission.arrays[name][0] / step).ravel() for name, step in question.steps.items()]
    words: Integers = np.concatenate(steps).astype(np.int64)
    encoded = records_packet(encode_submission(said, fields))
    return padded_answer(encoded, open_length(question)) + words.astype("<i8").tobytes()


def read_part(packet: bytes, numbers: int) -> tuple[bytes, Integers]:
    """What a site says openly and its integers, from `part_packet`."""
    end = len(packet) - _WORD * numbers
    return packet[:end], np.frombuffer(packet[end:], dtype="<i8").astype(np.int64)


def read_opened(opened: bytes, question: PrivateQuestion) -> Submission:
    """What a site says openly. Raises `InputError` for what is no such answer."""
    status, records = read_reply(opened)
    if status is not Status.ANSWER:
        raise InputError("a site says openly that it does not answer")
    return decode_submission(records, question.open_fields)


def roster_of(agreement: Agreement) -> Roster:
    """The sites' keys for secure sums of this agreement. Raises `InputError` where one is missing."""
    keys = []
    for site in agreement.sites:
        if not site.sums:
            raise InputError(
                f"the plan has no key for secure sums of '{site.name}'; its .pub file has it in the second line"
            )
        key = ed25519_key_from_text(site.sums, f"site '{site.name}'")
        keys.append(key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw))
    return Roster(tuple(keys), agreement.digest)


def sum_plan(agreement: Agreement, roster: Roster, question: bytes, numbers: int) -> SumPlan:
    """The plan of one sum, with a fresh nonce, as the agreement has it; of so many integers of each site.

    `question` is its packet. Raises `InputError` where these sites cannot have such a sum.
    """
    terms, sites = agreement.terms, len(agreement.sites)
    absent = max(0.0, (sites - terms.least) / sites - _SLACK) if sites > COMPLETE else 0.0
    digest = hashlib.sha256(question).hexdigest()
    return planned(digest, roster, numbers, terms, absent, masks_for(agreement))


def masks_for(agreement: Agreement) -> bytes:
    """The key of the second server; empty where there is none."""
    return b"" if agreement.second is None else bytes.fromhex(agreement.second.masks)


def require_planned(plan: SumPlan, agreement: Agreement, roster: Roster, question: bytes, numbers: int) -> None:
    """Raises `InputError` unless a plan is the one that follows from the agreement, whatever its nonce."""
    _require_same(plan, sum_plan(agreement, roster, question, numbers))


def require_followed(plan: SumPlan, agreement: Agreement, roster: Roster) -> None:
    """The same for whoever does not know the question that a sum is over, but how much is sent for it at most.

    It is for a second server: the sites, whose receipts it sees, have made sure of the question.
    """
    if _WORD * plan.numbers > agreement.longest_reply:
        raise InputError(f"the secure sum is of {plan.numbers} numbers, more than any of the plan that was agreed on")
    _require_same(plan, replace(sum_plan(agreement, roster, b"", plan.numbers), question=plan.question))


def _require_same(plan: SumPlan, known: SumPlan) -> None:
    own = replace(known, nonce=plan.nonce)
    for name, value in vars(own).items():
        if getattr(plan, name) != value:
            raise InputError(f"'{name}' of the secure sum is not what follows from the plan that was agreed on")
