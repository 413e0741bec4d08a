"""What all who take part in one masked sum agree on, and what a party makes sure of before it sends anything.

Every key, every signature and every ciphertext of a sum is bound to the digest of its plan. A server writes the plan,
and so a party believes none of it: how many parties there are, how many may collude, and against what kind of server it
defends itself are its own (`Terms`), and from these it computes how many shares of noise must be in the sum, and how
many neighbours must help to unmask a party.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import asdict, dataclass, fields
from functools import cached_property, lru_cache

from federation.contract.errors import InputError, refusing
from federation.contract.roster import COLLUDING, colluders, honest
from federation.contract.typed import typed
from federation.sums.thresholds import Adversary, least_threshold, neighbourhood

NONCE = 16  # bytes, fresh in each sum: no key of one is a key of another
KEY = 32  # bytes of a public key, of a digest, of whatever is secret
MOST_NUMBERS = 2**27  # of one sum: a gigabyte
MOST_SPREAD = 4  # times as many parties as are the whole noise: what the bound on the total is proved for


@dataclass(frozen=True)
class Roster:
    """The enrolled parties' public Ed25519 keys (32 bytes each), in the order of their numbers; unknown to nobody.

    It comes from somebody other than the server, or a server that does what it likes adds parties of its own. `deal`
    says what they have agreed on there: a sum of one agreement is none of another that has the same keys.

    Examples:
        >>> len(Roster((b"1" * 32, b"2" * 32, b"3" * 32)))
        3
    """

    keys: tuple[bytes, ...]
    deal: bytes = b""

    def __post_init__(self) -> None:
        """Raises `InputError` for keys of another size."""
        if any(len(key) != KEY for key in self.keys):
            raise InputError(f"each key on a roster must have {KEY} bytes; take public Ed25519 keys in their raw form")

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of all keys in order, and of the deal."""
        return hashlib.sha256(b"".join(self.keys) + self.deal).digest()


@dataclass(frozen=True)
class SumPlan:
    """One sum: who, how many, and the digests (hexadecimal) of the `question` and of the `roster`.

    `parties` K of whom `colluding` may collude, at `least` so many counted or nothing is released; each sends
    `numbers` integers, and `contributors` shares are the whole noise. `second` is the X25519 key of a second server
    ("" with one server, where `neighbours` and `threshold` count; with two they are 0).

    Examples:
        >>> plan = planned("00" * 32, Roster((b"1" * 32,) * 10), numbers=5, quorum=0.9, absent=0.1)
        >>> plan.neighbours, plan.threshold, plan.least, plan.contributors
        (9, 6, 9, 8)
        >>> SumPlan.read(plan.packed()) == plan
        True
    """

    nonce: str
    question: str
    roster: str
    parties: int
    neighbours: int
    threshold: int
    least: int
    colluding: int
    numbers: int
    contributors: int
    adversary: Adversary
    second: str

    def __post_init__(self) -> None:
        """Raises `InputError` for counts and digests that no sum has."""
        sizes = {"nonce": NONCE, "question": KEY, "roster": KEY, "second": KEY}
        with refusing("a plan's nonce and digests must be hexadecimal"):
            found = {name: len(bytes.fromhex(getattr(self, name))) for name in sizes}
        if not self.second:
            del found["second"]
        if any(size != sizes[name] for name, size in found.items()):
            raise InputError("a plan's nonce must have 16 bytes and its digests and keys 32 each; plan the sum anew")
        rounds = self.neighbours == self.threshold == 0 if self.second else 1 <= self.threshold <= self.neighbours
        if not (
            rounds
            and self.neighbours < self.parties
            and 1 <= self.contributors <= self.least <= self.parties
            and self.colluding >= 0
            and 1 <= self.numbers <= MOST_NUMBERS
        ):
            raise InputError(f"a plan must count fewer neighbours than parties and at least one share, got {self}")

    @cached_property
    def digest(self) -> bytes:
        """What keys, signatures and ciphertexts are bound to, 32 bytes."""
        return hashlib.sha256(self.packed()).digest()

    @property
    def signed(self) -> bool:
        """Whether parties sign what they send: against a server that does what it likes, and to a second one."""
        return self.adversary == "active" or bool(self.second)

    @property
    def within(self) -> int:
        """Bytes that have a bit for each neighbour."""
        return -(-self.neighbours // 8)

    def packed(self) -> bytes:
        """The same bytes for the same plan."""
        return self._packed

    @cached_property
    def _packed(self) -> bytes:
        return json.dumps(asdict(self), sort_keys=True).encode()

    @classmethod
    def read(cls, data: bytes) -> SumPlan:
        """From `packed`. Raises `InputError` for anything else."""
        return _read(data)


@lru_cache(maxsize=16)
def _read(data: bytes) -> SumPlan:
    with refusing("a plan of a sum cannot be read"):
        known = json.loads(data)
        given = {field.name: known[field.name] for field in fields(SumPlan)}
        if len(known) != len(given):
            raise ValueError("unknown fields")
        return SumPlan(**{name: typed(_HINTS.get(name, str), value, name) for name, value in given.items()})


_WHOLE = ("parties", "neighbours", "threshold", "least", "colluding", "numbers", "contributors")
_HINTS = {**dict.fromkeys(_WHOLE, int), "adversary": Adversary}


def planned(
    question: str,
    roster: Roster,
    numbers: int,
    quorum: float,
    absent: float,
    colluding: float = COLLUDING,
    adversary: Adversary = "active",
    second: bytes = b"",
) -> SumPlan:
    """A new plan of one sum, with a fresh nonce.

    `question`: its digest. `quorum`, `absent`, `colluding`: shares of the parties that must be counted, that may stay
    away, that may collude. `second`: the key of a second server. Raises `InputError` where no such sum can be.
    """
    parties = len(roster)
    corrupt = colluders(parties, colluding)
    gone = colluders(parties, absent)  # rounded alike: up
    contributors = honest(parties, quorum, colluding)
    if second:
        neighbours = threshold = 0
    else:
        if parties - gone < contributors + corrupt:
            raise InputError(
                f"a quorum of {quorum:g} of {parties} parties is not there when {gone} stay away; plan for fewer "
                "absences or lower parties.quorum"
            )
        around = neighbourhood(parties, corrupt, gone, adversary)
        neighbours, threshold = around.neighbours, around.threshold
    return SumPlan(
        secrets.token_hex(NONCE),
        question,
        roster.digest.hex(),
        parties,
        neighbours,
        threshold,
        contributors + corrupt,
        corrupt,
        numbers,
        contributors,
        adversary,
        second.hex(),
    )


@dataclass(frozen=True)
class Terms:
    """What a party takes from its own configuration and from nowhere else.

    `colluding`: the largest share of the parties that it takes to collude. `second`: the second server's X25519 key,
    where there is one.
    """

    roster: Roster
    colluding: float = COLLUDING
    adversary: Adversary = "active"
    second: bytes = b""

    @cached_property
    def _corrupt(self) -> int:
        """How many parties of the roster may collude."""
        return colluders(len(self.roster), self.colluding)

    def require(self, plan: SumPlan) -> None:
        """Raises `InputError` unless the plan hides this party's part as well as these terms say."""
        parties, corrupt = len(self.roster), self._corrupt
        if plan.roster != self.roster.digest.hex() or plan.parties != parties:
            raise InputError("the plan of this sum is for other parties than this party's roster names; refuse it")
        if plan.adversary != self.adversary or plan.second != self.second.hex():
            raise InputError("the plan of this sum has another kind of server than this party's configuration; refuse")
        if plan.colluding < corrupt or plan.contributors > plan.least - corrupt:
            raise InputError(
                f"the plan of this sum counts on {plan.contributors} shares of noise of {plan.least} parties, "
                f"and {corrupt} of them may collude by this party's configuration: the noise would be too little"
            )
        if plan.parties > MOST_SPREAD * plan.contributors:
            raise InputError(
                f"{plan.parties} parties share a noise of which {plan.contributors} shares are the whole; at most "
                f"{MOST_SPREAD} times as many may, so raise parties.quorum"
            )
        if not plan.second:
            needed = least_threshold(parties, corrupt, plan.neighbours, self.adversary)
            if plan.threshold < needed:
                raise InputError(
                    f"the plan of this sum lets {plan.threshold} neighbours unmask a party; with {plan.neighbours} "
                    f"neighbours it must be {needed} or more"
                )
