"""What a masked sum costs each side: how often it uses which primitive operation, and bytes, by the plan alone.

Times of primitive operations are measured on the machine at hand (`timed`); their products with the counts leave out
what Python adds between them, which `python -m benchmarks.secure_sums` measures beside them.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from federation.secure_aggregation import masks as keys
from federation.secure_aggregation import masks as shamir
from federation.secure_aggregation.masks import CHECK, SIGNATURE
from federation.secure_aggregation.messages import LETTER, RECEIPT, keys_width, receipt_width
from federation.secure_aggregation.plan import SumPlan

Counts = Mapping[str, float]

EXCHANGE, PUBLIC, SIGN, VERIFY = "X25519 exchange", "X25519 public key", "Ed25519 signature", "Ed25519 check"
DERIVE, SEAL, OPEN, STREAM = "HKDF", "AES-GCM sealing", "AES-GCM opening", "ChaCha20 mask"
SPLIT, RECOVER = "Shamir splitting", "Shamir recovery"

_SECONDS, _ROUNDS = 0.1, 5  # for which operations are timed at least
_NUMBER = 4  # bytes of a party's number in a table
_BATCH = 50  # secrets recovered at once


@dataclass(frozen=True)
class SumCosts:
    """Of one party on average, where all answer the first two queries and `absent` of them not the third.

    Counts of operations of a party (of those that stay), of the server per party, and of the second server per party;
    bytes that a party sends and receives, and that go to the second server.
    """

    party: Counts
    server: Counts
    second: Counts
    up: float
    down: float
    across: float = 0.0


def sum_costs(plan: SumPlan, absent: float) -> SumCosts:
    """`absent`: the share of the parties that are silent from the third query on (with two servers: from the first).

    Examples:
        >>> from federation.secure_aggregation.plan import Roster, planned
        >>> plan = planned("00" * 32, Roster((bytes(32),) * 1000), 50, 0.9, 0.1, adversary="semi_honest")
        >>> costs = sum_costs(plan, 0.1)
        >>> plan.neighbours, costs.party["X25519 exchange"], costs.up, costs.down
        (52, 104, 7403, 8696)
    """
    integers, bits = 8 * plan.numbers, -(-plan.parties // 8)
    if plan.second:
        uploading = {PUBLIC: 1, EXCHANGE: 1, DERIVE: 1, STREAM: 1, SIGN: 1}
        second = {VERIFY: 1, EXCHANGE: 1, DERIVE: 1, STREAM: 1}
        return SumCosts(uploading, {VERIFY: 1}, second, integers + 96, len(plan.packed()), RECEIPT + _NUMBER)
    near, live = plan.neighbours, plan.neighbours * (1 - absent)
    party: dict[str, float] = {
        PUBLIC: 2,
        DERIVE: 4 + 2 * near,
        EXCHANGE: 2 * near,
        SPLIT: 1,
        SEAL: near,
        OPEN: near,
        STREAM: 1 + near,
    }
    server = {STREAM: 1 - absent + absent * live, RECOVER: 1.0, PUBLIC: absent}
    server |= {EXCHANGE: absent * live, DERIVE: absent * live}
    up: float = keys_width(plan) + CHECK + (LETTER + _NUMBER) * near + integers + receipt_width(plan)
    up += (1 + shamir.SHARE + _NUMBER) * near
    down: float = len(plan.packed()) + (keys_width(plan) + _NUMBER) * near + (LETTER + _NUMBER) * near
    if plan.signed:
        party |= {VERIFY: near + live + plan.threshold, SIGN: 3}
        server[VERIFY] = 3 - 2 * absent
        up += SIGNATURE
        down += bits + (receipt_width(plan) + SIGNATURE + 2 * _NUMBER) * live
    else:
        down += _NUMBER + plan.within
    return SumCosts(party, server, {}, up, down)


def seconds(counts: Counts, times: Mapping[str, float]) -> float:
    """Of so many operations, one after the other."""
    return sum(count * times[name] for name, count in counts.items())


def timed(plan: SumPlan) -> dict[str, float]:
    """Seconds of processor time of each primitive operation here and now, for sums of this plan.

    They are done in turns, each as often at a stretch as a party does it: once, or for all of its neighbours. Many
    times in a loop of its own an operation takes less, as the processor then remembers all that it needs for it.
    """
    own, other, signing = X25519PrivateKey.generate(), X25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    theirs, secret, content = keys.public(other), secrets.token_bytes(32), bytes(64)
    verifying = signing.public_key().public_bytes_raw()
    said, letter = keys.signature(signing, secret, "sent", 1, content), bytes(2 * shamir.SHARE)
    sealed = keys.sealed(secret, 1, 2, letter)
    integers = keys.stream(secret, plan.numbers)
    fresh = X25519PrivateKey.generate if plan.second else lambda: X25519PrivateKey.from_private_bytes(secret)
    calls: dict[str, Callable[[], Any]] = {
        PUBLIC: lambda: keys.public(fresh()),
        EXCHANGE: lambda: keys.shared(own, theirs),
        DERIVE: lambda: keys.mask_key(secret, secret, 1, 2),
        STREAM: lambda: integers + keys.stream(secret, plan.numbers),
        SIGN: lambda: keys.signature(signing, secret, "sent", 1, content),
        VERIFY: lambda: keys.signed(verifying, said, secret, "sent", 1, content),
    }
    if plan.second:
        return _in_turns(calls, dict.fromkeys(calls, 1))
    own_secrets, near, threshold = [secret, content[:32]], plan.neighbours, plan.threshold
    parts = shamir.split(own_secrets, threshold, near, secret)[0]
    random = np.random.default_rng(0)
    places = np.array([np.sort(random.permutation(near)[:threshold]) for _ in range(_BATCH)])
    calls |= {
        SEAL: lambda: keys.sealed(secret, 1, 2, letter),
        OPEN: lambda: keys.opened(secret, 1, 2, sealed),
        SPLIT: lambda: shamir.split(own_secrets, threshold, near, secret),
        RECOVER: lambda: shamir.recovered(parts[places], places + 1),
    }
    found = _in_turns(calls, {name: 1 if name in (PUBLIC, SIGN, SPLIT, RECOVER) else near for name in calls})
    return {**found, RECOVER: found[RECOVER] / _BATCH}


def _in_turns(calls: Mapping[str, Callable[[], Any]], stretches: Mapping[str, int]) -> dict[str, float]:
    """Processor time of one of each of these calls, the median over rounds."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    began, rounds = time.process_time(), 0
    while rounds < _ROUNDS or time.process_time() - began < _SECONDS:
        for name, call in calls.items():
            before, start = time.process_time(), time.process_time()  # what lies between is the clock's own
            for _ in range(stretches[name]):
                call()
            found[name].append((time.process_time() - 2 * start + before) / stretches[name])
        rounds += 1
    return {name: median(times) for name, times in found.items()}
