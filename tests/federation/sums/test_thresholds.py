"""Neighbours and thresholds: as counted with whole numbers, and as tables of them were computed elsewhere."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.secure_aggregation import plan as thresholds
from federation.secure_aggregation.plan import Neighbourhood, complete_threshold, least_threshold, neighbourhood

# Parties, corrupt share, absent share: neighbours/threshold for 40 bits, from a search with other code.
SEMI_HONEST = {
    (10, 0.2, 0.1): "9/3",
    (50, 0.1, 0.1): "49/6",
    (200, 0.05, 0.05): "22/11",
    (200, 0.33, 0.3): "120/64",
    (1000, 0.1, 0.1): "52/28",
    (10**4, 0.2, 0.3): "204/93",
    (10**6, 0.1, 0.1): "70/37",
}
ACTIVE = {
    (10, 0.33, 0.1): "9/7",
    (50, 0.2, 0.3): "49/30",
    (200, 0.05, 0.05): "54/44",
    (200, 0.1, 0.1): "104/84",
    (200, 0.2, 0.3): "199/120",
    (1000, 0.1, 0.1): "352/284",
    (1000, 0.2, 0.1): "614/523",
    (10**6, 0.05, 0.05): "248/201",
}


def found(parties: int, corrupt: float, absent: float, adversary: str, bits: int | None) -> Neighbourhood:
    return neighbourhood(parties, math.ceil(corrupt * parties), math.ceil(absent * parties), adversary, bits)


@pytest.mark.parametrize(("adversary", "table"), [("semi_honest", SEMI_HONEST), ("active", ACTIVE)])
def test_tables(adversary: str, table: dict) -> None:
    for (parties, corrupt, absent), wanted in table.items():
        one = found(parties, corrupt, absent, adversary, 40)
        assert f"{one.neighbours}/{one.threshold}" == wanted


def exact_tail(others: int, marked: int, drawn: int, above: int) -> Fraction:
    """P[more than `above` marked], in whole numbers."""
    ways = sum(math.comb(marked, i) * math.comb(others - marked, drawn - i) for i in range(above + 1, drawn + 1))
    return Fraction(ways, math.comb(others, drawn))


def does(parties: int, corrupt: int, absent: int, neighbours: int, adversary: str, bits: int) -> tuple | None:
    """The threshold and the three failure probabilities, exactly, if so many neighbours do."""
    most = next(
        c
        for c in range(neighbours + 1)
        if parties * exact_tail(parties - 1, corrupt, neighbours, c) <= Fraction(1, 2**bits)
    )
    threshold = most + 1 if adversary == "semi_honest" else (2 * neighbours + 2 * most + 2) // 3 + 1
    if threshold > neighbours:
        return None
    gone = parties * exact_tail(parties - 1, absent, neighbours, neighbours - threshold)
    cut = Fraction(parties**2, 2)
    for place in range(neighbours):
        cut *= Fraction(max(0, corrupt + absent - place), parties - place)
    if gone > Fraction(1, 2**30) or (adversary == "semi_honest" and cut > Fraction(1, 2**bits)):
        return None
    return threshold, parties * exact_tail(parties - 1, corrupt, neighbours, most), gone, cut


@pytest.mark.parametrize(
    ("parties", "corrupt", "absent", "adversary", "bits"),
    [
        (100, 5, 5, "semi_honest", 40),
        (200, 20, 10, "active", 40),
        (200, 10, 10, "active", 80),
        (151, 8, 3, "active", 40),
    ],
)
def test_the_least_number_of_neighbours_by_whole_numbers(parties, corrupt, absent, adversary, bits) -> None:
    one = neighbourhood(parties, corrupt, absent, adversary, bits)
    exact = does(parties, corrupt, absent, one.neighbours, adversary, bits)
    assert exact is not None
    assert exact[0] == one.threshold
    for log, chance in zip((one.log_corrupt, one.log_absent), exact[1:3], strict=True):
        assert 2.0**log == pytest.approx(float(chance), rel=1e-9)
    if adversary == "semi_honest":
        assert 2.0**one.log_cut == pytest.approx(float(exact[3]), rel=1e-9)
    fewer = range(max(2, one.neighbours - 12), one.neighbours, 2)
    assert not any(does(parties, corrupt, absent, neighbours, adversary, bits) for neighbours in fewer)


def test_few_parties_are_all_neighbours() -> None:
    for parties in range(3, 51):
        corrupt = math.ceil(0.1 * parties)
        one = neighbourhood(parties, corrupt, 0, "active")
        assert one.neighbours == parties - 1
        # Two lists that `threshold` of all parties sign each share an honest signer; one less and they need not.
        assert 2 * one.threshold >= parties + corrupt
        assert 2 * (one.threshold - 1) < parties + corrupt
    survived = {
        parties: parties - 1 - complete_threshold(parties, 1, "active") for parties in (3, 4, 5, 6, 7, 8, 10, 15, 20)
    }
    assert survived == {3: 0, 4: 0, 5: 1, 6: 1, 7: 2, 8: 2, 10: 3, 15: 6, 20: 8}


def test_the_bound_of_a_party_is_that_of_the_plan() -> None:
    one = neighbourhood(1000, 50, 50, "active")
    assert least_threshold(1000, 50, one.neighbours, "active") == one.threshold
    assert least_threshold(1000, 100, one.neighbours, "active") > one.threshold


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: neighbourhood(2, 1, 0, "active"), "needs 3 parties or more, got 2"),
        (lambda: neighbourhood(3, 1, 1, "active"), "no masked sum of 3 parties .* survives 1 absent"),
        (lambda: neighbourhood(10, 6, 5, "active"), "leave nobody"),
        (lambda: neighbourhood(2000, 800, 600, "active"), "servers: two"),
        (lambda: neighbourhood(10, 6, 4, "active"), "leave nobody"),
        (lambda: neighbourhood(10, -1, 4, "active"), "-1 corrupt"),
        (lambda: neighbourhood(10, 4, -1, "active"), "-1 absent"),
        (lambda: least_threshold(100, 100, 20, "active"), "leave nobody"),
        (lambda: least_threshold(50, 5, 40, "active"), "of more than 50 parties, an even number"),
        (lambda: least_threshold(100, 10, 51, "active"), "even number below that, got 51"),
        (lambda: least_threshold(100, 10, 4, "active"), "4 neighbours are too few"),
    ],
)
def test_what_cannot_be_is_refused(call, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()


@pytest.mark.parametrize(("others", "marked", "drawn"), [(9, 4, 6), (9, 4, 4), (9, 0, 3), (9, 9, 3), (20, 12, 12)])
def test_tails_by_whole_numbers(others: int, marked: int, drawn: int) -> None:
    exact = [float(exact_tail(others, marked, drawn, above)) for above in range(drawn + 1)]
    assert thresholds._tails(others, marked, drawn) == pytest.approx(exact, abs=1e-14)


@pytest.mark.parametrize(
    ("parties", "absent", "adversary", "wanted"),
    [(100, 0, "active", (4, 4)), (100, 0, "semi_honest", (2, 1)), (10, 2, "active", (9, 5))],
)
def test_where_nobody_is_corrupt_the_fewest_neighbours_do(parties, absent, adversary, wanted) -> None:
    one = neighbourhood(parties, 0, absent, adversary)
    assert (one.neighbours, one.threshold) == wanted
    assert least_threshold(parties, 0, one.neighbours, adversary) == one.threshold


def test_bad_places_as_many_as_neighbours_may_cut_the_ring_and_fewer_cannot() -> None:
    exact = Fraction(100**2, 2) * Fraction(math.factorial(6), math.perm(100, 6))
    assert 2.0 ** thresholds._log_cut(100, 6, 6) == pytest.approx(float(exact), rel=1e-9)
    assert thresholds._log_cut(100, 5, 6) == -math.inf


@pytest.mark.parametrize(("parties", "served"), [(100, True), (101, False)])
def test_who_finds_no_ring_takes_all_others_up_to_a_limit(monkeypatch, parties: int, served: bool) -> None:
    monkeypatch.setattr(thresholds, "MOST_NEIGHBOURS", 99)
    if served:
        assert neighbourhood(parties, 20, 29, "active").neighbours == 99
    else:
        with pytest.raises(InputError, match="take two servers"):
            neighbourhood(parties, 20, 29, "active")


def test_in_random_rings_hardly_any_party_has_more_corrupt_neighbours() -> None:
    random, parties, corrupt = np.random.default_rng(0), 400, 40
    one = neighbourhood(parties, corrupt, 20, "active", bits=10)  # a chance that can be seen
    away = np.r_[-one.neighbours // 2 : 0, 1 : one.neighbours // 2 + 1]
    worse = 0
    for _ in range(300):
        bad = np.zeros(parties, dtype=bool)
        bad[random.permutation(parties)[:corrupt]] = True
        worse += (bad[(np.arange(parties)[:, None] + away) % parties].sum(axis=1) > one.corrupt)[~bad].any()
    assert worse <= 4
