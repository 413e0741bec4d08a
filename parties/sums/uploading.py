"""A party in sums with two servers that do not collude: it answers one query, and may go."""

from __future__ import annotations

from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from federation.contract.errors import InputError
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation.messages import SAYS, Uploaded, mask_key
from federation.secure_aggregation.plan import SumPlan, Terms
from parties.sums.memory import Memory, Record
from parties.sums.party import Contribute, part_of


class UploadingParty:
    """One party, in as many sums as it is asked for; arguments as of `MaskedParty`.

    Its part leaves it once: asked again it sends the same bytes, and has kept no secret.
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
        self._number, self._key, self._terms, self._memory = number, key, terms, memory
        self._contribute, self._pay = contribute, pay

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
        masked = vector + keys.stream(mask_key(common, plan, self._number, told), plan.numbers)
        signature = keys.signature(self._key, plan.digest, SAYS, self._number, told)
        self._pay(plan)
        return Uploaded(told, masked, signature)
