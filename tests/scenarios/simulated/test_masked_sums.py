"""Totals of masked sums are the plain sums, exactly, whoever stays away when; beyond the plan there is none."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from support.masked_sums import QUESTION, parts

from federation.contract.errors import QuorumError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise.additive import AdditiveMechanism, calibrate, calibrate_laplace
from federation.mechanisms.sums import shares
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation.plan import SumPlan, Terms, planned
from parties.secure_aggregation.party import ProcessMemory, UnmaskingServer
from scenarios.simulated.secure_aggregation import (
    enrolled,
    masked_parties,
    masked_total,
    uploaded_total,
    uploading_parties,
)

NEVER = 5  # no query has this number


def outcome(plan: SumPlan, values: np.ndarray, held, terms: Terms, stages: Sequence[int]):
    """The total and who is counted, if party u is silent from query `stages[u]` on; None without a total."""
    parties = masked_parties(held, terms, lambda number, plan: values[number])
    silent = {query: [number for number, stage in enumerate(stages) if stage == query] for query in range(5)}
    try:
        found = masked_total(plan, terms, parties, silent)
    except QuorumError:
        return None
    return found.values, found.counted


def expected(plan: SumPlan, values: np.ndarray, stages: Sequence[int]):
    """The same by counting, where everybody is everybody's neighbour."""
    left = [np.array(stages) > query for query in range(5)]
    if not plan.signed:
        left[3] = left[2]
    needed, least = plan.threshold, plan.least
    live = left[2]
    late = (left[1] & ~live).any()  # their masks are in what is sent
    for there, wanted in zip(left, (least, least, least, 0, 0), strict=True):
        if there.sum() < max(wanted, needed):
            return None
    if left[0].sum() <= needed or left[1].sum() <= needed:
        return None
    for signing in left[3:]:
        helpers = signing.sum() - signing
        if (helpers[live] < needed).any() or (late and signing.sum() < needed):
            return None
    return values[live].sum(axis=0), live


def agree(found, wanted) -> bool:
    if found is None or wanted is None:
        return found is wanted
    return bool((found[0] == wanted[0]).all() and (found[1] == wanted[1]).all())


def all_patterns(parties: int, adversary: str, colluding: float, patterns) -> int:
    """Compares them all; how many give a total."""
    held, roster = enrolled(parties)
    terms, values = Terms(roster, colluding, adversary), parts(parties, 2)
    totals = 0
    for stages in patterns:
        plan = planned(QUESTION, roster, 2, 0.6, 0.0, colluding, adversary)
        found = outcome(plan, values, held, terms, stages)
        assert agree(found, expected(plan, values, stages)), stages
        totals += found is not None
    return totals


def test_three_parties_of_whom_one_may_collude_must_all_stay() -> None:
    # Whoever has revealed its shares may go; two neighbours of each party must do so.
    assert all_patterns(3, "active", 0.1, product([0, 1, 2, 3, 4, NEVER], repeat=3)) == 1


def test_three_parties_without_colluders_lose_one_at_any_query() -> None:
    patterns = product([0, 1, 2, 4, NEVER], repeat=3)
    assert all_patterns(3, "semi_honest", 0.0, patterns) > 5


@pytest.mark.parametrize("adversary", ["active", "semi_honest"])
def test_some_of_five_parties_are_silent_from_one_query_on(adversary: str) -> None:
    patterns = [
        [query if gone >> number & 1 else NEVER for number in range(5)]
        for query in ((2, 3) if adversary == "active" else (0, 1, 4))
        for gone in range(32)
    ]
    assert all_patterns(5, adversary, 0.1, patterns) > 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parties", "adversary"), [(4, "active"), (4, "semi_honest"), (5, "active"), (5, "semi_honest")]
)
def test_all_patterns_of_absence(parties: int, adversary: str) -> None:
    assert all_patterns(parties, adversary, 0.1, product([0, 1, 2, 3, 4, NEVER], repeat=parties)) > 0


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    parties=st.integers(3, 12),
    numbers=st.integers(1, 9),
    adversary=st.sampled_from(["active", "semi_honest"]),
    largest=st.sampled_from([1, 2**20, 2**58]),
)
def test_any_parts_and_absences(seed: int, parties: int, numbers: int, adversary: str, largest: int) -> None:
    random = np.random.default_rng(seed)
    held, roster = enrolled(parties)
    terms = Terms(roster, adversary=adversary)
    values = random.integers(-largest, largest, (parties, numbers), endpoint=True)
    plan = planned(QUESTION, roster, numbers, 0.7, 0.0, adversary=adversary)
    stages = random.choice([NEVER, *range(5)], parties, p=[0.8, *[0.04] * 5])
    if not plan.signed:
        stages[stages == 3] = NEVER
    assert agree(outcome(plan, values, held, terms, stages), expected(plan, values, stages))


def by_kind(kind: str) -> AdditiveMechanism:
    if kind == "discrete_laplace":
        return calibrate_laplace(l1_sensitivity=2.0, dimension=3, epsilon=0.5)
    noise = "pure" if kind == "l2_gamma" else "gaussian"
    return calibrate(noise, sensitivity=2.0, dimension=3, epsilon=0.5, delta=1e-6)


@pytest.mark.parametrize("kind", ["discrete_laplace", "discrete_gaussian", "l2_gamma"])
def test_shares_of_every_noise_add_up_exactly_in_a_ring(kind: str) -> None:
    mechanism, parties = by_kind(kind), 60
    held, roster = enrolled(parties)
    terms = Terms(roster, adversary="semi_honest")
    plan = planned(QUESTION, roster, 2 * 3, 0.8, 0.1, adversary="semi_honest")
    assert plan.neighbours < parties - 1
    values = np.random.default_rng(0).normal(size=(parties, 3))

    def noisy(number: int) -> np.ndarray:
        bits = NoiseBits(1, kind, number)
        return mechanism.rounded(values[number]) + shares.draw(mechanism, plan.contributors, bits, draws=2)

    own = masked_parties(held, terms, lambda number, plan: noisy(number).ravel())
    found = masked_total(plan, terms, own, {0: [3], 1: [7], 2: [11], 4: [13]})
    assert not found.counted[[3, 7, 11]].any()
    assert found.counted[13]
    plain = sum(noisy(number) for number in np.flatnonzero(found.counted).tolist())
    assert found.values.reshape(2, 3).tolist() == plain.tolist()


def test_beyond_the_planned_absences_nothing_is_released() -> None:
    held, roster = enrolled(60)
    terms = Terms(roster, adversary="semi_honest")
    plan = planned(QUESTION, roster, 2, 0.8, 0.1, adversary="semi_honest")
    own = masked_parties(held, terms, lambda number, plan: np.ones(2, dtype=np.uint64))
    with pytest.raises(QuorumError, match="47 parties are in the masked sum, and 48 of 60 are needed"):
        masked_total(plan, terms, own, {2: range(13)})
    assert all(party._memory.load(plan.digest).root == b"" for party in own)  # secrets are destroyed
    plan = planned(QUESTION, roster, 2, 0.8, 0.1, adversary="semi_honest")
    with pytest.raises(QuorumError, match="too few of a party's neighbours"):
        masked_total(plan, terms, own, {4: range(45)})


@pytest.mark.parametrize("parties", [3, 10, 1000])
def test_two_servers(parties: int) -> None:
    held, roster = enrolled(parties)
    key = X25519PrivateKey.generate()
    terms = Terms(roster, second=keys.public(key))
    plan = planned(QUESTION, roster, 4, 0.9, 0.0, second=terms.second)
    values = parts(parties, 4)
    own = uploading_parties(held, terms, lambda number, plan: values[number])
    silent = range(parties // 20)
    found = uploaded_total(plan, terms, own, UnmaskingServer(key, terms, ProcessMemory()), silent)
    assert (found.values == values[len(silent) :].sum(axis=0)).all()
    assert found.counted.sum() == parties - len(silent)


@pytest.mark.slow
@pytest.mark.parametrize(("parties", "adversary", "absent"), [(200, "active", 0.1), (1000, "semi_honest", 0.1)])
def test_many_parties_in_a_ring(parties: int, adversary: str, absent: float) -> None:
    held, roster = enrolled(parties)
    terms, values = Terms(roster, adversary=adversary), parts(parties, 5)
    plan = planned(QUESTION, roster, 5, 0.85, absent, adversary=adversary)
    stages = np.random.default_rng(1).permutation([NEVER] * (parties - parties // 10) + [0, 1, 2, 4] * (parties // 40))
    values_of = outcome(plan, values, held, terms, stages)
    live = stages > 2
    assert values_of is not None
    assert (values_of[0] == values[live].sum(axis=0)).all()
    assert (values_of[1] == live).all()
