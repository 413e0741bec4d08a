"""What parties and servers of secure sums say to one another, changed between two who keep to the rules."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import ClassVar

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from aggregator.secure_aggregation.server import AddingServer, MaskedSum
from benchmarks.fuzz.inputs import Input, Target
from benchmarks.fuzz.mutation import Mutation
from federation.contract.errors import InputError
from federation.contract.trust import Servers, TrustTerms
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation.messages import SAYS, SHARES, Uploaded, mask_key
from federation.secure_aggregation.plan import Adversary, Roster, SumPlan, SumTerms, planned
from federation.signed_messages.aggregation_messages import SumAnswer, SumQuery
from federation.signed_messages.keys import raw_public
from federation.signed_messages.messages import Head, read_reply
from parties.secure_aggregation.masking import MaskedAnswers, Own
from parties.secure_aggregation.party import ProcessMemory, Record, UnmaskingServer

ASKED, TOLD = "asked", "told"  # what a party is asked, and what it tells, in one query of a sum with one server
UPLOAD, RECEIPTS, COUNTED = "upload", "receipts", "counted"  # with two
PLAN, RECORD, QUERY, ANSWER, HEAD = "plan", "record", "query", "answer", "head"  # what is read by itself
_SERVERS: dict[Adversary, Servers] = {"active": "one", "semi_honest": "one_semi_honest"}
_PARTIES, _NUMBERS, _QUORUM = 5, 3, 0.8
_TWO = TrustTerms(_PARTIES, _QUORUM, servers="two")
_HELD = [Ed25519PrivateKey.from_private_bytes(bytes([1 + number]) * 32) for number in range(_PARTIES)]
_ROSTER = Roster(tuple(map(raw_public, _HELD)))
_SECOND = X25519PrivateKey.from_private_bytes(bytes([99]) * 32)
_HERE = 0  # the party whose messages are changed


class Sums(Target):
    """Messages of masked sums with one server of either kind and with two; plans, records, letters."""

    name: ClassVar[str] = "sums"
    count: ClassVar[int] = 50_000

    def seeds(self) -> Sequence[Input]:
        """All that is said in one sum of each kind, whose secrets are always the same."""
        return [*_said()]

    def mutated(self, source: random.Random, known: Sequence[Input]) -> Input:
        """Plans as trees; the rest as bytes, as often as not as many as they were."""
        given, mutation = source.choice(known), Mutation(source)
        if given.route == PLAN and source.random() < 0.9:
            try:
                return Input(PLAN, json.dumps(mutation.plain(json.loads(given.content)), sort_keys=True).encode())
            except (ValueError, RecursionError):
                return Input(PLAN, mutation.raw(given.content))
        return Input(given.route, (_overwritten if source.random() < 0.5 else _raw)(source, given.content))

    def attempt(self, given: Input) -> str:
        """Hand it to whom it is for."""
        how, *further = given.route.split("+")
        match how:
            case "asked":
                return _asked(_plan(_kind(further[0])), int(further[1]), given.content)
            case "told":
                return _told(_plan(_kind(further[0])), int(further[1]), given.content)
            case "upload" | "receipts" | "counted":
                return _two_servers(**{how: given.content})
            case "plan":
                plan = SumPlan.read(given.content)
                trust = TrustTerms(_PARTIES, servers="two" if plan.second else _SERVERS[plan.adversary])
                SumTerms(_ROSTER, trust, bytes.fromhex(plan.second)).require(plan)
                return "allowed"
            case "record":
                return f"{len(Record.read(given.content).asked)} questions"
            case "query":
                return f"query {SumQuery.read(given.content).query}"
            case "answer":
                return f"an answer, {len(SumAnswer.read(read_reply(given.content)[1]).opened)} bytes openly"
            case _:
                Head.decoded(given.content)
                return "a head"


def _said() -> Iterator[Input]:
    for adversary in _SERVERS:
        plan = _plan(adversary)
        for query, (questions, answers) in _transcript(plan).items():
            yield Input(f"{ASKED}+{adversary}+{query}", questions[_HERE])
            yield Input(f"{TOLD}+{adversary}+{query}", answers[_HERE])
        yield Input(PLAN, plan.packed())
    first = AddingServer(_with_two(), _ROSTER)
    for number, upload in enumerate(_uploads()):
        first.take(number, upload)
    yield Input(UPLOAD, _uploads()[_HERE])
    yield Input(RECEIPTS, b"".join(first.receipts()))
    yield Input(COUNTED, first.counted())
    yield Input(PLAN, _with_two().packed())
    yield Input(RECORD, Record(bytes(32), bytes(8 * _NUMBERS), (b"a question", b"another")).packed())
    yield Input(QUERY, SumQuery(SHARES, bytes(32), b"a body", b"a question").packet())
    yield Input(ANSWER, SumAnswer(b"a body", b"openly").packet())
    yield Input(
        HEAD, Head(bytes(32), bytes(16), 3, bytes(32), "north", 1, bytes(32), 4_000_000_000, bytes(32)).encoded()
    )


def _kind(name: str) -> Adversary:
    return next(adversary for adversary in _SERVERS if adversary == name)


@cache
def _plan(adversary: Adversary) -> SumPlan:
    plan = planned(bytes(32).hex(), _ROSTER, _NUMBERS, TrustTerms(_PARTIES, _QUORUM, servers=_SERVERS[adversary]), 0.0)
    return replace(plan, nonce=bytes(16).hex())


@cache
def _with_two() -> SumPlan:
    plan = planned(bytes(32).hex(), _ROSTER, _NUMBERS, _TWO, 0.0, keys.public(_SECOND))
    return replace(plan, nonce=bytes(16).hex())


def _party(plan: SumPlan, number: int) -> MaskedAnswers:
    vector = np.arange(_NUMBERS, dtype=np.uint64)
    return MaskedAnswers(plan, Own(number, _HELD[number], _ROSTER), bytes([number]) * 32, vector)


@cache
def _transcript(plan: SumPlan) -> dict[int, tuple[list[bytes], list[bytes]]]:
    """What each party is asked and answers, by query."""
    server, parties = MaskedSum(plan, _ROSTER), [_party(plan, number) for number in range(_PARTIES)]
    found = {}
    while (query := server.query) is not None:
        questions = [question for _, question in server.questions()]
        answers = [party.answer(question) for party, question in zip(parties, questions, strict=True)]
        found[query] = questions, answers
        for number, answer in enumerate(answers):
            server.take(number, answer)
        server.close()
    return found


def _asked(plan: SumPlan, query: int, content: bytes) -> str:
    """One party, which is asked this in place of what it was asked in one query, and the rest as it was."""
    party = _party(plan, _HERE)
    for at, (questions, _) in _transcript(plan).items():
        party.answer(content if at == query else questions[_HERE])
    return "answered to the end"


def _told(plan: SumPlan, query: int, content: bytes) -> str:
    """The server and honest parties, beside one that answers so to one query."""
    server, parties = MaskedSum(plan, _ROSTER), [_party(plan, number) for number in range(_PARTIES)]
    while server.query is not None:
        for number, question in server.questions():
            with suppress(InputError):  # who refuses says no more
                answer = parties[number].answer(question)
                server.take(number, content if number == _HERE and server.query == query else answer)
        server.close()
    return f"{int(server.total().counted.sum())} are in the sum"


@cache
def _uploads() -> list[bytes]:
    plan, found = _with_two(), []
    for number, held in enumerate(_HELD):
        fresh = X25519PrivateKey.from_private_bytes(bytes([50 + number]) * 32)
        common, told = keys.shared(fresh, keys.public(_SECOND)) or b"", keys.public(fresh)
        masked = np.arange(_NUMBERS, dtype=np.uint64) + keys.stream(mask_key(common, plan, number, told), _NUMBERS)
        signature = keys.signature(held, plan.digest, SAYS, number, told)
        found.append(Uploaded(told, masked, signature).packed())
    return found


def _two_servers(upload: bytes | None = None, receipts: bytes | None = None, counted: bytes | None = None) -> str:
    """Both servers, of which one hears this in place of what was said."""
    plan = _with_two()
    first, memory = AddingServer(plan, _ROSTER), ProcessMemory()
    second = UnmaskingServer(_SECOND, SumTerms(_ROSTER, _TWO, keys.public(_SECOND)), memory)
    for number, sent in enumerate(_uploads()):
        first.take(number, upload if number == _HERE and upload is not None else sent)
    second.take(plan, b"".join(first.receipts()) if receipts is None else receipts)
    masks = second.masks(plan, first.counted() if counted is None else counted)
    return f"{int(first.total(masks).counted.sum())} are in the sum"


def _raw(source: random.Random, content: bytes) -> bytes:
    return Mutation(source).raw(content)


def _overwritten(source: random.Random, content: bytes) -> bytes:
    """As many bytes, of which some are others, or those of another place."""
    changed = bytearray(content)
    for _ in range(source.choice((1, 1, 2, 4))):
        size = min(len(changed), source.choice((1, 4, 8, 32)))
        to, here = (source.randint(0, len(changed) - size) for _ in range(2))
        others = (source.randbytes(size), bytes(size), b"\xff" * size, bytes(changed[here : here + size]))
        changed[to : to + size] = source.choice(others)
    return bytes(changed)
