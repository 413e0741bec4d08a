"""The plan of one secure aggregation: participants, neighbours, thresholds, and the trust terms that a party checks.

Every key, signature and ciphertext is bound to the digest of the plan. The server writes the plan, so a party believes
none of it. The party's own configuration (`SumTerms`) says how many parties there are, how many may collude, and which
kind of server it defends itself against. From these the party computes how many shares of noise the sum must contain,
and how many neighbours must help to unmask a party.

All parties stand in a ring, in a random order that the plan's digest decides (`neighbours`). k of them, half on either
side, are a party's neighbours, at positions 0 to k - 1 by where they stand beside it. So the party at position i of a
party's neighbours has that party at position k - 1 - i of its own.

`neighbourhood` computes k, and how many neighbours t recover a party's secret and so unmask it. C of all K parties are
corrupt. An honest party has at most c corrupt neighbours but with a probability of 2^-bits for all K together: their
number is hypergeometric.

- A server that follows the protocol: t = c + 1, and honest parties that are there must not fall apart into two arcs.
- A server that does not: t = floor((2k + 2c + 2)/3) + 1. Below that it may tell one arc of the ring another list of the
  living than the next, and unmask two sums. Where everybody is everybody's neighbour: t = ceil((K + C)/2), as two lists
  that t parties sign each would share an honest signer.

As many neighbours as that must be there, and are, but with a probability of 2^-30 for all parties together.
"""

import hashlib
import json
import math
import secrets
from dataclasses import asdict, dataclass, fields
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from scipy.special import gammaln

from federation.contract.errors import InputError, refusing
from federation.contract.trust import Servers, TrustTerms
from federation.contract.validation import typed
from federation.numerics.rows import Floats, Integers
from federation.secure_aggregation.masks import stream

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
        >>> roster = Roster((b"1" * 32,) * 10)
        >>> plan = planned("00" * 32, roster, numbers=5, terms=TrustTerms(10, quorum=0.9), absent=0.1)
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
    adversary: "Adversary"
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
    @lru_cache(maxsize=16)
    def read(cls, data: bytes) -> "SumPlan":
        """From `packed`. Raises `InputError` for anything else."""
        with refusing("a plan of a sum cannot be read"):
            known = json.loads(data)
            given = {field.name: known[field.name] for field in fields(cls)}
            if len(known) != len(given):
                raise ValueError("unknown fields")
            return cls(**{name: typed(_HINTS.get(name, str), value, name) for name, value in given.items()})


_WHOLE = ("parties", "neighbours", "threshold", "least", "colluding", "numbers", "contributors")
Adversary = Literal["semi_honest", "active"]
_HINTS = {**dict.fromkeys(_WHOLE, int), "adversary": Adversary}


def planned(
    question: str, roster: Roster, numbers: int, terms: TrustTerms, absent: float, second: bytes = b""
) -> SumPlan:
    """A new plan of one sum, with a fresh nonce.

    `question`: its digest. `terms`: of the parties on the roster. `absent`: the share of them that may stay away.
    `second`: the key of a second server. Raises `InputError` where no such sum can be.
    """
    parties, corrupt, contributors = terms.parties, terms.colluders, terms.honest
    adversary, gone = ADVERSARY[terms.servers], terms.share("absent", absent)
    if second:
        neighbours = threshold = 0
    else:
        if parties - gone < contributors + corrupt:
            raise InputError(
                f"a quorum of {terms.quorum:g} of {parties} parties is not there when {gone} stay away; plan for fewer "
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
class SumTerms:
    """What a party takes from its own configuration and from nowhere else.

    `trust`: how many parties of the roster it takes to collude, and which servers it believes in; its quorum counts
    for nothing. `second`: the second server's X25519 key, where there is one.
    """

    roster: Roster
    trust: TrustTerms
    second: bytes = b""

    @property
    def adversary(self) -> Adversary:
        """Against which kind of server it defends itself."""
        return ADVERSARY[self.trust.servers]

    def require(self, plan: SumPlan) -> None:
        """Raises `InputError` unless the plan hides this party's part as well as these terms say."""
        parties, corrupt = len(self.roster), self.trust.colluders
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


def neighbours(plan: SumPlan, parties: Integers | int) -> Integers:
    """The numbers of the neighbours of one party, shape (k,), or of several (n,), shape (n, k).

    Examples:
        >>> plan = planned("00" * 32, Roster((b"1" * 32,) * 4), 1, TrustTerms(4, quorum=1.0), absent=0.0)
        >>> neighbours(plan, 2).tolist(), neighbours(plan, np.array([0, 3])).tolist()
        ([3, 0, 1], [[1, 2, 3], [0, 1, 2]])
    """
    count = plan.neighbours
    if count == plan.parties - 1:
        return (np.asarray(parties)[..., None] + np.arange(1, count + 1)) % plan.parties
    order, places = _ring_order(plan)
    away = np.concatenate([np.arange(-count // 2, 0), np.arange(1, count // 2 + 1)])
    return np.asarray(order[(places[parties][..., None] + away) % plan.parties])


@lru_cache(maxsize=4)
def _ring_order(plan: SumPlan) -> tuple[Integers, Integers]:
    """Who stands at each place, and each party's place, both (K,)."""
    order = np.argsort(stream(plan.digest, plan.parties), kind="stable")
    places = np.empty_like(order)
    places[order] = np.arange(plan.parties)
    return order, places


ADVERSARY: dict[Servers, Adversary] = {"one": "active", "one_semi_honest": "semi_honest", "two": "active"}
SAID: dict[Servers, str] = {
    "one": "one server that may do what it likes",
    "one_semi_honest": "one server that follows the protocol and only looks",
    "two": "two servers that do not collude",
}
BITS: dict[Adversary, int] = {"semi_honest": 40, "active": 80}  # an active server may try 2^40 orders of the ring
COMPLETE = 50  # up to so many parties everybody is everybody's neighbour
FEWEST = 3  # parties: of two each knows the other's part
MOST_NEIGHBOURS = 6000
_THERE_BITS = 30


@dataclass(frozen=True)
class Neighbourhood:
    """k `neighbours`, of whom `threshold` unmask, at most `corrupt` are corrupt; chances are base-2 logarithms.

    Of all parties together: `log_corrupt` that an honest one has more corrupt neighbours, `log_absent` that one has
    fewer than `threshold` left, `log_cut` that the corrupt and the absent cut the ring (only where that matters).
    """

    neighbours: int
    threshold: int
    corrupt: int
    log_corrupt: float
    log_absent: float
    log_cut: float


@lru_cache(maxsize=64)
def neighbourhood(
    parties: int, corrupt: int, absent: int, adversary: Adversary, bits: int | None = None
) -> Neighbourhood:
    """The fewest neighbours that do, where `corrupt` parties collude with the server and `absent` ones stay away.

    `bits`: of statistical security, by default those of the adversary. Raises `InputError` where no number does.

    Examples:
        >>> neighbourhood(1000, 100, 100, "semi_honest").neighbours
        52
        >>> found = neighbourhood(1000, 100, 100, "active", bits=40)
        >>> found.neighbours, found.threshold, round(found.log_corrupt, 1), round(found.log_absent, 1)
        (352, 284, -40.9, -31.2)
        >>> neighbourhood(5, 1, 1, "active")
        Neighbourhood(neighbours=4, threshold=3, corrupt=1, log_corrupt=-inf, log_absent=-inf, log_cut=-inf)
    """
    wanted = BITS[adversary] if bits is None else bits
    _require_counts(parties, corrupt, absent)
    for neighbours in range(2, min(parties - 1, MOST_NEIGHBOURS + 1), 2) if parties > COMPLETE else ():
        found = _ring(parties, corrupt, absent, neighbours, adversary, wanted)
        if found is not None:
            return found
    threshold = complete_threshold(parties, corrupt, adversary)
    if parties - 1 > MOST_NEIGHBOURS or parties - 1 - absent < threshold:
        raise InputError(
            f"no masked sum of {parties} parties of whom {corrupt} may collude with {_SAID[adversary]} survives "
            f"{absent} absent ones; plan for fewer colluders or absences, or take two servers that do not collude "
            "(servers: two) or one that follows the protocol (servers: one_semi_honest)"
        )
    return Neighbourhood(parties - 1, threshold, corrupt, -math.inf, -math.inf, -math.inf)


@lru_cache(maxsize=64)
def least_threshold(parties: int, corrupt: int, neighbours: int, adversary: Adversary) -> int:
    """The least number of neighbours that may unmask a party, as each party must insist on by its own count of parties.

    `neighbours`: even, or all others. Raises `InputError` where so few neighbours leave no bound on corrupt ones.

    Examples:
        >>> least_threshold(1000, 100, 352, "semi_honest"), least_threshold(10, 1, 9, "active")
        (73, 6)
    """
    _require_counts(parties, corrupt, 0)
    if neighbours == parties - 1:
        return complete_threshold(parties, corrupt, adversary)
    if neighbours % 2 or not 2 <= neighbours < parties - 1 or parties <= COMPLETE:
        raise InputError(
            f"neighbours must be all {parties - 1} other parties or, of more than {COMPLETE} parties, an even number "
            f"below that, got {neighbours}"
        )
    within = _most_within(_tails(parties - 1, corrupt, neighbours), parties, BITS[adversary])
    if within >= neighbours:
        raise InputError(f"{neighbours} neighbours are too few: all may be among {corrupt} corrupt ones of {parties}")
    return _ring_threshold(neighbours, within, adversary)


def complete_threshold(parties: int, corrupt: int, adversary: Adversary) -> int:
    """Of parties who are all neighbours of each other."""
    return corrupt + 1 if adversary == "semi_honest" else -(-(parties + corrupt) // 2)


_SAID = {"semi_honest": "a server that follows the protocol", "active": "a server that does what it likes"}


def _ring_threshold(neighbours: int, corrupt: int, adversary: Adversary) -> int:
    return corrupt + 1 if adversary == "semi_honest" else (2 * neighbours + 2 * corrupt + 2) // 3 + 1


def _ring(
    parties: int, corrupt: int, absent: int, neighbours: int, adversary: Adversary, bits: int
) -> Neighbourhood | None:
    """None where so many neighbours do not do."""
    bad = _tails(parties - 1, corrupt, neighbours)
    most = _most_within(bad, parties, bits)
    threshold = _ring_threshold(neighbours, most, adversary)
    if threshold > neighbours:
        return None
    gone = _log2(parties * _tails(parties - 1, absent, neighbours)[neighbours - threshold])
    cut = _log_cut(parties, corrupt + absent, neighbours) if adversary == "semi_honest" else -math.inf
    if gone > -_THERE_BITS or cut > -bits:
        return None
    return Neighbourhood(neighbours, threshold, most, _log2(parties * bad[most]), gone, cut)


def _tails(others: int, marked: int, drawn: int) -> Floats:
    """P[more than i of the `drawn` of `others` are `marked`], i = 0..drawn: hypergeometric, shape (drawn + 1,)."""
    found = np.arange(drawn + 1.0)
    clear = drawn - found
    possible = (found <= marked) & (clear <= others - marked)

    def choose(total: float, part: Floats) -> Floats:
        return np.asarray(gammaln(total + 1) - gammaln(part + 1) - gammaln(np.maximum(total - part, 0) + 1))

    masses = np.zeros(drawn + 1)
    drawing = choose(others, np.array([float(drawn)]))
    masses[possible] = np.exp((choose(marked, found) + choose(others - marked, clear) - drawing)[possible])
    above = np.cumsum(masses[::-1])[::-1]
    return np.append(above[1:], 0.0)


def _most_within(tails: Floats, parties: int, bits: int) -> int:
    """The least i that is exceeded at one of the parties with a probability of 2^-bits at most."""
    return int(np.argmax(parties * tails <= 2.0**-bits))


def _log_cut(parties: int, bad: int, neighbours: int) -> float:
    """Of two runs of half as many bad places as neighbours: less than K²/2 pairs of places times their probability."""
    if bad < neighbours:
        return -math.inf
    places = np.arange(neighbours)
    return 2 * math.log2(parties) - 1 + float(np.log2((bad - places) / (parties - places)).sum())


def _log2(chance: float) -> float:
    return math.log2(chance) if chance > 0 else -math.inf


def _require_counts(parties: int, corrupt: int, absent: int) -> None:
    if parties < FEWEST:
        raise InputError(f"a masked sum needs {FEWEST} parties or more, got {parties}; let parties hide their answers")
    if corrupt < 0 or absent < 0 or corrupt + absent >= parties:
        raise InputError(
            f"of {parties} parties {corrupt} corrupt and {absent} absent ones leave nobody; plan for fewer of them"
        )
