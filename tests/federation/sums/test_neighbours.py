"""Who is whose neighbour."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from federation.secure_aggregation.plan import KEY, Roster, neighbours, planned

ROSTER = Roster(tuple(number.to_bytes(KEY, "little") for number in range(80)))
RING = planned("00" * 32, ROSTER, 1, quorum=0.8, absent=0.05, adversary="semi_honest")
COMPLETE = planned("00" * 32, Roster(ROSTER.keys[:7]), 1, quorum=0.8, absent=0.0)


@pytest.mark.parametrize("plan", [RING, COMPLETE])
def test_neighbours_are_mutual_and_at_mirrored_positions(plan) -> None:
    around = neighbours(plan, np.arange(plan.parties))
    assert around.shape == (plan.parties, plan.neighbours)
    for party, near in enumerate(around.tolist()):
        assert party not in near
        assert len(set(near)) == plan.neighbours
        assert near == neighbours(plan, party).tolist()
        for position, other in enumerate(near):
            assert around[other, plan.neighbours - 1 - position] == party


def test_they_are_those_who_stand_beside_a_party_in_a_ring() -> None:
    assert RING.neighbours < 79
    around = {party: set(near) for party, near in enumerate(neighbours(RING, np.arange(80)).tolist())}
    shared = [len(around[0] & around[other]) for other in range(1, 80)]
    assert sorted(shared)[-2:] == [RING.neighbours - 2] * 2  # of the next on either side all but the two ends


def test_another_plan_is_another_ring() -> None:
    other = replace(RING, nonce="11" * 16)
    assert neighbours(other, 0).tolist() != neighbours(RING, 0).tolist()
