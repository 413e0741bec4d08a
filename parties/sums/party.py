"""A party in masked sums: which questions it answers, how often, and what it has paid before its part leaves it."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from federation.contract.errors import InputError
from federation.numerics.rows import Floats, Integers
from federation.secure_aggregation.masks import Words, encoded
from federation.secure_aggregation.messages import KEYS, MASKED, queries
from federation.secure_aggregation.plan import SumPlan, Terms
from parties.sums.masking import MaskedAnswers, Own
from parties.sums.memory import Memory, Record

Contribute = Callable[[SumPlan], Floats | Integers]


class MaskedParty:
    """One party, in as many sums as it is asked for.

    `contribute` makes its part of a sum that its terms allow, whole numbers of grid steps (d,) with a share of fresh
    noise, one of `plan.contributors` that are the whole; it is called once for a sum. `pay` is called before the masked
    part leaves, and raises what refuses it.

    To a question that it has answered it gives the same answer. One that comes out of order, or another in place of
    one that it has answered, ends the sum for it; so does everything that a rule of `MaskedAnswers` refuses.
    """

    def __init__(
        self,
        number: int,
        key: Ed25519PrivateKey,
        terms: Terms,
        memory: Memory,
        contribute: Contribute,
        pay: Callable[[SumPlan], None] = lambda plan: None,
    ) -> None:
        self._own, self._terms, self._memory = Own(number, key, terms.roster), terms, memory
        self._contribute, self._pay = contribute, pay
        self._running: dict[bytes, tuple[int, MaskedAnswers]] = {}

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

    def _answered(self, digest: bytes, record: Record, query: int, question: bytes) -> bytes:
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

    def _replayed(self, digest: bytes, plan: SumPlan, record: Record, asked: tuple[bytes, ...]) -> bytes:
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
