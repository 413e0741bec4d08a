"""Recovers the secrets that parties' neighbours reveal shares of, and computes the masks that are left in a sum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from federation.contract.errors import InputError, QuorumError
from federation.numerics.rows import Booleans, Integers
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation import masks as shamir
from federation.secure_aggregation.masks import Words
from federation.secure_aggregation.messages import PAIR, SELF, Table
from federation.secure_aggregation.plan import KEY, SumPlan

_ATTEMPTS = 2000  # at random: they find t true shares almost surely where 4 of 19 are false and t is 11


class Revealed:
    """Shares as they arrive, by whose secret they are of and where the neighbour stands who held them.

    A secret is recovered from t shares. One that its owner's check contradicts is tried with others, at random: where
    few are false, and more than t came, they are found.
    """

    def __init__(self, plan: SumPlan, around: Integers) -> None:
        parties, near = around.shape
        self._plan, self._around = plan, around
        self._shares = np.zeros((0, near, shamir.SHARE), dtype=np.uint8)
        self._kinds = np.full((parties, near), -1, dtype=np.int8)
        self.liars: set[int] = set()

    def take(self, party: int, answer: bytes) -> None:
        """What a party reveals. Raises `InputError` for what is no table of shares of its neighbours."""
        table = Table.read(answer, 1 + shamir.SHARE, self._plan)
        places = {number: place for place, number in enumerate(self._around[party].tolist())}
        if not all(number in places for number in table.numbers.tolist()):
            raise InputError("an answer in a masked sum names a stranger as a neighbour")
        if not len(self._shares):
            self._shares = np.zeros((*self._kinds.shape, shamir.SHARE), dtype=np.uint8)
        mirrored = np.array(
            [self._plan.neighbours - 1 - places[number] for number in table.numbers.tolist()], dtype=int
        )
        self._kinds[table.numbers, mirrored] = table.cells[:, 0]
        self._shares[table.numbers, mirrored] = table.cells[:, 1:]

    def recovered(
        self, live: Booleans, absent: Booleans, checks: np.ndarray, public: np.ndarray
    ) -> tuple[dict[int, bytes], dict[int, bytes]]:
        """Of those who are counted the secret of their own mask, of the absent that behind shared ones, by number.

        `checks` (K, 16), `public` (K, 64 or more) with the public key of shared masks from byte 32. Raises
        `QuorumError` where too few true shares came.
        """

        def own(party: int, secret: bytes) -> bool:
            return bool(keys.check_of(secret) == checks[party].tobytes())

        def pair(party: int, secret: bytes) -> bool:
            told = keys.public(X25519PrivateKey.from_private_bytes(secret))
            return bool(told == public[party, KEY : 2 * KEY].tobytes())

        return self._of(np.flatnonzero(live), SELF, own), self._of(np.flatnonzero(absent), PAIR, pair)

    def _of(self, parties: Integers, kind: int, right: Callable[[int, bytes], bool]) -> dict[int, bytes]:
        threshold = self._plan.threshold
        came = self._kinds[parties] == kind
        if (came.sum(axis=1) < threshold).any():
            raise QuorumError("too few of a party's neighbours revealed shares to unmask the sum; nothing is released")
        chosen = np.argsort(~came, axis=1, kind="stable")[:, :threshold]
        found = shamir.recovered(self._shares[parties[:, None], chosen], chosen + 1)
        return {
            party: secret if secret is not None and right(party, secret) else self._mended(party, kind, right)
            for party, secret in zip(parties.tolist(), found, strict=True)
        }

    def _mended(self, party: int, kind: int, right: Callable[[int, bytes], bool]) -> bytes:
        """The secret from shares that are true; notes who gave others. Raises `QuorumError` where it is not found."""
        true = np.array([number not in self.liars for number in self._around[party].tolist()])
        places = np.flatnonzero((self._kinds[party] == kind) & true)
        random = np.random.default_rng()  # liars should not know which are tried
        for _ in range(_ATTEMPTS):
            some = random.permutation(places)[: self._plan.threshold]
            if secret := self._from(party, some, right):
                for other in np.setdiff1d(places, some).tolist():
                    if not self._from(party, np.append(some[1:], other), right):
                        self.liars.add(int(self._around[party, other]))
                return secret
        raise QuorumError(
            f"too few neighbours of party number {party} revealed true shares, or it told a false check of its own "
            "secret; nothing is released. If it goes on, plan a sum without that party"
        )

    def _from(self, party: int, places: Integers, right: Callable[[int, bytes], bool]) -> bytes | None:
        secret = shamir.recovered(self._shares[party, places][None], places[None] + 1)[0]
        return secret if secret is not None and right(party, secret) else None


def remaining_masks(
    plan: SumPlan,
    own: dict[int, bytes],
    pairs: dict[int, bytes],
    live: Booleans,
    included: Booleans,
    around: Integers,
    public: np.ndarray,
) -> Words:
    """What masks add to the sum of those who are `live` (K,): their own, and those shared with who is absent.

    `included` (K, k): whose masks are in a party's integers; `public` (K, 64 or more) as `Revealed.recovered` has it.
    """
    total = np.zeros(plan.numbers, dtype=np.uint64)
    for secret in own.values():
        total += keys.stream(secret, plan.numbers)
    mirror = plan.neighbours - 1 - np.arange(plan.neighbours)
    for absent, secret in pairs.items():
        key = X25519PrivateKey.from_private_bytes(secret)
        beside = around[absent]
        for party in beside[live[beside] & included[beside, mirror]].tolist():
            common = keys.shared(key, public[party, KEY : 2 * KEY].tobytes())
            if common is None:
                raise InputError("a counted party's public key gives nothing secret; its masks cannot be in the sum")
            mask = keys.stream(keys.mask_key(common, plan.digest, party, absent), plan.numbers)
            total = total + mask if party < absent else total - mask
    return total
