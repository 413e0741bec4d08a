"""Secrets recovered from shares, some of them false, and what masks are left."""

from __future__ import annotations

import secrets

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from aggregator.secure_aggregation.server import Revealed, remaining_masks
from federation.contract.errors import InputError, QuorumError
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation import masks as shamir
from federation.secure_aggregation.messages import PAIR, SELF, Table, as_cells
from federation.secure_aggregation.plan import KEY, Roster, neighbours, planned

PARTIES = 9
PLAN = planned("00" * 32, Roster(tuple(bytes([n]) * KEY for n in range(PARTIES))), 4, quorum=0.8, absent=0.0)
AROUND = neighbours(PLAN, np.arange(PARTIES))
SECRETS = [secrets.token_bytes(32) for _ in range(PARTIES)]
SHARES = [shamir.split([one], PLAN.threshold, 8, secrets.token_bytes(32))[0] for one in SECRETS]
CHECKS = as_cells([keys.check_of(one) for one in SECRETS], 16)
PUBLIC = as_cells([bytes(32) + keys.public(X25519PrivateKey.from_private_bytes(one)) for one in SECRETS], 64)
NOBODY, ALL = np.zeros(PARTIES, dtype=bool), np.ones(PARTIES, dtype=bool)


def revealed(kind: int, liars=(), givers=range(PARTIES), owners=range(PARTIES)) -> Revealed:
    found = Revealed(PLAN, AROUND)
    for giver in givers:
        near = [owner for owner in owners if owner != giver]
        cells = []
        for owner in near:
            share = SHARES[owner][AROUND[owner].tolist().index(giver)].tobytes()
            cells.append(bytes([kind]) + (bytes(36) if giver in liars else share))
        found.take(giver, Table(np.array(near), as_cells(cells, 37)).packed())
    return found


def test_both_kinds_are_recovered(monkeypatch) -> None:
    monkeypatch.delattr(Revealed, "_mended")  # true shares need none of it
    assert PLAN.threshold == 5
    assert revealed(SELF).recovered(ALL, NOBODY, CHECKS, PUBLIC) == (dict(enumerate(SECRETS)), {})
    assert revealed(PAIR).recovered(NOBODY, ALL, CHECKS, PUBLIC) == ({}, dict(enumerate(SECRETS)))


@pytest.mark.parametrize("liar", [0, 3, 8])
def test_one_liar_is_found(liar: int) -> None:
    found = revealed(SELF, liars=[liar])
    assert found.recovered(ALL, NOBODY, CHECKS, PUBLIC)[0] == dict(enumerate(SECRETS))
    assert found.liars == {liar}
    found = revealed(PAIR, liars=[liar])
    assert found.recovered(NOBODY, ALL, CHECKS, PUBLIC)[1] == dict(enumerate(SECRETS))


def test_without_a_share_to_spare_a_false_one_ends_the_sum() -> None:
    only = np.arange(PARTIES) == 0
    found = revealed(SELF, liars=[1], givers=range(1, 6), owners=[0])
    with pytest.raises(QuorumError, match="true shares"):
        found.recovered(only, NOBODY, CHECKS, PUBLIC)
    assert found.liars == set()
    with pytest.raises(QuorumError, match="too few of a party's neighbours revealed shares"):
        revealed(SELF, givers=range(1, 5), owners=[0]).recovered(only, NOBODY, CHECKS, PUBLIC)
    with pytest.raises(QuorumError, match="revealed shares to unmask"):  # shares of the other kind
        revealed(PAIR, owners=[0]).recovered(only, NOBODY, CHECKS, PUBLIC)
    with pytest.raises(QuorumError, match="revealed shares to unmask"):
        revealed(PAIR, givers=range(1, 5), owners=[0]).recovered(NOBODY, only, CHECKS, PUBLIC)


@pytest.mark.parametrize("liars", [[1, 2], [2, 7, 4]])
def test_several_liars_are_found(liars: list[int]) -> None:
    """Three of eight are false at most, and five must be true."""
    only = np.arange(PARTIES) == 0
    found = revealed(SELF, liars=liars, owners=[0])
    assert found.recovered(only, NOBODY, CHECKS, PUBLIC)[0] == {0: SECRETS[0]}
    assert found.liars == set(liars)


def test_a_false_check_of_its_own_names_the_party() -> None:
    checks = CHECKS.copy()
    checks[3] ^= 1
    with pytest.raises(QuorumError, match="party number 3 revealed true shares, or it told a false check"):
        revealed(SELF).recovered(ALL, NOBODY, checks, PUBLIC)


def test_as_many_true_shares_as_are_needed_are_enough() -> None:
    only = np.arange(PARTIES) == 0
    found = revealed(SELF, givers=range(1, 6), owners=[0])
    assert found.recovered(only, NOBODY, CHECKS, PUBLIC)[0] == {0: SECRETS[0]}


def test_who_lied_to_one_neighbour_is_believed_by_no_other() -> None:
    """One share to spare is enough to find a liar; those of the next party are then taken from the others alone."""
    two, givers = np.isin(np.arange(PARTIES), [0, 1]), [2, 3, 4, 5, 6, 7]
    found = revealed(SELF, liars=[3], givers=givers, owners=[0, 1])
    assert found.recovered(two, NOBODY, CHECKS, PUBLIC)[0] == {0: SECRETS[0], 1: SECRETS[1]}
    assert found.liars == {3}


def test_a_second_liar_whose_share_is_not_needed_is_found() -> None:
    first, second = AROUND[0][1], AROUND[0][PLAN.threshold + 1]
    only = np.arange(PARTIES) == 0
    found = revealed(SELF, liars=[first, second], owners=[0])
    assert found.recovered(only, NOBODY, CHECKS, PUBLIC)[0] == {0: SECRETS[0]}
    assert found.liars == {first, second}


def test_shares_of_strangers_are_refused() -> None:
    with pytest.raises(InputError, match="stranger"):
        Revealed(PLAN, AROUND).take(3, Table(np.array([3]), as_cells([bytes(37)], 37)).packed())


def test_masks_of_one_absent_party() -> None:
    live = np.arange(PARTIES) != 4
    included = np.ones((PARTIES, 8), dtype=bool)
    included[6, AROUND[6] == 4] = False  # party 6 has left its mask with party 4 out
    left = remaining_masks(PLAN, {0: SECRETS[0]}, {4: SECRETS[4]}, live, included, AROUND, PUBLIC)
    wanted = keys.stream(SECRETS[0], 4).copy()
    for other in (0, 1, 2, 3, 5, 7, 8):
        key = X25519PrivateKey.from_private_bytes(SECRETS[other])
        mask = keys.stream(keys.mask_key(keys.shared(key, PUBLIC[4, 32:].tobytes()), PLAN.digest, other, 4), 4)
        wanted = wanted + mask if other < 4 else wanted - mask
    assert (left == wanted).all()


def test_a_key_that_gives_nothing_secret_has_no_masks_in_a_sum() -> None:
    """A counted party may say so of itself, to have the last step fail."""
    public = PUBLIC.copy()
    public[0, 32:] = 0
    included = np.ones((PARTIES, 8), dtype=bool)
    with pytest.raises(InputError, match="gives nothing secret"):
        remaining_masks(PLAN, {}, {4: SECRETS[4]}, np.arange(PARTIES) != 4, included, AROUND, public)
