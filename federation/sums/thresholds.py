"""How many neighbours a party of a masked sum has, and how many of them must help to unmask it.

Parties stand in a ring in random order, and k of them, half on either side, are a party's neighbours. C of all K are
corrupt, and an honest party has at most c corrupt neighbours but with a probability of 2^-bits for all K together:
their number is hypergeometric. t neighbours recover a party's secret.

- A server that follows the protocol: t = c + 1, and honest parties that are there must not fall apart into two arcs.
- A server that does not: t = floor((2k + 2c + 2)/3) + 1. Below that it may tell one arc of the ring another list of the
  living than the next, and unmask two sums. Where everybody is everybody's neighbour: t = ceil((K + C)/2), as two lists
  that t parties sign each would share an honest signer.

As many neighbours as that must be there, and are, but with a probability of 2^-30 for all parties together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.special import gammaln

from federation.contract.errors import InputError
from federation.numerics.arrays import Floats

Adversary = Literal["semi_honest", "active"]

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
def least_threshold(parties: int, corrupt: int, neighbours: int, adversary: Adversary, bits: int | None = None) -> int:
    """The least number of neighbours that may unmask a party, as each party must insist on by its own count of parties.

    `neighbours`: even, or all others. Raises `InputError` where so few neighbours leave no bound on corrupt ones.

    Examples:
        >>> least_threshold(1000, 100, 352, "active", bits=40), least_threshold(10, 1, 9, "active")
        (284, 6)
    """
    _require_counts(parties, corrupt, 0)
    if neighbours == parties - 1:
        return complete_threshold(parties, corrupt, adversary)
    if neighbours % 2 or not 2 <= neighbours < parties - 1 or parties <= COMPLETE:
        raise InputError(
            f"neighbours must be all {parties - 1} other parties or, of more than {COMPLETE} parties, an even number "
            f"below that, got {neighbours}"
        )
    wanted = BITS[adversary] if bits is None else bits
    within = _most_within(_tails(parties - 1, corrupt, neighbours), parties, wanted)
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
